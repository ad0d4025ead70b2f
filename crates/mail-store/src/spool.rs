//! The mail spool: the sealed deliveries of all vaults, until each is filed in its mail vault
//! (Format 23).
//!
//! A delivery arrives while its vault is locked, so it waits here. All vaults share one file:
//! deliveries that arrive together share a commit and a flush. The filer, which has the key of a
//! vault, takes its deliveries by [`MailSpool::batch`], stores them in the vault with the last
//! `seq`, waits for the disk, and calls [`MailSpool::finish`]. If the program ends before that call,
//! the next filer finds the `seq` in the vault and only deletes what was filed.
//!
//! # Invariants
//! - `seq` ascends in the order in which deliveries become visible, and is never given again: it is
//!   given inside the transaction, and AUTOINCREMENT remembers the last one of an empty spool. So
//!   a delivery above the last filed `seq` of its vault is not filed yet.
//! - An accepted delivery is on the disk before its caller has an answer.
//!
//! # Not here
//! - The operator's view → `spool/backlog.rs`. The limit on deliveries that are being written,
//!   and on those of one vault → the caller.

pub(crate) mod backlog;
pub(crate) mod schema;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use accounts::VaultId;
use engine::{Database, Databases, Durability, StaticStatement, Transaction, WriteFuture};
use rusqlite::OptionalExtension;

use crate::error::{Error, Result};

/// The most deliveries that are filed in one transaction, so that it blocks the vault for a moment
/// only.
pub const BATCH_COUNT_MAX: u32 = 100;

/// The most sealed bytes that are filed in one transaction, unless the first delivery has more.
pub const BATCH_BYTES_MAX: u64 = 32 << 20;

static INSERT: StaticStatement = StaticStatement::new(
    "INSERT INTO delivery (seq, vault_id, size, sealed)
     SELECT max(?1, 1 + coalesce(max(seq), 0)), ?2, length(?3), ?3
     FROM sqlite_sequence WHERE name = 'delivery'
     RETURNING seq",
);

static BATCH: StaticStatement = StaticStatement::new(
    "SELECT size, seq, sealed FROM delivery WHERE vault_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
);

static DELETE_FILED: StaticStatement =
    StaticStatement::new("DELETE FROM delivery WHERE vault_id = ?1 AND seq <= ?2");

static RECORD_FILED: StaticStatement = StaticStatement::new(
    "INSERT INTO filed (vault_id, seq, modseq) VALUES (?1, ?2, ?3)
     ON CONFLICT (vault_id) DO UPDATE
     SET seq = max(seq, excluded.seq), modseq = max(modseq, excluded.modseq)",
);

/// Numbers that are given later are higher than those that were filed, even if this file is an
/// old copy and the clock was ahead.
static RAISE_LAST: StaticStatement =
    StaticStatement::new("UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = 'delivery'");

static COUNT_FILED: StaticStatement =
    StaticStatement::new("UPDATE spool_state SET filed_count = filed_count + ?1");

static FILED: StaticStatement =
    StaticStatement::new("SELECT seq, modseq FROM filed WHERE vault_id = ?1");

static SET_ASIDE: StaticStatement = StaticStatement::new(
    "INSERT INTO set_aside (seq, vault_id, size, reason, set_aside_ms, sealed)
     SELECT seq, vault_id, size, ?3, ?4, sealed FROM delivery WHERE vault_id = ?1 AND seq = ?2",
);

static DELETE_ONE: StaticStatement =
    StaticStatement::new("DELETE FROM delivery WHERE vault_id = ?1 AND seq = ?2");

static DELETE_SET_ASIDE: StaticStatement =
    StaticStatement::new("DELETE FROM set_aside WHERE seq = ?1");

static DELETE_VAULT: [StaticStatement; 3] = [
    StaticStatement::new("DELETE FROM delivery WHERE vault_id = ?1"),
    StaticStatement::new("DELETE FROM set_aside WHERE vault_id = ?1"),
    StaticStatement::new("DELETE FROM filed WHERE vault_id = ?1"),
];

static ID: StaticStatement = StaticStatement::new("SELECT spool_id FROM spool_state");

/// The mail spool of a data directory. It may be shared between threads.
pub struct MailSpool {
    database: Arc<Database>,
    /// The random id of the file. Numbers of deliveries have a meaning only together with it.
    id: [u8; 16],
}

/// A delivery in the spool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpooledDelivery {
    pub seq: i64,
    /// The sealed form (Format 22).
    pub sealed: Vec<u8>,
}

/// The progress of filing that the spool records for a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiledMark {
    /// The highest `seq` that was filed, or 0.
    pub seq: i64,
    /// The highest modseq of the vault that was recorded. A vault with a lower one is an old copy.
    pub modseq: i64,
}

impl MailSpool {
    /// Opens the spool of a data directory, which must exist, and creates it if it is missing.
    pub fn open(databases: &Databases, data: &Path) -> Result<Self> {
        let database = schema::open(databases, data)?;
        let id = database
            .read::<_, Error>(|db| Ok(db.statement(&ID)?.query_row([], |row| row.get(0))?))?;
        Ok(Self { database, id })
    }

