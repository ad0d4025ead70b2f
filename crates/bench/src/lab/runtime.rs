//! `warren bench runtime`: the same configurations through other drivers, libraries of Node in
//! several releases and of Python.
//!
//! # Invariants
//! - Every driver works with the same settings: what a configuration leaves open is set, too, and
//!   an answer counts only if what SQLite said of each PRAGMA there is what it says of it here.
//!
//! # Not here
//! - How a driver is built → `crate::rivals`. How a library carries out a plan → `bench/rivals`.

mod driver;
mod even;
#[cfg(test)]
mod tests;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use engine::{Cipher, Profile};
use indicatif::ProgressBar;
use serde::Serialize;

use self::driver::Driver;
use self::even::Even;
use super::bed::{Bed, case, case_by};
use super::carry_out;
use super::configuration::{Configuration, Configured};
use super::message::{CipherAndKey, Layout, Mailbox};
use super::plan::About;
use super::{Budget, Method};
use crate::machine::Machine;
use crate::report::Report;
use crate::rivals::setup::{Kind, Missing};
use crate::rivals::{self, Absent, Found, Wanted};
use crate::suite::{Group, Table, run_group};

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
    /// The folder with the drivers.
    pub rivals: PathBuf,
}

/// Which drivers there are on this machine.
#[derive(Clone, Debug, Serialize)]
pub struct Drivers {
    present: Vec<About>,
    absent: Vec<Absent>,
}

const TITLE: &str = "Warren: one file through other libraries";
const LEAD: &str = "The same statements with the same settings on the same file, through SQLite as \
    libraries for Node and Python bring it. The baseline calls SQLite from Rust, as this build of \
    Warren has it; \"again\" is the same once more and shows what chance does. Tables called \
    \"versions\" compare one library with itself, on several releases of Node.";
const BASELINE: &str = "rusqlite, this build";
/// The published operations, for the tables of versions.
const PUBLISHED: [&str; 3] = ["insert", "list", "update"];
/// As good as any other, for files that are gone in the end.
const KEY: &str = "5761727265656e206265636820f09f90b0a1b2c3d4e5f60718293a4b5c6d7e8f";

/// Builds and installs the drivers in the folder `rivals`.
pub fn setup(rivals: &Path, bar: &ProgressBar) -> Drivers {
    let found = find(rivals, &rivals::target(rivals), Missing::Build, bar);
    bar.finish_and_clear();
    let present = found.present.into_iter().map(|driver| driver.about).collect();
    Drivers { present, absent: found.absent }
}

/// Runs the plan with the drivers that are built; `bar` shows how far it is.
pub fn run(plan: &Plan, bar: &ProgressBar) -> anyhow::Result<Report> {
    let Method { folder, command, .. } = &plan.method;
    let scratch = tempfile::tempdir_in(folder).context("the folder to measure in")?;
    let found = find(&plan.rivals, &rivals::target(&plan.rivals), Missing::Absent, bar);
    let groups = plan.ciphers.len() * plan.configurations.len() * plan.rows.len();
    let mut budget = Budget::new(&plan.method, groups);
    let mut configurations = Vec::new();
    let mut tables = Vec::new();
    for cipher in &plan.ciphers {
        let encryption = cipher.map(|cipher| (cipher.name().to_owned(), KEY.to_owned()));
        for profile in &plan.configurations {
            let configuration = Configuration::of(profile);
            let even = Even::of(&configuration, &encryption, scratch.path())?;
            let cipher = cipher.map_or("none", Cipher::name);
            let mut configured =
                Configured::read_back(&even.configuration, &encryption, scratch.path())?;
            configured.name = format!("{}, cipher {cipher}", profile.name);
            configurations.push(configured);
            for &rows in &plan.rows {
                let name = format!("{}-{cipher}-{rows}", profile.name);
                let folder = scratch.path().join(&name);
                std::fs::create_dir(&folder)?;
                let mailbox = Mailbox { layout: Layout::Last, rows, body_bytes: plan.body_bytes };
                let bed =
                    Bed { name: &name, folder: &folder, mailbox: &mailbox, transactions: &[1] };
                let cases = cases(bed, &even, &encryption, &found.present);
                let group = Group { headings: bed.headings(), cases };
                let measured = run_group(group, &budget.next(), bar)?;
                tables.extend(with_versions(&name, measured, &found.present));
                std::fs::remove_dir_all(&folder)?;
            }
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
        notes: notes(&found)?,
        title: TITLE.into(),
        lead: LEAD.into(),
    })
}

