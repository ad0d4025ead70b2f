//! Searches for settings: each one alone, then those that gain together, then all of them again.
//!
//! 1. Every candidate is compared with a connection's settings today.
//! 2. The best joins the set, safe ones first. Others that gained, and candidates that apply only
//!    now, are compared with the set, until none gains any more.
//! 3. The set is compared with today on fresh measurements, as are today again (A/A) and
//!    candidates that would gain but were not allowed.
//!
//! # Invariants
//! - A gain is a verdict of *faster* in a table of the load and of *slower* in none. All candidates
//!   and tables of a comparison share one chance of error (Bonferroni).
//! - A candidate that costs durability is not in the search unless it is allowed.

use std::time::{Duration, Instant};

use engine::clock::now;
use indicatif::ProgressBar;

use super::candidate::{CANDIDATES, TuneCandidate};
use super::settings::{PowerLossSafety, PragmaSettings, is_of_file, named};
use super::target::TuneTarget;
use crate::confidence_interval::{DifferenceVerdict, MedianDifference};
use crate::measure::{Distribution, RoundSample};
use crate::sqlite_bench::execute_plan;
use crate::suite::{BenchCase, CaseGroup, ResultTable, StopRule, TableHeading, run_group};

/// The share of the remaining time for the first comparison, which has the most candidates.
const FIRST_SHARE: f64 = 0.5;
/// The share of the then remaining time for each further comparison.
const NEXT_SHARE: f64 = 0.4;
/// The wanted rounds in a comparison's time: many short ones show more than a few long ones.
const ROUNDS_AIM: f64 = 32.0;
/// The limits of a step's length: enough for a few commits on a disk, and for many rounds.
const STEP_SECONDS: (f64, f64) = (0.002, 0.25);
/// The time of a step with its warm-up, opening and cleaning up, as a multiple of the step.
const STEP_OVERHEAD: f64 = 1.8;
const ROUNDS_MAX: usize = 1_000;
/// The precision of intervals at which measuring ends.
const PRECISION: f64 = 0.01;

/// The result of a search.
pub(crate) struct TuneSearchResult {
    /// Each candidate alone, in the order of the table.
    pub(crate) alone: Vec<TuneTrial>,
    /// The candidates that joined the set, in this order, each compared with the set before it.
    pub(crate) chosen: Vec<TuneTrial>,
    /// The candidates that were compared with the set and did not join it.
    pub(crate) passed: Vec<TuneTrial>,
    /// Today's settings, measured again and compared with the first time.
    pub(crate) noise: Vec<PhaseMeasurement>,
    /// The settings of the set.
    pub(crate) settings: PragmaSettings,
    /// The set, compared with today. None if nothing gained.
    pub(crate) combined: Option<Vec<PhaseMeasurement>>,
    /// The candidates that reduce durability and were not allowed, compared with the set.
    pub(crate) refused: Vec<TuneTrial>,
    /// Whether the time ended before the search was complete.
    pub(crate) is_cut: bool,
}

/// The measurement of a candidate.
#[derive(Clone)]
pub(crate) struct TuneTrial {
    pub(crate) candidate: &'static TuneCandidate,
    /// The difference between the set that it was compared with and today's settings.
    pub(crate) on_top_of: Vec<(String, String)>,
    /// The safety of the set with this candidate.
    pub(crate) safety: PowerLossSafety,
    pub(crate) measured: Vec<PhaseMeasurement>,
}

/// The comparison of one table.
#[derive(Clone, Debug)]
pub(crate) struct PhaseMeasurement {
    /// The phase: `mix`.
    pub(crate) name: String,
    /// Operations per second.
    pub(crate) rate: Distribution,
    pub(crate) ratio: Distribution,
    pub(crate) difference: MedianDifference,
}

/// Returns whether a candidate makes any phase faster and none slower.
pub(crate) fn gains(measured: &[PhaseMeasurement]) -> bool {
    let is = |verdict| measured.iter().any(|one| one.difference.verdict == verdict);
    is(DifferenceVerdict::Faster) && !is(DifferenceVerdict::Slower)
}

