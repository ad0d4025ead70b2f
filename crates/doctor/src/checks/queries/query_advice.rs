//! Turns the advice for one query into a finding.

use indicatif::DecimalBytes;

use super::candidate::CandidateIndex;
use super::planner::candidate_name;
use super::query_cost::{IndexTrial, QueryCost};
use crate::catalogue::finding_code::FindingCode;
use crate::file::opened_file::OpenedFile;
use crate::report::finding::{DoctorFinding, Fix};

/// The advice for one query.
#[derive(Default)]
pub(super) struct QueryAdvice {
    /// The lines of the current plan.
    pub(super) before: Vec<String>,
    /// The lines of the plan with the indexes, under their names as candidates.
    pub(super) after: Vec<String>,
    /// The advised indexes, or none if none helps.
    pub(super) indexes: Vec<CandidateIndex>,
    /// The cost without and with the indexes, if the query could be run.
    pub(super) effect: Option<(QueryCost, IndexTrial)>,
    /// Indexes that the planner would use, but that save nothing.
    pub(super) useless: Option<(Vec<CandidateIndex>, QueryCost, IndexTrial)>,
}

impl QueryAdvice {
    pub(super) fn finding(&self, subject: &OpenedFile, sql: &str) -> DoctorFinding {
        if !self.indexes.is_empty() {
            return self.missing(subject, sql);
        }
        let what = "a query reads a whole table or sorts, and none of the tried indexes helps";
        let finding = with_plan(FindingCode::QueryScans, what, sql, &self.before);
        let finding = finding.impact("The query takes longer as the table grows.");
        match &self.useless {
            Some((indexes, before, tried)) => {
                let create: Vec<String> = statements(subject, indexes);
                finding.evidence(format!("{} {}", create.join(" "), text(*before, tried)))
            }
            None => finding,
        }
    }

    fn missing(&self, subject: &OpenedFile, sql: &str) -> DoctorFinding {
        let mut after = self.after.clone();
        for (index, candidate) in self.indexes.iter().enumerate() {
            let (from, to) = (candidate_name(index), candidate.name(subject));
            for line in &mut after {
                *line = line.replace(&from, &to);
            }
        }
        let create = statements(subject, &self.indexes);
        let what = "a query would use an index that does not exist";
        let mut finding = with_plan(FindingCode::QueryIndexMissing, what, sql, &self.before)
            .evidence(format!("with it:  {}", after.join("; ")))
            .detail("plan_after", after)
            .detail("indexes", create.clone())
            .impact(
                "Without the index, the query reads whole tables, or sorts, each time. The index \
                 takes space, and makes writes slower.",
            );
        let mut fix = create;
        if let Some((before, tried)) = &self.effect {
            finding = finding
                .evidence(text(*before, tried))
                .detail("measured_before_us", before.us)
                .detail("measured_after_us", tried.taken.us)
                .detail("before_steps_count", before.steps)
                .detail("after_steps_count", tried.taken.steps)
                .detail("index_bytes", tried.index_bytes);
            if tried.needs_analyze {
                let mut analyze: Vec<String> =
                    self.indexes.iter().map(CandidateIndex::analyze).collect();
                analyze.dedup();
                fix.extend(analyze);
            }
        }
        if self.indexes.iter().any(|index| index.rows.is_some()) {
            finding = finding.evidence(PARTIAL);
        }
        finding.with_fix(Fix::Sql(fix.join("\n")))
    }
}

/// The explanation of a partial index.
pub(super) const PARTIAL: &str =
    "partial index: it serves only queries that contain the value itself, not a parameter";

/// Returns the statements that create the indexes.
pub(super) fn statements(subject: &OpenedFile, indexes: &[CandidateIndex]) -> Vec<String> {
    indexes.iter().map(|index| index.create(&index.name(subject))).collect()
}

fn text(before: QueryCost, tried: &IndexTrial) -> String {
    let (before, after) = (milliseconds(before.us), milliseconds(tried.taken.us));
    let size = DecimalBytes(tried.index_bytes);
    format!("measured in memory: {before} without it, {after} with it; index size {size}")
}

pub(super) fn milliseconds(us: f64) -> String {
    let ms = us / 1_000.0;
    if ms < 1.0 { format!("{ms:.3} ms") } else { format!("{ms:.1} ms") }
}

fn with_plan(code: FindingCode, what: &str, sql: &str, before: &[String]) -> DoctorFinding {
    let advice = "Select fewer rows, or select rows by a column. These indexes were tried: on up \
                  to three columns in every order; on the expressions, orders and LIKEs of the \
                  query; and, if the query could be run, covering and partial indexes.";
    DoctorFinding::new(code, what, Fix::Advice(advice.to_owned()))
        .evidence(sql.trim())
        .evidence(format!("now:      {}", before.join("; ")))
        .detail("query", sql)
        .detail("plan", before.to_vec())
}
