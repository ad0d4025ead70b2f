//! The operations and types of a vault, independent of its storage.

pub(crate) mod batch;
pub(crate) mod device;
pub(crate) mod gateway;
pub(crate) mod newest_timestamp;
pub(crate) mod reconcile;
pub(crate) mod transfer;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use accounts::DeviceId;
use async_trait::async_trait;
use crdt::{Fingerprint, FingerprintWindow, Message, Timestamp};

use self::batch::MessageBatch;
use self::device::{DeviceActivity, VaultDevice};
use self::gateway::GatewayStore;
use crate::error::Result;

/// An open vault. Cloning it is cheap.
pub type Vault = Arc<dyn SyncStore>;

/// The messages and devices of one user. No call accesses another user's.
#[async_trait]
pub trait SyncStore: GatewayStore {
    /// Stores the new messages of a batch, all or none, and returns when they are on the disk.
    ///
    /// Returns `TimestampConflict` if a timestamp is stored with another content, `QuotaExceeded`
    /// if the new messages do not fit, and `StaleCursor` if messages have arrived after the batch's
    /// expected cursor.
    async fn store(
        &self,
        batch: MessageBatch,
        quota: Quota,
        seen: Option<DeviceActivity>,
    ) -> Result<StoreOutcome>;

    /// Replaces the contents of messages, all or none, and keeps their sequence numbers; devices
    /// find the change by the fingerprint. When this returns, no page of a file contains the old
    /// contents; in PostgreSQL, a vacuum removes them.
    ///
    /// Returns `StaleCursor` if a message is missing or does not have the expected hash,
    /// `QuotaExceeded` if the contents do not fit, and `Busy` if the file could not be rewritten:
    /// then a repeated call rewrites it.
    async fn erase(&self, erasures: Vec<MessageErasure>, quota: Quota) -> Result<StoreOutcome>;

    /// Returns the messages after `cursor`: at most `count_max`, and no more after `bytes_max` of
    /// contents. Records the device's cursor; that record may be lost.
    async fn page(
        &self,
        cursor: u64,
        count_max: usize,
        bytes_max: usize,
        seen: Option<DeviceActivity>,
    ) -> Result<MessagePage>;

    /// Returns the current summary of the set.
    async fn summary(&self) -> Result<VaultSummary>;

    /// Returns the recorded fingerprints of the windows with messages, in order of time. If their
    /// sum differs from the recorded summary, everything recorded is rebuilt first.
    async fn windows(&self) -> Result<Vec<(FingerprintWindow, Fingerprint)>>;

    /// Cuts the messages of time ranges into buckets of `count` messages each; messages of one
    /// moment stay together. A range without messages has no bucket.
    ///
    /// `ranges` must be in order and must not overlap. The last bucket of a range ends where the
    /// range does.
    async fn buckets(&self, ranges: Vec<Range<u64>>, count: u64) -> Result<Vec<Vec<RangeBucket>>>;

    /// Returns the messages of time ranges without their contents: at most `count_max` in all. The
    /// range that reaches this number ends there, and the ranges after it are left out.
    async fn entries(
        &self,
        ranges: Vec<Range<u64>>,
        count_max: usize,
    ) -> Result<Vec<Vec<MessageEntry>>>;

    /// Returns messages by timestamp in the given order, no more after `bytes_max` of contents.
    /// Missing messages are left out.
    async fn messages(&self, timestamps: Vec<Timestamp>, bytes_max: usize) -> Result<Vec<Message>>;

    /// Adds a registered device with its name.
    async fn add_device(&self, device: VaultDevice) -> Result<()>;

    /// Returns the devices in order of registration.
    async fn devices(&self) -> Result<Vec<VaultDevice>>;

    /// Removes devices. Does not fail for missing ones.
    async fn remove_devices(&self, ids: Vec<DeviceId>) -> Result<()>;

    /// Returns sizes and counts for operators.
    async fn status(&self) -> Result<VaultStatus>;

