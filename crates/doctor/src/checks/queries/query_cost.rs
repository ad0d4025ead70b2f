//! Measures the cost of a query: it runs, on the overlay, without an index and with it.
//!
//! # Invariants
//! - Decisions depend on counted work, not on measured time: the same file and query give the same
//!   cost.

use std::time::Duration;

use engine::{ReadOnlyMode, clock};
use rusqlite::{StatementStatus, params_from_iter};

use super::analyzed_query::AnalyzedQuery;
use super::candidate::CandidateIndex;
use super::planner::{candidate_name, plan, uses};
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::format::to_f64;

/// The number of runs, of which the fastest gives the time: the first finds nothing in the cache.
pub(super) const RUNS: usize = 5;
/// The divisor for the share of the remaining time that one trial may take.
const SHARE: u32 = 4;
/// The cost of finding a position in a page, in steps of the virtual machine: a tenth of a
/// microsecond compared with a hundredth.
const STEPS_PER_PAGE: f64 = 10.0;
/// The number of index rows that ANALYZE reads for each key of an index.
const ANALYSIS_LIMIT: u32 = 1_000;

/// The cost of one run of a query.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueryCost {
    pub(super) us: f64,
    /// The number of steps of SQLite's virtual machine.
    pub(super) steps: i32,
    /// The number of page lookups.
    pages: u32,
}

/// The cost of a query with some indexes, and the size of these indexes.
#[derive(Clone, Debug)]
pub(super) struct IndexTrial {
    pub(super) taken: QueryCost,
    pub(super) index_bytes: u64,
    /// Whether the planner uses the indexes only after their tables are analyzed.
    pub(super) needs_analyze: bool,
}

impl QueryCost {
    pub(super) fn cost(&self) -> f64 {
        f64::from(self.steps) + STEPS_PER_PAGE * f64::from(self.pages)
    }
}

/// Checks whether the query can be run: not if the file is in use, if its values are unknown, or if
/// it writes.
pub(super) fn is_runnable(
    subject: &OpenedFile,
    query: &AnalyzedQuery<'_>,
) -> rusqlite::Result<bool> {
    let statement = subject.db.prepare(query.sql)?;
    let has_values = query.values.is_some_and(|it| it.len() == statement.parameter_count());
    Ok(subject.open_mode == ReadOnlyMode::Overlay && statement.readonly() && has_values)
}

/// Runs the query. Returns `None` if time or memory is insufficient, or if the query fails.
pub(super) fn run(
    subject: &OpenedFile,
    query: &AnalyzedQuery<'_>,
) -> Result<Option<QueryCost>, CheckError> {
    subject.grant_time(subject.time_limit.remaining() / SHARE);
    let taken = without_trouble(run_times(subject, query, RUNS));
    subject.grant_time(Duration::MAX);
    taken
}

/// Runs the query with these indexes. Returns `None` in the same cases as [`run`].
pub(super) fn run_with(
    subject: &OpenedFile,
    query: &AnalyzedQuery<'_>,
    candidates: &[CandidateIndex],
) -> Result<Option<IndexTrial>, CheckError> {
    subject.grant_time(subject.time_limit.remaining() / SHARE);
    let tried = undone(subject, || {
        let mut index_bytes = 0;
        for (place, candidate) in candidates.iter().enumerate() {
            index_bytes += make(subject, place, candidate)?;
        }
        let needs_analyze = analyze(subject, &[query.sql], candidates)?;
        Ok(IndexTrial { taken: run_times(subject, query, RUNS)?, index_bytes, needs_analyze })
    });
    without_trouble(tried)
}

/// Creates an index under the name of the candidate at this position. Returns its size.
pub(super) fn make(
    subject: &OpenedFile,
    place: usize,
    candidate: &CandidateIndex,
) -> Result<u64, CheckError> {
    let pages = subject.pages_count();
    subject.db.execute_batch(&candidate.create(&candidate_name(place)))?;
    let pages = subject.pages_count().saturating_sub(pages);
    Ok(pages * u64::from(subject.header.page_size))
}

/// Analyzes the tables of the indexes, which must exist. Returns whether these statements use one
/// of the indexes only since then.
pub(super) fn analyze(
    subject: &OpenedFile,
    statements: &[&str],
    candidates: &[CandidateIndex],
) -> Result<bool, CheckError> {
    let used = || -> Result<Vec<bool>, CheckError> {
        let plans: Vec<_> =
            statements.iter().map(|sql| plan(&subject.db, sql)).collect::<Result<_, _>>()?;
        let is_used = |index| plans.iter().any(|plan| uses(plan, &candidate_name(index)));
        Ok((0..candidates.len()).map(is_used).collect())
    };
    let before = used()?;
    subject.db.execute_batch(&format!("PRAGMA analysis_limit = {ANALYSIS_LIMIT}"))?;
    for candidate in candidates {
        subject.db.execute_batch(&candidate.analyze())?;
    }
    subject.db.execute_batch("PRAGMA analysis_limit = 0")?;
    Ok(before.iter().zip(used()?).any(|(before, after)| after && !before))
}

/// Runs `work` in a savepoint, and rolls back everything that it writes.
pub(super) fn undone<T>(
    subject: &OpenedFile,
    work: impl FnOnce() -> Result<T, CheckError>,
) -> Result<T, CheckError> {
    subject.db.execute_batch("PRAGMA query_only = OFF; SAVEPOINT measured")?;
    let result = work();
    subject.grant_time(Duration::MAX);
    // When memory runs out, SQLite has already rolled back.
    if !subject.db.is_autocommit() {
        subject.db.execute_batch("ROLLBACK TO measured; RELEASE measured")?;
    }
    subject.db.execute_batch("PRAGMA query_only = ON")?;
    result
}

/// Turns errors that reveal nothing about the file into `None`: insufficient time or memory, or a
/// query that fails by its own fault.
pub(super) fn without_trouble<T>(result: Result<T, CheckError>) -> Result<Option<T>, CheckError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_fault() => Err(error),
        Err(_) => Ok(None),
    }
}

/// Runs the query this many times, and reads all its rows each time.
pub(super) fn run_times(
    subject: &OpenedFile,
    query: &AnalyzedQuery<'_>,
    times: usize,
) -> Result<QueryCost, CheckError> {
    let mut statement = subject.db.prepare(query.sql)?;
    let mut taken = QueryCost { us: f64::MAX, steps: 0, pages: 0 };
    for _ in 0..times {
        statement.reset_status(StatementStatus::VmStep);
        let pages = sqlite3mc_sys::pages_looked_at(&subject.db)?;
        let started = clock::now();
        let mut rows = statement.query(params_from_iter(query.values.unwrap_or_default()))?;
        while rows.next()?.is_some() {}
        drop(rows);
        let nanoseconds = u64::try_from((clock::now() - started).as_nanos()).unwrap_or(u64::MAX);
        taken.us = taken.us.min(to_f64(nanoseconds) / 1_000.0);
        taken.steps = statement.get_status(StatementStatus::VmStep);
        taken.pages = sqlite3mc_sys::pages_looked_at(&subject.db)?.wrapping_sub(pages);
    }
    Ok(taken)
}
