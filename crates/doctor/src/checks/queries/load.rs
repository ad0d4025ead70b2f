//! Chooses the indexes for a whole workload: an index that helps one query makes writes slower.
//!
//! Each shape's example is examined separately, the heaviest first. The indexes that are advised
//! for them are then created together, and the workload runs with them. Each index is dropped again
//! if the workload costs about the same without it (`load/joint.rs`).
//!
//! # Not here
//! - Reading the log → `program/workload.rs`.

mod examined_query;
mod joint;

use std::collections::BTreeSet;

use indicatif::DecimalBytes;
use sqlite_schema::IndexOrigin;

use self::examined_query::ExaminedQuery;
use self::joint::AdvisedIndexes;
use super::advise::advise;
use super::analyzed_query::AnalyzedQuery;
use super::candidate::CandidateIndex;
use super::planner::{QueryPlanner, candidate_name, faults, plan, uses};
use super::query_advice::{PARTIAL, milliseconds};
use crate::catalogue::finding_code::FindingCode;
use crate::checks::foreign_keys;
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::file::unreadable::TIME_LIMIT_REACHED;
use crate::format::{counted, format_percent};
use crate::program::workload::{LoggedShape, QueryLog};
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};
use crate::report::workload_summary::{RejectedStatement, WorkloadQuery, WorkloadSummary};

/// The divisor for the share of the remaining time for the shapes one by one; the rest is for all
/// of them together.
const SHARE: u32 = 2;
/// The maximum number of shapes that are examined and reported.
const SHAPES_MAX: usize = 200;
/// The maximum number of rejected shapes that are reported.
const REJECTED_MAX: usize = 20;
/// The minimum share of the workload's time at which a query that no index helps is a finding.
const SCAN_SHARE: f64 = 0.05;
/// The maximum number of queries that a finding shows for its index.
const SHOWN_MAX: usize = 3;

pub(super) fn check(
    subject: &OpenedFile,
    planner: &mut QueryPlanner,
    workload: &QueryLog,
    log: &mut CheckResults,
) -> Result<(), CheckError> {
    let shapes = workload.heaviest_first();
    let (mut asked, rejected, rejected_count) = examinable_queries(subject, planner, &shapes)?;
    let end = subject.time_limit.elapsed() + subject.time_limit.remaining() / SHARE;
    let (mut wanted, mut looked_at) = (Vec::new(), 0);
    for one in &asked {
        if subject.time_limit.elapsed() >= end {
            break;
        }
        let advice = advise(subject, planner, &one.query)?;
        wanted.extend(advice.into_iter().flat_map(|advice| advice.indexes));
        looked_at += 1;
    }
    if looked_at + rejected_count < shapes.len() {
        let why = if looked_at < asked.len() {
            TIME_LIMIT_REACHED
        } else {
            "they took the least time (without times in the log: they were called least often)"
        };
        log.add_skipped(
            format!(
                "other query shapes of the workload ({looked_at} of {} examined)",
                shapes.len()
            ),
            why,
        );
    }
    let kept = joint::select_indexes(subject, planner, merged(wanted), &mut asked)?;
    if kept.is_unmeasured {
        log.add_skipped(
            "all new indexes of the workload together",
            "not enough time or memory, or a program has the file open",
        );
    }
    report_queries(subject, &asked, &kept, log);
    let mut summary = summary(&asked, &kept, subject)?;
    summary.statements_count = workload.statements_count;
    summary.others_count = workload.others_count;
    summary.unread_lines_count = workload.unread_lines_count;
    summary.shapes_count = shapes.len();
    summary.rejected = rejected;
    log.workload = Some(summary);
    let statements = counted(workload.statements_count, "statement", "statements");
    log.add_checked(format!("a workload of {statements}"));
    Ok(())
}