fn find(rivals: &Path, target: &Path, missing: Missing, bar: &ProgressBar) -> Found<Driver> {
    let wanted = Wanted { kind: Kind::Lab, names: None, missing };
    rivals::find(wanted, rivals, target, bar, Driver::start)
}

/// The baseline first, and each driver that opens such a file, on a file of its own.
fn cases<'a>(
    bed: Bed<'a>,
    even: &'a Even,
    encryption: &CipherAndKey,
    drivers: &'a [Driver],
) -> Vec<crate::suite::Case<'a, Vec<crate::measure::Sample>>> {
    let configuration = &even.configuration;
    let ours = [BASELINE, "rusqlite, again"];
    let mut cases: Vec<_> =
        ours.iter().map(|name| case(bed, name, name, configuration, encryption)).collect();
    let opens = |driver: &&Driver| encryption.as_ref().is_none_or(|(name, _)| driver.has(name));
    for (index, driver) in drivers.iter().filter(opens).enumerate() {
        let name = driver.about.to_string();
        let file = format!("driver-{index}");
        cases.push(case_by(bed, &name, &file, configuration, encryption, move |plan| {
            let answer = driver.run(plan)?;
            ensure!(
                answer.settings == even.answers,
                "ran with {:?}, where SQLite says {:?} here",
                answer.settings,
                even.answers
            );
            Ok(answer)
        }));
    }
    cases
}

/// After each table of a published operation, one that tells the library's version from Node's.
fn with_versions(group: &str, tables: Vec<Table>, drivers: &[Driver]) -> Vec<Table> {
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

/// Which SQLite each brings and how it was compiled, and who is absent.
fn notes(found: &Found<Driver>) -> anyhow::Result<Vec<String>> {
    let ours = carry_out::about(&rusqlite::Connection::open_in_memory()?)?;
    let options: BTreeSet<&String> = ours.compile_options.iter().collect();
    let all: Vec<&str> = options.iter().map(|option| option.as_str()).collect();
    let mut notes =
        vec![format!("{BASELINE}: SQLite {}, compiled with {}", ours.sqlite, all.join(" "))];
    // Many drivers may bring the same SQLite.
    let mut alike: BTreeMap<(&str, &[String]), Vec<String>> = BTreeMap::new();
    for driver in &found.present {
        let key = (driver.about.sqlite.as_str(), driver.about.compile_options.as_slice());
        alike.entry(key).or_default().push(driver.about.to_string());
    }
    for ((sqlite, compile_options), names) in alike {
        let theirs: BTreeSet<&String> = compile_options.iter().collect();
        let list = |one: &BTreeSet<&String>, other: &BTreeSet<&String>| {
            let only: Vec<&str> = one.difference(other).map(|option| option.as_str()).collect();
            only.join(" ")
        };
        notes.push(format!(
            "{}: SQLite {sqlite}; compiled, unlike here, with {}; without {}",
            names.join(", "),
            list(&theirs, &options),
            list(&options, &theirs)
        ));
    }
    notes.extend(found.absent.iter().map(Absent::note));
    Ok(notes)
}

impl fmt::Display for Drivers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = self.present.iter().map(|about| {
            let ciphers = if about.ciphers.is_empty() { ", no encrypted files" } else { "" };
            format!("present: {about} (SQLite {}{ciphers})", about.sqlite)
        });
        let lines: Vec<String> = present.chain(self.absent.iter().map(Absent::note)).collect();
        f.write_str(&lines.join("\n"))
    }
}
