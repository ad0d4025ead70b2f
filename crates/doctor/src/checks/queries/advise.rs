//! Chooses the indexes that would serve a query better: which ones are tried, and which are kept.

use crate::checks::cardinality::TableCardinality;
use crate::checks::queries::analyzed_query::AnalyzedQuery;
use crate::checks::queries::candidate::{CandidateIndex, ColumnsByTable, candidates, parts};
use crate::checks::queries::planner::{QueryPlanner, candidate_name, faults, uses};
use crate::checks::queries::query_advice::QueryAdvice;
use crate::checks::queries::query_cost::{self, IndexTrial};
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;

/// The number of rows that are read quickly: an index does not have to find fewer.
const FOUND_ROWS: f64 = 10.0;

/// The share of the cost that another index may leave at most to justify more columns.
const BETTER: f64 = 0.8;

/// Costs whose ratio is above this count as the same.
const SAME: f64 = 0.95;

/// The share of the cost that may remain with a much larger index, or for a query that neither
/// scans nor sorts.
const MUCH_BETTER: f64 = 0.5;

/// Returns indexes that would serve the query better, or `None` if the query is served well.
pub(crate) fn advise(
    subject: &OpenedFile,
    planner: &mut QueryPlanner,
    query: &AnalyzedQuery<'_>,
) -> Result<Option<QueryAdvice>, CheckError> {
    let sql = query.sql;
    let before = planner.plan(sql)?;
    let is_runnable = query_cost::is_runnable(subject, query)?;
    let is_faulty = faults(&before) > 0;
    if !is_faulty && !is_runnable {
        return Ok(None);
    }
    let read = planner.touched(sql)?.read;
    let mut candidates = candidates(subject, sql, &read);
    candidates.retain(|it| planner.can_make(it));
    let known =
        TableCardinality::from_samples(subject, candidates.iter().map(|it| it.table.as_str()))?;
    let search = IndexSearch { planner, sql, known: &known };
    let taken = search.used_candidates(&candidates)?;
    let fewest = if is_faulty { search.smallest_sufficient(taken)? } else { taken };
    let shortened = search.shorten_indexes(fewest.clone())?;
    let is_less_faulty = faults(&search.plan_with(&shortened)?) < faults(&before);

    let base = if is_runnable { query_cost::run(subject, query)? } else { None };
    let mut advice = QueryAdvice { before, ..QueryAdvice::default() };
    let Some(base) = base else {
        if is_less_faulty {
            advice.after = search.plan_with(&shortened)?;
            advice.indexes = shortened;
        }
        return Ok(is_faulty.then_some(advice));
    };
    let limit = base.cost() * if is_faulty { 1.0 } else { MUCH_BETTER };
    let mut others = variants(subject, query, &read, &known, [&fewest, &shortened]);
    others.retain(|indexes| indexes.iter().all(|it| planner.can_make(it)));
    let search = IndexSearch { planner, sql, known: &known };
    match cheapest(subject, query, &others)? {
        Some((indexes, tried)) if tried.taken.cost() < limit => {
            advice.after = search.plan_with(indexes)?;
            advice.indexes = indexes.to_vec();
            advice.effect = Some((base, tried));
        }
        Some((indexes, tried)) => {
            advice.useless = Some((indexes.to_vec(), base, tried));
        }
        None => {}
    }
    Ok((is_faulty || !advice.indexes.is_empty()).then_some(advice))
}

/// Returns variants of the indexes with fewer keys and with more, the narrowest first.
fn variants(
    subject: &OpenedFile,
    query: &AnalyzedQuery<'_>,
    read: &ColumnsByTable,
    known: &TableCardinality,
    [fewest, shortened]: [&[CandidateIndex]; 2],
) -> Vec<Vec<CandidateIndex>> {
    let mut variants: Vec<Vec<CandidateIndex>> = Vec::new();
    let mut add = |indexes: Vec<CandidateIndex>| {
        if !indexes.is_empty() && !variants.contains(&indexes) {
            variants.push(indexes);
        }
    };
    add(shortened.to_vec());
    add(fewest.to_vec());
    for indexes in [shortened, fewest] {
        for (place, index) in indexes.iter().enumerate() {
            let with = |other: CandidateIndex| {
                let mut others = indexes.to_vec();
                others[place] = other;
                others
            };
            let table = subject.user_tables().find(|table| table.name == index.table);
            let Some(table) = table else { continue };
            if query.is_verbatim {
                index.partial(query.sql, table, known).into_iter().for_each(|it| add(with(it)));
            }
            index.covering(query.sql, table, read).into_iter().for_each(|it| add(with(it)));
        }
    }
    variants
}

