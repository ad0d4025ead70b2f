//! What a benchmark was made to show, and whether it did: ratios that are to be reached.
//!
//! # Invariants
//! - An aim is met, or missed, only if all of the ratio's interval is on that side of it, as wide
//!   as decision 10 wants it; with too few rounds it is open.

use serde::{Deserialize, Serialize};

use crate::figures;
use crate::interval::{Difference, Verdict};
use crate::measure::Spread;
use crate::suite::{Row, Table, ratios};

/// One, in one table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Aim {
    /// What is compared: `messages a second`.
    pub name: String,
    /// How far it should get.
    #[serde(flatten)]
    pub goal: Goal,
    /// In which table.
    pub table: String,
    /// Its row divided by the table's baseline, in each round.
    pub found: Spread,
    /// What follows.
    pub verdict: Reached,
}

/// Times the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Or more.
    AtLeast(f64),
    /// Or less.
    AtMost(f64),
}

/// Whether it was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reached {
    /// All of the interval is on the right side.
    Met,
    /// All of it is on the wrong one.
    Missed,
    /// There are too few rounds, or the interval holds the goal.
    Open,
}

impl Aim {
    /// About the rate of a table's second row; `None` if there is none.
    pub(crate) fn of_rate(name: &str, goal: Goal, table: &Table) -> Option<Self> {
        let row = table.rows.get(1)?;
        let difference = row.difference.as_ref()?;
        Some(Self::of(name, goal, table, row.of_baseline.clone(), difference))
    }

    /// About a fact of it, one of `comparisons`; `None` if it has no such fact.
    pub(crate) fn of_fact(
        fact: &str,
        goal: Goal,
        table: &Table,
        comparisons: usize,
    ) -> Option<Self> {
        let samples = |row: &Row| Some(row.facts.get(fact)?.samples.clone());
        let (baseline, own) = (samples(table.rows.first()?)?, samples(table.rows.get(1)?)?);
        let ratios = ratios(&own, &baseline);
        let difference = Difference::of(&ratios, comparisons);
        Some(Self::of(fact, goal, table, Spread::of(ratios), &difference))
    }

    fn of(name: &str, goal: Goal, table: &Table, found: Spread, difference: &Difference) -> Self {
        let (low, high) = (difference.interval.low, difference.interval.high);
        let verdict = match goal {
            _ if difference.verdict == Verdict::TooFewRounds => Reached::Open,
            Goal::AtLeast(least) if low >= least => Reached::Met,
            Goal::AtLeast(least) if high < least => Reached::Missed,
            Goal::AtMost(most) if high <= most => Reached::Met,
            Goal::AtMost(most) if low > most => Reached::Missed,
            _ => Reached::Open,
        };
        Self { name: name.to_owned(), goal, table: table.name.clone(), found, verdict }
    }
}

/// What all aims of one name and goal come to.
#[derive(Debug)]
pub(crate) struct Summary<'a> {
    /// `messages a second, at least 10 times as many`.
    pub(crate) aim: String,
    /// What was reached, and the tables, each with its ratio: `met: bulk-4000 14.2`.
    pub(crate) reached: Vec<(Reached, Vec<&'a Aim>)>,
}

/// In the order in which they were given.
pub(crate) fn summaries(aims: &[Aim]) -> Vec<Summary<'_>> {
    let is_same = |a: &Aim, b: &Aim| a.name == b.name && a.goal == b.goal;
    let groups = aims.chunk_by(is_same).map(|group| {
        let goal = match group[0].goal {
            Goal::AtLeast(least) => format!("at least {least} times the baseline"),
            Goal::AtMost(most) => format!("at most {most} times the baseline"),
        };
        let reached = [Reached::Met, Reached::Missed, Reached::Open].into_iter().map(|verdict| {
            (verdict, group.iter().filter(|aim| aim.verdict == verdict).collect::<Vec<_>>())
        });
        Summary {
            aim: format!("{}, {goal}", group[0].name),
            reached: reached.filter(|(_, aims)| !aims.is_empty()).collect(),
        }
    });
    groups.collect()
}

/// `bulk-4000 14.2 (13.1–15.0)`.
pub(crate) fn told(aim: &Aim) -> String {
    format!("{} {}", aim.table, figures::ratio(&aim.found))
}

impl Reached {
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
    use crate::html::sample;

    fn table(ratio: f64, rounds: usize) -> Table {
        let ratios = vec![ratio; rounds];
        let memory = |mb: f64| [("MB".into(), Spread::of(vec![mb; rounds]))].into();
        let rows = vec![
            Row { facts: memory(100.0), ..sample::row("theirs", 10.0) },
            Row {
                of_baseline: Spread::of(ratios.clone()),
                difference: Some(Difference::of(&ratios, 1)),
                facts: memory(100.0 * ratio),
                ..sample::row("ours", 10.0 * ratio)
            },
        ];
        Table { name: "bulk".to_owned(), unit: "messages".into(), title: String::new(), rows }
    }

    #[test]
    fn an_aim_is_met_only_where_rounds_are_enough() {
        let check = |goal, ratio, rounds, expected| {
            let table = table(ratio, rounds);
            let aim = Aim::of_rate("messages a second", goal, &table).unwrap();
            assert_eq!(aim.verdict, expected, "{goal:?} {ratio}");
            assert_eq!(Aim::of_fact("MB", goal, &table, 1).unwrap().verdict, expected);
        };
        check(Goal::AtLeast(10.0), 10.5, 7, Reached::Met);
        check(Goal::AtLeast(10.0), 9.5, 7, Reached::Missed);
        check(Goal::AtLeast(10.0), 10.5, 3, Reached::Open);
        check(Goal::AtMost(0.1), 0.05, 7, Reached::Met);
        check(Goal::AtMost(0.1), 0.2, 7, Reached::Missed);
    }

    #[test]
    fn aims_of_one_name_are_told_together() {
        let goal = Goal::AtLeast(10.0);
        let aims = [12.0, 8.0, 14.0]
            .map(|ratio| Aim::of_rate("messages a second", goal, &table(ratio, 7)).unwrap());
        let summaries = summaries(&aims);
        let [summary] = &summaries[..] else { panic!("{summaries:?}") };
        assert_eq!(summary.aim, "messages a second, at least 10 times the baseline");
        let told: Vec<(Reached, usize)> =
            summary.reached.iter().map(|(reached, aims)| (*reached, aims.len())).collect();
        assert_eq!(told, [(Reached::Met, 2), (Reached::Missed, 1)]);
        assert!(super::told(&aims[0]).starts_with("bulk 12"), "{}", super::told(&aims[0]));
        let text = serde_json::to_string(&aims[0]).unwrap();
        assert!(text.starts_with(r#"{"name":"messages a second","at_least":10.0,"#), "{text}");
        let read: Aim = serde_json::from_str(&text).unwrap();
        assert_eq!((read.goal, read.verdict), (goal, Reached::Met));
    }
}
