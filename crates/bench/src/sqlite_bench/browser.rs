//! `warren bench browser`: measures one file through Warren's replica in Chromium, through
//! `@sqlite.org/sqlite-wasm` there, and through SQLite called from Rust.
//!
//! # Invariants
//! - Every row of a table works with the same settings on a copy of the same file, tracked or not.
//!   An answer counts only if each PRAGMA returns the same value there as here. Rows that are
//!   called "as it comes" are the exception.
//! - Libraries for browsers are measured in the browser, whose start is not included.
//!
//! # Not here
//! - Chromium, and how each library is called → `bench/competitors/chromium`.

mod items;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use engine::ScratchFolder;
use indicatif::ProgressBar;

use self::items::{ItemsTable, PAGE_BYTES, RowsDestination};
use super::configuration::{EffectiveConfiguration, PragmaConfiguration};
use super::driver::{LabDriver, LabDrivers};
use super::execute_plan::execute_plan;
use super::message_fixture::{RoundCopy, sample};
use super::plan::{LabPlan as PlanOfFile, LabResult};
use super::{MeasureOptions, MeasureTimeBudget};
use crate::competitors::process::DriverProgram;
use crate::competitors::setup::CompetitorKind;
use crate::competitors::setup::steps::MissingPolicy;
use crate::competitors::{self, CompetitorFilter, CompetitorSearch, UnavailableCompetitor};
use crate::machine::MachineInfo;
use crate::measure::RoundSample;
use crate::report::{BenchReport, REPORT_FORMAT};
use crate::suite::{BenchCase, CaseGroup, run_group};

