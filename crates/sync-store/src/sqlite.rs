//! A vault as an encrypted SQLite file of its own.
//!
//! # Invariants
//! - Messages are on the disk when `store` returns: it uses `Durability::Disk`.
//! - A page and its fingerprint belong to the same moment: they come from one read transaction.
//! - Reads run on blocking threads, writes on the engine's: no async task accesses a file.

mod devices;
mod erase;
mod files;
mod gateway;
mod loss;
mod messages;
mod repair;
mod rows;
mod schema;
mod sizes;
mod windows;

use std::ops::Range;
use std::sync::Arc;

use accounts::DeviceId;
use async_trait::async_trait;
use crdt::{Fingerprint, FingerprintWindow, Message, Timestamp};
use engine::{Database, Durability, Transaction, run_blocking};
use rusqlite::Connection;

pub use self::files::VaultFiles;
pub use self::repair::VaultDamage;
pub use self::schema::APPLICATION_ID;
pub use self::sizes::VaultFileSizes;
use crate::error::{Error, Result};
use crate::vault::batch::MessageBatch;
use crate::vault::device::{DeviceActivity, VaultDevice};
use crate::vault::{
    FingerprintCheck, MessageEntry, MessageErasure, MessagePage, Quota, RangeBucket, StoreOutcome,
    SyncStore, VaultLocation, VaultStatus, VaultSummary,
};

/// An open vault. Its file stays open while this exists.
pub(crate) struct SqliteStore {
    database: Arc<Database>,
}

impl SqliteStore {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        Self { database }
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let database = Arc::clone(&self.database);
        let read = run_blocking(move || database.read(|db| work(db))).await;
        self.explain(read.map_err(Error::from).flatten())
    }

    async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl Fn(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.explain(self.database.write(durability, work).await)
    }

    /// Changes an error to [`engine::Error::AlreadyQuarantined`] if it is damage that is not
    /// repaired.
    fn explain<T>(&self, result: Result<T>) -> Result<T> {
        match result {
            Err(Error::Engine(error))
                if error.is_damage() && self.database.unrepaired_damage().is_some() =>
            {
                let path = self.database.path().to_owned();
                Err(engine::Error::AlreadyQuarantined { path }.into())
            }
            result => result,
        }
    }

    /// Rebuilds the summary and windows if messages were changed by hand.
    async fn rebuild_if_stale(&self) -> Result<()> {
        if self.read(rows::is_stale).await? { self.rebuild().await } else { Ok(()) }
    }
}

#[async_trait]
impl SyncStore for SqliteStore {
    async fn store(
        &self,
        batch: MessageBatch,
        quota: Quota,
        seen: Option<DeviceActivity>,
    ) -> Result<StoreOutcome> {
        let durability = if batch.is_empty() { Durability::Os } else { Durability::Disk };
        self.write(durability, move |db| messages::store(db, &batch, quota, seen.as_ref())).await
    }

    async fn erase(&self, erasures: Vec<MessageErasure>, quota: Quota) -> Result<StoreOutcome> {
        let erased =
            self.write(Durability::Disk, move |db| erase::erase(db, &erasures, quota)).await?;
        let database = Arc::clone(&self.database);
        run_blocking(move || database.rewrite()).await??;
        Ok(erased)
    }

    async fn page(
        &self,
        cursor: u64,
        count_max: usize,
        bytes_max: usize,
        seen: Option<DeviceActivity>,
    ) -> Result<MessagePage> {
        self.rebuild_if_stale().await?;
        let database = Arc::clone(&self.database);
        let page = run_blocking(move || {
            let (page, stale) = database.read(|db| {
                let mut page = messages::page(db, cursor, count_max, bytes_max)?;
                page.loss =
                    seen.as_ref().map(|seen| loss::current_loss(db, seen)).transpose()?.flatten();
                let is_stale = |seen: &DeviceActivity| devices::is_stale(db, seen, page.cursor);
                let stale = seen.as_ref().map(is_stale).transpose()?.unwrap_or(false);
                Ok::<_, Error>((page, stale))
            })?;
            if let Some(seen) = seen.filter(|_| stale) {
                let cursor = page.cursor;
                // The update runs in the background: losing it only makes a list of devices less
                // accurate.
                let note = move |db: &Transaction<'_>| devices::record_pull(db, &seen, cursor);
                drop(database.write(Durability::Os, note));
            }
            Ok(page)
        })
        .await;
        self.explain(page.map_err(Error::from).flatten())
    }

    async fn summary(&self) -> Result<VaultSummary> {
        self.rebuild_if_stale().await?;
        self.read(rows::summary).await
    }

    async fn windows(&self) -> Result<Vec<(FingerprintWindow, Fingerprint)>> {
        self.rebuild_if_stale().await?;
        if !self.read(windows::add_up).await? {
            self.rebuild().await?;
        }
        self.read(windows::recorded).await
    }

    async fn buckets(&self, ranges: Vec<Range<u64>>, count: u64) -> Result<Vec<Vec<RangeBucket>>> {
        self.read(move |db| windows::buckets(db, &ranges, count)).await
    }

    async fn entries(
        &self,
        ranges: Vec<Range<u64>>,
        count_max: usize,
    ) -> Result<Vec<Vec<MessageEntry>>> {
        self.read(move |db| windows::entries(db, &ranges, count_max)).await
    }

    async fn messages(&self, timestamps: Vec<Timestamp>, bytes_max: usize) -> Result<Vec<Message>> {
        self.read(move |db| messages::find(db, &timestamps, bytes_max)).await
    }

    async fn add_device(&self, device: VaultDevice) -> Result<()> {
        self.write(Durability::Disk, move |db| devices::add(db, &device)).await
    }

    async fn devices(&self) -> Result<Vec<VaultDevice>> {
        self.read(devices::list).await
    }

    async fn remove_devices(&self, ids: Vec<DeviceId>) -> Result<()> {
        self.write(Durability::Disk, move |db| devices::remove(db, &ids)).await
    }

    async fn status(&self) -> Result<VaultStatus> {
        let (path, profile) = (self.database.path().to_owned(), self.database.profile().name);
        let cipher = self.database.cipher().map_or("none", engine::Cipher::name);
        self.rebuild_if_stale().await?;
        let database = Arc::clone(&self.database);
        self.read(move |db| {
            let number = |sql: &str| {
                db.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
            };
            let page_bytes = number("PRAGMA page_size")?;
            let file_bytes = number("PRAGMA page_count")? * page_bytes;
            let free_bytes = number("PRAGMA freelist_count")? * page_bytes;
            let wal_bytes = database.health().wal_bytes;
            Ok(VaultStatus {
                state: rows::summary(db)?,
                devices_count: number("SELECT count(*) FROM device")?,
                storage: VaultLocation::Sqlite {
                    path,
                    file_bytes,
                    free_bytes,
                    wal_bytes,
                    cipher,
                    profile,
                },
            })
        })
        .await
    }

    async fn verify(&self) -> Result<FingerprintCheck> {
        self.read(windows::verify).await
    }

    async fn rebuild(&self) -> Result<()> {
        self.write(Durability::Disk, |db| windows::rebuild(db)).await
    }
}
