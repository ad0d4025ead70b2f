//! `warren bench runtime`: measures the same configurations through other drivers, which are
//! libraries of several Node releases and of Python.
//!
//! # Invariants
//! - Every driver works with the same settings: settings that a configuration leaves open are set,
//!   too, and an answer counts only if each PRAGMA returns the same value there as here.
//!
//! # Not here
//! - How a driver is built → `crate::competitors`. How a library carries out a plan →
//!   `bench/competitors`.

mod place;
mod portable_configuration;
#[cfg(test)]
mod tests;
mod versions;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};
use engine::{Cipher, Profile, ScratchFolder};
use indicatif::ProgressBar;

use self::place::SETUP;
pub use self::place::{DriverFolders, NotSetUp};
use self::portable_configuration::PortableConfiguration;
use super::configuration::{EffectiveConfiguration, PragmaConfiguration};
use super::driver::LabDriver;
use super::message::{BodyLayout, CipherAndKey, MailboxTable};
use super::message_fixture::{MessageTableFixture, case, case_by};
use super::plan::LabDriverInfo;
use super::{MeasureOptions, MeasureTimeBudget, execute_plan};
use crate::competitors::setup::CompetitorKind;
use crate::competitors::setup::steps::MissingPolicy;
use crate::competitors::{CompetitorFilter, CompetitorSearch, UnavailableCompetitor};
use crate::machine::MachineInfo;
use crate::measure::RoundSample;
use crate::report::{BenchReport, REPORT_FORMAT};
use crate::suite::{BenchCase, CaseGroup, ResultTable, StopRule, run_group};

/// The options of the benchmark.
#[derive(Clone, Debug)]
pub struct RuntimeBenchPlan {
    /// The measuring options.
    pub method: MeasureOptions,
    /// Numbers of messages in the file; each has its tables.
    pub rows: Vec<i64>,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// The sets of PRAGMAs to measure.
    pub configurations: Vec<&'static Profile>,
    /// The ciphers to measure; `None` for a file that is not encrypted.
    pub ciphers: Vec<Option<Cipher>>,
    /// The folders of the drivers.
    pub place: DriverFolders,
}

const TITLE: &str = "Warren: SQLite libraries compared";
const LEAD: &str = "Runs the same statements with the same settings on the same file, through \
    SQLite libraries for Node and Python. The baseline calls SQLite from Rust, as built into this \
    version of Warren; \"again\" repeats the baseline and shows the effect of chance. The \
    \"versions\" tables compare one library with itself on several releases of Node, by processor \
    time.";
const BASELINE: &str = "rusqlite, this build";
/// The published operations, for the tables of versions.
const PUBLISHED: [&str; 3] = ["insert", "list", "update"];
/// The key of all encrypted files. A fixed key is good enough, because the files are removed at
/// the end.
const KEY: &str = "5761727265656e206265636820f09f90b0a1b2c3d4e5f60718293a4b5c6d7e8f";

/// Runs the plan with the drivers that are built; `bar` shows the progress.
pub fn run(plan: &RuntimeBenchPlan, bar: &ProgressBar) -> anyhow::Result<BenchReport> {
    let MeasureOptions { folder, command, .. } = &plan.method;
    let scratch = ScratchFolder::new(folder, "bench").context("cannot use the work directory")?;
    let found = place::find(&plan.place, MissingPolicy::Absent(SETUP), bar);
    let absent: Vec<String> = found.absent.iter().map(UnavailableCompetitor::note).collect();
    ensure!(
        !found.present.is_empty(),
        "no drivers are installed; run `{SETUP}`: {}",
        absent.join("; ")
    );
    let mut notes = notes(&found.present)?;
    notes.extend(absent);
    let groups = plan.ciphers.len() * plan.configurations.len() * plan.rows.len();
    let mut budget = MeasureTimeBudget::new(&plan.method, groups);
    let mut configurations = Vec::new();
    let mut tables = Vec::new();
    for cipher in &plan.ciphers {
        for profile in &plan.configurations {
            let way = RuntimeCase::new(profile, *cipher, &found.present, scratch.path())?;
            configurations.push(way.configured());
            for &rows in &plan.rows {
                let mailbox =
                    MailboxTable { layout: BodyLayout::Last, rows, body_bytes: plan.body_bytes };
                tables.extend(way.measure(&mailbox, scratch.path(), &budget.next(), bar)?);
            }
            notes.extend(way.absent.iter().map(UnavailableCompetitor::note));
        }
    }
    bar.finish_and_clear();
    Ok(BenchReport {
        format: REPORT_FORMAT,
        benchmark: "runtime".into(),
        machine: MachineInfo::here(folder),
        command: command.clone(),
        settings: Vec::new(),
        configurations,
        tables,
        matrices: Vec::new(),
        goals: Vec::new(),
        notes,
        title: TITLE.into(),
        lead: LEAD.into(),
    })
}