/// The options of the benchmark.
#[derive(Clone, Debug)]
pub struct BrowserBenchPlan {
    /// The measuring options.
    pub method: MeasureOptions,
    /// The number of items in the file.
    pub rows: i64,
    /// The parts to measure; empty for all.
    pub only: Vec<BrowserBenchPart>,
    /// The folder with the drivers.
    pub competitors: PathBuf,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrowserBenchPart {
    /// A worker, with a WAL that a commit does not flush.
    Wal,
    /// A worker, with a journal that each commit flushes.
    Rollback,
    /// A tab that calls its worker.
    Tab,
}

const TITLE: &str = "Warren: items in a browser";
const LEAD: &str = "Runs the same statements with the same settings on the same file: through \
    @sqlite.org/sqlite-wasm in its pool of OPFS files, which is the baseline; through Warren's \
    replica in the same Chromium; and through SQLite called from Rust, as programs with a native \
    replica do. \"Tracked\" means that triggers record each change for sync. The \"tab\" tables \
    show what a page waits for: each call goes to a worker, and the rows come back as objects. \
    Each round of each row starts a new browser; the start is not measured.";
pub(crate) const SETUP: &str = "warren bench browser --setup";
/// The driver's folder in `bench/competitors`.
const COMPETITOR: &str = "chromium";
/// The folder that `cargo xtask web` builds, relative to the competitors' folder.
const CLIENT: &str = "../../web/client/dist";
const BASELINE: &str = "sqlite-wasm";
const LIBRARIES: [&str; 4] = [BASELINE, "warren", "sqlite-wasm-tab", "warren-tab"];
/// The default page cache of both browser builds.
const CACHE_KIB_NEGATIVE: &str = "-16384";
/// Installs the browser driver, and returns the libraries that work.
pub fn setup(competitors: &Path, bar: &ProgressBar) -> LabDrivers {
    let found = find(competitors, MissingPolicy::Build, bar);
    bar.finish_and_clear();
    LabDrivers::new(found, None)
}

/// Returns one driver for each library that works, in the order of their list.
pub(crate) fn find(
    competitors: &Path,
    missing: MissingPolicy,
    bar: &ProgressBar,
) -> CompetitorSearch<LabDriver> {
    let wanted =
        CompetitorFilter { kind: CompetitorKind::Browser, names: Some(&[COMPETITOR]), missing };
    let programs =
        competitors::find(wanted, competitors, &competitors::target(competitors), bar, Ok);
    let mut found = CompetitorSearch {
        present: Vec::new(),
        absent: programs.absent,
        unbuilt: programs.unbuilt,
    };
    let of = |program: &DriverProgram, library: &str| {
        let mut program = program.clone();
        program.arguments.extend([library.into(), std::path::absolute(competitors.join(CLIENT))?]);
        LabDriver::start(program)
    };
    for program in programs.present {
        for library in LIBRARIES {
            bar.set_message(library);
            match of(&program, library) {
                Ok(driver) => found.present.push(driver),
                Err(error) => {
                    let (name, reason) = (library.to_owned(), format!("{error:#}"));
                    found.absent.push(UnavailableCompetitor { name, reason });
                }
            }
        }
    }
    found
}

/// Runs the plan; `bar` shows the progress.
pub fn run(plan: &BrowserBenchPlan, bar: &ProgressBar) -> anyhow::Result<BenchReport> {
    let MeasureOptions { folder, command, .. } = &plan.method;
    let found = find(&plan.competitors, MissingPolicy::Absent(SETUP), bar);
    let absent: Vec<String> = found.absent.iter().map(UnavailableCompetitor::note).collect();
    let [sqlite, warren, sqlite_tab, warren_tab] = &found.present[..] else {
        bail!("libraries to compare are missing: {}", absent.join("; "));
    };
    let scratch = ScratchFolder::new(folder, "bench").context("cannot use the work directory")?;
    bar.set_message("creating files");
    let fixture = BrowserBenchFixture::new(scratch.path(), ItemsTable { rows: plan.rows })?;
    let parts: Vec<BrowserBenchPart> =
        [BrowserBenchPart::Wal, BrowserBenchPart::Rollback, BrowserBenchPart::Tab]
            .into_iter()
            .filter(|part| plan.only.is_empty() || plan.only.contains(part))
            .collect();
    let mut budget = MeasureTimeBudget::new(&plan.method, parts.len());
    let (mut tables, mut configurations) = (Vec::new(), Vec::new());
    for part in parts {
        let way = BrowserSettings::new(part, &fixture)?;
        let cases = match part {
            BrowserBenchPart::Wal => way.in_worker(sqlite, warren),
            BrowserBenchPart::Rollback => {
                let mut cases = way.in_worker(sqlite, warren);
                let run = |plan: &_| warren.run(plan);
                cases.push(way.case(
                    "Warren, tracked, as it comes",
                    BrowserFile::Tracked,
                    false,
                    run,
                ));
                cases
            }
            BrowserBenchPart::Tab => way.in_tab(sqlite_tab, warren_tab),
        };
        let group = CaseGroup { headings: fixture.items.headings(way.name(), way.heard()), cases };
        tables.extend(run_group(group, &budget.next(), bar)?);
        configurations.push(way.configured);
    }
    bar.finish_and_clear();
    Ok(BenchReport {
        format: REPORT_FORMAT,
        benchmark: "browser".into(),
        machine: MachineInfo::here(folder),
        command: command.clone(),
        settings: plan.method.settings(),
        configurations,
        tables,
        matrices: Vec::new(),
        goals: Vec::new(),
        notes: found.present.iter().map(|driver| note(&driver.about)).collect(),
        title: TITLE.into(),
        lead: LEAD.into(),
    })
}

fn note(about: &super::plan::LabDriverInfo) -> String {
    format!("{about}: SQLite {}, compiled with {}", about.sqlite, about.compile_options.join(" "))
}

/// The file that is copied for each round.
#[derive(Clone, Copy)]
enum BrowserFile {
    Plain,
    Tracked,
}

/// The prepared files in a folder.
struct BrowserBenchFixture<'a> {
    folder: &'a Path,
    items: ItemsTable,
}

impl<'a> BrowserBenchFixture<'a> {
    fn new(folder: &'a Path, items: ItemsTable) -> anyhow::Result<Self> {
        let fixture = Self { folder, items };
        fixture.items.make(&fixture.path(BrowserFile::Plain))?;
        std::fs::copy(fixture.path(BrowserFile::Plain), fixture.path(BrowserFile::Tracked))?;
        items::track(&fixture.path(BrowserFile::Tracked))?;
        Ok(fixture)
    }

