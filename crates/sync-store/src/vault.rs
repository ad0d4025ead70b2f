//! What a vault does, wherever it is kept.

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

/// An open vault. Cheap to clone.
pub type Vault = Arc<dyn SyncStore>;

/// One user's messages and devices. No call touches another user's.
#[async_trait]
pub trait SyncStore: GatewayStore {
    /// Stores what is new, all or nothing, and answers when it is on the disk.
    ///
    /// `TimestampConflict` if a timestamp has another content already, `QuotaExceeded` if the new
    /// messages do not fit, `StaleCursor` if something has arrived that the batch does not follow.
    async fn store(
        &self,
        batch: MessageBatch,
        quota: Quota,
        seen: Option<DeviceActivity>,
    ) -> Result<StoreOutcome>;

    /// Gives messages other contents, all or none, under the same sequence numbers: devices find them
    /// by the fingerprint. When it is answered, what the contents were is on no page of a file; in
    /// PostgreSQL a vacuum removes it.
    ///
    /// `StaleCursor` if one of them is not there, or is not what the caller takes it for,
    /// `QuotaExceeded` if the contents do not fit, `Busy` if the file could not be written anew:
    /// asking again does.
    async fn erase(&self, erasures: Vec<MessageErasure>, quota: Quota) -> Result<StoreOutcome>;

    /// What arrived after `cursor`: at most `count_max` messages, and no more after `bytes_max` of
    /// contents. Notes that the device has been answered so far; that note may be lost.
    async fn page(
        &self,
        cursor: u64,
        count_max: usize,
        bytes_max: usize,
        seen: Option<DeviceActivity>,
    ) -> Result<MessagePage>;

    /// The set as it is.
    async fn summary(&self) -> Result<VaultSummary>;

    /// The recorded fingerprints of the windows that hold messages, in order of time. If they do not
    /// add up to the recorded state, all of it is made anew first.
    async fn windows(&self) -> Result<Vec<(FingerprintWindow, Fingerprint)>>;

    /// Cuts ranges of moments, from their messages, into parts of `count` messages each; messages
    /// of one moment stay together. A range without messages has no part.
    ///
    /// `ranges` are in order and do not overlap. The last part of a range ends where the range
    /// does.
    async fn buckets(&self, ranges: Vec<Range<u64>>, count: u64) -> Result<Vec<Vec<RangeBucket>>>;

    /// The messages of ranges of moments, without their contents: at most `count_max` in all. The
    /// range in which these are reached ends with them, and those after it are left out.
    async fn entries(
        &self,
        ranges: Vec<Range<u64>>,
        count_max: usize,
    ) -> Result<Vec<Vec<MessageEntry>>>;

    /// Messages by timestamp, in the order asked for, no more after `bytes_max` of contents; those
    /// that are not there are left out.
    async fn messages(&self, timestamps: Vec<Timestamp>, bytes_max: usize) -> Result<Vec<Message>>;

    /// Registers a device's name.
    async fn add_device(&self, device: VaultDevice) -> Result<()>;

    /// The devices, in order of registration.
    async fn devices(&self) -> Result<Vec<VaultDevice>>;

    /// Forgets devices; those that are not there are no error.
    async fn remove_devices(&self, ids: Vec<DeviceId>) -> Result<()>;

    /// Sizes and counts, for operators.
    async fn status(&self) -> Result<VaultStatus>;

    /// Computes the state from every message. Reads the whole vault.
    async fn verify(&self) -> Result<FingerprintCheck>;

    /// Makes the recorded state and windows anew from the messages.
    async fn rebuild(&self) -> Result<()>;
}

/// How much a vault may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub messages_max: u64,
    /// Of contents.
    pub bytes_max: u64,
}

impl Quota {
    /// None.
    pub const UNLIMITED: Self = Self { messages_max: u64::MAX, bytes_max: u64::MAX };
}

/// The set of messages at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VaultSummary {
    /// The newest sequence number; 0 if there is none.
    pub cursor: u64,
    /// Of all contents.
    pub bytes: u64,
    pub fingerprint: Fingerprint,
}

/// A message with the content that it gets.
#[derive(Clone, Debug)]
pub struct MessageErasure {
    pub message: Message,
    /// [`Fingerprint::from_message`] the message until now.
    pub hash: u128,
}

/// What became of messages that were to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOutcome {
    /// Messages that were new, or got another content.
    pub stored: u64,
    /// Messages that were there already, with this content.
    pub known: u64,
    /// The set afterwards; the new messages have its newest sequence numbers, without gaps.
    pub after: VaultSummary,
}

/// Messages in order of arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePage {
    pub messages: Vec<Message>,
    /// The sequence number of the last of them, or the vault's newest if there are none.
    pub cursor: u64,
    /// Whether messages follow.
    pub more: bool,
    /// The whole set.
    pub fingerprint: Fingerprint,
    /// For the device that asks, as long as it matters.
    pub loss: Option<LostMessages>,
}

/// Messages that a vault has lost to damage of its file. PostgreSQL repairs nothing, so its vaults
/// lose none in this way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostMessages {
    /// When the vault was repaired, milliseconds since 1970.
    pub at_ms: u64,
    /// Messages that could not be read, and have not come back since; `None` if nobody knows.
    pub count: Option<u64>,
    /// Names of the devices that have not synced since, and may have them: twenty at most.
    pub devices_away: Vec<String>,
}

/// Messages that follow each other in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeBucket {
    /// The first moment after them.
    pub end: u64,
    pub fingerprint: Fingerprint,
}

/// A message without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageEntry {
    pub timestamp: Timestamp,
    /// [`Fingerprint::from_message`] the message.
    pub hash: u128,
}

impl MessageEntry {
    /// [`Fingerprint::short_digest`] of the message.
    #[expect(clippy::cast_possible_truncation, reason = "takes exactly these 64 bits")]
    pub fn short_digest(&self) -> u64 {
        self.hash as u64
    }
}

/// What is in a vault, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultStatus {
    pub state: VaultSummary,
    pub devices_count: u64,
    pub storage: VaultLocation,
}

/// Where a vault is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaultLocation {
    /// A file of its own.
    Sqlite {
        path: PathBuf,
        /// The size of the file, without its WAL.
        file_bytes: u64,
        /// Pages of the file that hold nothing.
        free_bytes: u64,
        /// The size of its WAL.
        wal_bytes: u64,
        cipher: &'static str,
        profile: &'static str,
    },
    /// Rows of a PostgreSQL database.
    Postgres {
        /// Host and port, or socket; and the database that is asked for there.
        address: String,
        /// The database that has the rows; behind a router another than the one that is asked.
        database: String,
        /// Of PostgreSQL.
        version: String,
        /// The size of the tables and their indexes, with all vaults that are in them.
        tables_bytes: u64,
    },
}

/// The recorded state, and the same computed from the messages themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintCheck {
    pub recorded: VaultSummary,
    pub computed: VaultSummary,
    /// Windows whose recorded fingerprint is not that of their messages.
    pub windows_wrong: u64,
}

impl FingerprintCheck {
    pub fn is_equal(&self) -> bool {
        self.recorded == self.computed && self.windows_wrong == 0
    }
}
