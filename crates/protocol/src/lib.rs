//! Defines what devices and servers exchange: wire types, error codes, limits, and the sync round.
//!
//! # Invariants
//! - Nothing here does I/O or reads a clock; the round is a state machine that its callers drive.
//! - Every wire type is one Rust struct for both encodings, JSON and protobuf
//!   (`proto/warren.proto`).
//! - Clients decide on an error's code alone; its message is for people.
//!
//! # Not here
//! - HTTP: routes and handlers → `server`, requests → `replica`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod error;
mod event;
mod json;
mod reconcile;
mod sync_round;
mod wire;

pub use error::{ErrorCode, ErrorResponse};
pub use event::{EVENT_STREAM, EventLineParser, VaultState};
pub use reconcile::{InvalidRangeDiffs, ReconcileEntry, SetDifference, SetReconciler};
pub use sync_round::{DeviceState, PullOutcome, PushOutcome, SyncOutcome, SyncRound, SyncStep};
pub use wire::{
    AccountRequest, AccountResponse, DeviceInfo, DeviceList, EnableE2eeRequest, EraseRequest,
    PasswordRequest, PullResponse, PushRequest, PushResponse, ReconcileRequest, ReconcileResponse,
    RegisterDeviceRequest, RegisterDeviceResponse, ServerLoss, WireEncryptionMode, WireErasure,
    WireFingerprint, WireMessage, WireRangeBucket, WireRangeClaim, WireRangeDiff,
};

/// The maximum number of messages in one request or answer, unless the server is configured
/// otherwise.
pub const MESSAGES_COUNT_MAX: usize = 40_000;
/// The maximum bytes of a request's body, unless the server is configured otherwise.
pub const BODY_BYTES_MAX: usize = 16 << 20;
/// The bytes of contents after which an answer ends with `more`.
pub const PAGE_BYTES_MAX: usize = 8 << 20;
/// The maximum time in milliseconds that a message may be ahead of the server's clock.
pub const DRIFT_MS_MAX: u64 = crdt::DRIFT_MS_MAX;

/// The media type for people and `curl`.
pub const JSON: &str = "application/json";
/// The media type for programs.
pub const PROTOBUF: &str = "application/x-protobuf";
/// The media type of `GET /v1/sync/full` for programs: [`PullResponse`]s, each after its length as
/// a varint.
pub const PROTOBUF_SEQUENCE: &str = "application/x-protobuf-seq";
/// The media type of `GET /v1/sync/full` for people: one [`PullResponse`] a line.
pub const NDJSON: &str = "application/x-ndjson";
