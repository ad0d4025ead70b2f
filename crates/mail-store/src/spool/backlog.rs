//! The deliveries that wait and those that were set aside, counted for the operator and for limits.
//!
//! # Invariants
//! - No call reads sealed bytes: a backlog comes from the index alone.

use accounts::VaultId;
use engine::StaticStatement;
use rusqlite::Row;

use super::{MailSpool, to_microseconds};
use crate::error::Result;

/// The most rows that a call lists, so that its answer has a bounded size.
pub const LISTED_COUNT_MAX: u32 = 1_000;

pub(super) const TOTAL_SQL: &str = "SELECT count(*), coalesce(sum(size), 0), min(seq),
         count(*) FILTER (WHERE seq > ?1), count(*) FILTER (WHERE seq > ?2),
         count(*) FILTER (WHERE seq > ?3)
     FROM delivery";
pub(super) const VAULT_SQL: &str = "SELECT count(*), coalesce(sum(size), 0), min(seq)
     FROM delivery WHERE vault_id = ?1";
pub(super) const VAULTS_SQL: &str = "SELECT count(*), coalesce(sum(size), 0), min(seq), vault_id
     FROM delivery WHERE vault_id > ?1 GROUP BY vault_id ORDER BY vault_id LIMIT ?2";

static TOTAL: StaticStatement = StaticStatement::new(TOTAL_SQL);
static VAULT: StaticStatement = StaticStatement::new(VAULT_SQL);
static VAULTS: StaticStatement = StaticStatement::new(VAULTS_SQL);
static SET_ASIDE_TOTAL: StaticStatement =
    StaticStatement::new("SELECT count(*), coalesce(sum(size), 0), min(seq) FROM set_aside");
static FILED_COUNT: StaticStatement = StaticStatement::new("SELECT filed_count FROM spool_state");
static SET_ASIDE_LIST: StaticStatement = StaticStatement::new(
    "SELECT seq, vault_id, size, reason, set_aside_ms FROM set_aside
     WHERE seq > ?1 ORDER BY seq LIMIT ?2",
);

/// The ages by which waiting deliveries are counted, in seconds: an hour, a day, a week.
pub const AGES_S: [u64; 3] = [3_600, 86_400, 7 * 86_400];

/// How much waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolBacklog {
    pub count: u64,
    /// The length of the sealed deliveries.
    pub bytes: u64,
    /// The number of the oldest delivery, which is also its time in microseconds since 1970.
    pub oldest_seq: Option<i64>,
}

impl SpoolBacklog {
    /// Returns the time of the oldest delivery, in milliseconds since 1970.
    pub fn oldest_ms(&self) -> Option<u64> {
        self.oldest_seq.map(|seq| seq.cast_unsigned() / 1_000)
    }
}

/// The deliveries of one vault that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultBacklog {
    pub vault: VaultId,
    pub backlog: SpoolBacklog,
}

/// The deliveries of all vaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolTotals {
    pub waiting: SpoolBacklog,
    /// How many deliveries have waited for at most each of [`AGES_S`].
    pub younger_counts: [u64; AGES_S.len()],
    pub set_aside: SpoolBacklog,
    /// The number of deliveries that were filed since the spool was created.
    pub filed_count: u64,
}

/// A delivery that was set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAsideDelivery {
    pub seq: i64,
    pub vault: VaultId,
    /// The length of the sealed delivery.
    pub bytes: u64,
    /// The error code of the failure (Format 4).
    pub reason: String,
    /// When it was set aside, in milliseconds since 1970.
    pub set_aside_ms: u64,
}

impl MailSpool {
    /// Returns how much waits for all vaults, how much was set aside, and how much was filed.
    /// `now_ms` is the present time in milliseconds since 1970. This reads the whole index.
    pub fn totals(&self, now_ms: u64) -> Result<SpoolTotals> {
        let since = AGES_S.map(|age_s| to_microseconds(now_ms.saturating_sub(age_s * 1_000)));
        self.database.read(|db| {
            let (waiting, younger_counts) = db.statement(&TOTAL)?.query_row(since, |row| {
                let younger = [to_count(row, 3)?, to_count(row, 4)?, to_count(row, 5)?];
                Ok((to_backlog(row)?, younger))
            })?;
            let set_aside = db.statement(&SET_ASIDE_TOTAL)?.query_row([], to_backlog)?;
            let filed_count = db.statement(&FILED_COUNT)?.query_row([], |row| to_count(row, 0))?;
            Ok(SpoolTotals { waiting, younger_counts, set_aside, filed_count })
        })
    }

    /// Returns how much waits for a vault.
    pub fn backlog(&self, vault: &VaultId) -> Result<SpoolBacklog> {
        self.database
            .read(|db| Ok(db.statement(&VAULT)?.query_row([vault.to_bytes()], to_backlog)?))
    }

    /// Returns the vaults for which deliveries wait, after the vault `after`, in the order of their
    /// ids; at most [`LISTED_COUNT_MAX`].
    pub fn backlogs(&self, after: Option<&VaultId>) -> Result<Vec<VaultBacklog>> {
        let to_row = |row: &Row<'_>| {
            Ok(VaultBacklog { vault: to_vault(row, 3)?, backlog: to_backlog(row)? })
        };
        // No id is empty.
        let after = after.map_or(Vec::new(), |vault| vault.to_bytes().to_vec());
        self.database.read(|db| {
            let mut statement = db.statement(&VAULTS)?;
            let rows = statement.query_map((after, LISTED_COUNT_MAX), to_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Returns the deliveries that were set aside, above the number `after`; at most
    /// [`LISTED_COUNT_MAX`].
    pub fn set_aside_deliveries(&self, after: i64) -> Result<Vec<SetAsideDelivery>> {
        let to_row = |row: &Row<'_>| {
            Ok(SetAsideDelivery {
                seq: row.get(0)?,
                vault: to_vault(row, 1)?,
                bytes: to_count(row, 2)?,
                reason: row.get(3)?,
                set_aside_ms: to_count(row, 4)?,
            })
        };
        self.database.read(|db| {
            let mut statement = db.statement(&SET_ASIDE_LIST)?;
            let rows = statement.query_map((after, LISTED_COUNT_MAX), to_row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}

fn to_backlog(row: &Row<'_>) -> rusqlite::Result<SpoolBacklog> {
    Ok(SpoolBacklog { count: to_count(row, 0)?, bytes: to_count(row, 1)?, oldest_seq: row.get(2)? })
}

fn to_vault(row: &Row<'_>, column: usize) -> rusqlite::Result<VaultId> {
    Ok(VaultId::from_bytes(&row.get(column)?))
}

/// Converts one of SQLite's signed integers.
fn to_count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(i64::cast_unsigned)
}
