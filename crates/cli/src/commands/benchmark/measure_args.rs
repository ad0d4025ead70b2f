//! Defines the flags that control how long and how precisely benchmarks measure.

use std::time::Duration;

use anyhow::Context;
use bench::sqlite_bench::MeasureOptions;
use clap::Args;

use super::bench_output::{BenchOutputArgs, command_line};
use crate::output::CommandError;

/// How long and how precisely to measure.
#[derive(Args)]
pub(super) struct MeasureArgs {
    /// Stop when the half-width of every 95 % confidence interval is at most this percentage of its
    /// median.
    #[arg(long, default_value_t = 2.0, value_name = "PERCENT")]
    precision: f64,
    /// Stop after this time even if the precision is not reached, but not before --rounds-min
    /// rounds.
    #[arg(long, default_value_t = 10.0, value_name = "MINUTES")]
    minutes: f64,
    /// Minimum number of rounds per benchmark, each in random order. Comparing twenty cases needs
    /// about ten rounds for a significant result.
    #[arg(long, default_value_t = 12, value_name = "COUNT")]
    rounds_min: usize,
    /// Maximum number of rounds per benchmark.
    #[arg(long, default_value_t = 300, value_name = "COUNT")]
    rounds_max: usize,
    /// Duration of each operation in each round.
    #[arg(long, default_value_t = 0.1, value_name = "SECONDS")]
    seconds: f64,
    #[command(flatten)]
    pub(super) places: BenchOutputArgs,
}

impl MeasureArgs {
    pub(super) fn method(&self) -> anyhow::Result<MeasureOptions> {
        anyhow::ensure!(
            self.precision > 0.0,
            CommandError::usage("--precision must be greater than 0")
        );
        anyhow::ensure!(
            self.rounds_min > 0,
            CommandError::usage("--rounds-min must be greater than 0")
        );
        // Without this check, the error would appear only after all measurements.
        let report = &self.places.report_dir;
        let name = || format!("--report-dir {}", report.display());
        let metadata = report.metadata().with_context(name)?;
        let message = || format!("{} is not a directory", name());
        anyhow::ensure!(metadata.is_dir(), CommandError::usage(message()));
        Ok(MeasureOptions {
            rounds_min: self.rounds_min,
            rounds_max: self.rounds_max.max(self.rounds_min),
            precision: self.precision / 100.0,
            time: Duration::try_from_secs_f64(self.minutes * 60.0).context("--minutes")?,
            duration: Duration::try_from_secs_f64(self.seconds).context("--seconds")?,
            folder: self.places.work_dir.clone(),
            command: command_line(),
        })
    }
}
