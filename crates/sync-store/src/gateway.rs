//! What a vault does for a gateway: for apps that were made for another server, and speak its
//! protocol.
//!
//! A gateway keeps a *record* in the vault, bytes that only it reads, which change in the
//! transaction that stores messages; and a *blob*, in pieces, so that nobody needs to hold one in
//! memory. Which blob counts is for the record to say: pieces are written first, and the record
//! last, in a transaction that finds all pieces of its blob there and removes those of all others.
//! So a blob that a record names is whole, whoever else writes one at the same time, and whatever
//! becomes of the answer.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use crdt::{Message, Timestamp};

use crate::batch::Batch;
use crate::error::{Cause, Result};

/// Makes the new record, given the present one (empty at first) and the timestamps that are being
/// stored, in order. It may run more than once. An error refuses the whole request
/// ([`crate::Error::Declined`]).
pub type Amend = Arc<dyn Fn(&[u8], &[Timestamp]) -> Result<Vec<u8>, Cause> + Send + Sync>;

/// Makes the record anew that stood beside other messages: given the record, and the timestamps of
/// all messages that are there, in order. A record that does not depend on messages stays.
pub type RepairRecord = fn(&[u8], &[Timestamp]) -> Result<Vec<u8>, Cause>;

/// The part of a vault that gateways use.
#[async_trait]
pub trait GatewayStore: Send + Sync {
    /// Stores what is new, whatever the contents of what is known, and the record that `amend`
    /// makes of it; all or nothing. Answers when it is on the disk.
    async fn exchange(&self, batch: Batch, amend: Amend) -> Result<Exchanged>;

    /// The record as it is.
    async fn record(&self) -> Result<Recorded>;

    /// Messages in order of their timestamps, from the first that is not before `start`, of those
    /// that had arrived up to `cursor`: at most `count_max`, and no more after `bytes_max` of
    /// contents.
    async fn since(
        &self,
        start: Timestamp,
        cursor: u64,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Message>>;

    /// [`Self::record`], and the first of the messages [`Self::since`] a start that had arrived then:
    /// at one moment, for less than both.
    async fn look(
        &self,
        start: Timestamp,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<(Recorded, Vec<Message>)> {
        let recorded = self.record().await?;
        let messages = self.since(start, recorded.cursor, count_max, bytes_max).await?;
        Ok((recorded, messages))
    }

    /// [`Self::exchange`], and the first of the messages [`Self::since`] a start that had arrived
    /// before it, for less than both.
    async fn exchange_and_look(
        &self,
        batch: Batch,
        amend: Amend,
        start: Timestamp,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<(Exchanged, Vec<Message>)> {
        let exchanged = self.exchange(batch, amend).await?;
        let messages = self.since(start, exchanged.cursor, count_max, bytes_max).await?;
        Ok((exchanged, messages))
    }

    /// Forgets all messages, and amends the record, to which no timestamps are shown. Arrival
    /// numbers go on where they were.
    async fn clear(&self, amend: Amend) -> Result<()>;

    /// Writes a piece of a blob; one that is there is replaced. On the disk when a later
    /// `exchange` has answered.
    async fn put_piece(&self, piece: PieceId, content: Bytes) -> Result<()>;

    /// Reads a piece of a blob.
    async fn piece(&self, piece: PieceId) -> Result<Option<Bytes>>;

    /// All pieces that there are, in order.
    async fn pieces(&self) -> Result<Vec<PieceId>>;

    /// Writes the record that `amend` makes, and that names `blob`; from then on no other blob has
    /// pieces. All or nothing; answers when it is on the disk.
    ///
    /// [`crate::Error::BlobIncomplete`] if not all pieces of the blob are there: another process
    /// has replaced the vault's blob since they were written.
    async fn replace_blob(&self, blob: WholeBlob, amend: Amend) -> Result<Exchanged>;

    /// Removes the pieces of a blob. Only for one that no record names, nor will.
    async fn remove_blob(&self, blob: BlobId) -> Result<()>;
}

/// A blob all of whose pieces were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeBlob {
    pub id: BlobId,
    /// Numbers from 0 to below this.
    pub pieces_count: u32,
}

/// What an [`GatewayStore::exchange`] found and left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchanged {
    /// The vault's newest arrival number before it.
    pub cursor: u64,
    /// Messages that were new.
    pub stored: u64,
    /// The record afterwards.
    pub record: Bytes,
}

/// A record, and the newest arrival number at the same moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub cursor: u64,
    /// Empty if there never was one.
    pub record: Bytes,
}

/// The name of a blob within its vault; random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobId(u64);

impl BlobId {
    /// So that it fits beside a piece's number into SQLite's 63 bits.
    const BITS: u32 = 63 - PieceId::NUMBER_BITS;

    pub fn generate() -> Self {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        Self(u64::from_be_bytes(bytes) >> (64 - Self::BITS))
    }

    /// The number that [`Self::get`] gave.
    pub fn new(number: u64) -> Option<Self> {
        (number >> Self::BITS == 0).then_some(Self(number))
    }

    pub fn get(self) -> u64 {
        self.0
    }
}

/// Which piece of which blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PieceId {
    pub blob: BlobId,
    /// From 0; below [`PieceId::COUNT_MAX`].
    pub number: u32,
}

impl PieceId {
    const NUMBER_BITS: u32 = 20;
    /// Pieces of a blob.
    pub const COUNT_MAX: u32 = 1 << Self::NUMBER_BITS;

    /// One number for both: a rowid.
    pub(crate) fn to_row(self) -> i64 {
        debug_assert!(self.number < Self::COUNT_MAX, "a piece's number has 20 bits");
        (self.blob.0 << Self::NUMBER_BITS | u64::from(self.number)).cast_signed()
    }

    #[expect(clippy::cast_possible_truncation, reason = "takes exactly the low 20 bits")]
    pub(crate) fn of_row(row: i64) -> Self {
        let row = row.cast_unsigned();
        let number = (row & u64::from(Self::COUNT_MAX - 1)) as u32;
        Self { blob: BlobId(row >> Self::NUMBER_BITS), number }
    }
}
