//! A benchmark as data: sections of cases, run in rounds, each round in a random order.
//!
//! The first case of a section is its baseline: every other is reported as a ratio to what the
//! baseline did in the same round, so that what slows the machine down for a while slows both.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use indicatif::ProgressBar;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use serde::Serialize;

use crate::measure::{Latency, Sample, Spread};

/// Cases that belong in one table.
pub(crate) struct Section<'a> {
    pub(crate) name: String,
    /// What its rates count: `transactions`.
    pub(crate) unit: &'static str,
    /// What the table shows, in one line.
    pub(crate) title: String,
    /// The first is the baseline.
    pub(crate) cases: Vec<Case<'a>>,
}

/// One thing to measure.
pub(crate) struct Case<'a> {
    pub(crate) name: String,
    /// The rate that the published page gives, on its machine.
    pub(crate) published: Option<f64>,
    /// Works for about so long.
    pub(crate) run: Box<dyn FnMut(Duration) -> anyhow::Result<Sample> + 'a>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(
        name: impl Into<String>,
        run: impl FnMut(Duration) -> anyhow::Result<Sample> + 'a,
    ) -> Self {
        Self { name: name.into(), published: None, run: Box::new(run) }
    }

    /// With the published figure.
    pub(crate) fn published(self, rate: f64) -> Self {
        Self { published: Some(rate), ..self }
    }
}

/// A measured section.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// What `--only` calls it.
    pub name: String,
    /// What its rates count: `transactions`.
    pub unit: &'static str,
    /// What it shows.
    pub title: String,
    /// The baseline first.
    pub rows: Vec<Row>,
}

/// A measured case.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was measured.
    pub name: String,
    /// The rate that the published page gives, on its machine.
    pub published: Option<f64>,
    /// In the table's unit, a second.
    pub rate: Spread,
    /// Its rate divided by that of the baseline in the same round.
    pub of_baseline: Spread,
    /// Of the round with the median P99.
    pub latency: Option<Latency>,
    /// Other measurements by name, which says the unit.
    pub facts: BTreeMap<&'static str, Spread>,
}

/// Runs every case `rounds` times.
pub(crate) fn run(
    section: Section<'_>,
    rounds: usize,
    duration: Duration,
    bar: &ProgressBar,
) -> anyhow::Result<Table> {
    let Section { name, unit, title, mut cases } = section;
    let mut random = SmallRng::seed_from_u64(rounds as u64);
    let mut samples: Vec<Vec<Sample>> = cases.iter().map(|_| Vec::new()).collect();
    let mut order: Vec<usize> = (0..cases.len()).collect();
    for _ in 0..rounds {
        order.shuffle(&mut random);
        for &index in &order {
            let case = &mut cases[index];
            bar.set_message(format!("{name}: {}", case.name));
            let sample = (case.run)(duration).with_context(|| format!("{name}: {}", case.name))?;
            samples[index].push(sample);
            bar.inc(1);
        }
    }
    let baseline: Vec<f64> = samples[0].iter().map(Sample::rate).collect();
    let rows = cases.into_iter().zip(samples);
    let rows = rows.map(|(case, samples)| row(case, &samples, &baseline)).collect();
    Ok(Table { name, unit, title, rows })
}

fn row(case: Case<'_>, samples: &[Sample], baseline: &[f64]) -> Row {
    let rates: Vec<f64> = samples.iter().map(Sample::rate).collect();
    let of_baseline = rates.iter().zip(baseline).map(|(rate, baseline)| rate / baseline).collect();
    let mut latencies: Vec<Latency> = samples.iter().filter_map(|sample| sample.latency).collect();
    latencies.sort_by(|a, b| a.p99_us.total_cmp(&b.p99_us));
    let mut facts: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for (name, value) in samples.iter().flat_map(|sample| &sample.facts) {
        facts.entry(name).or_default().push(*value);
    }
    Row {
        name: case.name,
        published: case.published,
        rate: Spread::of(rates),
        of_baseline: Spread::of(of_baseline),
        latency: latencies.get(latencies.len() / 2).copied(),
        facts: facts.into_iter().map(|(name, values)| (name, Spread::of(values))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn ratios_are_taken_within_a_round() {
        let round = RefCell::new(0);
        let case = |name: &'static str, factor: u64| {
            let round = &round;
            let mut own = 0;
            Case::new(name, move |_| {
                own += 1;
                *round.borrow_mut() += 1;
                let mut sample = Sample::new(factor * own * 1_000, Duration::from_secs(1));
                sample.facts.push(("calls", 1.0));
                Ok(sample)
            })
        };
        let cases = vec![case("bare", 2), case("ours", 1).published(7.0)];
        let section = Section {
            name: "test".to_owned(),
            unit: "transactions",
            title: "a test".to_owned(),
            cases,
        };
        let table = run(section, 3, Duration::ZERO, &ProgressBar::hidden()).unwrap();
        assert_eq!(*round.borrow(), 6);
        let [bare, ours] = &table.rows[..] else { panic!("two rows") };
        assert!((bare.rate.median - 4_000.0).abs() < 1e-6 && bare.published.is_none());
        assert!(ours.of_baseline.samples.iter().all(|ratio| (ratio - 0.5).abs() < 1e-9));
        assert_eq!(ours.facts["calls"].samples.len(), 3);
    }
}
