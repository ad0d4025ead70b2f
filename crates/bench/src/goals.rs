//! What a benchmark was made to show, and whether it did: ratios that are to be reached.
//!
//! # Invariants
//! - A goal is met, or missed, only if all of the ratio's interval is on that side of it, as wide
//!   as decision 10 wants it; with too few rounds it is open.

use serde::{Deserialize, Serialize};

use crate::confidence_interval::{DifferenceVerdict, MedianDifference};
use crate::format;
use crate::measure::Distribution;
use crate::suite::{ResultRow, ResultTable, ratios};

/// One, in one table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GoalResult {
    /// What is compared: `messages a second`.
    pub name: String,
    /// How far it should get.
    #[serde(flatten)]
    pub goal: GoalThreshold,
    /// In which table.
    pub table: String,
    /// Its row divided by the table's baseline, in each round.
    pub found: Distribution,
    /// What follows.
    pub verdict: GoalStatus,
}

/// Times the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalThreshold {
    /// Or more.
    AtLeast(f64),
    /// Or less.
    AtMost(f64),
}

/// Whether it was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalStatus {
    /// All of the interval is on the right side.
    Met,
    /// All of it is on the wrong one.
    Missed,
    /// There are too few rounds, or the interval holds the goal.
    Open,
}

impl GoalResult {
    /// About the rate of a table's second row; `None` if there is none.
    pub(crate) fn for_rate(name: &str, goal: GoalThreshold, table: &ResultTable) -> Option<Self> {
        let row = table.rows.get(1)?;
        let difference = row.difference.as_ref()?;
        Some(Self::new(name, goal, table, row.of_baseline.clone(), difference))
    }

    /// About a fact of it, one of `comparisons`; `None` if it has no such fact.
    pub(crate) fn for_metric(
        fact: &str,
        goal: GoalThreshold,
        table: &ResultTable,
        comparisons: usize,
    ) -> Option<Self> {
        let samples = |row: &ResultRow| Some(row.facts.get(fact)?.samples.clone());
        let (baseline, own) = (samples(table.rows.first()?)?, samples(table.rows.get(1)?)?);
        let ratios = ratios(&own, &baseline);
        let difference = MedianDifference::from_ratios(&ratios, comparisons);
        Some(Self::new(fact, goal, table, Distribution::from_samples(ratios), &difference))
    }

    fn new(
        name: &str,
        goal: GoalThreshold,
        table: &ResultTable,
        found: Distribution,
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
        Self { name: name.to_owned(), goal, table: table.name.clone(), found, verdict }
    }
}

/// What all goals of one name and goal come to.
#[derive(Debug)]
pub(crate) struct GoalSummary<'a> {
    /// `messages a second, at least 10 times as many`.
    pub(crate) aim: String,
    /// What was reached, and the tables, each with its ratio: `met: bulk-4000 14.2`.
    pub(crate) reached: Vec<(GoalStatus, Vec<&'a GoalResult>)>,
}

/// In the order in which they were given.
pub(crate) fn summaries(goals: &[GoalResult]) -> Vec<GoalSummary<'_>> {
    let is_same = |a: &GoalResult, b: &GoalResult| a.name == b.name && a.goal == b.goal;
    let groups = goals.chunk_by(is_same).map(|group| {
        let goal = match group[0].goal {
            GoalThreshold::AtLeast(least) => format!("at least {least} times the baseline"),
            GoalThreshold::AtMost(most) => format!("at most {most} times the baseline"),
        };
        let reached =
            [GoalStatus::Met, GoalStatus::Missed, GoalStatus::Open].into_iter().map(|verdict| {
                (verdict, group.iter().filter(|aim| aim.verdict == verdict).collect::<Vec<_>>())
            });
        GoalSummary {
            aim: format!("{}, {goal}", group[0].name),
            reached: reached.filter(|(_, goals)| !goals.is_empty()).collect(),
        }
    });
    groups.collect()
}

/// `bulk-4000 14.2 (13.1–15.0)`.
pub(crate) fn describe(goal: &GoalResult) -> String {
    format!("{} {}", goal.table, format::ratio(&goal.found))
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
            ResultRow { facts: memory(100.0), ..sample::row("theirs", 10.0) },
            ResultRow {
                of_baseline: Distribution::from_samples(ratios.clone()),
                difference: Some(MedianDifference::from_ratios(&ratios, 1)),
                facts: memory(100.0 * ratio),
                ..sample::row("ours", 10.0 * ratio)
            },
        ];
        ResultTable { name: "bulk".to_owned(), unit: "messages".into(), title: String::new(), rows }
    }

    #[test]
    fn an_aim_is_met_only_where_rounds_are_enough() {
        let check = |goal, ratio, rounds, expected| {
            let table = table(ratio, rounds);
            let aim = GoalResult::for_rate("messages a second", goal, &table).unwrap();
            assert_eq!(aim.verdict, expected, "{goal:?} {ratio}");
            assert_eq!(GoalResult::for_metric("MB", goal, &table, 1).unwrap().verdict, expected);
        };
        check(GoalThreshold::AtLeast(10.0), 10.5, 7, GoalStatus::Met);
        check(GoalThreshold::AtLeast(10.0), 9.5, 7, GoalStatus::Missed);
        check(GoalThreshold::AtLeast(10.0), 10.5, 3, GoalStatus::Open);
        check(GoalThreshold::AtMost(0.1), 0.05, 7, GoalStatus::Met);
        check(GoalThreshold::AtMost(0.1), 0.2, 7, GoalStatus::Missed);
    }

    #[test]
    fn aims_of_one_name_are_told_together() {
        let goal = GoalThreshold::AtLeast(10.0);
        let goals = [12.0, 8.0, 14.0].map(|ratio| {
            GoalResult::for_rate("messages a second", goal, &table(ratio, 7)).unwrap()
        });
        let summaries = summaries(&goals);
        let [summary] = &summaries[..] else { panic!("{summaries:?}") };
        assert_eq!(summary.aim, "messages a second, at least 10 times the baseline");
        let told: Vec<(GoalStatus, usize)> =
            summary.reached.iter().map(|(reached, goals)| (*reached, goals.len())).collect();
        assert_eq!(told, [(GoalStatus::Met, 2), (GoalStatus::Missed, 1)]);
        assert!(
            super::describe(&goals[0]).starts_with("bulk 12"),
            "{}",
            super::describe(&goals[0])
        );
        let text = serde_json::to_string(&goals[0]).unwrap();
        assert!(text.starts_with(r#"{"name":"messages a second","at_least":10.0,"#), "{text}");
        let read: GoalResult = serde_json::from_str(&text).unwrap();
        assert_eq!((read.goal, read.verdict), (goal, GoalStatus::Met));
    }
}
