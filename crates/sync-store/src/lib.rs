//! The server's storage: each user's messages, their *vault*.
//!
//! A vault is a grow-only set of messages keyed by timestamp. Each new message gets the next
//! sequence number, and "the messages after number n" is a range scan. The fingerprints of the
//! whole set and of each window of time are updated in the transaction that stores the messages.
//!
//! [`SyncStore`] defines the operations of a vault, [`GatewayStore`] those for other servers' apps.
//! [`Vaults`] opens vaults in their storage: as files of their own (`sqlite`), or as rows of a
//! PostgreSQL database (`postgres`).
//!
//! # Invariants
//! - A timestamp is in the set, the digests and the counts exactly once, or in none of them.
//! - The first content for a timestamp remains. A request with another one is refused as a whole;
//!   from a gateway, whose apps seal a message again when they resend it, only that message is
//!   skipped.
//! - Sequence numbers count up from 1 and are never reused. Rows are never deleted, except by a
//!   gateway that clears the vault; contents change only by [`SyncStore::erase`].
//!
//! # Not here
//! - Access to a vault, and its key → `accounts`. Batching, commits, open handles → `engine`.
#![forbid(unsafe_code)]

mod data_lock;
mod error;
mod postgres;
mod sqlite;
mod vault;
mod vaults;

pub use data_lock::DataDirLock;
pub use error::{BoxError, Error, Result, TIMESTAMPS_NAMED_MAX};
pub use postgres::{PostgresDatabase, plproxy_sql, schema_sql};
pub use sqlite::{APPLICATION_ID, VaultDamage, VaultFileSizes, VaultFiles};
pub use vault::batch::MessageBatch;
pub use vault::device::{DeviceActivity, VaultDevice};
pub use vault::gateway::{
    BlobChunkId, BlobId, CompleteBlob, ExchangeOutcome, GatewaySnapshot, GatewayStore,
    RepairStateFn, UpdateStateFn,
};
pub use vault::newest_timestamp::newest_timestamp;
pub use vault::reconcile::{RangeClaim, RangeDiff, RangeSummary, reconcile};
pub use vault::transfer::copy_vault;
pub use vault::{
    FingerprintCheck, LostMessages, MessageEntry, MessageErasure, MessagePage, Quota, RangeBucket,
    StoreOutcome, SyncStore, Vault, VaultLocation, VaultStatus, VaultSummary,
};
pub use vaults::Vaults;
