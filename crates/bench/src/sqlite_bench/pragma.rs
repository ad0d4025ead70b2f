//! `warren bench pragma`: measures the published configurations, other common settings, and the
//! best place for a body in its row.
//!
//! # Invariants
//! - Every configuration is the baseline with one change, or one of the published ones.
//! - A configuration of which no change has any effect is not measured, and the report notes it.

mod catalogue;
mod matrix;

use std::path::Path;

use anyhow::{Context, ensure};
use engine::ScratchFolder;
use indicatif::ProgressBar;
use serde::Serialize;
use utoipa::ToSchema;

use self::catalogue::configurations;
use super::configuration::{EffectiveConfiguration, EffectivePragma, PragmaConfiguration};
use super::message::{BodyLayout, CipherAndKey, MailboxTable, encryption};
use super::message_fixture::{
    MeasuredCase, MessageTableFixture, SETUP, TRANSACTIONS, measure, step_names,
};
use super::{MeasureOptions, MeasureTimeBudget};
use crate::disk;
use crate::machine::MachineInfo;
use crate::matrix::ReportMatrix;
use crate::report::{BenchReport, REPORT_FORMAT};
use crate::report_setting::ReportSetting;
use crate::suite::{ResultTable, StopRule};

/// The options of the benchmark.
#[derive(Clone, Debug)]
pub struct PragmaBenchPlan {
    /// The measuring options.
    pub method: MeasureOptions,
    /// Numbers of messages in the file; each has its tables.
    pub rows: Vec<i64>,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// The cipher, by the name that `PRAGMA cipher` accepts; `None` for no encryption.
    pub cipher: Option<String>,
    /// Names of [`choices`]; empty for all.
    pub only: Vec<String>,
}

/// The kind of thing that a name in `--only` selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BenchChoiceKind {
    /// A group of tables.
    Part,
    /// A row in the tables of `settings`; if no part is named, `settings` is the only part.
    Configuration,
    /// An operation, which has one table for each size.
    Operation,
}

/// A choice that `--only` accepts.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BenchChoice {
    /// The kind of the choice.
    pub kind: BenchChoiceKind,
    /// The name that selects the choice.
    pub name: String,
    /// The description of the choice.
    pub description: String,
}

const TITLE: &str = "Warren: the effect of SQLite's settings";
const LEAD: &str = "Each configuration uses a separate file. The baseline is the published \
    production set, and most others change one setting of it; \"production again\" repeats the \
    baseline and shows the effect of chance. A verdict needs enough rounds for all comparisons of \
    its table together. Every setting was read back from the measured connection.";

/// The least number of rounds that gives a verdict when all configurations are compared, by time
/// and by processor time.
pub const ROUNDS_MIN: &str = "11";

const SETTINGS: &str = "settings";
const LAYOUTS: &str = "layouts";
/// The steps that depend on the place of the body.
const LAYOUT_STEPS: [&str; 4] = ["list", "read", "update", "mixed"];
/// Bytes of a body: one that fits in a page of 4,096, and one that takes 15 pages of overflow.
const LAYOUT_BODIES: [usize; 2] = [3_500, 60_000];

/// Returns all names that `--only` accepts.
pub fn choices() -> Vec<BenchChoice> {
    let choice = |kind, name: &str, description: &str| BenchChoice {
        kind,
        name: name.to_owned(),
        description: description.to_owned(),
    };
    let mut all = vec![
        choice(BenchChoiceKind::Part, SETTINGS, "all configurations, for each size"),
        choice(BenchChoiceKind::Part, LAYOUTS, "the body last, first, or in a separate table"),
    ];
    let rows = configurations().into_iter();
    all.extend(rows.map(|one| choice(BenchChoiceKind::Configuration, &one.name, &one.description)));
    let steps = step_names(TRANSACTIONS).into_iter();
    all.extend(steps.map(|(name, text)| choice(BenchChoiceKind::Operation, &name, &text)));
    all.push(choice(
        BenchChoiceKind::Operation,
        SETUP,
        "new files: opened, configured, given their tables, closed",
    ));
    all
}

/// The selection of `--only`.
struct SelectedConfigurations {
    parts: Vec<String>,
    configurations: Vec<String>,
    steps: Vec<String>,
}

impl SelectedConfigurations {
    fn of(only: &[String]) -> anyhow::Result<Self> {
        let choices = choices();
        let mut picked = Self { parts: vec![], configurations: vec![], steps: vec![] };
        for name in only {
            let found = choices.iter().find(|choice| choice.name == *name);
            let found = found.with_context(|| format!("unknown name: {name} (see --list)"))?;
            let names = match found.kind {
                BenchChoiceKind::Part => &mut picked.parts,
                BenchChoiceKind::Configuration => &mut picked.configurations,
                BenchChoiceKind::Operation => &mut picked.steps,
            };
            names.push(name.clone());
        }
        if picked.parts.is_empty() && !picked.configurations.is_empty() {
            picked.parts.push(SETTINGS.to_owned());
        }
        Ok(picked)
    }

