//! Defines the plan for a driver: that of `docs/reference/formats/7-competitor-drivers.md`.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The number of a driver's callers, as published.
const CONCURRENCY: usize = 1_000;

/// The warm-up, which is long enough to prepare the statements and to read the hot pages.
const WARMUP_SECONDS: f64 = 0.3;

/// The plan for one run of a driver.
#[derive(Clone, Debug, Serialize)]
pub(in crate::tps) struct TpsDriverPlan<'a> {
    pub(in crate::tps) database: &'a Path,
    pub(in crate::tps) pairs: &'a Path,
    pub(in crate::tps) warmup_seconds: f64,
    pub(in crate::tps) seconds: f64,
    pub(in crate::tps) concurrency: usize,
    pub(in crate::tps) synchronous: SynchronousLevel,
    pub(in crate::tps) cache_kib: u32,
    pub(in crate::tps) reads: usize,
}

/// A level of `PRAGMA synchronous` that makes a difference in WAL mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(in crate::tps) enum SynchronousLevel {
    /// A commit survives a crash of the program.
    Normal,
    /// A commit survives a crash of the program and of the machine.
    Full,
}

impl<'a> TpsDriverPlan<'a> {
    pub(in crate::tps) fn new(workload: CompetitorWorkload<'a>, duration: Duration) -> Self {
        let CompetitorWorkload { database, pairs, cache_kib, synchronous, reads } = workload;
        Self {
            database,
            pairs,
            warmup_seconds: WARMUP_SECONDS,
            seconds: duration.as_secs_f64(),
            concurrency: CONCURRENCY,
            synchronous,
            cache_kib,
            reads,
        }
    }

    /// Returns the duration including the warm-up.
    pub(super) fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.warmup_seconds + self.seconds)
    }

    /// Returns the settings that SQLite must report on the connection that writes.
    pub(super) fn settings(&self) -> TpsDriverPragmas {
        TpsDriverPragmas {
            journal_mode: "wal".to_owned(),
            synchronous: match self.synchronous {
                SynchronousLevel::Normal => 1,
                SynchronousLevel::Full => 2,
            },
            cache_size: -i64::from(self.cache_kib),
        }
    }
}

/// The settings as SQLite returns them for the PRAGMAs of these names, on the connection that
/// writes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(in crate::tps) struct TpsDriverPragmas {
    pub(in crate::tps) journal_mode: String,
    pub(in crate::tps) synchronous: i64,
    pub(in crate::tps) cache_size: i64,
}

/// The workload of the competitors in one table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompetitorWorkload<'a> {
    /// The database, in WAL mode and with the accounts in it.
    pub(crate) database: &'a Path,
    /// The file that [`write_pairs`] wrote.
    pub(crate) pairs: &'a Path,
    pub(crate) cache_kib: u32,
    pub(crate) synchronous: SynchronousLevel,
    /// The number of times that a caller reads the credit's balance before its transaction.
    pub(crate) reads: usize,
}
