//! `warren bench runtime`: the same configurations through other drivers, libraries of Node in
//! several releases and of Python.
//!
//! # Invariants
//! - Every driver works with the same settings: what a configuration leaves open is set, too, and
//!   an answer counts only if what SQLite said of each PRAGMA there is what it says of it here.
//!
//! # Not here
//! - How a driver is built → `crate::rivals`. How a library carries out a plan → `bench/rivals`.

mod even;
mod place;
#[cfg(test)]
mod tests;
mod versions;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};
use engine::{Cipher, Profile, ScratchFolder};
use indicatif::ProgressBar;

use self::even::Even;
pub use self::place::{NotSetUp, Place};
use super::bed::{Bed, case, case_by};
use super::carry_out;
use super::configuration::{Configuration, Configured};
use super::driver::Driver;
use super::message::{CipherAndKey, Layout, Mailbox};
use super::plan::About;
use super::{Budget, Method};
use crate::machine::Machine;
use crate::measure::Sample;
use crate::report::Report;
use crate::rivals::setup::{Kind, Missing};
use crate::rivals::{self, Absent, Found, Wanted};
use crate::suite::{Case, Effort, Group, Table, run_group};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How.
    pub method: Method,
    /// Messages in the file, for each size.
    pub rows: Vec<i64>,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// Which sets of PRAGMAs.
    pub configurations: Vec<&'static Profile>,
    /// `None` for a file that is not encrypted.
    pub ciphers: Vec<Option<Cipher>>,
    /// Where the drivers are.
    pub place: Place,
}

const TITLE: &str = "Warren: one file through other libraries";
const LEAD: &str = "The same statements with the same settings on the same file, through SQLite as \
    libraries for Node and Python bring it. The baseline calls SQLite from Rust, as this build of \
    Warren has it; \"again\" is the same once more and shows what chance does. Tables called \
    \"versions\" compare one library with itself, on several releases of Node, by the processor \
    time that it took.";
/// What builds the drivers.
const SETUP: &str = "warren bench runtime --setup";
const BASELINE: &str = "rusqlite, this build";
/// The published operations, for the tables of versions.
const PUBLISHED: [&str; 3] = ["insert", "list", "update"];
/// As good as any other, for files that are gone in the end.
const KEY: &str = "5761727265656e206265636820f09f90b0a1b2c3d4e5f60718293a4b5c6d7e8f";

/// Runs the plan with the drivers that are built; `bar` shows how far it is.
pub fn run(plan: &Plan, bar: &ProgressBar) -> anyhow::Result<Report> {
    let Method { folder, command, .. } = &plan.method;
    let scratch = ScratchFolder::new(folder, "bench").context("the folder to measure in")?;
    let found = find(&plan.place, Missing::Absent(SETUP), bar);
    let absent: Vec<String> = found.absent.iter().map(Absent::note).collect();
    ensure!(
        !found.present.is_empty(),
        "there is no driver; `{SETUP}` builds them: {}",
        absent.join("; ")
    );
    let mut notes = notes(&found.present)?;
    notes.extend(absent);
    let groups = plan.ciphers.len() * plan.configurations.len() * plan.rows.len();
    let mut budget = Budget::new(&plan.method, groups);
    let mut configurations = Vec::new();
    let mut tables = Vec::new();
    for cipher in &plan.ciphers {
        for profile in &plan.configurations {
            let way = Way::new(profile, *cipher, &found.present, scratch.path())?;
            configurations.push(way.configured());
            for &rows in &plan.rows {
                let mailbox = Mailbox { layout: Layout::Last, rows, body_bytes: plan.body_bytes };
                tables.extend(way.measure(&mailbox, scratch.path(), &budget.next(), bar)?);
            }
            notes.extend(way.absent.iter().map(Absent::note));
        }
    }
    bar.finish_and_clear();
    Ok(Report {
        benchmark: "runtime".into(),
        machine: Machine::here(folder),
        command: command.clone(),
        settings: Vec::new(),
        configurations,
        tables,
        matrices: Vec::new(),
        aims: Vec::new(),
        notes,
        title: TITLE.into(),
        lead: LEAD.into(),
    })
}

