//! The part of a vault's file that gateways use.
//!
//! # Invariants
//! - Chunks are on the disk when a later `exchange` has returned, though writing them does not wait
//!   for that. Both go into the same WAL, one after the other; a write with `Durability::Disk`
//!   returns after a flush of the whole WAL; and a checkpoint has flushed what it moved from the
//!   WAL before. This also holds for an exchange that changes no data.

use async_trait::async_trait;
use bytes::Bytes;
use crdt::{Message, Timestamp};
use engine::Durability;
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Error, Result};
use crate::sqlite::messages::{self, KnownMessages};
use crate::sqlite::schema::to_column;
use crate::sqlite::{SqliteStore, loss, rows, windows};
use crate::vault::batch::MessageBatch;
use crate::vault::gateway::{
    BlobChunkId, BlobId, CompleteBlob, ExchangeOutcome, GatewaySnapshot, GatewayStore,
    UpdateStateFn,
};
use crate::vault::{Quota, VaultSummary};

#[async_trait]
impl GatewayStore for SqliteStore {
    async fn exchange(
        &self,
        batch: MessageBatch,
        update: UpdateStateFn,
    ) -> Result<ExchangeOutcome> {
        self.write(Durability::Disk, move |db| exchange(db, &batch, &update)).await
    }

    async fn gateway_state(&self) -> Result<GatewaySnapshot> {
        self.read(gateway_snapshot).await
    }