    fn path(&self, file: BrowserFile) -> PathBuf {
        self.folder.join(match file {
            BrowserFile::Plain => "items.db",
            BrowserFile::Tracked => "tracked.db",
        })
    }
}

/// The settings of a part, and the values that SQLite returns for them here.
struct BrowserSettings<'a> {
    part: BrowserBenchPart,
    fixture: &'a BrowserBenchFixture<'a>,
    configuration: PragmaConfiguration,
    configured: EffectiveConfiguration,
}

impl<'a> BrowserSettings<'a> {
    fn new(part: BrowserBenchPart, fixture: &'a BrowserBenchFixture<'a>) -> anyhow::Result<Self> {
        let (description, journal_mode, synchronous) = match part {
            BrowserBenchPart::Wal => {
                ("Warren's defaults: WAL, commits do not flush", "WAL", "NORMAL")
            }
            BrowserBenchPart::Rollback => {
                ("sqlite-wasm's defaults: rollback journal, each commit flushes", "DELETE", "FULL")
            }
            BrowserBenchPart::Tab => ("the same settings as wal", "WAL", "NORMAL"),
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
        let configuration = PragmaConfiguration {
            name: name_of(part).to_owned(),
            description: description.to_owned(),
            settings: settings.into(),
        };
        let configured = EffectiveConfiguration::read_back(&configuration, &None, fixture.folder)?;
        Ok(Self { part, fixture, configuration, configured })
    }

    fn name(&self) -> &'static str {
        name_of(self.part)
    }

    fn heard(&self) -> RowsDestination {
        if self.part == BrowserBenchPart::Tab {
            RowsDestination::InTab
        } else {
            RowsDestination::Here
        }
    }

    /// Returns the cases in a worker, the baseline first.
    fn in_worker<'b>(
        &'b self,
        sqlite: &'b LabDriver,
        warren: &'b LabDriver,
    ) -> Vec<BenchCase<'b, Vec<RoundSample>>> {
        vec![
            self.case(BASELINE, BrowserFile::Plain, true, |plan| sqlite.run(plan)),
            self.case("Warren", BrowserFile::Plain, true, |plan| warren.run(plan)),
            self.case("Warren, tracked", BrowserFile::Tracked, true, |plan| warren.run(plan)),
            self.case("native", BrowserFile::Plain, true, execute_plan),
            self.case("native, tracked", BrowserFile::Tracked, true, execute_plan),
        ]
    }

    fn in_tab<'b>(
        &'b self,
        sqlite: &'b LabDriver,
        warren: &'b LabDriver,
    ) -> Vec<BenchCase<'b, Vec<RoundSample>>> {
        vec![
            self.case("sqlite-wasm in a worker", BrowserFile::Plain, true, |plan| sqlite.run(plan)),
            self.case("@warren/client", BrowserFile::Plain, true, |plan| warren.run(plan)),
            self.case("@warren/client, tracked", BrowserFile::Tracked, true, |plan| {
                warren.run(plan)
            }),
        ]
    }

    /// Returns a case that works on a copy of the file for each round, with the settings or
    /// without.
    fn case<'b>(
        &'b self,
        name: &str,
        file: BrowserFile,
        is_set: bool,
        carry_out: impl Fn(&PlanOfFile) -> anyhow::Result<LabResult> + 'b,
    ) -> BenchCase<'b, Vec<RoundSample>> {
        let settings: &[_] = if is_set { &self.configuration.settings } else { &[] };
        BenchCase::new(name, move |duration| {
            let copy = RoundCopy::copy(&self.fixture.path(file))?;
            let steps = items::steps(self.heard(), duration.as_secs_f64());
            let answer = carry_out(&self.fixture.items.plan(&copy.0, settings, steps))?;
            if is_set {
                self.configured.check(&answer.settings)?;
            }
            Ok(answer.steps.iter().map(sample).collect())
        })
    }
}

fn name_of(part: BrowserBenchPart) -> &'static str {
    match part {
        BrowserBenchPart::Wal => "wal",
        BrowserBenchPart::Rollback => "rollback",
        BrowserBenchPart::Tab => "tab",
    }
}
