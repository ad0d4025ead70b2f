//! The device's side: an ordinary SQLite file whose tables sync.
//!
//! Triggers that need nothing but SQLite note which rows and cells any program changes, and when.
//! At the next sync those notes become messages, with the values that the cells then have; messages
//! of other devices are merged into the rows' state (`crdt::Row`), and the tables follow the state.
//!
//! ```text
//!  any program ─► tables ─triggers─► outbox ─stamp─► log ═══ sync ═══ server
//!                   ▲                                 │
//!                   └──────────── settle ◄── state ◄──┘ merge
//! ```
//!
//! # Invariants
//! - What is shown depends only on the set of messages: replicas that have seen the same messages
//!   hold the same rows (`docs/formats/2-message.md`).
//! - Local changes are stamped before remote ones are merged, in the same transaction: a change
//!   gets the time when it was made, and never overwrites what its author had not seen.
//! - A sync shows all at once or not at all.
//!
//! # Not here
//! - Which request comes next → `protocol::Round`. Flags and progress bars → `cli`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Links SQLite3 Multiple Ciphers under rusqlite.
use sqlite3mc_sys as _;

mod added_columns;
mod adopt;
mod affinity;
mod candidates;
mod capture;
mod codec;
mod comparison;
mod conflicts;
mod counted;
mod ddl;
mod declaration;
mod deleted;
mod devices;
mod edit;
mod erasure;
mod error;
mod exception;
mod form;
mod held;
mod history;
#[cfg(not(target_family = "wasm"))]
mod http;
mod identity;
mod json;
mod key;
mod left_out;
mod listening;
mod log;
mod merge;
mod meta;
mod obstacle;
mod parts;
mod phrase;
mod receipt;
mod receive;
mod references;
mod renumber;
mod replica;
mod report;
mod rules;
mod schema_change;
mod settle;
mod show;
mod sign_in;
mod stamp;
mod state;
mod status;
mod stream;
mod sync;
mod table;
mod track;
mod transport;
#[cfg(not(target_family = "wasm"))]
mod trust;
mod unique;
mod unseen;
mod value;
mod verify;

/// What a cell holds.
pub use crdt::Value;

pub use conflicts::{Conflict, Edit, Outcome};
pub use deleted::DeletedRow;
pub use edit::{CellEdit, EditOutcome};
pub use erasure::ErasureTarget;
pub use error::{Error, PhraseError, Result};
pub use held::{HeldRow, JoinedRow};
pub use history::{HistoryCell, HistoryEntry};
#[cfg(not(target_family = "wasm"))]
pub use http::Http;
pub use key::{FileKey, check_key};
#[cfg(not(target_family = "wasm"))]
pub use listening::Listening;
pub use listening::{Backoff, Ear, Heard, QUIET_MAX};
pub use obstacle::{Obstacle, ObstacleKind};
pub use phrase::Phrase;
pub use receipt::Receipt;
pub use renumber::Renumbered;
pub use replica::Replica;
pub use report::{Discrepancy, Refused, Report};
pub use status::{Exception, MissingConstraint, Remote, Status, TableStatus};
pub use stream::PageDecoder;
pub use sync::{Progress, SyncOptions};
pub use track::Tracked;
pub use transport::{ANSWER_BYTES_MAX, AsyncPages, AsyncTransport, Pull};
#[cfg(not(target_family = "wasm"))]
pub use transport::{PageStream, Transport};
#[cfg(not(target_family = "wasm"))]
pub use trust::TrustedRoots;
pub use verify::{Difference, DifferenceKind, Verification};
