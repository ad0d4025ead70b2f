//! Creates all indexes that a workload needs together, and drops those that it can do without.
//!
//! # Invariants
//! - Decisions depend on counted work, not on measured time.

use super::examined_query::ExaminedQuery;
use crate::checks::cardinality::TableCardinality;
use crate::checks::queries::candidate::CandidateIndex;
use crate::checks::queries::planner::{QueryPlanner, candidate_name, plan, uses};
use crate::checks::queries::query_cost::{self, is_runnable, undone, without_trouble};
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::format::to_f64;

/// The divisor for the share of the remaining time for the workload with all indexes.
const SHARE: u32 = 2;
/// The cost of one more index for each written row, in steps of the virtual machine: the path to
/// its leaf, and the creation and insertion of a key.
const WRITE_COST: f64 = 50.0;
/// The share of the workload's cost that an index must save to be worth its maintenance.
const WORTH: f64 = 0.005;

/// The indexes that are advised for a workload.
#[derive(Default)]
pub(super) struct AdvisedIndexes {
    candidates: Vec<Option<CandidateIndex>>,
    saved: Vec<Option<f64>>,
    bytes: Vec<Option<u64>>,
    /// Whether the planner uses some of the indexes only after their tables are analyzed.
    pub(super) needs_analyze: bool,
    /// Whether each index was only advised for one query, and they were not tried together.
    pub(super) is_unmeasured: bool,
}

impl AdvisedIndexes {
    /// Returns the indexes with their positions among the candidates.
    pub(super) fn indexes(&self) -> impl Iterator<Item = (usize, &CandidateIndex)> {
        let all = self.candidates.iter().enumerate();
        all.filter_map(|(place, index)| Some((place, index.as_ref()?)))
    }

    /// Returns the share of the workload's cost that the index saves: 0 to 1.
    pub(super) fn saved_share(&self, place: usize) -> Option<f64> {
        self.saved.get(place).copied().flatten()
    }

    pub(super) fn bytes(&self, place: usize) -> Option<u64> {
        self.bytes.get(place).copied().flatten()
    }
}

/// Tries the indexes together, and keeps those that the workload needs.
pub(super) fn select_indexes(
    subject: &OpenedFile,
    planner: &QueryPlanner,
    wanted: Vec<CandidateIndex>,
    asked: &mut [ExaminedQuery<'_>],
) -> Result<AdvisedIndexes, CheckError> {
    for one in asked.iter_mut() {
        if is_runnable(subject, &one.query)? {
            one.before = query_cost::run(subject, &one.query)?;
        }
    }
    let count = wanted.len();
    let candidates = wanted.iter().cloned().map(Some).collect();
    let mut kept = AdvisedIndexes {
        candidates,
        saved: vec![None; count],
        bytes: vec![None; count],
        ..AdvisedIndexes::default()
    };
    if count == 0 {
        return Ok(kept);
    }
    let can_be_made = subject.open_mode == engine::ReadOnlyMode::Overlay;
    // The remaining time is for the later checks.
    subject.grant_time(subject.time_limit.remaining() / SHARE);
    let tried =
        can_be_made.then(|| undone(subject, || together(subject, &wanted, asked, &mut kept)));
    if tried.map(without_trouble).transpose()?.flatten().is_none() {
        // Only the planner decides which queries use the indexes.
        kept.is_unmeasured = true;
        let known =
            TableCardinality::from_samples(subject, wanted.iter().map(|it| it.table.as_str()))?;
        for one in asked.iter_mut() {
            one.after = None;
            one.plan_after = planner.plan_with(one.query.sql, &wanted, &known)?;
        }
        kept.candidates = wanted.into_iter().map(Some).collect();
    }
    Ok(kept)
}

/// Creates the indexes, runs the workload, and drops the indexes one by one if they save too
/// little. The caller has opened a savepoint.
fn together(
    subject: &OpenedFile,
    wanted: &[CandidateIndex],
    asked: &mut [ExaminedQuery<'_>],
    kept: &mut AdvisedIndexes,
) -> Result<(), CheckError> {
    for (place, index) in wanted.iter().enumerate() {
        kept.bytes[place] = Some(query_cost::make(subject, place, index)?);
    }
    kept.needs_analyze = query_cost::analyze(subject, &statements(asked), wanted)?;
    for one in asked.iter_mut() {
        measure(subject, one)?;
    }
    let total: f64 = asked.iter().filter_map(|one| Some(one.before?.cost() * one.calls())).sum();
    let mut places: Vec<usize> = (0..wanted.len()).collect();
    // Indexes that serve few queries come first, so that those that serve many remain.
    places.sort_by_key(|place| asked.iter().filter(|one| one.uses(*place)).count());
    for place in places {
        let is_measured = asked.iter().all(|one| !one.uses(place) || one.after.is_some());
        let is_used = asked.iter().any(|one| one.uses(place));
        if is_used && !is_measured {
            continue;
        }
        let lost = if is_used { lost_without(subject, place, asked)? } else { 0.0 };
        let index = &wanted[place];
        let writers = asked.iter().filter(|one| one.touched.changes(index));
        let writes: f64 = writers.map(|one| to_f64(one.logged.calls)).sum();
        kept.saved[place] = Some((lost / total.max(1.0)).clamp(0.0, 1.0));
        if lost <= f64::max(writes * WRITE_COST, total * WORTH) {
            kept.candidates[place] = None;
            drop_index(subject, place)?;
            for one in asked.iter_mut().filter(|one| one.uses(place)) {
                measure(subject, one)?;
            }
        }
    }
    // The cost is the minimum of several runs, as it was before.
    for one in asked.iter_mut().filter(|one| one.before.is_some()) {
        one.after = Some(query_cost::run_times(subject, &one.query, query_cost::RUNS)?);
    }
    Ok(())
}

fn statements<'a>(asked: &[ExaminedQuery<'a>]) -> Vec<&'a str> {
    asked.iter().map(|one| one.query.sql).collect()
}

fn drop_index(subject: &OpenedFile, place: usize) -> rusqlite::Result<()> {
    subject.db.execute_batch(&format!("DROP INDEX {}", candidate_name(place)))
}

/// Updates the plan and the cost of a query with the current indexes.
fn measure(subject: &OpenedFile, one: &mut ExaminedQuery<'_>) -> Result<(), CheckError> {
    one.plan_after = plan(&subject.db, one.query.sql)?;
    if one.before.is_some() {
        one.after = Some(query_cost::run_times(subject, &one.query, 1)?);
    }
    Ok(())
}

/// Returns the additional cost of the workload without the index.
fn lost_without(
    subject: &OpenedFile,
    place: usize,
    asked: &[ExaminedQuery<'_>],
) -> Result<f64, CheckError> {
    subject.db.execute_batch("SAVEPOINT without")?;
    drop_index(subject, place)?;
    let mut lost = 0.0;
    for one in asked.iter().filter(|one| uses(&one.plan_after, &candidate_name(place))) {
        let without = query_cost::run_times(subject, &one.query, 1)?;
        let with = one.after.map_or(0.0, |taken| taken.cost());
        lost += (without.cost() - with) * one.calls();
    }
    subject.db.execute_batch("ROLLBACK TO without; RELEASE without")?;
    Ok(lost)
}
