//! The server's storage: each user's messages in an encrypted SQLite file of their own, the vault.
//!
//! A vault is a grow-only set of messages keyed by timestamp. Each new message gets the next
//! arrival number, and "what came after number n" is a range scan. The fingerprint of the whole set
//! is kept up to date in the transaction that stores the messages.
//!
//! # Invariants
//! - A timestamp is in the set, the digest and the count exactly once, or in none of them.
//! - The first content for a timestamp stays; a request with another one is refused as a whole.
//! - Arrival numbers count up from 1 without gaps: rows are never deleted.
//!
//! # Not here
//! - Who may open a vault, and its key → `accounts`. Batching, commits, open handles → `engine`.
#![forbid(unsafe_code)]

mod clients;
mod error;
mod schema;
mod vault;
mod vaults;

pub use clients::{Client, Seen};
pub use error::{Error, Result, TIMESTAMPS_NAMED_MAX};
pub use schema::APPLICATION_ID;
pub use vault::{Page, State, Status, Stored, Vault, Verification};
pub use vaults::Vaults;
