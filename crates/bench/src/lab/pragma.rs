//! `warren bench pragma`: the published configurations, what else people set, and where a body
//! should stand in its row.
//!
//! # Invariants
//! - Every configuration is the baseline with one change, or one of the published ones.
//! - A configuration whose changes all turn out to be without effect is not measured: the report
//!   says so.

mod catalogue;
mod matrix;

use std::path::Path;

use anyhow::{Context, ensure};
use engine::ScratchFolder;
use indicatif::ProgressBar;

use self::catalogue::configurations;
use super::bed::{Bed, Measured, SETUP, TRANSACTIONS, measure, step_names};
use super::configuration::{Configuration, Configured, Setting};
use super::message::{CipherAndKey, Layout, Mailbox, encryption};
use super::{Budget, Method};
use crate::disk;
use crate::machine::Machine;
use crate::matrix::Matrix;
use crate::report::Report;
use crate::suite::{Effort, Table};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How.
    pub method: Method,
    /// Messages in the file, for each size.
    pub rows: Vec<i64>,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// By the name that `PRAGMA cipher` takes; `None` for no encryption.
    pub cipher: Option<String>,
    /// Names of [`choices`]; empty for all.
    pub only: Vec<String>,
}

/// What a name in [`Plan::only`] picks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A group of tables.
    Part,
    /// A row of the tables of `settings`; they are then the only part.
    Configuration,
    /// One table of each size.
    Operation,
}

/// Something to pick.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Choice {
    /// What it is.
    pub kind: Kind,
    /// What picks it.
    pub name: String,
    /// What it is for.
    pub about: String,
}

const TITLE: &str = "Warren: SQLite's settings, measured";
const LEAD: &str = "Each configuration works on a file of its own. The baseline is the published \
    production set, and most others change one thing in it; \"production again\" is the same once \
    more and shows what chance does. A verdict needs rounds enough for all comparisons of its table \
    together. Every setting was read back from the connection that was measured.";

/// Fewer rounds give no verdict where all configurations are compared, by time and by processor
/// time.
pub const ROUNDS_MIN: &str = "11";

const SETTINGS: &str = "settings";
const LAYOUTS: &str = "layouts";
/// What depends on where the body stands.
const LAYOUT_STEPS: [&str; 4] = ["list", "read", "update", "mixed"];
/// Bytes of a body: one that fits in a page of 4,096, and one that takes 15 pages of overflow.
const LAYOUT_BODIES: [usize; 2] = [3_500, 60_000];

/// All that can be picked.
pub fn choices() -> Vec<Choice> {
    let choice = |kind, name: &str, about: &str| Choice {
        kind,
        name: name.to_owned(),
        about: about.to_owned(),
    };
    let mut all = vec![
        choice(Kind::Part, SETTINGS, "every configuration, for each size"),
        choice(Kind::Part, LAYOUTS, "the body last, first, or in a table of its own"),
    ];
    let rows = configurations().into_iter();
    all.extend(rows.map(|one| choice(Kind::Configuration, &one.name, &one.about)));
    let steps = step_names(TRANSACTIONS).into_iter();
    all.extend(steps.map(|(name, about)| choice(Kind::Operation, &name, &about)));
    all.push(choice(Kind::Operation, SETUP, "new files: opened, set, given their tables, closed"));
    all
}

/// What was picked.
struct Picked {
    parts: Vec<String>,
    configurations: Vec<String>,
    steps: Vec<String>,
}

