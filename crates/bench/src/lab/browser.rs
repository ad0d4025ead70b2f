//! `warren bench browser`: one file through Warren's replica in Chromium, through
//! `@sqlite.org/sqlite-wasm` there, and through SQLite called from Rust.
//!
//! # Invariants
//! - Every row of a table works with the same settings on a copy of the same file, tracked or not;
//!   an answer counts only if what SQLite said of each PRAGMA there is what it says of it here. A
//!   row that is called "as it comes" is the exception.
//! - What is measured is measured in the browser, whose start is not in it.
//!
//! # Not here
//! - Chromium, and how each library is called → `bench/rivals/chromium`.

mod items;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use engine::ScratchFolder;
use indicatif::ProgressBar;

use self::items::{Heard, Items};
use super::bed::{Fresh, sample};
use super::carry_out::carry_out;
use super::configuration::{Configuration, Configured};
use super::driver::{Driver, Drivers};
use super::plan::{Answer, Plan as PlanOfFile};
use super::{Budget, Method};
use crate::machine::Machine;
use crate::measure::Sample;
use crate::report::Report;
use crate::rivals::process::Program;
use crate::rivals::setup::{Kind, Missing};
use crate::rivals::{self, Absent, Found, Wanted};
use crate::suite::{Case, Group, run_group};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How.
    pub method: Method,
    /// Items in the file.
    pub rows: i64,
    /// Which tables; empty for all.
    pub only: Vec<Part>,
    /// The folder with the drivers.
    pub rivals: PathBuf,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// In a worker, with a WAL that a commit does not flush.
    Wal,
    /// In a worker, with a journal that each commit flushes.
    Rollback,
    /// From a tab, through its worker.
    Tab,
}

const TITLE: &str = "Warren: items in a browser";
const LEAD: &str = "The same statements with the same settings on the same file: through \
    @sqlite.org/sqlite-wasm in its pool of OPFS files, which is the baseline, through Warren's \
    replica in the same Chromium, and through SQLite called from Rust, which is what a native \
    replica's program does. \"Tracked\" is with the triggers that note each change for the sync. \
    Tables called \"tab\" are what a page waits for: its question goes to a worker, and rows come \
    back as objects. Each round of each row starts a browser of its own, which is not measured.";
const SETUP: &str = "warren bench browser --setup";
/// In `bench/rivals`.
const RIVAL: &str = "chromium";
/// What `cargo xtask web` builds, from the rivals' folder.
const CLIENT: &str = "../../web/client/dist";
const BASELINE: &str = "sqlite-wasm";
const LIBRARIES: [&str; 4] = [BASELINE, "warren", "sqlite-wasm-tab", "warren-tab"];
/// In both builds for browsers the default.
const CACHE_KIB_NEGATIVE: &str = "-16384";
const PAGE_BYTES: &str = "8192";

/// Installs what drives a browser, and says which libraries answer.
pub fn setup(rivals: &Path, bar: &ProgressBar) -> Drivers {
    let found = find(rivals, Missing::Build, bar);
    bar.finish_and_clear();
    Drivers::of(found, None)
}

/// One driver for each library, in the order of their list, as far as they answer.
fn find(rivals: &Path, missing: Missing, bar: &ProgressBar) -> Found<Driver> {
    let wanted = Wanted { kind: Kind::Browser, names: Some(&[RIVAL]), missing };
    let programs = rivals::find(wanted, rivals, &rivals::target(rivals), bar, Ok);
    let mut found =
        Found { present: Vec::new(), absent: programs.absent, unbuilt: programs.unbuilt };
    let of = |program: &Program, library: &str| {
        let mut program = program.clone();
        program.arguments.extend([library.into(), std::path::absolute(rivals.join(CLIENT))?]);
        Driver::start(program)
    };
    for program in programs.present {
        for library in LIBRARIES {
            bar.set_message(library);
            match of(&program, library) {
                Ok(driver) => found.present.push(driver),
                Err(error) => {
                    let (name, reason) = (library.to_owned(), format!("{error:#}"));
                    found.absent.push(Absent { name, reason });
                }
            }
        }
    }
    found
}

/// Runs the plan; `bar` shows how far it is.
pub fn run(plan: &Plan, bar: &ProgressBar) -> anyhow::Result<Report> {
    let Method { folder, command, .. } = &plan.method;
    let found = find(&plan.rivals, Missing::Absent(SETUP), bar);
    let absent: Vec<String> = found.absent.iter().map(Absent::note).collect();
    let [sqlite, warren, sqlite_tab, warren_tab] = &found.present[..] else {
        bail!("not all that is to be compared is here: {}", absent.join("; "));
    };
    let scratch = ScratchFolder::new(folder, "bench").context("the folder to measure in")?;
    bar.set_message("making files");
    let bed = Bed::new(scratch.path(), Items { rows: plan.rows })?;
    let parts: Vec<Part> = [Part::Wal, Part::Rollback, Part::Tab]
        .into_iter()
        .filter(|part| plan.only.is_empty() || plan.only.contains(part))
        .collect();
    let mut budget = Budget::new(&plan.method, parts.len());
    let (mut tables, mut configurations) = (Vec::new(), Vec::new());
    for part in parts {
        let way = Way::new(part, &bed)?;
        let cases = match part {
            Part::Wal => way.in_worker(sqlite, warren),
            Part::Rollback => {
                let mut cases = way.in_worker(sqlite, warren);
                let run = |plan: &_| warren.run(plan);
                cases.push(way.case("Warren, tracked, as it comes", File::Tracked, false, run));
                cases
            }
            Part::Tab => way.in_tab(sqlite_tab, warren_tab),
        };
        let group = Group { headings: bed.items.headings(way.name(), way.heard()), cases };
        tables.extend(run_group(group, &budget.next(), bar)?);
        configurations.push(way.configured);
    }
    bar.finish_and_clear();
    Ok(Report {
        benchmark: "browser".into(),
        machine: Machine::here(folder),
        command: command.clone(),
        settings: plan.method.settings(),
        configurations,
        tables,
        matrices: Vec::new(),
        aims: Vec::new(),
        notes: found.present.iter().map(|driver| note(&driver.about)).collect(),
        title: TITLE.into(),
        lead: LEAD.into(),
    })
}

