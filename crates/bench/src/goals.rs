//! Compares a benchmark's results with its goals, which are ratios to reach.
//!
//! # Invariants
//! - A goal is met, or missed, only if all of the ratio's interval is on that side of it, as wide
//!   as decision 10 requires; with too few rounds it is open.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::confidence_interval::{DifferenceVerdict, MedianDifference};
use crate::format;
use crate::measure::Distribution;
use crate::suite::{ResultRow, ResultTable, ratios};

/// The result of one goal in one table.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct GoalResult {
    /// The name of the compared metric, such as `messages a second`.
    pub name: String,
    /// The smallest acceptable multiple of the baseline; null if the goal is an upper limit.
    pub at_least: Option<f64>,
    /// The largest acceptable multiple of the baseline; null if the goal is a lower limit.
    pub at_most: Option<f64>,
    /// The name of the table that the goal applies to.
    pub table: String,
    /// The metric of the table's second row, divided by the baseline's in each round.
    pub measured: Distribution,
    /// The verdict that follows from the measurement.
    pub verdict: GoalStatus,
}

/// A threshold as a multiple of the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GoalThreshold {
    /// The goal is this multiple or more.
    AtLeast(f64),
    /// The goal is this multiple or less.
    AtMost(f64),
}

/// The verdict on whether a goal was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoalStatus {
    /// The goal is reached: the whole interval is on the right side of it.
    Met,
    /// The goal is missed: the whole interval is on the wrong side of it.
    Missed,
    /// The verdict is open: the rounds are too few, or the interval contains the goal.
    Open,
}

impl GoalResult {
    /// Evaluates a goal for the rate of a table's second row; `None` if that row has no rate to
    /// compare.
    pub(crate) fn for_rate(name: &str, goal: GoalThreshold, table: &ResultTable) -> Option<Self> {
        let row = table.rows.get(1)?;
        let difference = row.difference.as_ref()?;
        Some(Self::new(name, goal, table, row.relative.clone(), difference))
    }

    /// Evaluates a goal for a metric of the second row, one of `comparisons`; `None` if the table
    /// lacks the metric.
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

    /// Returns the goal as text: `messages a second, at least 10 times the baseline`.
    fn text(&self) -> String {
        let bound = |which: &str, times: f64| format!(", {which} {times} times the baseline");
        let least = self.at_least.map(|times| bound("at least", times));
        let most = self.at_most.map(|times| bound("at most", times));
        [Some(self.name.clone()), least, most].into_iter().flatten().collect()
    }
}

/// The results of all goals with the same name and threshold.
#[derive(Debug)]
pub(crate) struct GoalSummary<'a> {
    /// The goal as text: `messages a second, at least 10 times the baseline`.
    pub(crate) goal: String,
    /// The tables for each result that occurs.
    pub(crate) reached: Vec<(GoalStatus, Vec<&'a GoalResult>)>,
}

/// Groups goals with the same text, in the order in which they were given.
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

/// Returns the table and its ratio: `bulk-4000 14.2 (13.1–15.0)`.
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
