//! The part of a vault's rows that gateways use.
//!
//! A gateway's new state is computed here, so a change has three steps: read the state and its
//! version; compute; write, if the version is still the same and no timestamp has become known in
//! the meantime. Otherwise the change starts again.
//!
//! # Invariants
//! - No lock is held in PostgreSQL while the new state is computed. Instead, changes of a vault
//!   within this process run one after the other, so a change can conflict only with other
//!   processes.
//! - The result of a call is on the disk: known messages are visible, so they were flushed; all
//!   else is written with PostgreSQL's own `synchronous_commit`, including chunks.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use crdt::{Message, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::{Error, Result};
use crate::postgres::columns::MessageColumns;
use crate::postgres::pool;
use crate::postgres::rows::{self, SqlBytes, bigint};
use crate::postgres::sealing::VaultSealKeys;
use crate::postgres::store::PostgresStore;
use crate::vault::batch::{BatchEntry, MessageBatch};
use crate::vault::gateway::{
    BlobChunkId, BlobId, CompleteBlob, ExchangeOutcome, GatewaySnapshot, GatewayStore,
    UpdateStateFn,
};

/// The maximum number of times that a change is computed. Each failed attempt means that another
/// process has changed the vault: of eight processes that do only this, one fails this often once
/// in 5,000 changes.
const TRIES_MAX: u32 = 64;

/// A change of a vault's messages.
enum GatewayChange {
    Store(MessageBatch),
    Clear,
    ReplaceBlob(CompleteBlob),
}

/// A gateway's state as it was read.
struct VersionedState {
    version: i64,
    cursor: u64,
    state: Bytes,
    /// The places of known messages in the given list, in order.
    known: Vec<i32>,
}

/// A change that is computed and sealed.
struct ComputedChange {
    columns: MessageColumns,
    state: Bytes,
    /// The sealed state; `None` if it does not change.
    sealed: Option<Bytes>,
}

impl GatewayChange {
    fn entries(&self) -> &[BatchEntry] {
        match self {
            Self::Store(batch) => &batch.entries,
            Self::Clear | Self::ReplaceBlob(_) => &[],
        }
    }

    fn list(&self) -> Vec<u8> {
        self.entries().iter().flat_map(|entry| entry.message.timestamp.to_bytes()).collect()
    }

    fn compute(
        &self,
        read: &VersionedState,
        update: &UpdateStateFn,
        keys: &VaultSealKeys,
    ) -> Result<ComputedChange> {
        let mut known = read.known.iter().copied().peekable();
        let places = (0i32..).zip(self.entries());
        let fresh = places.filter(|(place, _)| known.next_if_eq(place).is_none());
        let fresh: Vec<_> = fresh.map(|(_, entry)| entry).collect();
        let timestamps: Vec<_> = fresh.iter().map(|entry| entry.message.timestamp).collect();
        let state = Bytes::from(update(&read.state, &timestamps).map_err(Error::Declined)?);
        let changes_nothing =
            matches!(self, Self::Store(_)) && fresh.is_empty() && state == read.state;
        let sealed = (!changes_nothing).then(|| keys.seal_gateway_state(read.version + 1, &state));
        Ok(ComputedChange { columns: MessageColumns::new(&fresh, keys), state, sealed })
    }
}

impl PostgresStore {
    async fn read_state(&self, list: &[u8]) -> Result<VersionedState> {
        let sql = "SELECT * FROM warren.read_gateway_state($1, $2)";
        let row = self.postgres.query_one(sql, &[self.vault(), (&list, Type::BYTEA)]).await?;
        let version = row.try_get(2)?;
        let state = match version {
            0 => Bytes::new(),
            _ => self.keys.open_gateway_state(version, row.try_get(3)?)?,
        };
        let cursor = row.try_get::<_, i64>(1)?.cast_unsigned();
        Ok(VersionedState { version, cursor, state, known: row.try_get(0)? })
    }