/// Returns the variant with the lowest cost, and the smaller one of variants with about the same
/// cost.
fn cheapest<'a>(
    subject: &OpenedFile,
    query: &AnalyzedQuery<'_>,
    variants: &'a [Vec<CandidateIndex>],
) -> Result<Option<(&'a [CandidateIndex], IndexTrial)>, CheckError> {
    let mut best: Option<(&[CandidateIndex], IndexTrial)> = None;
    for indexes in variants {
        let Some(tried) = query_cost::run_with(subject, query, indexes)? else { continue };
        let is_better = best.as_ref().is_none_or(|(_, best)| {
            let (cost, least) = (tried.taken.cost(), best.taken.cost());
            let is_smaller = tried.index_bytes * 2 < best.index_bytes;
            let is_larger = tried.index_bytes > best.index_bytes + best.index_bytes / 2;
            let better = if is_larger { MUCH_BETTER } else { BETTER };
            cost < least * better || (cost * SAME <= least && is_smaller)
        });
        if is_better {
            best = Some((indexes, tried));
        }
    }
    Ok(best)
}

/// A search for the candidate indexes that the planner uses for one query.
pub(crate) struct IndexSearch<'a> {
    planner: &'a QueryPlanner,
    sql: &'a str,
    known: &'a TableCardinality,
}

impl IndexSearch<'_> {
    fn plan_with(&self, candidates: &[CandidateIndex]) -> Result<Vec<String>, CheckError> {
        self.planner.plan_with(self.sql, candidates, self.known)
    }

    /// Returns the candidates that the planner uses if all of them exist.
    fn used_candidates(
        &self,
        candidates: &[CandidateIndex],
    ) -> Result<Vec<CandidateIndex>, CheckError> {
        let after = self.plan_with(candidates)?;
        let is_used = |index: usize| uses(&after, &candidate_name(index));
        let used = candidates.iter().enumerate().filter(|(index, _)| is_used(*index));
        Ok(used.map(|(_, candidate)| candidate.clone()).collect())
    }

    /// Leaves out indexes without which the plan has no more scans and sorts than with them.
    fn smallest_sufficient(
        &self,
        mut chosen: Vec<CandidateIndex>,
    ) -> Result<Vec<CandidateIndex>, CheckError> {
        let least = faults(&self.plan_with(&chosen)?);
        for index in (0..chosen.len()).rev() {
            let candidate = chosen.remove(index);
            if faults(&self.plan_with(&chosen)?) > least {
                chosen.insert(index, candidate);
            }
        }
        Ok(chosen)
    }

    /// Removes columns that the plan does not use, or that add no selectivity to the index.
    fn shorten_indexes(
        &self,
        mut chosen: Vec<CandidateIndex>,
    ) -> Result<Vec<CandidateIndex>, CheckError> {
        let shape = |plan: &[String]| -> Vec<String> {
            plan.iter().map(|line| line.replace("COVERING ", "")).collect()
        };
        let full = self.plan_with(&chosen)?;
        for index in 0..chosen.len() {
            let all = chosen[index].clone();
            let found = |candidate: &CandidateIndex| {
                self.known.rows_per_value(&candidate.table, &candidate.columns()?)
            };
            for fewer in parts(&all.keys) {
                let fewer = CandidateIndex { keys: fewer, ..all.clone() };
                let is_as_good = found(&fewer)
                    .zip(found(&all))
                    .is_some_and(|(fewer, all)| fewer <= f64::max(2.0 * all, FOUND_ROWS));
                chosen[index] = fewer;
                let plan = self.plan_with(&chosen)?;
                let is_same = shape(&plan) == shape(&full);
                if is_same || (is_as_good && faults(&plan) <= faults(&full)) {
                    break;
                }
                chosen[index].clone_from(&all);
            }
        }
        Ok(chosen)
    }
}
