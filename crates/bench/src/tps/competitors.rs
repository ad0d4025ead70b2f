//! Measures competitors on the same work: libraries of Rust and Node.
//!
//! Each has a driver in `bench/competitors`, which is a separate program, because each brings an
//! SQLite that would clash with ours. It reads a plan and answers with its measurements
//! (`docs/reference/formats/7-competitor-drivers.md`).
//!
//! # Invariants
//! - An answer counts only if the settings that the driver read back equal those of the plan.
//!
//! # Not here
//! - How a driver is built → `crate::competitors`. How a library runs a transaction →
//!   `bench/competitors`.
//! - Whether the balances still sum up → `accounts.rs`, for every candidate alike.

mod driver_result;
pub(crate) mod plan;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use indicatif::ProgressBar;

pub(super) use self::driver_result::{TpsDriverInfo, TpsDriverResult};
use self::plan::CompetitorWorkload;
pub(super) use self::plan::TpsDriverPlan;
use super::accounts::TransferPairs;
use crate::competitors::process::{self, DriverProgram};
use crate::competitors::setup::CompetitorKind;
use crate::competitors::setup::steps::MissingPolicy;
use crate::competitors::{self, CompetitorFilter, CompetitorSearch};
use crate::suite::BenchCase;

/// The time limit for a driver's identification. Node takes 50 ms.
const ABOUT_TIME_MAX: Duration = Duration::from_secs(30);
/// The time limit beyond the measured time: for a thousand callers that each end their transaction
/// on a disk that takes 20 ms for it, and for the last checkpoint.
const RUN_TIME_EXTRA_MAX: Duration = Duration::from_mins(1);

/// A driver that works on this machine.
#[derive(Debug)]
pub(super) struct TpsDriver {
    pub(super) about: TpsDriverInfo,
    program: DriverProgram,
}

/// Finds the drivers in the folder `competitors`.
pub(crate) fn find(
    competitors: &Path,
    target: &Path,
    bar: &ProgressBar,
) -> CompetitorSearch<TpsDriver> {
    let wanted = CompetitorFilter {
        kind: CompetitorKind::Library,
        names: None,
        missing: MissingPolicy::Build,
    };
    competitors::find(wanted, competitors, target, bar, TpsDriver::start)
}

/// Returns a case for each driver, in the order in which they were found.
pub(super) fn cases<'a>(
    found: &'a CompetitorSearch<TpsDriver>,
    workload: CompetitorWorkload<'a>,
) -> Vec<BenchCase<'a>> {
    let case = |driver: &'a TpsDriver| {
        BenchCase::new(driver.about.to_string(), move |duration| {
            let plan = TpsDriverPlan::new(workload, duration);
            Ok(driver.run(&plan)?.to_sample())
        })
    };
    found.present.iter().map(case).collect()
}

/// Writes the transactions in the drivers' format.
pub(super) fn write_pairs(path: &Path, pairs: &TransferPairs) -> anyhow::Result<()> {
    let write = || {
        let mut file = BufWriter::new(File::create(path)?);
        for pair in pairs.iter() {
            file.write_all(&pair.credit.to_le_bytes())?;
            file.write_all(&pair.debit.to_le_bytes())?;
        }
        file.flush()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

impl TpsDriver {
    /// Asks the program for its identification, because a built program may still not run on this
    /// machine.
    fn start(program: DriverProgram) -> anyhow::Result<Self> {
        let output = process::run(program.command().arg("about"), "", ABOUT_TIME_MAX)?;
        Ok(Self { about: competitors::parse(&output, "Format 7").context("`about`")?, program })
    }

    /// Carries out the plan.
    pub(super) fn run(&self, plan: &TpsDriverPlan<'_>) -> anyhow::Result<TpsDriverResult> {
        self.ask(plan).with_context(|| format!("driver {}", self.about))
    }

    fn ask(&self, plan: &TpsDriverPlan<'_>) -> anyhow::Result<TpsDriverResult> {
        let time_max = plan.duration() + RUN_TIME_EXTRA_MAX;
        let input = serde_json::to_string(plan)?;
        let output = process::run(&mut self.program.command(), &input, time_max)?;
        let answer: TpsDriverResult = competitors::parse(&output, "Format 7")?;
        ensure!(answer.about == self.about, "the driver identifies itself as {:?}", answer.about);
        answer.check(plan)?;
        Ok(answer)
    }
}
