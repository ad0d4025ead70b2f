//! Syncs the tables of an ordinary SQLite file: the device's side of Warren.
//!
//! Triggers that need nothing but SQLite record in the outbox which rows and cells a program
//! changes, and when. At the next sync these changes become messages, with the values that the
//! cells then have. Messages of other devices are merged into the row states (`crdt::RowState`),
//! and the tables follow the row states.
//!
//! ```text
//!  any program ─► tables ─triggers─► outbox ─timestamping─► log ═══ sync ═══ server
//!                   ▲                                        │
//!                   └───────── materialize ◄── row states ◄──┘ merge
//! ```
//!
//! # Invariants
//! - The visible rows depend only on the set of messages: replicas that have seen the same messages
//!   hold the same rows (`docs/reference/formats/2-message.md`).
//! - Local changes are timestamped before remote ones are merged, in the same transaction: a change
//!   gets the time when it was made, and never overwrites what its author had not seen.
//! - A sync applies everything at once or nothing.
//!
//! # Not here
//! - The order of requests → `protocol::SyncRound`. Flags and progress bars → `cli`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Links SQLite3 Multiple Ciphers under rusqlite.
use sqlite3mc_sys as _;

mod apply;
mod capture;
mod connection_flags;
mod error;
mod file_identity;
mod file_key;
mod inspect;
mod log;
mod meta;
mod progress;
mod replica;
mod row_id;
mod schema;
mod sql_value;
mod sync;
mod tracking;
mod transport;

pub use apply::visibility_override::VisibilityOverrideKind;
pub use capture::renumber::RenumberedRow;
/// The value of a cell.
pub use crdt::Value;
pub use error::{Error, RecoveryPhraseError, Result, sqlite_code};
pub use file_key::{FileKey, check_key};
pub use inspect::change_origin::ChangeOrigin;
pub use inspect::conflicts::{Conflict, ConflictEdit};
pub use inspect::deleted::DeletedRow;
pub use inspect::edit::{CellEdit, EditOutcome};
pub use inspect::erasure::ErasureTarget;
pub use inspect::hidden_rows::{HiddenRow, MergedRow};
pub use inspect::history::{HistoryCell, HistoryEntry};
pub use inspect::replica_status::{OverriddenRow, RemoteStatus, ReplicaStatus, TableStatus};
pub use inspect::sync_status::SyncStatus;
pub use inspect::verify::{RowDifference, RowDifferenceKind, TablesVerification};
pub use log::rejected::{RejectedMessages, RejectionCounts};
pub use progress::SyncProgress;
pub use replica::Replica;
pub use schema::missing_constraints::MissingConstraint;
pub use schema::schema_conflict::{SchemaConflict, SchemaConflictKind};
pub use sync::SyncContext;
#[cfg(not(target_family = "wasm"))]
pub use sync::blocking::{PageStream, Transport};
pub use sync::file_account::{AccountCheck, FileAccount};
pub use sync::recovery_phrase::RecoveryPhrase;
pub use sync::sync_report::{SetDiscrepancy, SyncReport};
pub use tracking::TrackingResult;
#[cfg(not(target_family = "wasm"))]
pub use transport::event_stream::EventStream;
pub use transport::event_stream::{
    EventStreamDecoder, KEEPALIVE_TIMEOUT, RetryBackoff, ServerEvent,
};
#[cfg(not(target_family = "wasm"))]
pub use transport::http_transport::HttpTransport;
pub use transport::page_stream::PageDecoder;
#[cfg(not(target_family = "wasm"))]
pub use transport::server_url::{InvalidServerUrl, ServerUrl};
#[cfg(not(target_family = "wasm"))]
pub use transport::trust::TrustedRoots;
pub use transport::{ANSWER_BYTES_MAX, AsyncPageStream, AsyncTransport, PullParams};
