//! The vault's interface for a gateway: for apps of another server, with that server's protocol.
//!
//! A gateway keeps its *state* in the vault, bytes that only it reads, which change in the
//! transaction that stores messages; and a *blob* in chunks, so that no process needs to hold a
//! whole one in memory. The state names the current blob: chunks are written first, and the state
//! last, in a transaction that checks that all chunks of its blob exist and removes those of all
//! others. So a blob that a state names is complete, even if another process writes one at the same
//! time, and whether or not the response arrives.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use crdt::{Message, Timestamp};

use super::batch::MessageBatch;
use crate::error::{BoxError, Result};

/// A function that returns the new state, given the current one (empty at first) and the timestamps
/// of the new messages, in order. It may run more than once. An error refuses the whole request
/// ([`crate::Error::Declined`]).
pub type UpdateStateFn =
    Arc<dyn Fn(&[u8], &[Timestamp]) -> Result<Vec<u8>, BoxError> + Send + Sync>;

/// A function that rebuilds a state after messages were lost: given the state, and the timestamps
/// of all remaining messages, in order. It returns a state that does not depend on messages
/// unchanged.
pub type RepairStateFn = fn(&[u8], &[Timestamp]) -> Result<Vec<u8>, BoxError>;

/// The operations of a vault that gateways use.
#[async_trait]
pub trait GatewayStore: Send + Sync {
    /// Stores the new messages of a batch, ignores the contents of known ones, and stores the state
    /// that `update` returns; all or nothing. Returns when the disk has it.
    async fn exchange(&self, batch: MessageBatch, update: UpdateStateFn)
    -> Result<ExchangeOutcome>;

    /// Returns the current state.
    async fn gateway_state(&self) -> Result<GatewaySnapshot>;

    /// Returns messages in order of timestamp, from `start` on, of those that had arrived up to
    /// `cursor`: at most `count_max`, and no more after `bytes_max` of contents.
    async fn messages_from(
        &self,
        start: Timestamp,
        cursor: u64,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Message>>;

    /// Returns [`Self::gateway_state`] and the first of [`Self::messages_from`] `start` up to its
    /// cursor. This costs less than two calls and reads both at one moment.
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

    /// Runs [`Self::exchange`] and returns the first of [`Self::messages_from`] `start` that had
    /// arrived before it. This costs less than two calls.
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

    /// Removes all messages and updates the state; `update` gets no timestamps. Sequence numbers
    /// continue where they were.
    async fn clear(&self, update: UpdateStateFn) -> Result<()>;

    /// Writes a chunk of a blob and replaces an existing one. The chunk is on the disk when a later
    /// `exchange` has returned.
    async fn put_chunk(&self, chunk: BlobChunkId, content: Bytes) -> Result<()>;

    /// Reads a chunk of a blob.
    async fn chunk(&self, chunk: BlobChunkId) -> Result<Option<Bytes>>;

    /// Returns the ids of all existing chunks, in order.
    async fn chunk_ids(&self) -> Result<Vec<BlobChunkId>>;

    /// Writes the state that `update` returns, which names `blob`, and removes the chunks of all
    /// other blobs. All or nothing; returns when the disk has it.
    ///
    /// Returns [`crate::Error::BlobIncomplete`] if chunks of the blob are missing: another process
    /// has replaced the vault's blob since they were written.
    async fn replace_blob(
        &self,
        blob: CompleteBlob,
        update: UpdateStateFn,
    ) -> Result<ExchangeOutcome>;

    /// Removes the chunks of a blob. No state may name this blob, now or later.
    async fn remove_blob(&self, blob: BlobId) -> Result<()>;
}

/// A blob whose chunks were all written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompleteBlob {
    pub id: BlobId,
    /// The number of chunks. They are numbered from 0.
    pub chunks_count: u32,
}

/// The result of a [`GatewayStore::exchange`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeOutcome {
    /// The vault's newest sequence number before the exchange.
    pub cursor: u64,
    /// The number of messages that were new.
    pub stored: u64,
    /// The state afterwards.
    pub state: Bytes,
}

/// A gateway's state, and the newest sequence number at the same moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewaySnapshot {
    pub cursor: u64,
    /// The state; empty if there never was one.
    pub state: Bytes,
}

/// The id of a blob within its vault. It is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobId(u64);

impl BlobId {
    /// The length of an id: with a chunk's number, it fits into SQLite's 63 bits.
    const BITS: u32 = 63 - BlobChunkId::NUMBER_BITS;

    pub fn generate() -> Self {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        Self(u64::from_be_bytes(bytes) >> (64 - Self::BITS))
    }

    /// Creates the id from a number that [`Self::get`] returned.
    pub fn new(number: u64) -> Option<Self> {
        (number >> Self::BITS == 0).then_some(Self(number))
    }

    pub fn get(self) -> u64 {
        self.0
    }
}

/// The id of a chunk: its blob and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobChunkId {
    pub blob: BlobId,
    /// The number of the chunk, from 0; below [`BlobChunkId::COUNT_MAX`].
    pub number: u32,
}

impl BlobChunkId {
    const NUMBER_BITS: u32 = 20;
    /// The maximum number of chunks of a blob.
    pub const COUNT_MAX: u32 = 1 << Self::NUMBER_BITS;

    /// Returns one number for both, which is a rowid.
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
