//! The part of a vault's rows that gateways use.
//!
//! What a record becomes is computed here, so a change of it is: read record and version; compute;
//! write, if the version is still that one and no timestamp has become known meanwhile; else again.
//!
//! # Invariants
//! - No lock is held while the new record is computed. Within this process changes of a vault take
//!   turns instead, so that it meets only those of other processes.
//! - What is answered is on the disk: known messages are visible, so they were flushed; all else is
//!   written with PostgreSQL's own `synchronous_commit`, pieces too.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use crdt::{Message, Timestamp};
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::batch::{Batch, Entry};
use crate::error::{Error, Result};
use crate::gateway::{Amend, BlobId, Exchanged, GatewayStore, PieceId, Recorded, WholeBlob};
use crate::postgres::columns::Columns;
use crate::postgres::rows::{self, Binary, Uuid, bigint};
use crate::postgres::sealed::Keys;
use crate::postgres::{PostgresStore, blocking, pool};

/// How often a change is computed. Each time in vain, another process has changed the vault: of
/// eight that do nothing else, one is this unlucky once in 5,000 changes.
const TRIES_MAX: u32 = 64;

/// Vaults that change at one time. A mutex has some 50 bytes; vaults that share one by chance wait
/// for each other.
const TURNS_COUNT: usize = 1_024;

/// Who may change a vault's record now.
#[derive(Clone)]
pub(super) struct Turns(Arc<[Mutex<()>]>);

impl Turns {
    pub(super) fn new() -> Self {
        Self((0..TURNS_COUNT).map(|_| Mutex::default()).collect())
    }

    async fn wait(&self, vault: Uuid) -> MutexGuard<'_, ()> {
        // An id is random.
        let place = vault.0 % self.0.len() as u128;
        self.0[usize::try_from(place).expect("below the count")].lock().await
    }
}

/// What is to become of the messages.
enum Change {
    Store(Batch),
    Clear,
    ReplaceBlob(WholeBlob),
}

/// A record as it was read.
struct Read {
    version: i64,
    cursor: u64,
    record: Bytes,
    /// Places in the list that was asked for, in order.
    known: Vec<i32>,
}

/// A change, computed and sealed.
struct Computed {
    columns: Columns,
    record: Bytes,
    /// None if it stays as it is.
    sealed: Option<Bytes>,
}

impl Change {
    fn entries(&self) -> &[Entry] {
        match self {
            Self::Store(batch) => &batch.entries,
            Self::Clear | Self::ReplaceBlob(_) => &[],
        }
    }

    fn list(&self) -> Vec<u8> {
        self.entries().iter().flat_map(|entry| entry.message.timestamp.to_bytes()).collect()
    }

    fn compute(&self, read: &Read, amend: &Amend, keys: &Keys) -> Result<Computed> {
        let mut known = read.known.iter().copied().peekable();
        let places = (0i32..).zip(self.entries());
        let fresh = places.filter(|(place, _)| known.next_if_eq(place).is_none());
        let fresh: Vec<_> = fresh.map(|(_, entry)| entry).collect();
        let timestamps: Vec<_> = fresh.iter().map(|entry| entry.message.timestamp).collect();
        let record = Bytes::from(amend(&read.record, &timestamps).map_err(Error::Declined)?);
        let changes_nothing =
            matches!(self, Self::Store(_)) && fresh.is_empty() && record == read.record;
        let sealed = (!changes_nothing).then(|| keys.seal_record(read.version + 1, &record));
        Ok(Computed { columns: Columns::new(&fresh, keys), record, sealed })
    }
}

impl PostgresStore {
    async fn read_record(&self, list: &[u8]) -> Result<Read> {
        let sql = "SELECT * FROM warren.known($1, $2)";
        let row = self.postgres.one(sql, &[self.vault(), (&list, Type::BYTEA)]).await?;
        let version = row.try_get(2)?;
        let record = match version {
            0 => Bytes::new(),
            _ => self.keys.open_record(version, row.try_get(3)?)?,
        };
        let cursor = row.try_get::<_, i64>(1)?.cast_unsigned();
        Ok(Read { version, cursor, record, known: row.try_get(0)? })
    }