    /// Writes a change and returns the newest sequence number before it.
    async fn write(
        &self,
        change: &GatewayChange,
        columns: &MessageColumns,
        version: i64,
        state: &Bytes,
    ) -> Result<u64> {
        let state = SqlBytes(state);
        let state: [pool::PostgresParameter<'_>; 2] =
            [(&version, Type::INT8), (&state, Type::BYTEA)];
        let row = match change {
            GatewayChange::Store(_) => {
                let sql = "SELECT warren.exchange($1, $2, $3, $4, $5, $6, $7, $8)";
                let parameters = [&[self.vault()], &columns.parameters()[..], &state].concat();
                self.postgres.query_one(sql, &parameters).await
            }
            GatewayChange::Clear => {
                let parameters = [&[self.vault()][..], &state].concat();
                self.postgres.query_one("SELECT warren.clear($1, $2, $3)", &parameters).await
            }
            GatewayChange::ReplaceBlob(blob) => {
                let sql = "SELECT warren.replace_blob($1, $2, $3, $4, $5)";
                let (id, count) = (blob.id.get().cast_signed(), blob.chunks_count.cast_signed());
                let blob: [pool::PostgresParameter<'_>; 2] =
                    [(&id, Type::INT8), (&count, Type::INT4)];
                let parameters = [&[self.vault()][..], &state, &blob].concat();
                self.postgres.query_one(sql, &parameters).await
            }
        };
        Ok(row?.try_get::<_, i64>(0)?.cast_unsigned())
    }

    async fn change(
        &self,
        change: GatewayChange,
        update: UpdateStateFn,
    ) -> Result<ExchangeOutcome> {
        let _turn = self.postgres.vault_locks.lock(self.vault).await;
        let (list, change) = (change.list(), Arc::new(change));
        let mut tries = 1;
        loop {
            let read = self.read_state(&list).await?;
            let (version, mut cursor) = (read.version, read.cursor);
            let (of, update, keys) =
                (Arc::clone(&change), Arc::clone(&update), Arc::clone(&self.keys));
            let computed =
                engine::run_blocking(move || of.compute(&read, &update, &keys)).await??;
            let ComputedChange { columns, state, sealed } = computed;
            if let Some(sealed) = sealed {
                match self.write(&change, &columns, version, &sealed).await {
                    Ok(before) => cursor = before,
                    Err(error) if rows::is_outdated(&error) => {
                        if tries == TRIES_MAX {
                            return Err(Error::Busy(error.into()));
                        }
                        tries += 1;
                        continue;
                    }
                    Err(error) if rows::is_incomplete(&error) => {
                        return Err(Error::BlobIncomplete);
                    }
                    Err(error) => return Err(error),
                }
            }
            return Ok(ExchangeOutcome { cursor, stored: columns.count(), state });
        }
    }

    async fn call(&self, sql: &str, rest: &[pool::PostgresParameter<'_>]) -> Result<Vec<Row>> {
        self.postgres.query_all(sql, &[&[self.vault()], rest].concat()).await
    }
}

#[async_trait]
impl GatewayStore for PostgresStore {
    async fn exchange(
        &self,
        batch: MessageBatch,
        update: UpdateStateFn,
    ) -> Result<ExchangeOutcome> {
        self.change(GatewayChange::Store(batch), update).await
    }

    async fn gateway_state(&self) -> Result<GatewaySnapshot> {
        let VersionedState { cursor, state, .. } = self.read_state(&[]).await?;
        Ok(GatewaySnapshot { cursor, state })
    }

    async fn messages_from(
        &self,
        start: Timestamp,
        cursor: u64,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Message>> {
        let (start, cursor) = (SqlBytes(start.to_bytes()), bigint(cursor));
        let count_max = i32::try_from(count_max).unwrap_or(i32::MAX);
        let bytes_max = bigint(bytes_max as u64);
        let parameters = [
            self.vault(),
            (&start as _, Type::BYTEA),
            (&cursor as _, Type::INT8),
            (&count_max as _, Type::INT4),
            (&bytes_max as _, Type::INT8),
        ];
        let sql = "SELECT * FROM warren.messages_from($1, $2, $3, $4, $5)";
        let row = self.postgres.query_one(sql, &parameters).await?;
        let keys = Arc::clone(&self.keys);
        engine::run_blocking(move || {
            let (stamps, contents): (Vec<&[u8]>, Vec<&[u8]>) = (row.try_get(0)?, row.try_get(1)?);
            let open = |(stamp, content)| {
                let timestamp = rows::timestamp(stamp);
                Ok(Message { timestamp, content: keys.open(timestamp, content)? })
            };
            stamps.into_iter().zip(contents).map(open).collect()
        })
        .await?
    }

    async fn clear(&self, update: UpdateStateFn) -> Result<()> {
        self.change(GatewayChange::Clear, update).await.map(drop)
    }

    async fn put_chunk(&self, chunk: BlobChunkId, content: Bytes) -> Result<()> {
        let keys = Arc::clone(&self.keys);
        let sealed =
            SqlBytes(engine::run_blocking(move || keys.seal_chunk(chunk, &content)).await?);
        let (blob, number) = columns(chunk);
        let place = [(&blob as _, Type::INT8), (&number as _, Type::INT4)];
        let rest = [&place[..], &[(&sealed as _, Type::BYTEA)]].concat();
        self.call("SELECT warren.put_chunk($1, $2, $3, $4)", &rest).await.map(drop)
    }

    async fn chunk(&self, chunk: BlobChunkId) -> Result<Option<Bytes>> {
        let (blob, number) = columns(chunk);
        let place = [(&blob as _, Type::INT8), (&number as _, Type::INT4)];
        let rows = self.call("SELECT warren.chunk($1, $2, $3)", &place).await?;
        let keys = Arc::clone(&self.keys);
        engine::run_blocking(move || {
            let sealed = rows.first().map(|row| row.try_get::<_, Option<&[u8]>>(0)).transpose()?;
            sealed.flatten().map(|sealed| keys.open_chunk(chunk, sealed)).transpose()
        })
        .await?
    }

    async fn chunk_ids(&self) -> Result<Vec<BlobChunkId>> {
        let rows = self.call("SELECT * FROM warren.chunk_ids($1)", &[]).await?;
        let chunk = |row: &Row| {
            let blob = BlobId::new(row.try_get::<_, i64>(0)?.cast_unsigned());
            let number = row.try_get::<_, i32>(1)?.cast_unsigned();
            Ok(BlobChunkId { blob: blob.expect("`put_chunk` alone writes ids"), number })
        };
        rows.iter().map(chunk).collect()
    }

    async fn replace_blob(
        &self,
        blob: CompleteBlob,
        update: UpdateStateFn,
    ) -> Result<ExchangeOutcome> {
        self.change(GatewayChange::ReplaceBlob(blob), update).await
    }

    async fn remove_blob(&self, blob: BlobId) -> Result<()> {
        let blob = blob.get().cast_signed();
        let sql = "SELECT warren.remove_blob($1, $2)";
        self.call(sql, &[(&blob, Type::INT8)]).await.map(drop)
    }
}

/// Returns the columns `blob_id, chunk_number`.
fn columns(chunk: BlobChunkId) -> (i64, i32) {
    (chunk.blob.get().cast_signed(), chunk.number.cast_signed())
}