    /// Computes the summary from all messages and compares. Reads the whole vault.
    async fn verify(&self) -> Result<FingerprintCheck>;

    /// Rebuilds the recorded summary and windows from the messages.
    async fn rebuild(&self) -> Result<()>;
}

/// The maximum size of a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub messages_max: u64,
    /// The maximum size of all contents in bytes.
    pub bytes_max: u64,
}

impl Quota {
    /// A quota without limits.
    pub const UNLIMITED: Self = Self { messages_max: u64::MAX, bytes_max: u64::MAX };
}

/// A summary of the set of messages at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VaultSummary {
    /// The newest sequence number; 0 if there is none.
    pub cursor: u64,
    /// The size of all contents in bytes.
    pub bytes: u64,
    pub fingerprint: Fingerprint,
}

/// A message with the reduced content that replaces its old one.
#[derive(Clone, Debug)]
pub struct MessageErasure {
    pub message: Message,
    /// The result of [`Fingerprint::from_message`] for the message before the erasure.
    pub hash: u128,
}

/// The result of storing messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOutcome {
    /// The number of messages that were new or got another content.
    pub stored: u64,
    /// The number of messages that were stored already with this content.
    pub known: u64,
    /// The set afterwards. The new messages have its newest sequence numbers, without gaps.
    pub after: VaultSummary,
}

/// A page of messages in order of arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePage {
    pub messages: Vec<Message>,
    /// The sequence number of the last message, or the vault's newest if the page is empty.
    pub cursor: u64,
    /// Whether more messages follow.
    pub more: bool,
    /// The fingerprint of the whole set.
    pub fingerprint: Fingerprint,
    /// The loss to report to the requesting device, as long as it matters.
    pub loss: Option<LostMessages>,
}

/// Messages that a vault has lost through damage of its file. PostgreSQL vaults are not repaired,
/// so they lose none in this way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostMessages {
    /// The time of the repair, in milliseconds since 1970.
    pub at_ms: u64,
    /// The number of messages that were unreadable and have not returned since; `None` if unknown.
    pub count: Option<u64>,
    /// The names of devices that have not synced since and may have the messages: at most 20.
    pub devices_away: Vec<String>,
}

/// Messages that follow each other in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeBucket {
    /// The first moment after the messages.
    pub end: u64,
    pub fingerprint: Fingerprint,
}

/// A message without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageEntry {
    pub timestamp: Timestamp,
    /// The result of [`Fingerprint::from_message`] for the message.
    pub hash: u128,
}

impl MessageEntry {
    /// Returns the [`Fingerprint::short_digest`] of the message.
    #[expect(clippy::cast_possible_truncation, reason = "takes exactly these 64 bits")]
    pub fn short_digest(&self) -> u64 {
        self.hash as u64
    }
}

/// The status of a vault, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultStatus {
    pub state: VaultSummary,
    pub devices_count: u64,
    pub storage: VaultLocation,
}

/// The storage of a vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaultLocation {
    /// A file of its own.
    Sqlite {
        path: PathBuf,
        /// The size of the file without its WAL.
        file_bytes: u64,
        /// The size of the file's free pages.
        free_bytes: u64,
        /// The size of the file's WAL.
        wal_bytes: u64,
        cipher: &'static str,
        profile: &'static str,
    },
    /// Rows of a PostgreSQL database.
    Postgres {
        /// The host and port, or the socket, and the database in the address.
        address: String,
        /// The database with the rows. Behind a router it differs from the one in the address.
        database: String,
        /// The version of PostgreSQL.
        version: String,
        /// The size of the tables and their indexes, with all vaults in them.
        tables_bytes: u64,
    },
}

/// The recorded summary, and the same computed from the messages themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintCheck {
    pub recorded: VaultSummary,
    pub computed: VaultSummary,
    /// The number of windows whose recorded fingerprint differs from that of their messages.
    pub windows_wrong: u64,
}

impl FingerprintCheck {
    pub fn is_equal(&self) -> bool {
        self.recorded == self.computed && self.windows_wrong == 0
    }
}
