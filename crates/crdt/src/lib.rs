//! Defines the replicated data: timestamps, messages, last-write-wins rows, fingerprints.
//!
//! Everything here is a plain function or value. A device and the server use the same code.
//!
//! # Invariants
//! - Nothing here does I/O, reads a clock or draws random numbers: time and node ids are arguments.
//! - A codec accepts exactly what it produces (`docs/reference/formats/1-timestamp.md`,
//!   `2-message.md`, `9-sealed-content.md`).
//!
//! # Not here
//! - SQL → `replica` (devices) and `sync-store` (server). Wire types → `protocol`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod clock;
mod codec;
mod declaration;
mod erasure;
mod fingerprint;
mod large_value;
mod lost_edits;
mod message;
mod row_state;
mod seal;
mod timestamp;
mod value;
mod window;

pub use clock::{DRIFT_MS_MAX, HybridLogicalClock};
pub use codec::DecodeError;
pub use declaration::{
    Collation, ColumnDeclaration, ColumnDefault, ForeignKeyAction, ForeignKeyDeclaration,
    IndexDeclaration, LeftOut, LeftOutKind, TableDeclaration,
};
pub use fingerprint::Fingerprint;
pub use large_value::{CHUNK_BYTES, ChunkDigest, LargeValue, VALUE_BYTES_MAX, chunk_digest};
pub use lost_edits::{LostEdit, RowChanges, lost_edits};
pub use message::{CellWrite, Change, Message};
pub use row_state::{ColumnId, RowState};
pub use seal::{EncryptionMode, KeyId, SealKey, UnsealError, sealing_key_id};
pub use timestamp::{BackfillClock, NodeId, ParseTimestampError, Timestamp};
pub use value::Value;
pub use window::FingerprintWindow;