fn find(place: &Place, missing: Missing, bar: &ProgressBar) -> Found<Driver> {
    let wanted = Wanted { kind: Kind::Lab, names: None, missing };
    rivals::find(wanted, &place.drivers, &place.target, bar, Driver::start)
}

/// A configuration and a cipher, and who can work like that.
struct Way<'a> {
    name: String,
    even: Even,
    encryption: CipherAndKey,
    drivers: Vec<&'a Driver>,
    absent: Vec<Absent>,
}

impl<'a> Way<'a> {
    fn new(
        profile: &Profile,
        cipher: Option<Cipher>,
        present: &'a [Driver],
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let encryption = cipher.map(|cipher| (cipher.name().to_owned(), KEY.to_owned()));
        let even = Even::of(&Configuration::of(profile), &encryption, folder)?;
        let name = format!("{}-{}", profile.name, cipher.map_or("none", Cipher::name));
        let (mut drivers, mut absent) = (Vec::new(), Vec::new());
        for driver in present {
            match even.try_on(driver) {
                Ok(()) => drivers.push(driver),
                Err(error) => absent.push(Absent {
                    name: format!("{} from {name}", driver.about),
                    reason: error.root_cause().to_string(),
                }),
            }
        }
        Ok(Self { name, even, encryption, drivers, absent })
    }

    fn configured(&self) -> Configured {
        Configured { name: self.name.clone(), ..self.even.configured.clone() }
    }

    fn measure(
        &self,
        mailbox: &Mailbox,
        folder: &Path,
        effort: &Effort,
        bar: &ProgressBar,
    ) -> anyhow::Result<Vec<Table>> {
        let name = format!("{}-{}", self.name, mailbox.rows);
        let folder = folder.join(&name);
        std::fs::create_dir(&folder)?;
        let bed = Bed {
            name: &name,
            folder: &folder,
            mailbox,
            transactions: &[1],
            only: &[],
            sets_up: false,
            bar,
        };
        let group = Group { headings: bed.headings(), cases: self.cases(bed) };
        let tables = run_group(group, effort, bar)?;
        std::fs::remove_dir_all(&folder)?;
        Ok(with_versions(&name, tables, &self.drivers))
    }

    /// The baseline first, and each driver on a file of its own.
    fn cases<'b>(&'b self, bed: Bed<'b>) -> Vec<Case<'b, Vec<Sample>>> {
        let Self { even, encryption, .. } = self;
        let ours = [BASELINE, "rusqlite, again"]
            .map(|name| case(bed, name, name, &even.configuration, encryption));
        let mut cases = Vec::from(ours);
        for (index, driver) in self.drivers.iter().enumerate() {
            let name = driver.about.to_string();
            let file = format!("driver-{index}");
            let run = move |plan: &_| driver.run(plan);
            cases.push(case_by(bed, &name, &file, &even.configuration, encryption, run));
        }
        cases
    }
}

/// After each table of a published operation, one that tells the library's version from Node's.
fn with_versions(group: &str, tables: Vec<Table>, drivers: &[&Driver]) -> Vec<Table> {
    let names = versions::of_one_library(drivers.iter().map(|driver| &driver.about));
    let is_published = |table: &Table| {
        PUBLISHED.iter().any(|operation| table.name == format!("{group}-{operation}"))
    };
    let with = tables.into_iter().flat_map(|table| {
        let names = names.as_ref().filter(|_| is_published(&table));
        let versions = names.and_then(|names| versions::table(&table, names));
        [Some(table), versions]
    });
    with.flatten().collect()
}

/// Which SQLite each brings, and how it was compiled. Many may bring the same.
fn notes(drivers: &[Driver]) -> anyhow::Result<Vec<String>> {
    let ours = carry_out::about(&rusqlite::Connection::open_in_memory()?)?;
    let here = &ours.compile_options;
    let mut notes =
        vec![format!("{BASELINE}: SQLite {}, compiled with {}", ours.sqlite, here.join(" "))];
    let mut alike: BTreeMap<(&str, &[String]), Vec<String>> = BTreeMap::new();
    for driver in drivers {
        let About { sqlite, compile_options, .. } = &driver.about;
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
        format!("{names}: SQLite {sqlite}, compiled as here, but with {more}; without {less}")
    }));
    Ok(notes)
}