/// Returns the queries that can be examined on this file, the rejected statements, and the number
/// of rejected shapes.
fn examinable_queries<'a>(
    subject: &OpenedFile,
    planner: &mut QueryPlanner,
    shapes: &[&'a LoggedShape],
) -> Result<(Vec<ExaminedQuery<'a>>, Vec<RejectedStatement>, usize), CheckError> {
    let (mut asked, mut rejected, mut rejected_count) = (Vec::new(), Vec::new(), 0);
    for logged in shapes {
        let (sql, values) = (logged.sql.as_str(), logged.values.as_deref());
        let query = AnalyzedQuery { sql, values, is_verbatim: logged.is_verbatim };
        // The statement is prepared alone first: its error then quotes the statement as it was
        // logged.
        let plan = subject.db.prepare(sql).and_then(|_| plan(&subject.db, sql));
        let plan = plan.and_then(|plan| Ok((plan, planner.touched(sql)?)));
        let trouble = match plan {
            Ok(_) if asked.len() >= SHAPES_MAX => break,
            Ok((plan, touched)) => {
                let (before, after, plan_after) = (None, None, plan.clone());
                asked.push(ExaminedQuery {
                    logged,
                    query,
                    touched,
                    plan,
                    before,
                    after,
                    plan_after,
                });
                continue;
            }
            Err(error) => CheckError::from(error),
        };
        if trouble.is_time() {
            break;
        }
        if trouble.is_fault() {
            return Err(trouble);
        }
        rejected_count += 1;
        if rejected.len() < REJECTED_MAX {
            let (shape, message) = (logged.shape.clone(), trouble.message());
            let calls_count = logged.calls;
            rejected.push(RejectedStatement { shape, calls_count, message });
        }
    }
    Ok((asked, rejected, rejected_count))
}

/// Removes indexes whose queries another one serves, too.
fn merged(wanted: Vec<CandidateIndex>) -> Vec<CandidateIndex> {
    let mut merged: Vec<CandidateIndex> = Vec::new();
    for index in wanted {
        if merged.iter().any(|other| index.is_start_of(other) || index == *other) {
            continue;
        }
        merged.retain(|other| !other.is_start_of(&index));
        merged.push(index);
    }
    merged
}

fn share(one: &ExaminedQuery<'_>, asked: &[ExaminedQuery<'_>]) -> Option<f64> {
    let total: f64 = asked.iter().map(ExaminedQuery::us).sum();
    (total > 0.0).then(|| one.us() / total)
}

/// Reports each index, and each heavy query that no index helps.
fn report_queries(
    subject: &OpenedFile,
    asked: &[ExaminedQuery<'_>],
    kept: &AdvisedIndexes,
    log: &mut CheckResults,
) {
    for (place, index) in kept.indexes() {
        log.advise(&index.table, index.columns());
        log.add(missing(subject, asked, kept, place, index));
    }
    let is_heavy =
        |one: &&ExaminedQuery<'_>| share(one, asked).is_some_and(|share| share >= SCAN_SHARE);
    for one in asked.iter().filter(is_heavy) {
        if faults(&one.plan) > 0 && faults(&one.plan_after) >= faults(&one.plan) {
            let advice =
                super::query_advice::QueryAdvice { before: one.plan.clone(), ..Default::default() };
            let finding = advice.finding(subject, one.query.sql);
            log.add(finding.evidence(what(one, asked)).detail("calls_count", one.logged.calls));
        }
    }
}

fn missing(
    subject: &OpenedFile,
    asked: &[ExaminedQuery<'_>],
    kept: &AdvisedIndexes,
    place: usize,
    index: &CandidateIndex,
) -> DoctorFinding {
    let served: Vec<&ExaminedQuery<'_>> = asked.iter().filter(|one| one.uses(place)).collect();
    let name = index.name(subject);
    let create = index.create(&name);
    let writes: u64 =
        asked.iter().filter(|one| one.touched.changes(index)).map(|it| it.logged.calls).sum();
    let what_served = match served.len() {
        1 => "a query".to_owned(),
        many => format!("{many} queries"),
    };
    let what = format!("{what_served} of the workload would use an index that does not exist");
    let heaviest = served.first();
    let mut finding =
        DoctorFinding::new(FindingCode::QueryIndexMissing, what, Fix::Sql(create.clone()))
            .detail("query", heaviest.map(|one| one.query.sql))
            .detail("plan", heaviest.map(|one| one.plan.clone()))
            .detail("plan_after", heaviest.map(|one| named(&one.plan_after, kept, subject)))
            .detail("indexes", vec![create.clone()])
            .detail(
                "queries",
                served.iter().map(|one| one.logged.shape.clone()).collect::<Vec<_>>(),
            )
            .detail("calls_count", served.iter().map(|one| one.logged.calls).sum::<u64>())
            .detail("writes_count", writes)
            .impact(
                "Without the index, whole tables are read, or rows sorted, each time. The index \
                 takes space, and makes writes slower.",
            );
    for one in served.iter().take(SHOWN_MAX) {
        finding = finding.evidence(what_it_takes(one, asked));
    }
    if let Some(share) = kept.saved_share(place) {
        finding = finding
            .evidence(format!("it saves {} of the cost of the workload", format_percent(share)))
            .detail("saved_ratio", share);
    }
    if let Some(size) = kept.bytes(place) {
        let writes = counted(writes, "statement", "statements");
        finding = finding
            .evidence(format!("index size {}; {writes} would write to it", DecimalBytes(size)))
            .detail("index_bytes", size);
    }
    if index.rows.is_some() {
        finding = finding.evidence(PARTIAL);
    }
    if kept.needs_analyze {
        finding = finding.with_fix(Fix::Sql(format!("{create}\n{}", index.analyze())));
    }
    finding
}

/// Describes a query, as in `412 calls, 71 % of the time: SELECT …`.
fn what(one: &ExaminedQuery<'_>, asked: &[ExaminedQuery<'_>]) -> String {
    let share = share(one, asked).map(|share| format!(", {} of the time", format_percent(share)));
    let calls = counted(one.logged.calls, "call", "calls");
    format!("{calls}{}: {}", share.unwrap_or_default(), one.logged.shape)
}

fn what_it_takes(one: &ExaminedQuery<'_>, asked: &[ExaminedQuery<'_>]) -> String {
    let what = what(one, asked);
    match (one.before, one.after) {
        (Some(before), Some(after)) => {
            let (before, after) = (milliseconds(before.us), milliseconds(after.us));
            format!(
                "{what}; measured in memory: {before} now, {after} with the recommended indexes"
            )
        }
        _ => what,
    }
}

