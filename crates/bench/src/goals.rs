//! What a benchmark was made to show, and whether it did: ratios that are to be reached.
//!
//! # Invariants
//! - A goal is met, or missed, only if all of the ratio's interval is on that side of it, as wide
//!   as decision 10 wants it; with too few rounds it is open.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::confidence_interval::{DifferenceVerdict, MedianDifference};
use crate::format;
use crate::measure::Distribution;
use crate::suite::{ResultRow, ResultTable, ratios};

/// One goal in one table, and whether it was reached.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct GoalResult {
    /// What is compared: `messages a second`.
    pub name: String,
    /// The least wanted multiple of the baseline; null if the goal is a largest one.
    pub at_least: Option<f64>,
    /// The largest wanted multiple of the baseline; null if the goal is a least one.
    pub at_most: Option<f64>,
    /// The name of the table that the goal is about.
    pub table: String,
    /// The table's second row divided by its baseline, in each round.
    pub measured: Distribution,
    /// What follows from the measurement.
    pub verdict: GoalStatus,
}

/// Times the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GoalThreshold {
    /// Or more.
    AtLeast(f64),
    /// Or less.
    AtMost(f64),
}

/// Whether a goal was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoalStatus {
    /// All of the interval is on the right side.
    Met,
    /// All of the interval is on the wrong side.
    Missed,
    /// There are too few rounds, or the interval holds the goal.
    Open,
}

impl GoalResult {
    /// About the rate of a table's second row; `None` if there is none.
    pub(crate) fn for_rate(name: &str, goal: GoalThreshold, table: &ResultTable) -> Option<Self> {
        let row = table.rows.get(1)?;
        let difference = row.difference.as_ref()?;
        Some(Self::new(name, goal, table, row.relative.clone(), difference))
    }

    /// About a metric of it, one of `comparisons`; `None` if it has no such metric.
    pub(crate) fn for_metric(
        metric: &str,
        goal: GoalThreshold,
        table: &ResultTable,
        comparisons: usize,
    ) -> Option<Self> {
        let samples = |row: &ResultRow| Some(row.metrics.get(metric)?.samples.clone());
        let (baseline, own) = (samples(table.rows.first()?)?, samples(table.rows.get(1)?)?);
        let ratios = ratios(&own, &baseline);
        let difference = MedianDifference::from_ratios(&ratios, comparisons);
        Some(Self::new(metric, goal, table, Distribution::from_samples(ratios), &difference))
    }

    fn new(
        name: &str,
        goal: GoalThreshold,
        table: &ResultTable,
        measured: Distribution,
        difference: &MedianDifference,
    ) -> Self {
        let (low, high) = (difference.interval.low, difference.interval.high);
        let verdict = match goal {
            _ if difference.verdict == DifferenceVerdict::TooFewRounds => GoalStatus::Open,
            GoalThreshold::AtLeast(least) if low >= least => GoalStatus::Met,
            GoalThreshold::AtLeast(least) if high < least => GoalStatus::Missed,
            GoalThreshold::AtMost(most) if high <= most => GoalStatus::Met,
            GoalThreshold::AtMost(most) if low > most => GoalStatus::Missed,
            _ => GoalStatus::Open,
        };
        let (at_least, at_most) = match goal {
            GoalThreshold::AtLeast(least) => (Some(least), None),
            GoalThreshold::AtMost(most) => (None, Some(most)),
        };
        let (name, table) = (name.to_owned(), table.name.clone());
        Self { name, at_least, at_most, table, measured, verdict }
    }

    /// `messages a second, at least 10 times the baseline`.
    fn text(&self) -> String {
        let bound = |which: &str, times: f64| format!(", {which} {times} times the baseline");
        let least = self.at_least.map(|times| bound("at least", times));
        let most = self.at_most.map(|times| bound("at most", times));
        [Some(self.name.clone()), least, most].into_iter().flatten().collect()
    }
}

/// What all goals of one name and goal come to.
#[derive(Debug)]
pub(crate) struct GoalSummary<'a> {
    /// `messages a second, at least 10 times the baseline`.
    pub(crate) goal: String,
    /// What was reached, and the tables, each with its ratio: `met: bulk-4000 14.2`.
    pub(crate) reached: Vec<(GoalStatus, Vec<&'a GoalResult>)>,
}