impl Picked {
    fn of(only: &[String]) -> anyhow::Result<Self> {
        let choices = choices();
        let mut picked = Self { parts: vec![], configurations: vec![], steps: vec![] };
        for name in only {
            let found = choices.iter().find(|choice| choice.name == *name);
            let found = found.with_context(|| format!("nothing is called {name}: see --list"))?;
            let names = match found.kind {
                Kind::Part => &mut picked.parts,
                Kind::Configuration => &mut picked.configurations,
                Kind::Operation => &mut picked.steps,
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

    /// The baseline always.
    fn configurations(&self) -> Vec<Configuration> {
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

/// Runs the plan; `bar` shows how far it is.
pub fn run(plan: &Plan, bar: &ProgressBar) -> anyhow::Result<Report> {
    let Method { folder, command, .. } = &plan.method;
    let picked = Picked::of(&plan.only)?;
    let scratch = ScratchFolder::new(folder, "bench").context("the folder to measure in")?;
    let encryption = encryption(plan.cipher.as_deref());
    let all = picked.configurations();
    let order = matrix::order(&all);
    let (configurations, configured, notes) = effective(all, &encryption, scratch.path())?;
    let layout_steps = picked.layout_steps();
    let has_layouts = picked.has(LAYOUTS) && !layout_steps.is_empty();
    let sizes: &[i64] = if picked.has(SETTINGS) { &plan.rows } else { &[] };
    ensure!(!sizes.is_empty() || has_layouts, "nothing to measure: see --list");
    check_disk(plan, sizes, configurations.len())?;
    let parts = share(&configurations) as usize * sizes.len();
    let layouts = if has_layouts { layouts(plan) } else { vec![] };
    let mut work = Work {
        scratch: scratch.path(),
        encryption,
        budget: Budget::new(&plan.method, parts + layouts.len()),
        bar,
        matrices: Vec::new(),
        tables: Vec::new(),
    };
    for &rows in sizes {
        let mailbox = Mailbox { layout: Layout::Last, rows, body_bytes: plan.body_bytes };
        work.settings(&configurations, &mailbox, &picked.steps, &order)?;
    }
    for mailbox in &layouts {
        work.layouts(&configurations[0], mailbox, &layout_steps)?;
    }
    bar.finish_and_clear();
    let mut settings = plan.method.settings();
    settings.insert(0, ("cipher".to_owned(), plan.cipher.clone().unwrap_or("none".to_owned())));
    Ok(Report {
        benchmark: "pragma".into(),
        machine: Machine::here(folder),
        command: command.clone(),
        settings,
        configurations: configured,
        matrices: work.matrices,
        tables: work.tables,
        aims: Vec::new(),
        notes,
        title: TITLE.into(),
        lead: LEAD.into(),
    })
}

/// Those that change something, what they come to, and what there is to say of the others.
type Effective = (Vec<Configuration>, Vec<Configured>, Vec<String>);

fn effective(
    all: Vec<Configuration>,
    encryption: &CipherAndKey,
    folder: &Path,
) -> anyhow::Result<Effective> {
    let (mut kept, mut kept_as, mut notes) = (Vec::new(), Vec::<Configured>::new(), Vec::new());
    for one in all {
        let configured = Configured::read_back(&one, encryption, folder)?;
        notes.extend(configured.faults());
        let is_idle = kept_as.first().is_some_and(|baseline| is_idle(&configured, baseline));
        if is_idle {
            notes.push(format!("{} is not measured: it changes nothing here", one.name));
        } else {
            kept.push(one);
            kept_as.push(configured);
        }
    }
    Ok((kept, kept_as, notes))
}

/// Whether all that it changes is without effect.
fn is_idle(one: &Configured, baseline: &Configured) -> bool {
    let is_changed = |setting: &&Setting| {
        let same = baseline.settings.iter().find(|of| of.name == setting.name);
        same.is_none_or(|of| of.asked != setting.asked)
    };
    let mut changed = one.settings.iter().filter(is_changed).peekable();
    changed.peek().is_some() && changed.all(|setting| setting.fault.is_some())
}

/// Time goes by the number of files: a layout's three count as one.
fn share(configurations: &[Configuration]) -> u32 {
    u32::try_from(configurations.len().div_ceil(3)).unwrap_or(u32::MAX)
}

fn layouts(plan: &Plan) -> Vec<Mailbox> {
    let rows = plan.rows.iter().copied().max().unwrap_or(1);
    let bytes = i128::from(rows) * plan.body_bytes as i128;
    let mailbox = LAYOUT_BODIES.map(|body_bytes| {
        let rows = i64::try_from(bytes / body_bytes as i128).unwrap_or(i64::MAX);
        Mailbox { layout: Layout::Last, rows: rows.max(10), body_bytes }
    });
    mailbox.to_vec()
}

fn check_disk(plan: &Plan, sizes: &[i64], configurations: usize) -> anyhow::Result<()> {
    let largest = plan.rows.iter().copied().max().unwrap_or(1);
    let mailbox = Mailbox { layout: Layout::Last, rows: largest, body_bytes: plan.body_bytes };
    let files = if sizes.is_empty() { 3 } else { configurations.max(3) };
    // And the copy that a round has.
    let needed = mailbox.disk_bytes().saturating_mul(files as u64 + 1);
    disk::check(&plan.method.folder, needed, &format!("{files} files of {largest} messages"))
}

/// What is under way.
struct Work<'a> {
    scratch: &'a Path,
    encryption: CipherAndKey,
    budget: Budget<'a>,
    bar: &'a ProgressBar,
    matrices: Vec<Matrix>,
    tables: Vec<Table>,
}

impl Work<'_> {
    fn settings(
        &mut self,
        configurations: &[Configuration],
        mailbox: &Mailbox,
        only: &[String],
        order: &[String],
    ) -> anyhow::Result<()> {
        let all = configurations.iter();
        let all = all.map(|one| (one.name.as_str(), one, mailbox.clone())).collect();
        let effort = self.budget.share(share(configurations));
        let name = mailbox.rows.to_string();
        let files = self.group(&name, all, (TRANSACTIONS, only, true), &effort)?;
        self.matrices.extend(matrix::of(mailbox, order, &files, &self.tables));
        Ok(())
    }

    fn layouts(
        &mut self,
        configuration: &Configuration,
        mailbox: &Mailbox,
        only: &[String],
    ) -> anyhow::Result<()> {
        let all = [
            (Layout::Last, "body in the last column"),
            (Layout::First, "body in the first column"),
            (Layout::Apart, "body in a table of its own"),
        ];
        let all =
            all.map(|(layout, name)| (name, configuration, Mailbox { layout, ..mailbox.clone() }));
        let effort = self.budget.next();
        let name = format!("layout-{}", mailbox.body_bytes);
        self.group(&name, all.into(), (&[1], only, false), &effort)?;
        Ok(())
    }

    /// Measures on files in a folder of their own, which is then removed; says how large they were.
    fn group(
        &mut self,
        name: &str,
        rows: Vec<(&str, &Configuration, Mailbox)>,
        (transactions, only, sets_up): (&[usize], &[String], bool),
        effort: &Effort,
    ) -> anyhow::Result<Vec<(String, u64)>> {
        let folder = self.scratch.join(name);
        std::fs::create_dir(&folder)?;
        let rows = rows.into_iter().map(|(name, configuration, mailbox)| {
            let encryption = self.encryption.clone();
            Measured { name, configuration, mailbox, encryption }
        });
        let rows: Vec<Measured<'_>> = rows.collect();
        let bed = Bed {
            name,
            folder: &folder,
            mailbox: &rows[0].mailbox,
            transactions,
            only,
            sets_up,
            bar: self.bar,
        };
        self.tables.extend(measure(bed, &rows, effort)?);
        let files = rows.iter().map(|row| {
            let bytes = std::fs::metadata(folder.join(row.name))?.len();
            anyhow::Ok((row.name.to_owned(), bytes))
        });
        let files = files.collect::<anyhow::Result<_>>()?;
        std::fs::remove_dir_all(&folder)?;
        Ok(files)
    }
}