    /// Returns the newest arrival number before it.
    async fn write(
        &self,
        change: &Change,
        columns: &Columns,
        version: i64,
        record: &Bytes,
    ) -> Result<u64> {
        let record = Binary(record);
        let record: [pool::Parameter<'_>; 2] = [(&version, Type::INT8), (&record, Type::BYTEA)];
        let row = match change {
            Change::Store(_) => {
                let sql = "SELECT warren.exchange($1, $2, $3, $4, $5, $6, $7, $8)";
                let parameters = [&[self.vault()], &columns.parameters()[..], &record].concat();
                self.postgres.one(sql, &parameters).await
            }
            Change::Clear => {
                let parameters = [&[self.vault()][..], &record].concat();
                self.postgres.one("SELECT warren.clear($1, $2, $3)", &parameters).await
            }
            Change::ReplaceBlob(blob) => {
                let sql = "SELECT warren.replace_blob($1, $2, $3, $4, $5)";
                let (id, count) = (blob.id.get().cast_signed(), blob.pieces_count.cast_signed());
                let blob: [pool::Parameter<'_>; 2] = [(&id, Type::INT8), (&count, Type::INT4)];
                let parameters = [&[self.vault()][..], &record, &blob].concat();
                self.postgres.one(sql, &parameters).await
            }
        };
        Ok(row?.try_get::<_, i64>(0)?.cast_unsigned())
    }

    async fn change(&self, change: Change, amend: Amend) -> Result<Exchanged> {
        let _turn = self.postgres.turns.wait(self.vault).await;
        let (list, change) = (change.list(), Arc::new(change));
        let mut tries = 1;
        loop {
            let read = self.read_record(&list).await?;
            let (version, mut cursor) = (read.version, read.cursor);
            let (of, amend, keys) =
                (Arc::clone(&change), Arc::clone(&amend), Arc::clone(&self.keys));
            let computed = blocking(move || of.compute(&read, &amend, &keys)).await??;
            let Computed { columns, record, sealed } = computed;
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
            return Ok(Exchanged { cursor, stored: columns.count(), record });
        }
    }

    async fn call(&self, sql: &str, rest: &[pool::Parameter<'_>]) -> Result<Vec<Row>> {
        self.postgres.all(sql, &[&[self.vault()], rest].concat()).await
    }
}

#[async_trait]
impl GatewayStore for PostgresStore {
    async fn exchange(&self, batch: Batch, amend: Amend) -> Result<Exchanged> {
        self.change(Change::Store(batch), amend).await
    }

    async fn record(&self) -> Result<Recorded> {
        let Read { cursor, record, .. } = self.read_record(&[]).await?;
        Ok(Recorded { cursor, record })
    }

    async fn since(
        &self,
        start: Timestamp,
        cursor: u64,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Message>> {
        let (start, cursor) = (Binary(start.to_bytes()), bigint(cursor));
        let count_max = i32::try_from(count_max).unwrap_or(i32::MAX);
        let bytes_max = bigint(bytes_max as u64);
        let parameters = [
            self.vault(),
            (&start as _, Type::BYTEA),
            (&cursor as _, Type::INT8),
            (&count_max as _, Type::INT4),
            (&bytes_max as _, Type::INT8),
        ];
        let sql = "SELECT * FROM warren.since($1, $2, $3, $4, $5)";
        let row = self.postgres.one(sql, &parameters).await?;
        let keys = Arc::clone(&self.keys);
        blocking(move || {
            let (stamps, contents): (Vec<&[u8]>, Vec<&[u8]>) = (row.try_get(0)?, row.try_get(1)?);
            let open = |(stamp, content)| {
                let timestamp = rows::timestamp(stamp);
                Ok(Message { timestamp, content: keys.open(timestamp, content)? })
            };
            stamps.into_iter().zip(contents).map(open).collect()
        })
        .await?
    }

    async fn clear(&self, amend: Amend) -> Result<()> {
        self.change(Change::Clear, amend).await.map(drop)
    }

    async fn put_piece(&self, piece: PieceId, content: Bytes) -> Result<()> {
        let keys = Arc::clone(&self.keys);
        let sealed = Binary(blocking(move || keys.seal_piece(piece, &content)).await?);
        let (blob, number) = columns(piece);
        let place = [(&blob as _, Type::INT8), (&number as _, Type::INT4)];
        let rest = [&place[..], &[(&sealed as _, Type::BYTEA)]].concat();
        self.call("SELECT warren.put_piece($1, $2, $3, $4)", &rest).await.map(drop)
    }

    async fn piece(&self, piece: PieceId) -> Result<Option<Bytes>> {
        let (blob, number) = columns(piece);
        let place = [(&blob as _, Type::INT8), (&number as _, Type::INT4)];
        let rows = self.call("SELECT warren.piece($1, $2, $3)", &place).await?;
        let keys = Arc::clone(&self.keys);
        blocking(move || {
            let sealed = rows.first().map(|row| row.try_get::<_, Option<&[u8]>>(0)).transpose()?;
            sealed.flatten().map(|sealed| keys.open_piece(piece, sealed)).transpose()
        })
        .await?
    }

    async fn pieces(&self) -> Result<Vec<PieceId>> {
        let rows = self.call("SELECT * FROM warren.pieces($1)", &[]).await?;
        let piece = |row: &Row| {
            let blob = BlobId::new(row.try_get::<_, i64>(0)?.cast_unsigned());
            let number = row.try_get::<_, i32>(1)?.cast_unsigned();
            Ok(PieceId { blob: blob.expect("`put_piece` alone writes ids"), number })
        };
        rows.iter().map(piece).collect()
    }

    async fn replace_blob(&self, blob: WholeBlob, amend: Amend) -> Result<Exchanged> {
        self.change(Change::ReplaceBlob(blob), amend).await
    }

    async fn remove_blob(&self, blob: BlobId) -> Result<()> {
        let blob = blob.get().cast_signed();
        let sql = "SELECT warren.remove_blob($1, $2)";
        self.call(sql, &[(&blob, Type::INT8)]).await.map(drop)
    }
}

/// Columns `blob, number`.
fn columns(piece: PieceId) -> (i64, i32) {
    (piece.blob.get().cast_signed(), piece.number.cast_signed())
}