    fn has(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|name| name == part)
    }

    /// Returns the selected configurations, always with the baseline.
    fn configurations(&self) -> Vec<PragmaConfiguration> {
        let mut all = configurations();
        let mut is_baseline = true;
        all.retain(|one| {
            std::mem::take(&mut is_baseline)
                || self.configurations.is_empty()
                || self.configurations.contains(&one.name)
        });
        all
    }

    fn layout_steps(&self) -> Vec<String> {
        let steps = LAYOUT_STEPS.map(str::to_owned).into_iter();
        steps.filter(|step| self.steps.is_empty() || self.steps.contains(step)).collect()
    }
}

/// Runs the plan; `bar` shows the progress.
pub fn run(plan: &PragmaBenchPlan, bar: &ProgressBar) -> anyhow::Result<BenchReport> {
    let MeasureOptions { folder, command, .. } = &plan.method;
    let picked = SelectedConfigurations::of(&plan.only)?;
    let scratch = ScratchFolder::new(folder, "bench").context("cannot use the work directory")?;
    let encryption = encryption(plan.cipher.as_deref());
    let all = picked.configurations();
    let order = matrix::order(&all);
    let (configurations, configured, notes) = effective(all, &encryption, scratch.path())?;
    let layout_steps = picked.layout_steps();
    let has_layouts = picked.has(LAYOUTS) && !layout_steps.is_empty();
    let sizes: &[i64] = if picked.has(SETTINGS) { &plan.rows } else { &[] };
    ensure!(!sizes.is_empty() || has_layouts, "nothing to measure (see --list)");
    check_disk(plan, sizes, configurations.len())?;
    let parts = share(&configurations) as usize * sizes.len();
    let layouts = if has_layouts { layouts(plan) } else { vec![] };
    let mut work = PragmaBenchRun {
        scratch: scratch.path(),
        encryption,
        budget: MeasureTimeBudget::new(&plan.method, parts + layouts.len()),
        bar,
        matrices: Vec::new(),
        tables: Vec::new(),
    };
    for &rows in sizes {
        let mailbox = MailboxTable { layout: BodyLayout::Last, rows, body_bytes: plan.body_bytes };
        work.settings(&configurations, &mailbox, &picked.steps, &order)?;
    }
    for mailbox in &layouts {
        work.layouts(&configurations[0], mailbox, &layout_steps)?;
    }
    bar.finish_and_clear();
    let mut settings = plan.method.settings();
    let cipher = plan.cipher.as_deref().unwrap_or("none");
    settings.insert(0, ReportSetting::new("cipher", cipher));
    Ok(BenchReport {
        format: REPORT_FORMAT,
        benchmark: "pragma".into(),
        machine: MachineInfo::here(folder),
        command: command.clone(),
        settings,
        configurations: configured,
        matrices: work.matrices,
        tables: work.tables,
        goals: Vec::new(),
        notes,
        title: TITLE.into(),
        lead: LEAD.into(),
    })
}

/// The configurations that have an effect, the same as read back, and notes on faults and on the
/// others.
type EffectiveConfigurations = (Vec<PragmaConfiguration>, Vec<EffectiveConfiguration>, Vec<String>);

fn effective(
    all: Vec<PragmaConfiguration>,
    encryption: &CipherAndKey,
    folder: &Path,
) -> anyhow::Result<EffectiveConfigurations> {
    let (mut kept, mut kept_as, mut notes) =
        (Vec::new(), Vec::<EffectiveConfiguration>::new(), Vec::new());
    for one in all {
        let configured = EffectiveConfiguration::read_back(&one, encryption, folder)?;
        notes.extend(configured.faults());
        let is_idle = kept_as.first().is_some_and(|baseline| is_idle(&configured, baseline));
        if is_idle {
            notes.push(format!("{} is not measured: it has no effect here", one.name));
        } else {
            kept.push(one);
            kept_as.push(configured);
        }
    }
    Ok((kept, kept_as, notes))
}

/// Returns whether none of the configuration's changes has an effect.
fn is_idle(one: &EffectiveConfiguration, baseline: &EffectiveConfiguration) -> bool {
    let is_changed = |setting: &&EffectivePragma| {
        let same = baseline.settings.iter().find(|of| of.name == setting.name);
        same.is_none_or(|of| of.requested != setting.requested)
    };
    let mut changed = one.settings.iter().filter(is_changed).peekable();
    changed.peek().is_some() && changed.all(|setting| setting.fault.is_some())
}

