//! What a driver says: the answers of `docs/reference/formats/7-competitor-drivers.md`.

use std::fmt;
use std::time::Duration;

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::plan::TpsDriverPlan;
use crate::measure::{LatencyStats, RoundSample};
use crate::tps::competitors::plan::TpsDriverPragmas;

/// Who drives what.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(in crate::tps) struct TpsDriverInfo {
    /// The library.
    pub(in crate::tps) driver: String,
    pub(in crate::tps) version: String,
    /// SQLite's version.
    pub(in crate::tps) sqlite: String,
    /// What runs the library: compiler or interpreter, with its version.
    pub(in crate::tps) runtime: String,
    /// Whether many callers wait at once, or one caller works.
    pub(in crate::tps) concurrent: bool,
}

/// What a driver measured.
#[derive(Clone, Debug, Deserialize)]
pub(in crate::tps) struct TpsDriverResult {
    #[serde(flatten)]
    pub(in crate::tps) about: TpsDriverInfo,
    /// Whose commit returned in the measured time.
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
    /// Was it the work of the plan, with the plan's durability?
    pub(super) fn check(&self, plan: &TpsDriverPlan<'_>) -> anyhow::Result<()> {
        let expected = plan.settings();
        ensure!(
            self.settings == expected,
            "the driver ran with {:?} instead of {expected:?}",
            self.settings
        );
        ensure!(self.transactions > 0, "no transaction was completed");
        // Half leaves room for how a driver cuts its time; less would be another measurement.
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

/// As a row of a table is called.
impl fmt::Display for TpsDriverInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let callers = if self.concurrent { "" } else { ", one caller" };
        write!(f, "{} {}{callers}", self.driver, self.version)
    }
}