/// A configuration and a cipher, with the drivers that support them.
struct RuntimeCase<'a> {
    name: String,
    even: PortableConfiguration,
    encryption: CipherAndKey,
    drivers: Vec<&'a LabDriver>,
    absent: Vec<UnavailableCompetitor>,
}

impl<'a> RuntimeCase<'a> {
    fn new(
        profile: &Profile,
        cipher: Option<Cipher>,
        present: &'a [LabDriver],
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let encryption = cipher.map(|cipher| (cipher.name().to_owned(), KEY.to_owned()));
        let even = PortableConfiguration::of(
            &PragmaConfiguration::from_profile(profile),
            &encryption,
            folder,
        )?;
        let name = format!("{}-{}", profile.name, cipher.map_or("none", Cipher::name));
        let (mut drivers, mut absent) = (Vec::new(), Vec::new());
        for driver in present {
            match even.try_on(driver) {
                Ok(()) => drivers.push(driver),
                Err(error) => absent.push(UnavailableCompetitor {
                    name: format!("{} from {name}", driver.about),
                    reason: error.root_cause().to_string(),
                }),
            }
        }
        Ok(Self { name, even, encryption, drivers, absent })
    }

    fn configured(&self) -> EffectiveConfiguration {
        EffectiveConfiguration { name: self.name.clone(), ..self.even.configured.clone() }
    }

    fn measure(
        &self,
        mailbox: &MailboxTable,
        folder: &Path,
        stop_rule: &StopRule,
        bar: &ProgressBar,
    ) -> anyhow::Result<Vec<ResultTable>> {
        let name = format!("{}-{}", self.name, mailbox.rows);
        let folder = folder.join(&name);
        std::fs::create_dir(&folder)?;
        let fixture = MessageTableFixture {
            name: &name,
            folder: &folder,
            mailbox,
            transactions: &[1],
            only: &[],
            sets_up: false,
            bar,
        };
        let group = CaseGroup { headings: fixture.headings(), cases: self.cases(fixture) };
        let tables = run_group(group, stop_rule, bar)?;
        std::fs::remove_dir_all(&folder)?;
        Ok(with_versions(&name, tables, &self.drivers))
    }

    /// Returns the cases, the baseline first and each driver on its own file.
    fn cases<'b>(
        &'b self,
        fixture: MessageTableFixture<'b>,
    ) -> Vec<BenchCase<'b, Vec<RoundSample>>> {
        let Self { even, encryption, .. } = self;
        let ours = [BASELINE, "rusqlite, again"]
            .map(|name| case(fixture, name, name, &even.configuration, encryption));
        let mut cases = Vec::from(ours);
        for (index, driver) in self.drivers.iter().enumerate() {
            let name = driver.about.to_string();
            let file = format!("driver-{index}");
            let run = move |plan: &_| driver.run(plan);
            cases.push(case_by(fixture, &name, &file, &even.configuration, encryption, run));
        }
        cases
    }
}

/// Adds, after each table of a published operation, a table that separates the library's version
/// from Node's.
fn with_versions(
    group: &str,
    tables: Vec<ResultTable>,
    drivers: &[&LabDriver],
) -> Vec<ResultTable> {
    let names = versions::of_one_library(drivers.iter().map(|driver| &driver.about));
    let is_published = |table: &ResultTable| {
        PUBLISHED.iter().any(|operation| table.name == format!("{group}-{operation}"))
    };
    let with = tables.into_iter().flat_map(|table| {
        let names = names.as_ref().filter(|_| is_published(&table));
        let versions = names.and_then(|names| versions::table(&table, names));
        [Some(table), versions]
    });
    with.flatten().collect()
}

/// Returns notes on each driver's SQLite and its compile options. Several drivers may have the
/// same.
fn notes(drivers: &[LabDriver]) -> anyhow::Result<Vec<String>> {
    let ours = execute_plan::about(&rusqlite::Connection::open_in_memory()?)?;
    let here = &ours.compile_options;
    let mut notes =
        vec![format!("{BASELINE}: SQLite {}, compiled with {}", ours.sqlite, here.join(" "))];
    let mut alike: BTreeMap<(&str, &[String]), Vec<String>> = BTreeMap::new();
    for driver in drivers {
        let LabDriverInfo { sqlite, compile_options, .. } = &driver.about;
        alike.entry((sqlite, compile_options)).or_default().push(driver.about.to_string());
    }
    let only = |one: &[String], other: &[String]| {
        let only: Vec<&str> =
            one.iter().filter(|option| !other.contains(option)).map(String::as_str).collect();
        only.join(" ")
    };
    notes.extend(alike.into_iter().map(|((sqlite, there), names)| {
        let (more, less) = (only(there, here), only(here, there));
        let names = names.join(", ");
        format!("{names}: SQLite {sqlite}, compiled as in Warren, but with {more}; without {less}")
    }));
    Ok(notes)
}