/// Returns a group's share of the time, which depends on its number of files: a layout's three
/// count as one.
fn share(configurations: &[PragmaConfiguration]) -> u32 {
    u32::try_from(configurations.len().div_ceil(3)).unwrap_or(u32::MAX)
}

fn layouts(plan: &PragmaBenchPlan) -> Vec<MailboxTable> {
    let rows = plan.rows.iter().copied().max().unwrap_or(1);
    let bytes = i128::from(rows) * plan.body_bytes as i128;
    let mailbox = LAYOUT_BODIES.map(|body_bytes| {
        let rows = i64::try_from(bytes / body_bytes as i128).unwrap_or(i64::MAX);
        MailboxTable { layout: BodyLayout::Last, rows: rows.max(10), body_bytes }
    });
    mailbox.to_vec()
}

fn check_disk(plan: &PragmaBenchPlan, sizes: &[i64], configurations: usize) -> anyhow::Result<()> {
    let largest = plan.rows.iter().copied().max().unwrap_or(1);
    let mailbox =
        MailboxTable { layout: BodyLayout::Last, rows: largest, body_bytes: plan.body_bytes };
    let files = if sizes.is_empty() { 3 } else { configurations.max(3) };
    // Each round also needs a copy.
    let needed = mailbox.disk_bytes().saturating_mul(files as u64 + 1);
    disk::check(&plan.method.folder, needed, &format!("{files} files of {largest} messages"))
}

/// The state of a running benchmark.
struct PragmaBenchRun<'a> {
    scratch: &'a Path,
    encryption: CipherAndKey,
    budget: MeasureTimeBudget<'a>,
    bar: &'a ProgressBar,
    matrices: Vec<ReportMatrix>,
    tables: Vec<ResultTable>,
}

impl PragmaBenchRun<'_> {
    fn settings(
        &mut self,
        configurations: &[PragmaConfiguration],
        mailbox: &MailboxTable,
        only: &[String],
        order: &[String],
    ) -> anyhow::Result<()> {
        let all = configurations.iter();
        let all = all.map(|one| (one.name.as_str(), one, mailbox.clone())).collect();
        let stop_rule = self.budget.share(share(configurations));
        let name = mailbox.rows.to_string();
        let files = self.group(&name, all, (TRANSACTIONS, only, true), &stop_rule)?;
        self.matrices.extend(matrix::for_configurations(mailbox, order, &files, &self.tables));
        Ok(())
    }

    fn layouts(
        &mut self,
        configuration: &PragmaConfiguration,
        mailbox: &MailboxTable,
        only: &[String],
    ) -> anyhow::Result<()> {
        let all = [
            (BodyLayout::Last, "body in the last column"),
            (BodyLayout::First, "body in the first column"),
            (BodyLayout::Apart, "body in a table of its own"),
        ];
        let all = all.map(|(layout, name)| {
            (name, configuration, MailboxTable { layout, ..mailbox.clone() })
        });
        let stop_rule = self.budget.next();
        let name = format!("layout-{}", mailbox.body_bytes);
        self.group(&name, all.into(), (&[1], only, false), &stop_rule)?;
        Ok(())
    }

    /// Measures on files in a separate folder, which is then removed; returns the sizes of the
    /// files.
    fn group(
        &mut self,
        name: &str,
        rows: Vec<(&str, &PragmaConfiguration, MailboxTable)>,
        (transactions, only, sets_up): (&[usize], &[String], bool),
        stop_rule: &StopRule,
    ) -> anyhow::Result<Vec<(String, u64)>> {
        let folder = self.scratch.join(name);
        std::fs::create_dir(&folder)?;
        let rows = rows.into_iter().map(|(name, configuration, mailbox)| {
            let encryption = self.encryption.clone();
            MeasuredCase { name, configuration, mailbox, encryption }
        });
        let rows: Vec<MeasuredCase<'_>> = rows.collect();
        let fixture = MessageTableFixture {
            name,
            folder: &folder,
            mailbox: &rows[0].mailbox,
            transactions,
            only,
            sets_up,
            bar: self.bar,
        };
        self.tables.extend(measure(fixture, &rows, stop_rule)?);
        let files = rows.iter().map(|row| {
            let bytes = std::fs::metadata(folder.join(row.name))?.len();
            anyhow::Ok((row.name.to_owned(), bytes))
        });
        let files = files.collect::<anyhow::Result<_>>()?;
        std::fs::remove_dir_all(&folder)?;
        Ok(files)
    }
}