/// Searches until `until`; the first and last comparison always get enough rounds for a verdict.
pub(crate) fn search(
    subject: &TuneTarget,
    allow_unsafe: bool,
    until: Instant,
    bar: &ProgressBar,
) -> anyhow::Result<TuneSearchResult> {
    let today = &subject.today;
    let runner = TrialRunner { subject, bar };
    let character = subject.character();
    let applicable = |set: &PragmaSettings| {
        let all = CANDIDATES.iter().filter(|one| one.applies(set, character));
        all.filter(|one| allow_unsafe || one.apply(set).keeps_durability_of(today))
            .collect::<Vec<_>>()
    };
    let first = applicable(today);
    let mut alone = runner.candidates("alone", today, &first, share(until, FIRST_SHARE))?;
    let noise = alone.noise;
    let mut found = TuneSearchResult {
        alone: alone.trials.clone(),
        chosen: Vec::new(),
        passed: Vec::new(),
        noise,
        settings: today.clone(),
        combined: None,
        refused: Vec::new(),
        is_cut: false,
    };
    while let Some(best) = best(&alone.trials) {
        found.settings = best.candidate.apply(&found.settings);
        found.chosen.push(best);
        let promising: Vec<&TuneCandidate> = applicable(&found.settings)
            .into_iter()
            .filter(|one| match first.iter().position(|of| of == one) {
                Some(at) => gains(&found.alone[at].measured),
                None => true,
            })
            .filter(|one| !found.passed.iter().any(|trial| trial.candidate == *one))
            .collect();
        found.is_cut = !promising.is_empty() && now() >= until;
        if promising.is_empty() || found.is_cut {
            break;
        }
        let heading = format!("with {}", found.chosen.len());
        alone =
            runner.candidates(&heading, &found.settings, &promising, share(until, NEXT_SHARE))?;
        let passed = alone.trials.iter().filter(|trial| !gains(&trial.measured));
        found.passed.extend(passed.cloned());
    }
    runner.verify(&mut found, until)?;
    Ok(found)
}

/// Returns, of the safest candidates that gain, the first value of the PRAGMA that gains most,
/// which is the cheapest.
fn best(trials: &[TuneTrial]) -> Option<TuneTrial> {
    let gaining = trials.iter().filter(|trial| gains(&trial.measured));
    let safety = gaining.clone().map(|trial| trial.safety).max()?;
    let gaining = gaining.filter(|trial| trial.safety == safety);
    let most = gaining.clone().max_by(|a, b| score(a).total_cmp(&score(b)))?;
    // No journal mode is cheaper than another.
    if most.candidate.pragma == "journal_mode" {
        return Some(most.clone());
    }
    let same = |trial: &&TuneTrial| trial.candidate.pragma == most.candidate.pragma;
    gaining.clone().find(same).cloned()
}

/// Returns the largest gain; a gain in a part counts a quarter of one in the mix.
fn score(trial: &TuneTrial) -> f64 {
    let faster = trial.measured.iter().enumerate().filter_map(|(index, one)| {
        let is_faster = one.difference.verdict == DifferenceVerdict::Faster;
        let weight = if index == 0 { 1.0 } else { 0.25 };
        is_faster.then(|| one.difference.interval.low.ln() * weight)
    });
    faster.fold(0.0, f64::max)
}

fn share(until: Instant, share: f64) -> Duration {
    until.saturating_duration_since(now()).mul_f64(share)
}

struct TrialRunner<'a> {
    subject: &'a TuneTarget,
    bar: &'a ProgressBar,
}

struct TrialSamples {
    noise: Vec<PhaseMeasurement>,
    trials: Vec<TuneTrial>,
}