    pub(crate) fn id(&self) -> [u8; 16] {
        self.id
    }

    /// Stores the sealed deliveries of one message, all or none of them, and returns the `seq` of
    /// each once they are on the disk.
    /// `now_ms` is the present time in milliseconds since 1970.
    pub fn deliver_all(
        &self,
        deliveries: Vec<(VaultId, Vec<u8>)>,
        now_ms: u64,
    ) -> WriteFuture<Vec<i64>, Error> {
        let now_us = to_microseconds(now_ms);
        self.database.write(Durability::Disk, move |db| {
            let insert = |(vault, sealed): &(VaultId, Vec<u8>)| {
                insert(db, &vault.to_bytes(), sealed, now_us)
            };
            deliveries.iter().map(insert).collect()
        })
    }

    /// Returns the next deliveries of a vault above the number `after`, in their order: at most
    /// [`BATCH_COUNT_MAX`] and [`BATCH_BYTES_MAX`], but at least one if there is any.
    pub fn batch(&self, vault: &VaultId, after: i64) -> Result<Vec<SpooledDelivery>> {
        self.database.read(|db| {
            let mut statement = db.statement(&BATCH)?;
            let mut rows = statement.query((vault.to_bytes(), after, BATCH_COUNT_MAX))?;
            let (mut batch, mut bytes) = (Vec::new(), 0_u64);
            while let Some(row) = rows.next()? {
                // SQLite reads the sealed bytes only when they are asked for.
                bytes = bytes.saturating_add(row.get(0).map(i64::cast_unsigned)?);
                if bytes > BATCH_BYTES_MAX && !batch.is_empty() {
                    break;
                }
                batch.push(SpooledDelivery { seq: row.get(1)?, sealed: row.get(2)? });
            }
            Ok(batch)
        })
    }

    /// Deletes the deliveries of a vault up to `filed_seq`, and records that number and the vault's
    /// `modseq`. The transaction of the vault that filed them must be on the disk.
    ///
    /// The answer does not wait for the disk: after a power loss, the deliveries may be there again,
    /// and the vault knows that it has them.
    pub fn finish(&self, vault: &VaultId, filed_seq: i64, modseq: i64) -> WriteFuture<(), Error> {
        let vault = vault.to_bytes();
        self.database.write(Durability::Os, move |db| {
            let count = db.statement(&DELETE_FILED)?.execute((vault, filed_seq))?;
            if count > 0 {
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                db.statement(&COUNT_FILED)?.execute([count])?;
            }
            db.statement(&RECORD_FILED)?.execute((vault, filed_seq, modseq))?;
            db.statement(&RAISE_LAST)?.execute([filed_seq])?;
            Ok(())
        })
    }

    /// Returns what was recorded for a vault, if anything was.
    pub fn filed(&self, vault: &VaultId) -> Result<Option<FiledMark>> {
        self.database.read(|db| {
            let mut statement = db.statement(&FILED)?;
            let mark =
                |row: &rusqlite::Row<'_>| Ok(FiledMark { seq: row.get(0)?, modseq: row.get(1)? });
            Ok(statement.query_row([vault.to_bytes()], mark).optional()?)
        })
    }

    /// Sets aside a delivery that cannot be unsealed; `reason` is an error code of Format 4. Returns
    /// whether the vault had this delivery.
    ///
    /// Wait for the answer before a later delivery of the vault is filed: the spool deletes
    /// everything up to the last one that was filed.
    pub fn set_aside(
        &self,
        vault: &VaultId,
        seq: i64,
        reason: &'static str,
        now_ms: u64,
    ) -> WriteFuture<bool, Error> {
        let vault = vault.to_bytes();
        self.database.write(Durability::Disk, move |db| {
            let row = (vault, seq, reason, now_ms.cast_signed());
            db.statement(&SET_ASIDE)?.execute(row)?;
            Ok(db.statement(&DELETE_ONE)?.execute((vault, seq))? == 1)
        })
    }

    /// Deletes a delivery that was set aside. Returns whether there was one with this number.
    pub fn remove_set_aside(&self, seq: i64) -> WriteFuture<bool, Error> {
        self.database.write(Durability::Disk, move |db| {
            Ok(db.statement(&DELETE_SET_ASIDE)?.execute([seq])? == 1)
        })
    }

    /// Deletes everything of a vault, which itself was removed.
    pub fn remove_vault(&self, vault: &VaultId) -> WriteFuture<(), Error> {
        let vault = vault.to_bytes();
        self.database.write(Durability::Disk, move |db| {
            for delete in &DELETE_VAULT {
                db.statement(delete)?.execute([vault])?;
            }
            Ok(())
        })
    }
}

fn insert(db: &Transaction<'_>, vault: &[u8; 16], sealed: &[u8], now_us: i64) -> Result<i64> {
    Ok(db.statement(&INSERT)?.query_row((now_us, vault, sealed), |row| row.get(0))?)
}

/// Converts a time to the unit of `seq`.
fn to_microseconds(now_ms: u64) -> i64 {
    i64::try_from(now_ms.saturating_mul(1_000)).unwrap_or(i64::MAX)
}