    async fn messages_from(
        &self,
        start: Timestamp,
        cursor: u64,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Message>> {
        self.read(move |db| messages_from(db, start, cursor, count_max, bytes_max)).await
    }

    async fn read_with_messages(
        &self,
        start: Timestamp,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<(GatewaySnapshot, Vec<Message>)> {
        self.read(move |db| {
            let recorded = gateway_snapshot(db)?;
            let messages = messages_from(db, start, recorded.cursor, count_max, bytes_max)?;
            Ok((recorded, messages))
        })
        .await
    }

    async fn exchange_and_read(
        &self,
        batch: MessageBatch,
        update: UpdateStateFn,
        start: Timestamp,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<(ExchangeOutcome, Vec<Message>)> {
        self.write(Durability::Disk, move |db| {
            let cursor = rows::summary(db)?.cursor;
            let messages = messages_from(db, start, cursor, count_max, bytes_max)?;
            Ok((exchange(db, &batch, &update)?, messages))
        })
        .await
    }

    async fn clear(&self, update: UpdateStateFn) -> Result<()> {
        self.write(Durability::Disk, move |db| {
            let cursor = rows::summary(db)?.cursor;
            db.execute_batch("DELETE FROM message; DELETE FROM fingerprint_window")?;
            loss::forget(db)?;
            rows::write_summary(db, VaultSummary { cursor, ..VaultSummary::default() })?;
            write_gateway_state(db, &update(&gateway_state(db)?, &[]).map_err(Error::Declined)?)
        })
        .await
    }

    async fn put_chunk(&self, chunk: BlobChunkId, content: Bytes) -> Result<()> {
        self.write(Durability::Os, move |db| {
            let sql = "INSERT OR REPLACE INTO blob_chunk (id, content) VALUES (?1, ?2)";
            db.prepare_cached(sql)?.execute((chunk.to_row(), &content[..]))?;
            Ok(())
        })
        .await
    }

    async fn chunk(&self, chunk: BlobChunkId) -> Result<Option<Bytes>> {
        self.read(move |db| {
            let mut statement =
                db.prepare_cached("SELECT content FROM blob_chunk WHERE id = ?1")?;
            let content = statement.query_row([chunk.to_row()], |row| row.get::<_, Vec<u8>>(0));
            Ok(content.optional()?.map(Bytes::from))
        })
        .await
    }

    async fn chunk_ids(&self) -> Result<Vec<BlobChunkId>> {
        self.read(|db| {
            let mut statement = db.prepare_cached("SELECT id FROM blob_chunk ORDER BY id")?;
            let ids = statement.query_map([], |row| Ok(BlobChunkId::from_row(row.get(0)?)))?;
            Ok(ids.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn replace_blob(
        &self,
        blob: CompleteBlob,
        update: UpdateStateFn,
    ) -> Result<ExchangeOutcome> {
        self.write(Durability::Disk, move |db| {
            let (first, last) = rows(blob.id);
            let sql = "SELECT count(*) FROM blob_chunk WHERE id BETWEEN ?1 AND ?2";
            let found: u32 = db.prepare_cached(sql)?.query_row((first, last), |row| row.get(0))?;
            if found != blob.chunks_count {
                return Err(Error::BlobIncomplete);
            }
            let sql = "DELETE FROM blob_chunk WHERE id NOT BETWEEN ?1 AND ?2";
            db.prepare_cached(sql)?.execute((first, last))?;
            exchange(db, &MessageBatch::default(), &update)
        })
        .await
    }

    async fn remove_blob(&self, blob: BlobId) -> Result<()> {
        self.write(Durability::Os, move |db| {
            let sql = "DELETE FROM blob_chunk WHERE id BETWEEN ?1 AND ?2";
            db.prepare_cached(sql)?.execute(rows(blob))?;
            Ok(())
        })
        .await
    }
}

/// Returns the first and the last row that a chunk of the blob can have.
fn rows(blob: BlobId) -> (i64, i64) {
    let row = |number| BlobChunkId { blob, number }.to_row();
    (row(0), row(BlobChunkId::COUNT_MAX - 1))
}

fn exchange(
    db: &Connection,
    batch: &MessageBatch,
    update: &UpdateStateFn,
) -> Result<ExchangeOutcome> {
    if rows::is_stale(db)? {
        windows::rebuild(db)?;
    }
    let before = rows::summary(db)?;
    let known = messages::insert_all(db, batch, before.cursor)?;
    let after = messages::add(db, batch, &known.sums, before, Quota::UNLIMITED)?;
    let old = gateway_state(db)?;
    let new = update(&old, &fresh(batch, &known)).map_err(Error::Declined)?;
    if new != old {
        write_gateway_state(db, &new)?;
    }
    let stored = after.cursor - before.cursor;
    Ok(ExchangeOutcome { cursor: before.cursor, stored, state: new.into() })
}

/// Returns the timestamps of the messages that are new.
fn fresh(batch: &MessageBatch, known: &KnownMessages) -> Vec<Timestamp> {
    let mut known = known.places.iter().copied().peekable();
    let mut is_fresh = |place: &usize| known.next_if_eq(place).is_none();
    let timestamps = batch.timestamps().enumerate();
    timestamps.filter(|(place, _)| is_fresh(place)).map(|(_, timestamp)| timestamp).collect()
}

fn gateway_snapshot(db: &Connection) -> Result<GatewaySnapshot> {
    Ok(GatewaySnapshot { cursor: rows::summary(db)?.cursor, state: gateway_state(db)?.into() })
}

pub(super) fn gateway_state(db: &Connection) -> Result<Vec<u8>> {
    let mut statement = db.prepare_cached("SELECT content FROM gateway_state")?;
    Ok(statement.query_row([], |row| row.get(0)).optional()?.unwrap_or_default())
}

pub(super) fn write_gateway_state(db: &Connection, state: &[u8]) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO gateway_state (id, content) VALUES (1, ?1)";
    db.prepare_cached(sql)?.execute([state])?;
    Ok(())
}

fn messages_from(
    db: &Connection,
    start: Timestamp,
    cursor: u64,
    count_max: usize,
    bytes_max: usize,
) -> Result<Vec<Message>> {
    let mut statement = db.prepare_cached(
        "SELECT timestamp, content FROM message WHERE timestamp >= ?1 AND seq <= ?2
         ORDER BY timestamp LIMIT ?3",
    )?;
    let limit = to_column(count_max as u64);
    let mut rows = statement.query((&start.to_bytes()[..], to_column(cursor), limit))?;
    let (mut contents, mut ends) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        contents.extend_from_slice(rows::blob(row, 1)?);
        ends.push((rows::timestamp(row, 0)?, contents.len()));
        if contents.len() >= bytes_max {
            break;
        }
    }
    Ok(messages::slices(contents, &ends))
}