impl TrialRunner<'_> {
    fn candidates(
        &self,
        heading: &str,
        set: &PragmaSettings,
        candidates: &[&'static TuneCandidate],
        time: Duration,
    ) -> anyhow::Result<TrialSamples> {
        let mut cases =
            vec![("unchanged".to_owned(), set.clone()), ("again".to_owned(), set.clone())];
        cases.extend(candidates.iter().map(|one| (one.name(), one.apply(set))));
        let tables = self.run(heading, &cases, time)?;
        let comparisons = (cases.len() - 1) * tables.len();
        let trials = candidates.iter().enumerate().map(|(index, candidate)| TuneTrial {
            candidate,
            on_top_of: set.beyond(&self.subject.today),
            safety: candidate.apply(set).safety(),
            measured: measured(&tables, index + 2, 0, comparisons),
        });
        Ok(TrialSamples { noise: measured(&tables, 1, 0, comparisons), trials: trials.collect() })
    }

    /// Measures the set again, and compares the candidates that were not allowed with it.
    fn verify(&self, found: &mut TuneSearchResult, until: Instant) -> anyhow::Result<()> {
        let today = &self.subject.today;
        let character = self.subject.character();
        let refused: Vec<&TuneCandidate> = CANDIDATES
            .iter()
            .filter(|one| one.applies(&found.settings, character))
            .filter(|one| {
                let with = one.apply(&found.settings);
                with.safety() == PowerLossSafety::LosesLastCommits
                    && !with.keeps_durability_of(today)
            })
            .filter(|one| !found.chosen.iter().any(|trial| trial.candidate == *one))
            .filter(|one| !found.alone.iter().any(|trial| trial.candidate == *one))
            .collect();
        if found.chosen.is_empty() && refused.is_empty() {
            return Ok(());
        }
        let mut cases =
            vec![("today".to_owned(), today.clone()), ("again".to_owned(), today.clone())];
        cases.push(("all settings".to_owned(), found.settings.clone()));
        cases.extend(refused.iter().map(|one| (one.name(), one.apply(&found.settings))));
        let tables = self.run("together", &cases, share(until, 1.0))?;
        let comparisons = (cases.len() - 1) * tables.len();
        found.noise = measured(&tables, 1, 0, comparisons);
        if !found.chosen.is_empty() {
            found.combined = Some(measured(&tables, 2, 0, comparisons));
        }
        let refused = refused.into_iter().enumerate().map(|(index, candidate)| TuneTrial {
            candidate,
            on_top_of: found.settings.beyond(today),
            safety: candidate.apply(&found.settings).safety(),
            measured: measured(&tables, index + 3, 2, comparisons),
        });
        found.refused = refused.collect();
        Ok(())
    }

    fn run(
        &self,
        heading: &str,
        cases: &[(String, PragmaSettings)],
        time: Duration,
    ) -> anyhow::Result<Vec<ResultTable>> {
        let subject = self.subject;
        let phases = &subject.load.phases;
        let headings = phases.iter().map(|phase| TableHeading {
            name: phase.name.to_owned(),
            unit: "operations",
            title: heading.to_owned(),
        });
        let headings: Vec<TableHeading> = headings.collect();
        // The files are prepared before the clock of the rounds runs.
        for (name, settings) in cases {
            self.bar.set_message(format!("preparing a file for {name}"));
            subject.file(settings)?;
        }
        let comparisons = (cases.len() - 1) * phases.len();
        let stop_rule = effort(time, cases.len(), phases.len(), comparisons);
        let cases = cases.iter().map(|(name, settings)| {
            BenchCase::new(format!("{heading}, {name}"), move |duration: Duration| {
                sample(subject, settings, duration)
            })
        });
        let cases = cases.collect();
        run_group(CaseGroup { headings, cases }, &stop_rule, self.bar)
    }
}

/// Runs the load, and checks that SQLite applied the settings.
fn sample(
    subject: &TuneTarget,
    settings: &PragmaSettings,
    duration: Duration,
) -> anyhow::Result<Vec<RoundSample>> {
    let path = subject.file(settings)?;
    let plan = subject.load.plan(&path, settings, &subject.encryption, duration.as_secs_f64());
    let answer = execute_plan(&plan)?;
    for (name, value) in settings.pairs().iter().filter(|(name, _)| !is_of_file(name)) {
        let found = answer.settings.get(name).map(|found| named(name, found));
        anyhow::ensure!(found.as_ref() == Some(value), "PRAGMA {name} = {value} gave {found:?}");
    }
    let samples = answer.steps.iter().map(|step| {
        RoundSample::new(step.operations, Duration::from_secs_f64(step.seconds.max(1e-9)))
    });
    Ok(samples.collect())
}

/// Returns a rule with steps so short that `ROUNDS_AIM` rounds fit, and enough for a verdict.
fn effort(time: Duration, cases: usize, phases: usize, comparisons: usize) -> StopRule {
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    let steps = (cases * phases) as f64 * ROUNDS_AIM * STEP_OVERHEAD;
    let (least, most) = STEP_SECONDS;
    let seconds = (time.as_secs_f64() / steps).clamp(least, most);
    StopRule {
        rounds_min: rounds_needed(comparisons),
        rounds_max: ROUNDS_MAX,
        precision: PRECISION,
        until: Some(now() + time),
        duration: Duration::from_secs_f64(seconds),
    }
}

