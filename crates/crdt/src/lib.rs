//! The replicated data: timestamps, messages, last-write-wins rows, fingerprints.
//!
//! Everything here is a plain function or value. A device and the server use the same code.
//!
//! # Invariants
//! - Nothing here does I/O, reads a clock or draws random numbers: time and node ids are arguments.
//! - A codec accepts exactly what it produces (`docs/formats/1-timestamp.md`, `2-message.md`,
//!   `9-sealed-content.md`).
//!
//! # Not here
//! - SQL → `replica` (devices) and `sync-store` (server). Wire types → `protocol`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cell;
mod clock;
mod declaration;
mod erasure;
mod fingerprint;
mod large;
mod lost;
mod message;
mod seal;
mod timestamp;
mod value;
mod window;

pub use cell::{ColumnId, Row};
pub use clock::{Clock, DRIFT_MS_MAX};
pub use declaration::{
    Action, Collation, ColumnDeclaration, Declaration, DefaultValue, IndexDeclaration, LeftOut,
    LeftOutKind, Reference,
};
pub use fingerprint::Fingerprint;
pub use large::{Large, PART_BYTES, PartDigest, VALUE_BYTES_MAX, part_digest};
pub use lost::{LostEdit, RowChanges, lost_edits};
pub use message::{Cell, Change, DecodeError, Message};
pub use seal::{ContentForm, KeyId, OpenError, SealKey, sealed_with};
pub use timestamp::{Baseline, Node, ParseTimestampError, Timestamp};
pub use value::Value;
pub use window::Window;
