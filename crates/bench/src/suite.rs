//! Runs a benchmark given as data: sections of cases, in rounds, each round in a random order.
//!
//! The first case of a section is its baseline: every other case is reported as a ratio to the
//! baseline in the same round, so that a temporary slowdown of the machine affects both.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use engine::clock::now;
use indicatif::ProgressBar;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::confidence_interval::MedianDifference;
use crate::curve_point::CurvePoint;
use crate::measure::{Distribution, LatencyStats, RoundSample};

/// Cases that belong in one table.
pub(crate) struct BenchSection<'a> {
    pub(crate) name: String,
    /// The unit of the rates: `transactions`.
    pub(crate) unit: &'static str,
    /// A description of the table in one line.
    pub(crate) title: String,
    /// The cases; the first is the baseline.
    pub(crate) cases: Vec<BenchCase<'a>>,
}

/// A case to measure.
pub(crate) struct BenchCase<'a, T = RoundSample> {
    pub(crate) name: String,
    /// The rate that the published page gives, on its machine.
    pub(crate) published: Option<f64>,
    /// The point of the row on a curve.
    pub(crate) point: Option<CurvePoint>,
    pub(crate) run: CaseRunner<'a, T>,
}

/// A function that works for about the given duration.
type CaseRunner<'a, T> = Box<dyn FnMut(Duration) -> anyhow::Result<T> + 'a>;

impl<'a, T> BenchCase<'a, T> {
    pub(crate) fn new(
        name: impl Into<String>,
        run: impl FnMut(Duration) -> anyhow::Result<T> + 'a,
    ) -> Self {
        Self { name: name.into(), published: None, point: None, run: Box::new(run) }
    }

    /// Sets the published figure.
    pub(crate) fn published(self, rate: f64) -> Self {
        Self { published: Some(rate), ..self }
    }

    /// Puts the row on a curve, at `x` in `unit`.
    pub(crate) fn at(
        self,
        series: impl Into<String>,
        x: impl Into<f64>,
        unit: &'static str,
    ) -> Self {
        Self {
            point: Some(CurvePoint { series: series.into(), x: x.into(), unit: unit.into() }),
            ..self
        }
    }
}

/// A table of measured cases.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ResultTable {
    /// The name of the table, as `--only` accepts it.
    pub name: String,
    /// The unit that the table's rates count, such as `transactions`.
    #[schema(value_type = String)]
    pub unit: Cow<'static, str>,
    /// The title of the table, in one line.
    pub title: String,
    /// The measured cases, the baseline first.
    pub rows: Vec<ResultRow>,
}

/// A measured case, which is one row of a table.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ResultRow {
    /// The name of the measured case.
    pub name: String,
    /// The rate that a published page reports for its own machine; null if there is none.
    pub published: Option<f64>,
    /// The row's place on a curve; null if the row is not on a curve.
    pub point: Option<CurvePoint>,
    /// The rate, in the table's unit per second.
    pub rate: Distribution,
    /// The row's rate divided by the baseline's in the same round.
    pub relative: Distribution,
    /// The difference that `relative` shows; null for the baseline itself.
    pub difference: Option<MedianDifference>,
    /// The difference in processor time for each operation; null for the baseline itself, and if
    /// processor time was not measured. Other work of the machine changes it little, and it
    /// excludes waits for a disk.
    pub by_cpu: Option<MedianDifference>,
    /// The waits of callers in the round with the median P99; null if no waits were measured.
    pub latency: Option<LatencyStats>,
    /// Other metrics by name; the name contains the unit.
    #[schema(value_type = BTreeMap<String, Distribution>)]
    pub metrics: BTreeMap<Cow<'static, str>, Distribution>,
}

/// Cases that each give samples for several tables at once, because one run of them does all the
/// work: inserts, selects, updates.
pub(crate) struct CaseGroup<'a> {
    pub(crate) headings: Vec<TableHeading>,
    /// The cases; the first is the baseline. Each gives as many samples as there are headings.
    pub(crate) cases: Vec<BenchCase<'a, Vec<RoundSample>>>,
}

/// The heading of a table.
#[derive(Clone, Debug)]
pub(crate) struct TableHeading {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) title: String,
}

