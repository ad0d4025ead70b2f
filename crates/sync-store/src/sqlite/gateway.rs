//! The part of a vault's file that gateways use.
//!
//! # Invariants
//! - Pieces are on the disk when a later `exchange` has answered, though writing them does not wait
//!   for it. Both go into the same WAL, one after the other; an answer with `Durability::Disk`
//!   comes after a flush of that file, of all of it; and what a checkpoint has taken out of it
//!   before, it has flushed. Which holds for an exchange that changes nothing, too.

use async_trait::async_trait;
use bytes::Bytes;
use crdt::{Message, Timestamp};
use engine::Durability;
use rusqlite::{Connection, OptionalExtension};

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::gateway::{Amend, BlobId, Exchanged, GatewayStore, PieceId, Recorded, WholeBlob};
use crate::sqlite::messages::{self, Known};
use crate::sqlite::schema::to_column;
use crate::sqlite::{SqliteStore, loss, windows};
use crate::store::{Quota, State};

#[async_trait]
impl GatewayStore for SqliteStore {
    async fn exchange(&self, batch: Batch, amend: Amend) -> Result<Exchanged> {
        self.write(Durability::Disk, move |db| exchange(db, &batch, &amend)).await
    }

    async fn record(&self) -> Result<Recorded> {
        self.read(recorded).await
    }

    async fn since(
        &self,
        start: Timestamp,
        cursor: u64,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Message>> {
        self.read(move |db| since(db, start, cursor, count_max, bytes_max)).await
    }

    async fn look(
        &self,
        start: Timestamp,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<(Recorded, Vec<Message>)> {
        self.read(move |db| {
            let recorded = recorded(db)?;
            let messages = since(db, start, recorded.cursor, count_max, bytes_max)?;
            Ok((recorded, messages))
        })
        .await
    }

    async fn exchange_and_look(
        &self,
        batch: Batch,
        amend: Amend,
        start: Timestamp,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<(Exchanged, Vec<Message>)> {
        self.write(Durability::Disk, move |db| {
            let cursor = messages::state(db)?.cursor;
            let messages = since(db, start, cursor, count_max, bytes_max)?;
            Ok((exchange(db, &batch, &amend)?, messages))
        })
        .await
    }

    async fn clear(&self, amend: Amend) -> Result<()> {
        self.write(Durability::Disk, move |db| {
            let cursor = messages::state(db)?.cursor;
            db.execute_batch("DELETE FROM message; DELETE FROM node")?;
            loss::forget(db)?;
            messages::write_state(db, State { cursor, ..State::default() })?;
            write_record(db, &amend(&record(db)?, &[]).map_err(Error::Declined)?)
        })
        .await
    }

    async fn put_piece(&self, piece: PieceId, content: Bytes) -> Result<()> {
        self.write(Durability::Os, move |db| {
            let sql = "INSERT OR REPLACE INTO piece (id, content) VALUES (?1, ?2)";
            db.prepare_cached(sql)?.execute((piece.to_row(), &content[..]))?;
            Ok(())
        })
        .await
    }

    async fn piece(&self, piece: PieceId) -> Result<Option<Bytes>> {
        self.read(move |db| {
            let mut statement = db.prepare_cached("SELECT content FROM piece WHERE id = ?1")?;
            let content = statement.query_row([piece.to_row()], |row| row.get::<_, Vec<u8>>(0));
            Ok(content.optional()?.map(Bytes::from))
        })
        .await
    }

    async fn pieces(&self) -> Result<Vec<PieceId>> {
        self.read(|db| {
            let mut statement = db.prepare_cached("SELECT id FROM piece ORDER BY id")?;
            let ids = statement.query_map([], |row| Ok(PieceId::of_row(row.get(0)?)))?;
            Ok(ids.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn replace_blob(&self, blob: WholeBlob, amend: Amend) -> Result<Exchanged> {
        self.write(Durability::Disk, move |db| {
            let (first, last) = rows(blob.id);
            let sql = "SELECT count(*) FROM piece WHERE id BETWEEN ?1 AND ?2";
            let found: u32 = db.prepare_cached(sql)?.query_row((first, last), |row| row.get(0))?;
            if found != blob.pieces_count {
                return Err(Error::BlobIncomplete);
            }
            let sql = "DELETE FROM piece WHERE id NOT BETWEEN ?1 AND ?2";
            db.prepare_cached(sql)?.execute((first, last))?;
            exchange(db, &Batch::default(), &amend)
        })
        .await
    }

    async fn remove_blob(&self, blob: BlobId) -> Result<()> {
        self.write(Durability::Os, move |db| {
            let sql = "DELETE FROM piece WHERE id BETWEEN ?1 AND ?2";
            db.prepare_cached(sql)?.execute(rows(blob))?;
            Ok(())
        })
        .await
    }
}

/// The first and the last row that a piece of the blob can have.
fn rows(blob: BlobId) -> (i64, i64) {
    let row = |number| PieceId { blob, number }.to_row();
    (row(0), row(PieceId::COUNT_MAX - 1))
}

fn exchange(db: &Connection, batch: &Batch, amend: &Amend) -> Result<Exchanged> {
    if messages::is_damaged(db)? {
        windows::rebuild(db)?;
    }
    let before = messages::state(db)?;
    let known = messages::insert_all(db, batch, before.cursor)?;
    let after = messages::add(db, batch, &known.sums, before, Quota::UNLIMITED)?;
    let old = record(db)?;
    let new = amend(&old, &fresh(batch, &known)).map_err(Error::Declined)?;
    if new != old {
        write_record(db, &new)?;
    }
    let stored = after.cursor - before.cursor;
    Ok(Exchanged { cursor: before.cursor, stored, record: new.into() })
}

/// The timestamps that were not there.
fn fresh(batch: &Batch, known: &Known) -> Vec<Timestamp> {
    let mut known = known.places.iter().copied().peekable();
    let mut is_fresh = |place: &usize| known.next_if_eq(place).is_none();
    let timestamps = batch.timestamps().enumerate();
    timestamps.filter(|(place, _)| is_fresh(place)).map(|(_, timestamp)| timestamp).collect()
}

fn recorded(db: &Connection) -> Result<Recorded> {
    Ok(Recorded { cursor: messages::state(db)?.cursor, record: record(db)?.into() })
}

pub(super) fn record(db: &Connection) -> Result<Vec<u8>> {
    let mut statement = db.prepare_cached("SELECT content FROM record")?;
    Ok(statement.query_row([], |row| row.get(0)).optional()?.unwrap_or_default())
}

pub(super) fn write_record(db: &Connection, record: &[u8]) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO record (id, content) VALUES (1, ?1)";
    db.prepare_cached(sql)?.execute([record])?;
    Ok(())
}

fn since(
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
        contents.extend_from_slice(messages::blob(row, 1)?);
        ends.push((messages::timestamp(row, 0)?, contents.len()));
        if contents.len() >= bytes_max {
            break;
        }
    }
    Ok(messages::slices(contents, &ends))
}
