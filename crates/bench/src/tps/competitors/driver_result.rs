//! Defines the answers of a driver: those of `docs/reference/formats/7-competitor-drivers.md`.

use std::fmt;
use std::time::Duration;

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::plan::TpsDriverPlan;
use crate::measure::{LatencyStats, RoundSample};
use crate::tps::competitors::plan::TpsDriverPragmas;

/// The identification of a driver.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(in crate::tps) struct TpsDriverInfo {
    /// The name of the library.
    pub(in crate::tps) driver: String,
    pub(in crate::tps) version: String,
    /// The version of SQLite.
    pub(in crate::tps) sqlite: String,
    /// The compiler or interpreter of the library, with its version.
    pub(in crate::tps) runtime: String,
    /// Whether many callers wait at the same time, or one caller does all the work.
    pub(in crate::tps) concurrent: bool,
}

/// The measurements of a driver.
#[derive(Clone, Debug, Deserialize)]
pub(in crate::tps) struct TpsDriverResult {
    #[serde(flatten)]
    pub(in crate::tps) about: TpsDriverInfo,
    /// The transactions whose commit returned within the measured time.
    pub(in crate::tps) transactions: u64,
    pub(in crate::tps) seconds: f64,
    pub(in crate::tps) latency_us: LatencyPercentiles,
    pub(in crate::tps) settings: TpsDriverPragmas,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(in crate::tps) struct LatencyPercentiles {
    pub(in crate::tps) p50: f64,
    pub(in crate::tps) p95: f64,
    pub(in crate::tps) p99: f64,
    pub(in crate::tps) max: f64,
}

impl TpsDriverResult {
    /// Checks that the driver did the work of the plan, with the plan's durability.
    pub(super) fn check(&self, plan: &TpsDriverPlan<'_>) -> anyhow::Result<()> {
        let expected = plan.settings();
        ensure!(
            self.settings == expected,
            "the driver ran with {:?} instead of {expected:?}",
            self.settings
        );
        ensure!(self.transactions > 0, "no transaction was completed");
        // Half leaves a margin for how a driver measures its time; less would be another
        // measurement.
        let is_long_enough = self.seconds.is_finite() && self.seconds >= plan.seconds / 2.0;
        ensure!(
            is_long_enough,
            "the driver ran for {} s instead of {} s",
            self.seconds,
            plan.seconds
        );
        Ok(())
    }

    pub(super) fn to_sample(&self) -> RoundSample {
        let LatencyPercentiles { p50, p95, p99, max } = self.latency_us;
        let latency =
            LatencyStats { mean_us: None, p50_us: p50, p95_us: p95, p99_us: p99, max_us: max };
        let elapsed = Duration::from_secs_f64(self.seconds);
        RoundSample { latency: Some(latency), ..RoundSample::new(self.transactions, elapsed) }
    }
}

/// Formats the name of the driver's row in a table.
impl fmt::Display for TpsDriverInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let callers = if self.concurrent { "" } else { ", one caller" };
        write!(f, "{} {}{callers}", self.driver, self.version)
    }
}