fn note(about: &super::plan::About) -> String {
    format!("{about}: SQLite {}, compiled with {}", about.sqlite, about.compile_options.join(" "))
}

/// The file that is copied for each round.
#[derive(Clone, Copy)]
enum File {
    Plain,
    Tracked,
}

/// The files, in a folder.
struct Bed<'a> {
    folder: &'a Path,
    items: Items,
}

impl<'a> Bed<'a> {
    fn new(folder: &'a Path, items: Items) -> anyhow::Result<Self> {
        let bed = Self { folder, items };
        bed.items.make(&bed.path(File::Plain))?;
        std::fs::copy(bed.path(File::Plain), bed.path(File::Tracked))?;
        items::track(&bed.path(File::Tracked))?;
        Ok(bed)
    }

    fn path(&self, file: File) -> PathBuf {
        self.folder.join(match file {
            File::Plain => "items.db",
            File::Tracked => "tracked.db",
        })
    }
}

/// The settings of a part, and what SQLite says of them here.
struct Way<'a> {
    part: Part,
    bed: &'a Bed<'a>,
    configuration: Configuration,
    configured: Configured,
}

impl<'a> Way<'a> {
    fn new(part: Part, bed: &'a Bed<'a>) -> anyhow::Result<Self> {
        let (about, journal_mode, synchronous) = match part {
            Part::Wal => ("Warren's defaults: a WAL that no commit flushes", "WAL", "NORMAL"),
            Part::Rollback => ("sqlite-wasm's defaults: each commit flushes", "DELETE", "FULL"),
            Part::Tab => ("as wal", "WAL", "NORMAL"),
        };
        let settings = [
            ("page_size", PAGE_BYTES),
            ("locking_mode", "EXCLUSIVE"),
            ("journal_mode", journal_mode),
            ("synchronous", synchronous),
            ("cache_size", CACHE_KIB_NEGATIVE),
            ("foreign_keys", "OFF"),
            ("secure_delete", "OFF"),
            ("wal_autocheckpoint", "1000"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let configuration = Configuration {
            name: name_of(part).to_owned(),
            about: about.to_owned(),
            settings: settings.into(),
        };
        let configured = Configured::read_back(&configuration, &None, bed.folder)?;
        Ok(Self { part, bed, configuration, configured })
    }

    fn name(&self) -> &'static str {
        name_of(self.part)
    }

    fn heard(&self) -> Heard {
        if self.part == Part::Tab { Heard::InTab } else { Heard::Here }
    }

    /// The baseline first.
    fn in_worker<'b>(
        &'b self,
        sqlite: &'b Driver,
        warren: &'b Driver,
    ) -> Vec<Case<'b, Vec<Sample>>> {
        vec![
            self.case(BASELINE, File::Plain, true, |plan| sqlite.run(plan)),
            self.case("Warren", File::Plain, true, |plan| warren.run(plan)),
            self.case("Warren, tracked", File::Tracked, true, |plan| warren.run(plan)),
            self.case("native", File::Plain, true, carry_out),
            self.case("native, tracked", File::Tracked, true, carry_out),
        ]
    }

    fn in_tab<'b>(&'b self, sqlite: &'b Driver, warren: &'b Driver) -> Vec<Case<'b, Vec<Sample>>> {
        vec![
            self.case("sqlite-wasm in a worker", File::Plain, true, |plan| sqlite.run(plan)),
            self.case("@warren/client", File::Plain, true, |plan| warren.run(plan)),
            self.case("@warren/client, tracked", File::Tracked, true, |plan| warren.run(plan)),
        ]
    }

    /// On a copy of the file for each round, with the settings or without.
    fn case<'b>(
        &'b self,
        name: &str,
        file: File,
        is_set: bool,
        carry_out: impl Fn(&PlanOfFile) -> anyhow::Result<Answer> + 'b,
    ) -> Case<'b, Vec<Sample>> {
        let settings: &[_] = if is_set { &self.configuration.settings } else { &[] };
        Case::new(name, move |duration| {
            let copy = Fresh::copy(&self.bed.path(file))?;
            let steps = items::steps(self.heard(), duration.as_secs_f64());
            let answer = carry_out(&self.bed.items.plan(&copy.0, settings, steps))?;
            if is_set {
                self.configured.check(&answer.settings)?;
            }
            Ok(answer.steps.iter().map(sample).collect())
        })
    }
}

fn name_of(part: Part) -> &'static str {
    match part {
        Part::Wal => "wal",
        Part::Rollback => "rollback",
        Part::Tab => "tab",
    }
}
