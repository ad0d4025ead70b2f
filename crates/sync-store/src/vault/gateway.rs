//! What a vault does for a gateway: for apps that were made for another server, and speak its
//! protocol.
//!
//! A gateway keeps its *state* in the vault, bytes that only it reads, which change in the
//! transaction that stores messages; and a *blob*, in chunks, so that nobody needs to hold one in
//! memory. Which blob counts is for the state to say: chunks are written first, and the state
//! last, in a transaction that finds all chunks of its blob there and removes those of all others.
//! So a blob that a state names is whole, whoever else writes one at the same time, and whatever
//! becomes of the answer.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use crdt::{Message, Timestamp};

use super::batch::MessageBatch;
use crate::error::{BoxError, Result};

/// Makes the new state, given the present one (empty at first) and the timestamps that are being
/// stored, in order. It may run more than once. An error refuses the whole request
/// ([`crate::Error::Declined`]).
pub type UpdateStateFn =
    Arc<dyn Fn(&[u8], &[Timestamp]) -> Result<Vec<u8>, BoxError> + Send + Sync>;

/// Makes the state anew that stood beside other messages: given the state, and the timestamps of
/// all messages that are there, in order. A state that does not depend on messages stays.
pub type RepairStateFn = fn(&[u8], &[Timestamp]) -> Result<Vec<u8>, BoxError>;

/// The part of a vault that gateways use.
#[async_trait]
pub trait GatewayStore: Send + Sync {
    /// Stores what is new, whatever the contents of what is known, and the state that `update`
    /// makes of it; all or nothing. Answers when it is on the disk.
    async fn exchange(&self, batch: MessageBatch, update: UpdateStateFn)
    -> Result<ExchangeOutcome>;

    /// The state as it is.
    async fn gateway_state(&self) -> Result<GatewaySnapshot>;

    /// Messages in order of their timestamps, from the first that is not before `start`, of those
    /// that had arrived up to `cursor`: at most `count_max`, and no more after `bytes_max` of
    /// contents.
    async fn messages_from(
        &self,
        start: Timestamp,
        cursor: u64,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Message>>;

    /// [`Self::gateway_state`], and the first of the messages [`Self::messages_from`] a start that
    /// had arrived then: at one moment, for less than both.
    async fn read_with_messages(
        &self,
        start: Timestamp,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<(GatewaySnapshot, Vec<Message>)> {
        let recorded = self.gateway_state().await?;
        let messages = self.messages_from(start, recorded.cursor, count_max, bytes_max).await?;
        Ok((recorded, messages))
    }

    /// [`Self::exchange`], and the first of the messages [`Self::messages_from`] a start that had
    /// arrived before it, for less than both.
    async fn exchange_and_read(
        &self,
        batch: MessageBatch,
        update: UpdateStateFn,
        start: Timestamp,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<(ExchangeOutcome, Vec<Message>)> {
        let exchanged = self.exchange(batch, update).await?;
        let messages = self.messages_from(start, exchanged.cursor, count_max, bytes_max).await?;
        Ok((exchanged, messages))
    }

    /// Forgets all messages, and updates the state, to which no timestamps are shown. Sequence
    /// numbers go on where they were.
    async fn clear(&self, update: UpdateStateFn) -> Result<()>;

    /// Writes a chunk of a blob; one that is there is replaced. On the disk when a later
    /// `exchange` has answered.
    async fn put_chunk(&self, chunk: BlobChunkId, content: Bytes) -> Result<()>;

    /// Reads a chunk of a blob.
    async fn chunk(&self, chunk: BlobChunkId) -> Result<Option<Bytes>>;

    /// All chunks that there are, in order.
    async fn chunk_ids(&self) -> Result<Vec<BlobChunkId>>;

    /// Writes the state that `update` makes, and that names `blob`; from then on no other blob has
    /// chunks. All or nothing; answers when it is on the disk.
    ///
    /// [`crate::Error::BlobIncomplete`] if not all chunks of the blob are there: another process
    /// has replaced the vault's blob since they were written.
    async fn replace_blob(
        &self,
        blob: CompleteBlob,
        update: UpdateStateFn,
    ) -> Result<ExchangeOutcome>;

    /// Removes the chunks of a blob. Only for one that no state names, nor will.
    async fn remove_blob(&self, blob: BlobId) -> Result<()>;
}

/// A blob all of whose chunks were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompleteBlob {
    pub id: BlobId,
    /// Numbers from 0 to below this.
    pub chunks_count: u32,
}

/// What an [`GatewayStore::exchange`] found and left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeOutcome {
    /// The vault's newest sequence number before it.
    pub cursor: u64,
    /// Messages that were new.
    pub stored: u64,
    /// The state afterwards.
    pub state: Bytes,
}

/// A gateway's state, and the newest sequence number at the same moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewaySnapshot {
    pub cursor: u64,
    /// Empty if there never was one.
    pub state: Bytes,
}

/// The name of a blob within its vault; random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobId(u64);

impl BlobId {
    /// So that it fits beside a chunk's number into SQLite's 63 bits.
    const BITS: u32 = 63 - BlobChunkId::NUMBER_BITS;

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

/// Which chunk of which blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobChunkId {
    pub blob: BlobId,
    /// From 0; below [`BlobChunkId::COUNT_MAX`].
    pub number: u32,
}

impl BlobChunkId {
    const NUMBER_BITS: u32 = 20;
    /// Pieces of a blob.
    pub const COUNT_MAX: u32 = 1 << Self::NUMBER_BITS;

    /// One number for both: a rowid.
    pub(crate) fn to_row(self) -> i64 {
        debug_assert!(self.number < Self::COUNT_MAX, "a chunk's number has 20 bits");
        (self.blob.0 << Self::NUMBER_BITS | u64::from(self.number)).cast_signed()
    }

    #[expect(clippy::cast_possible_truncation, reason = "takes exactly the low 20 bits")]
    pub(crate) fn from_row(row: i64) -> Self {
        let row = row.cast_unsigned();
        let number = (row & u64::from(Self::COUNT_MAX - 1)) as u32;
        Self { blob: BlobId(row >> Self::NUMBER_BITS), number }
    }
}
