//! `warren bench pragma`: the published configurations, and what else people set.

use std::path::Path;

use anyhow::Context;
use engine::Profile;
use indicatif::ProgressBar;

use super::bed::{Bed, case};
use super::configuration::{Configuration, Configured};
use super::message::{Layout, Mailbox};
use super::{Budget, Method};
use crate::machine::Machine;
use crate::report::Report;
use crate::suite::{Group, run_group};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How.
    pub method: Method,
    /// Messages in the file, for each size.
    pub rows: Vec<i64>,
    /// Bytes of a body.
    pub body_bytes: usize,
}

const TITLE: &str = "Warren: SQLite's settings, measured";
const LEAD: &str = "Each configuration works on a file of its own. The baseline is the published \
    production set; \"production again\" is the same once more and shows what chance does. A \
    verdict needs rounds enough for all comparisons of its table together.";

/// The published configuration that the others are compared with.
const BASELINE: &str = "production";

/// Runs the plan; `bar` shows how far it is.
pub fn run(plan: &Plan, bar: &ProgressBar) -> anyhow::Result<Report> {
    let Method { folder, command, .. } = &plan.method;
    let scratch = tempfile::tempdir_in(folder).context("the folder to measure in")?;
    let configurations = configurations();
    let mut budget = Budget::new(&plan.method, plan.rows.len());
    let mut tables = Vec::new();
    for &rows in &plan.rows {
        let name = format!("{rows}");
        let folder = scratch.path().join(&name);
        std::fs::create_dir(&folder)?;
        let mailbox = Mailbox { layout: Layout::Last, rows, body_bytes: plan.body_bytes };
        let bed = Bed { name: &name, folder: &folder, mailbox: &mailbox, transactions: &[1, 100] };
        let group = Group { headings: bed.headings(), cases: cases(bed, &configurations) };
        tables.extend(run_group(group, &budget.next(), bar)?);
        std::fs::remove_dir_all(&folder)?;
    }
    bar.finish_and_clear();
    Ok(Report {
        benchmark: "pragma".into(),
        machine: Machine::here(folder),
        command: command.clone(),
        settings: Vec::new(),
        configurations: read_back(&configurations, scratch.path())?,
        tables,
        notes: Vec::new(),
        title: TITLE.into(),
        lead: LEAD.into(),
    })
}

fn cases<'a>(
    bed: Bed<'a>,
    configurations: &[Configuration],
) -> Vec<crate::suite::Case<'a, Vec<crate::measure::Sample>>> {
    let cases = configurations.iter().map(|one| case(bed, &one.name, &one.name, one, &None));
    cases.collect()
}

fn read_back(all: &[Configuration], folder: &Path) -> anyhow::Result<Vec<Configured>> {
    all.iter().map(|one| Configured::read_back(one, &None, folder)).collect()
}

/// The baseline first.
fn configurations() -> Vec<Configuration> {
    let published = Profile::ALL.iter().filter(|profile| profile.about.starts_with("published"));
    let mut all: Vec<Configuration> = published.map(Configuration::of).collect();
    all.sort_by_key(|one| one.name != BASELINE);
    let baseline = all[0].clone();
    let again = Configuration { name: format!("{BASELINE} again"), ..baseline.clone() };
    all.insert(1, again);
    all.push(baseline.with("synchronous-full", "fsync at each commit", "synchronous", "FULL"));
    all
}
