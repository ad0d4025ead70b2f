//! The device's side: an ordinary SQLite file whose tables sync.
//!
//! Triggers that need nothing but SQLite note which rows and cells any program changes, and when.
//! At the next sync those notes become messages, with the values that the cells then have; messages
//! of other devices are merged into the rows' state (`crdt::RowState`), and the tables follow the
//! state.
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
//! - Local changes are timestamped before remote ones are merged, in the same transaction: a change
//!   gets the time when it was made, and never overwrites what its author had not seen.
//! - A sync shows all at once or not at all.
//!
//! # Not here
//! - Which request comes next → `protocol::SyncRound`. Flags and progress bars → `cli`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Links SQLite3 Multiple Ciphers under rusqlite.
use sqlite3mc_sys as _;

mod account_encryption;
mod added_columns;
mod affinity;
mod comparison;
mod conflicts;
mod connection_flags;
mod content_codec;
mod ddl;
mod declaration;
mod deleted;
mod devices;
mod edit;
mod erasure;
mod error;
mod event_stream;
mod file_identity;
mod file_key;
mod hidden_rows;
mod history;
#[cfg(not(target_family = "wasm"))]
mod http_transport;
mod ingest;
mod json;
mod left_out;
mod materialize;
mod merge;
mod message_log;
mod meta;
mod page_stream;
mod provisional_keys;
mod recovery_phrase;
mod references;
mod remote_tables;
mod renumber;
mod replica;
mod replica_status;
mod row_state;
mod row_writer;
mod schema_change;
mod schema_conflict;
mod sign_in;
mod sql_value;
mod sync;
mod sync_report;
mod sync_status;
mod timestamping;
mod trackable_tables;
mod tracked_table;
mod tracking;
mod transport;
mod triggers;
#[cfg(not(target_family = "wasm"))]
mod trust;
mod unique;
mod unseen;
mod value_chunks;
mod verify;
mod visibility_override;

/// What a cell holds.
pub use crdt::Value;

pub use conflicts::{Conflict, ConflictEdit, ResolvedEdit};
pub use deleted::DeletedRow;
pub use edit::{CellEdit, EditOutcome};
pub use erasure::ErasureTarget;
pub use error::{Error, RecoveryPhraseError, Result};
#[cfg(not(target_family = "wasm"))]
pub use event_stream::EventStream;
pub use event_stream::{EventStreamDecoder, KEEPALIVE_TIMEOUT, RetryBackoff, ServerEvent};
pub use file_key::{FileKey, check_key};
pub use hidden_rows::{HiddenRow, JoinedRow};
pub use history::{HistoryCell, HistoryEntry};
#[cfg(not(target_family = "wasm"))]
pub use http_transport::HttpTransport;
pub use page_stream::PageDecoder;
pub use recovery_phrase::RecoveryPhrase;
pub use renumber::RenumberedRow;
pub use replica::Replica;
pub use replica_status::{
    MissingConstraint, OverriddenRow, RemoteStatus, ReplicaStatus, TableStatus,
};
pub use schema_conflict::{SchemaConflict, SchemaConflictKind};
pub use sync::{SyncContext, SyncProgress};
pub use sync_report::{RejectedMessages, SetDiscrepancy, SyncReport};
pub use sync_status::SyncStatus;
pub use tracking::TrackingResult;
pub use transport::{ANSWER_BYTES_MAX, AsyncPageStream, AsyncTransport, PullParams};
#[cfg(not(target_family = "wasm"))]
pub use transport::{PageStream, Transport};
#[cfg(not(target_family = "wasm"))]
pub use trust::TrustedRoots;
pub use verify::{RowDifference, RowDifferenceKind, TablesVerification};