/// Replaces the candidates' names in a plan by the names that the indexes will have.
fn named(plan: &[String], kept: &AdvisedIndexes, subject: &OpenedFile) -> Vec<String> {
    let name = |line: &String| {
        let names = kept.indexes().map(|(place, it)| (candidate_name(place), it.name(subject)));
        names.fold(line.clone(), |line, (from, to)| line.replace(&from, &to))
    };
    plan.iter().map(name).collect()
}

fn summary(
    asked: &[ExaminedQuery<'_>],
    kept: &AdvisedIndexes,
    subject: &OpenedFile,
) -> Result<WorkloadSummary, CheckError> {
    let query = |one: &ExaminedQuery<'_>| WorkloadQuery {
        shape: one.logged.shape.clone(),
        example: one.query.sql.to_owned(),
        calls_count: one.logged.calls,
        logged_us: one.logged.us,
        time_ratio: share(one, asked),
        plan: one.plan.clone(),
        measured_before_us: one.before.map(|taken| taken.us),
        measured_after_us: one.after.map(|taken| taken.us),
        before_steps_count: one.before.map(|taken| taken.steps),
        after_steps_count: one.after.map(|taken| taken.steps),
        indexes: kept
            .indexes()
            .filter(|(place, _)| one.uses(*place))
            .map(|(_, index)| index.name(subject))
            .collect(),
    };
    let mut queries: Vec<WorkloadQuery> = asked.iter().map(query).collect();
    queries.sort_by(|a, b| b.time_ratio.unwrap_or(0.0).total_cmp(&a.time_ratio.unwrap_or(0.0)));
    Ok(WorkloadSummary {
        timed: asked.iter().any(|one| one.logged.us.is_some()),
        queries,
        unused_indexes: unused(asked, subject)?,
        ..WorkloadSummary::default()
    })
}

/// Returns created indexes, on tables that the workload reads, that no plan uses. An index that
/// makes rows unique, or that a foreign key needs, is used without being named in a plan.
fn unused(asked: &[ExaminedQuery<'_>], subject: &OpenedFile) -> Result<Vec<String>, CheckError> {
    let touched: BTreeSet<&String> = asked.iter().flat_map(|one| one.touched.read.keys()).collect();
    let mut unused = Vec::new();
    for table in subject.user_tables().filter(|table| touched.contains(&table.name)) {
        let is_used = |name: &str| {
            asked.iter().any(|one| uses(&one.plan, name) || uses(&one.plan_after, name))
        };
        for index in &table.indexes {
            let is_plain = index.origin == IndexOrigin::Created && !index.is_unique;
            if is_plain && !is_used(&index.name) && !foreign_keys::uses(subject, table, index)? {
                unused.push(index.name.clone());
            }
        }
    }
    Ok(unused)
}