/// The rule that ends the rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StopRule {
    /// The least number of rounds, however long they take.
    pub(crate) rounds_min: usize,
    pub(crate) rounds_max: usize,
    /// The precision that suffices: half the width of every ratio's interval, per its median.
    pub(crate) precision: f64,
    /// The time after which no round begins, except to reach `rounds_min`.
    pub(crate) until: Option<Instant>,
    /// How long each case works in each round.
    pub(crate) duration: Duration,
}

impl StopRule {
    /// Returns a rule for exactly this number of rounds.
    pub(crate) fn rounds(rounds: usize, duration: Duration) -> Self {
        Self { rounds_min: rounds, rounds_max: rounds, precision: 0.0, until: None, duration }
    }

    fn is_enough(&self, samples: &[Vec<Vec<RoundSample>>]) -> bool {
        let rounds = samples[0].len();
        if rounds < self.rounds_min || rounds >= self.rounds_max {
            return rounds >= self.rounds_max;
        }
        self.until.is_some_and(|until| now() >= until) || self.is_precise(samples)
    }

    /// Estimates the final number of rounds, after `done` since `start`.
    fn expected(&self, done: usize, start: Instant) -> usize {
        let Some(until) = self.until.filter(|_| done > 0) else { return self.rounds_max };
        let share = (until - start).div_duration_f64(start.elapsed());
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate between two counts"
        )]
        let expected = (done as f64 * share) as usize;
        expected.clamp(self.rounds_min, self.rounds_max)
    }

    fn is_precise(&self, samples: &[Vec<Vec<RoundSample>>]) -> bool {
        let tables = samples[0][0].len();
        (0..tables).all(|table| {
            let baseline = rates(&samples[0], table);
            samples.iter().all(|samples| {
                let ratios = Distribution::from_samples(ratios(&rates(samples, table), &baseline));
                ratios.interval.precision(ratios.median) <= self.precision
            })
        })
    }
}

