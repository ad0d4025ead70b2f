//! Drivers of the lab: who they are, and plans that they carry out
//! (`docs/formats/12-lab-plan.md`).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::rivals;
use crate::rivals::process::{self, Program};

const FORMAT: &str = "Format 12";
/// For a driver to say who it is. Python takes 100 ms.
const ABOUT_TIME_MAX: Duration = Duration::from_secs(30);
/// For what is around the measured time: the last transaction, cleaning up, a checkpoint.
const RUN_TIME_EXTRA_MAX: Duration = Duration::from_mins(2);

/// Who drives what.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct About {
    /// The library.
    pub driver: String,
    /// The library's.
    pub version: String,
    /// SQLite's version.
    pub sqlite: String,
    /// What compiles or interprets the driver, with its version.
    pub runtime: String,
    /// Those that it opens files with; as SQLite3 Multiple Ciphers calls them.
    pub ciphers: Vec<String>,
    /// As `PRAGMA compile_options` answers, sorted.
    pub compile_options: Vec<String>,
}

/// One that answers.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) about: About,
    pub(super) program: Program,
}

/// What a driver did.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Answer {
    #[serde(flatten)]
    pub(crate) about: About,
    /// What SQLite answers to each PRAGMA of the plan.
    pub(crate) settings: BTreeMap<String, Value>,
    pub(crate) steps: Vec<Step>,
}

/// A measured step.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) operations: u64,
    pub(crate) seconds: f64,
    /// Of the process, user and system.
    pub(crate) cpu_seconds: f64,
    /// The longest transaction.
    pub(crate) slowest_us: f64,
}

impl Driver {
    /// One that says who it is; what was installed may still not run on this machine.
    pub(crate) fn start(program: Program) -> anyhow::Result<Self> {
        let output = process::run(program.command().arg("about"), "", ABOUT_TIME_MAX)?;
        Ok(Self { about: rivals::parse(&output, FORMAT).context("`about`")?, program })
    }

    /// Carries out the plan, which works for so long, warm-up included.
    pub(crate) fn run(&self, plan: &impl Serialize, work: Duration) -> anyhow::Result<Answer> {
        let ask = || {
            let input = serde_json::to_string(plan)?;
            let time_max = work + RUN_TIME_EXTRA_MAX;
            let output = process::run(&mut self.program.command(), &input, time_max)?;
            let answer: Answer = rivals::parse(&output, FORMAT)?;
            ensure!(answer.about == self.about, "answers as {:?}", answer.about);
            Ok(answer)
        };
        ask().with_context(|| format!("the driver of {}", self.about))
    }
}

/// As a row of a table is called.
impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, {}", self.driver, self.version, self.runtime)
    }
}