/// In the order in which they were given.
pub(crate) fn summaries(goals: &[GoalResult]) -> Vec<GoalSummary<'_>> {
    let is_same = |a: &GoalResult, b: &GoalResult| a.text() == b.text();
    let groups = goals.chunk_by(is_same).map(|group| {
        let reached =
            [GoalStatus::Met, GoalStatus::Missed, GoalStatus::Open].into_iter().map(|verdict| {
                (verdict, group.iter().filter(|goal| goal.verdict == verdict).collect::<Vec<_>>())
            });
        GoalSummary {
            goal: group[0].text(),
            reached: reached.filter(|(_, goals)| !goals.is_empty()).collect(),
        }
    });
    groups.collect()
}

/// `bulk-4000 14.2 (13.1–15.0)`.
pub(crate) fn describe(goal: &GoalResult) -> String {
    format!("{} {}", goal.table, format::ratio(&goal.measured))
}

impl GoalStatus {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Open => "open",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html_report::sample;

    fn table(ratio: f64, rounds: usize) -> ResultTable {
        let ratios = vec![ratio; rounds];
        let memory = |mb: f64| [("MB".into(), Distribution::from_samples(vec![mb; rounds]))].into();
        let rows = vec![
            ResultRow { metrics: memory(100.0), ..sample::row("theirs", 10.0) },
            ResultRow {
                relative: Distribution::from_samples(ratios.clone()),
                difference: Some(MedianDifference::from_ratios(&ratios, 1)),
                metrics: memory(100.0 * ratio),
                ..sample::row("ours", 10.0 * ratio)
            },
        ];
        ResultTable { name: "bulk".to_owned(), unit: "messages".into(), title: String::new(), rows }
    }

    #[test]
    fn a_goal_is_met_only_where_rounds_are_enough() {
        let check = |goal, ratio, rounds, expected| {
            let table = table(ratio, rounds);
            let result = GoalResult::for_rate("messages a second", goal, &table).unwrap();
            assert_eq!(result.verdict, expected, "{goal:?} {ratio}");
            assert_eq!(GoalResult::for_metric("MB", goal, &table, 1).unwrap().verdict, expected);
        };
        check(GoalThreshold::AtLeast(10.0), 10.5, 7, GoalStatus::Met);
        check(GoalThreshold::AtLeast(10.0), 9.5, 7, GoalStatus::Missed);
        check(GoalThreshold::AtLeast(10.0), 10.5, 3, GoalStatus::Open);
        check(GoalThreshold::AtMost(0.1), 0.05, 7, GoalStatus::Met);
        check(GoalThreshold::AtMost(0.1), 0.2, 7, GoalStatus::Missed);
    }

    #[test]
    fn goals_of_one_name_are_told_together() {
        let goal = GoalThreshold::AtLeast(10.0);
        let goals = [12.0, 8.0, 14.0].map(|ratio| {
            GoalResult::for_rate("messages a second", goal, &table(ratio, 7)).unwrap()
        });
        let summaries = summaries(&goals);
        let [summary] = &summaries[..] else { panic!("{summaries:?}") };
        assert_eq!(summary.goal, "messages a second, at least 10 times the baseline");
        let told: Vec<(GoalStatus, usize)> =
            summary.reached.iter().map(|(reached, goals)| (*reached, goals.len())).collect();
        assert_eq!(told, [(GoalStatus::Met, 2), (GoalStatus::Missed, 1)]);
        assert!(
            super::describe(&goals[0]).starts_with("bulk 12"),
            "{}",
            super::describe(&goals[0])
        );
        let text = serde_json::to_string(&goals[0]).unwrap();
        let begin = r#"{"name":"messages a second","at_least":10.0,"at_most":null,"#;
        assert!(text.starts_with(begin), "{text}");
        let read: GoalResult = serde_json::from_str(&text).unwrap();
        assert_eq!((read.text(), read.verdict), (goals[0].text(), GoalStatus::Met));
    }
}