/// Runs a section of one table.
pub(crate) fn run(
    section: BenchSection<'_>,
    stop_rule: &StopRule,
    bar: &ProgressBar,
) -> anyhow::Result<ResultTable> {
    let BenchSection { name, unit, title, cases } = section;
    let cases = cases.into_iter().map(|case| {
        let BenchCase { name, published, point, mut run } = case;
        let run = Box::new(move |duration| Ok(vec![run(duration)?]));
        BenchCase { name, published, point, run: run as CaseRunner<'_, Vec<RoundSample>> }
    });
    let headings = vec![TableHeading { name, unit, title }];
    let tables = run_group(CaseGroup { headings, cases: cases.collect() }, stop_rule, bar)?;
    tables.into_iter().next().context("a group has as many tables as headings")
}

/// Measures a case. A round without any success is repeated, twice as long each time.
fn measure(
    run: &mut CaseRunner<'_, Vec<RoundSample>>,
    duration: Duration,
) -> anyhow::Result<Vec<RoundSample>> {
    /// The last attempt has 256 times the duration: if it has no success either, the rate is 0.
    const LONGER_COUNT_MAX: u32 = 8;
    for times in 0..LONGER_COUNT_MAX {
        let samples = run(duration * 2_u32.pow(times))?;
        if samples.iter().all(|sample| sample.transactions > 0) {
            return Ok(samples);
        }
    }
    run(duration * 2_u32.pow(LONGER_COUNT_MAX))
}

/// Runs every case in every round, each round in a random order, until the rule ends it.
pub(crate) fn run_group(
    group: CaseGroup<'_>,
    stop_rule: &StopRule,
    bar: &ProgressBar,
) -> anyhow::Result<Vec<ResultTable>> {
    let CaseGroup { headings, mut cases } = group;
    anyhow::ensure!(!cases.is_empty(), "nothing to measure");
    let mut random = SmallRng::seed_from_u64(stop_rule.rounds_max as u64);
    let mut samples: Vec<Vec<Vec<RoundSample>>> = cases.iter().map(|_| Vec::new()).collect();
    let mut order: Vec<usize> = (0..cases.len()).collect();
    let start = now();
    while !stop_rule.is_enough(&samples) {
        let done = samples[0].len();
        bar.set_length((cases.len() * stop_rule.expected(done, start)) as u64);
        bar.set_position((cases.len() * done) as u64);
        order.shuffle(&mut random);
        for &index in &order {
            let case = &mut cases[index];
            let name = format!("{}: {}", headings[0].name, case.name);
            bar.set_message(name.clone());
            let measured = measure(&mut case.run, stop_rule.duration).context(name)?;
            anyhow::ensure!(measured.len() == headings.len(), "{}: a sample is missing", case.name);
            samples[index].push(measured);
            bar.inc(1);
        }
    }
    Ok(headings.into_iter().enumerate().map(|(i, of)| table(of, i, &cases, &samples)).collect())
}

fn table(
    heading: TableHeading,
    index: usize,
    cases: &[BenchCase<'_, Vec<RoundSample>>],
    samples: &[Vec<Vec<RoundSample>>],
) -> ResultTable {
    let baseline = rates(&samples[0], index);
    let cpu = |of: &[Vec<RoundSample>]| of.iter().map(|round| round[index].cpu_us()).collect();
    let baseline_cpu: Option<Vec<f64>> = cpu(&samples[0]);
    let measures = if baseline_cpu.is_some() { 2 } else { 1 };
    let comparisons = (cases.len() - 1) * measures;
    let rows = cases.iter().zip(samples).enumerate().map(|(number, (case, of))| {
        let samples: Vec<&RoundSample> = of.iter().map(|round| &round[index]).collect();
        let relative = ratios(&rates(of, index), &baseline);
        let difference =
            (number > 0).then(|| MedianDifference::from_ratios(&relative, comparisons));
        let by_cpu = baseline_cpu.as_ref().zip(cpu(of)).filter(|_| number > 0);
        let by_cpu = by_cpu.map(|(baseline, own)| {
            MedianDifference::from_ratios(&ratios(baseline, &own), comparisons)
        });
        ResultRow { difference, by_cpu, ..row(case, &samples, relative) }
    });
    let TableHeading { name, unit, title } = heading;
    ResultTable { name, unit: unit.into(), title, rows: rows.collect() }
}

fn rates(samples: &[Vec<RoundSample>], table: usize) -> Vec<f64> {
    samples.iter().map(|round| round[table].rate()).collect()
}

pub(crate) fn ratios(rates: &[f64], baseline: &[f64]) -> Vec<f64> {
    rates.iter().zip(baseline).map(|(rate, baseline)| rate / baseline).collect()
}

fn row(
    case: &BenchCase<'_, Vec<RoundSample>>,
    samples: &[&RoundSample],
    relative: Vec<f64>,
) -> ResultRow {
    let rates: Vec<f64> = samples.iter().map(|sample| sample.rate()).collect();
    let mut latencies: Vec<LatencyStats> =
        samples.iter().filter_map(|sample| sample.latency).collect();
    latencies.sort_by(|a, b| a.p99_us.total_cmp(&b.p99_us));
    let mut metrics: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for (name, value) in samples.iter().flat_map(|sample| &sample.metrics) {
        metrics.entry(name).or_default().push(*value);
    }
    let metrics =
        metrics.into_iter().map(|(name, values)| (name.into(), Distribution::from_samples(values)));
    ResultRow {
        name: case.name.clone(),
        published: case.published,
        point: case.point.clone(),
        rate: Distribution::from_samples(rates),
        relative: Distribution::from_samples(relative),
        difference: None,
        by_cpu: None,
        latency: latencies.get(latencies.len() / 2).copied(),
        metrics: metrics.collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::confidence_interval::DifferenceVerdict;
    use crate::measure::CPU_US;

    #[test]
    fn ratios_are_taken_within_a_round() {
        let round = RefCell::new(0);
        let case = |name: &'static str, factor: u64| {
            let round = &round;
            let mut own = 0;
            BenchCase::new(name, move |_| {
                own += 1;
                *round.borrow_mut() += 1;
                let mut sample = RoundSample::new(factor * own * 1_000, Duration::from_secs(1));
                sample.metrics.push(("calls", 1.0));
                Ok(sample)
            })
        };
        let cases =
            vec![case("bare", 2), case("ours", 1).published(7.0).at("ours", 3.0, "callers")];
        let section = BenchSection {
            name: "test".to_owned(),
            unit: "transactions",
            title: "a test".to_owned(),
            cases,
        };
        let stop_rule = StopRule::rounds(3, Duration::ZERO);
        let table = run(section, &stop_rule, &ProgressBar::hidden()).unwrap();
        assert_eq!(*round.borrow(), 6);
        let [bare, ours] = &table.rows[..] else { panic!("two rows") };
        assert!((bare.rate.median - 4_000.0).abs() < 1e-6 && bare.published.is_none());
        assert!(ours.relative.samples.iter().all(|ratio| (ratio - 0.5).abs() < 1e-9));
        let point = ours.point.as_ref().map(|point| (point.series.as_str(), point.x));
        assert_eq!((point, bare.point.is_none()), (Some(("ours", 3.0)), true));
        assert_eq!(ours.metrics["calls"].samples.len(), 3);
        let verdict = ours.difference.as_ref().unwrap().verdict;
        assert_eq!((verdict, bare.difference.is_none()), (DifferenceVerdict::TooFewRounds, true));
    }

    /// Returns two tables; the second case is three times as fast in the first one only.
    fn pair(stop_rule: &StopRule) -> Vec<ResultTable> {
        let mut round = 0.0;
        let case = |name: &str, factor: f64| {
            BenchCase::new(name, move |_| {
                round += 1.0;
                let sample = |seconds| RoundSample::new(1_000, Duration::from_secs_f64(seconds));
                let noise = 1.0 + 0.01 / round;
                Ok(vec![sample(noise / factor), sample(noise)])
            })
        };
        let heading =
            |name: &str| TableHeading { name: name.into(), unit: "rows", title: name.into() };
        let headings = vec![heading("one"), heading("two")];
        let group = CaseGroup { headings, cases: vec![case("a", 1.0), case("b", 3.0)] };
        run_group(group, stop_rule, &ProgressBar::hidden()).unwrap()
    }

    #[test]
    fn a_group_makes_a_table_of_each_heading() {
        let tables = pair(&StopRule::rounds(6, Duration::ZERO));
        let text = |table: usize| tables[table].rows[1].difference.as_ref().unwrap().text.clone();
        assert_eq!(text(0), "3.0 times as fast");
        assert_eq!((text(1), tables[1].name.as_str()), ("no difference found".to_owned(), "two"));
        assert!(tables[0].rows[1].by_cpu.is_none(), "it was not measured");
    }

    #[test]
    fn processor_time_is_compared_where_it_was_measured() {
        let case = |name: &str, us: f64| {
            BenchCase::new(name, move |_| {
                let mut sample = RoundSample::new(1_000, Duration::from_secs(1));
                sample.metrics.push((CPU_US, us));
                Ok(sample)
            })
        };
        let section = BenchSection {
            name: "test".to_owned(),
            unit: "rows",
            title: "a test".to_owned(),
            cases: vec![case("a", 30.0), case("b", 20.0)],
        };
        let stop_rule = StopRule::rounds(7, Duration::ZERO);
        let table = run(section, &stop_rule, &ProgressBar::hidden()).unwrap();
        let [a, b] = &table.rows[..] else { panic!("two rows") };
        assert!(a.by_cpu.is_none());
        assert_eq!(b.by_cpu.as_ref().unwrap().text, "faster by 50 %");
        assert_eq!(b.difference.as_ref().unwrap().verdict, DifferenceVerdict::NoDifference);
    }

    #[test]
    fn a_round_in_which_nothing_was_done_is_made_again_longer() {
        let run = |enough: Duration| {
            let mut tried = Vec::new();
            let mut run: CaseRunner<'_, Vec<RoundSample>> = Box::new(|duration| {
                tried.push(duration.as_millis());
                Ok(vec![RoundSample::new(u64::from(duration >= enough), duration)])
            });
            let samples = measure(&mut run, Duration::from_millis(10)).unwrap();
            drop(run);
            (samples[0].transactions, tried)
        };
        assert_eq!(run(Duration::ZERO), (1, vec![10]));
        assert_eq!(run(Duration::from_millis(35)), (1, vec![10, 20, 40]));
        let (transactions, tried) = run(Duration::MAX);
        assert_eq!((transactions, tried.len(), tried.last()), (0, 9, Some(&2_560)));
    }

    #[test]
    fn rounds_end_when_they_have_said_enough_or_it_is_late() {
        let rounds = |stop_rule: StopRule| pair(&stop_rule)[0].rows[0].rate.samples.len();
        let stop_rule =
            StopRule { rounds_max: 50, precision: 0.5, ..StopRule::rounds(7, Duration::ZERO) };
        assert_eq!(rounds(stop_rule), 7);
        assert_eq!(rounds(StopRule { precision: -1.0, ..stop_rule }), 50);
        assert_eq!(rounds(StopRule { precision: -1.0, until: Some(now()), ..stop_rule }), 7);
    }
}
