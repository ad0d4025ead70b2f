//! `warren tune`: finds the settings that help this file, or this kind of load, on this machine
//! and this disk.
//!
//! A load is repeated on a copy of the file under one setting after the other, in rounds of random
//! order, like in the lab (`sqlite_bench.rs`). Settings that gain beyond the noise are combined
//! (`search.rs`).
//!
//! # Not here
//! - The content of a report → `tune/result.rs`; settings as code → `tune/emit.rs`.

mod candidate;
pub mod emit;
mod output;
mod plan;
mod result;
mod search;
mod settings;
mod shape;
mod target;
mod tune_load;

use engine::clock::now;
use indicatif::ProgressBar;

pub use self::output::{CheckSnippet, SettingsSnippet, TuneOutput};
pub use self::plan::TunePlan;
pub use self::result::{
    PhaseComparison, RecommendationReason, SettingRecommendation, TrialOutcome, TriedSetting,
    TuneReport, TunedFile,
};
pub use self::settings::{PowerLossSafety, PragmaValue, parse_current_pragma};
pub use self::target::TuneSource;
use self::target::TuneTarget;
pub use self::tune_load::TuneWorkload;
use crate::machine::MachineInfo;

/// Runs the plan; `bar` shows the progress.
pub fn run(plan: &TunePlan, bar: &ProgressBar) -> anyhow::Result<TuneReport> {
    bar.set_message("preparing the file");
    let source = plan.source.as_ref();
    let subject = TuneTarget::prepare(source, plan.workload, &plan.folder, &plan.today)?;
    let found = search::search(&subject, plan.allow_unsafe, now() + plan.time, bar)?;
    bar.finish_and_clear();
    TuneReport::of(plan, &subject, &found, MachineInfo::here(&plan.folder))
}