/// Returns the least number of rounds with which a verdict is possible.
fn rounds_needed(comparisons: usize) -> usize {
    let says = |rounds: &usize| {
        MedianDifference::from_ratios(&vec![2.0; *rounds], comparisons).verdict
            != DifferenceVerdict::TooFewRounds
    };
    (2..ROUNDS_MAX).find(says).unwrap_or(ROUNDS_MAX)
}

/// Compares one case with another in every table.
fn measured(
    tables: &[ResultTable],
    case: usize,
    beside: usize,
    comparisons: usize,
) -> Vec<PhaseMeasurement> {
    let of = tables.iter().map(|table| {
        let (rate, base) = (&table.rows[case].rate, &table.rows[beside].rate);
        let ratios = rate.samples.iter().zip(&base.samples).map(|(rate, base)| rate / base);
        let ratios: Vec<f64> = ratios.collect();
        PhaseMeasurement {
            name: table.name.clone(),
            rate: rate.clone(),
            difference: MedianDifference::from_ratios(&ratios, comparisons),
            ratio: Distribution::from_samples(ratios),
        }
    });
    of.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confidence_interval::ConfidenceInterval;

    fn trial(candidate: usize, of: &[(f64, f64)]) -> TuneTrial {
        let measured = of.iter().map(|(low, high)| PhaseMeasurement {
            name: "mix".into(),
            rate: Distribution::from_samples(vec![1.0]),
            ratio: Distribution::from_samples(vec![f64::midpoint(*low, *high)]),
            difference: MedianDifference {
                interval: ConfidenceInterval { low: *low, high: *high },
                verdict: match () {
                    () if *low > 1.0 => DifferenceVerdict::Faster,
                    () if *high < 1.0 => DifferenceVerdict::Slower,
                    () => DifferenceVerdict::NoDifference,
                },
                text: String::new(),
            },
        });
        TuneTrial {
            candidate: &CANDIDATES[candidate],
            on_top_of: Vec::new(),
            safety: PowerLossSafety::Safe,
            measured: measured.collect(),
        }
    }

    #[test]
    fn what_makes_anything_slower_is_no_gain() {
        let check = |of: &[(f64, f64)], expected: bool| {
            assert_eq!(gains(&trial(0, of).measured), expected, "{of:?}");
        };
        check(&[(1.1, 1.2), (0.9, 1.1)], true);
        check(&[(1.1, 1.2), (0.8, 0.9)], false);
        check(&[(0.9, 1.1)], false);
    }

    #[test]
    fn the_cheapest_value_of_the_best_pragma_joins() {
        let at = |value| CANDIDATES.iter().position(|one| one.value == value).unwrap();
        let (small, large, other) = (at("-8000"), at("-128000"), at("TRUNCATE"));
        let trials =
            [trial(other, &[(1.1, 1.2)]), trial(small, &[(1.3, 1.4)]), trial(large, &[(1.4, 1.5)])];
        assert_eq!(best(&trials).unwrap().candidate.value, "-8000");
        let trials = [trial(small, &[(0.9, 1.4)]), trial(large, &[(1.4, 1.5)])];
        assert_eq!(best(&trials).unwrap().candidate.value, "-128000");
        assert!(best(&[trial(small, &[(0.9, 1.4)])]).is_none());
    }

    #[test]
    fn what_is_safe_comes_before_what_is_not() {
        let risky = TuneTrial { safety: PowerLossSafety::MayCorrupt, ..trial(0, &[(9.0, 9.9)]) };
        let trials = [risky.clone(), trial(1, &[(1.1, 1.2)])];
        assert_eq!(best(&trials).unwrap().candidate, &CANDIDATES[1]);
        assert_eq!(best(&[risky]).unwrap().candidate, &CANDIDATES[0]);
    }

    #[test]
    fn a_comparison_gets_the_rounds_that_a_verdict_needs() {
        assert_eq!((rounds_needed(1), rounds_needed(2), rounds_needed(36)), (6, 7, 11));
        let stop_rule = effort(Duration::ZERO, 12, 3, 36);
        assert_eq!((stop_rule.rounds_min, stop_rule.duration.as_millis()), (11, 2));
    }
}
