//! Runs the drivers of the lab: asks for their identification and lets them carry out plans
//! (`docs/reference/formats/12-lab-plan.md`).

use std::fmt;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;
use utoipa::ToSchema;

use super::plan::{LabDriverInfo, LabPlan, LabResult};
use crate::competitors::process::{self, DriverProgram};
use crate::competitors::setup::MissingTools;
use crate::competitors::{self, CompetitorSearch, UnavailableCompetitor};

const FORMAT: &str = "Format 12";
/// The time limit for a driver's identification. Python takes 100 ms.
const ABOUT_TIME_MAX: Duration = Duration::from_secs(30);
/// The time limit beyond the measured time: for the last transaction, cleaning up and a
/// checkpoint.
const RUN_TIME_EXTRA_MAX: Duration = Duration::from_mins(2);

/// A driver that works on this machine.
#[derive(Debug)]
pub(crate) struct LabDriver {
    pub(crate) about: LabDriverInfo,
    pub(crate) program: DriverProgram,
}

/// The drivers of the lab, listed by whether they work on this machine.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LabDrivers {
    /// The drivers that work on this machine.
    present: Vec<LabDriverInfo>,
    /// The drivers that do not work on this machine.
    absent: Vec<UnavailableCompetitor>,
    /// The missing tools that the absent drivers may need; null if no tool is missing.
    missing: Option<MissingTools>,
}

impl LabDriver {
    /// Asks the program for its identification, because an installed program may still not run on
    /// this machine.
    pub(crate) fn start(program: DriverProgram) -> anyhow::Result<Self> {
        let output = process::run(program.command().arg("about"), "", ABOUT_TIME_MAX)?;
        Ok(Self { about: competitors::parse(&output, FORMAT).context("`about`")?, program })
    }

    /// Carries out the plan.
    pub(crate) fn run(&self, plan: &LabPlan) -> anyhow::Result<LabResult> {
        self.ask(plan).with_context(|| format!("driver {}", self.about))
    }

    fn ask(&self, plan: &LabPlan) -> anyhow::Result<LabResult> {
        let work: f64 = plan.steps.iter().map(|step| step.warmup_seconds + step.seconds).sum();
        let time_max = Duration::try_from_secs_f64(work)? + RUN_TIME_EXTRA_MAX;
        let input = serde_json::to_string(plan)?;
        let output = process::run(&mut self.program.command(), &input, time_max)?;
        let answer: LabResult = competitors::parse(&output, FORMAT)?;
        ensure!(answer.about == self.about, "the driver identifies itself as {:?}", answer.about);
        let names = |timing: Vec<&str>| timing.join(", ");
        let asked = names(plan.steps.iter().map(|step| step.name.as_str()).collect());
        let done = names(answer.steps.iter().map(|step| step.name.as_str()).collect());
        ensure!(asked == done, "the driver ran {done} instead of {asked}");
        Ok(answer)
    }
}

impl LabDrivers {
    pub(crate) fn new(found: CompetitorSearch<LabDriver>, missing: Option<MissingTools>) -> Self {
        let present = found.present.into_iter().map(|driver| driver.about).collect();
        Self { present, absent: found.absent, missing }
    }
}

impl fmt::Display for LabDrivers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = self.present.iter().map(|about| {
            let ciphers = if about.ciphers.is_empty() { ", no encryption" } else { "" };
            format!("present: {about} (SQLite {}{ciphers})", about.sqlite)
        });
        let lines = present.chain(self.absent.iter().map(UnavailableCompetitor::note));
        let lines: Vec<String> =
            lines.chain(self.missing.as_ref().map(MissingTools::text)).collect();
        f.write_str(&lines.join("\n"))
    }
}
