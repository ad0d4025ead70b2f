//! `warren bench cipher`: measures the cost of each cipher of this SQLite for warm reads, cold
//! reads, and opening.

mod opening;

use std::path::Path;

use anyhow::{Context, ensure};
use engine::{Profile, ScratchFolder};
use indicatif::ProgressBar;

use self::opening::{NONE, check_header};
use super::configuration::{EffectiveConfiguration, PragmaConfiguration};
use super::execute_plan::ciphers;
use super::message::{BodyLayout, CipherAndKey, MailboxTable, encryption};
use super::message_fixture::{MeasuredCase, MessageTableFixture, TRANSACTIONS, measure};
use super::{MeasureOptions, MeasureTimeBudget, cold};
use crate::disk;
use crate::format::{counted, whole};
use crate::machine::MachineInfo;
use crate::report::{BenchReport, REPORT_FORMAT};
use crate::suite::{BenchCase, BenchSection, ResultTable, StopRule, run as run_section};

/// The options of the benchmark.
#[derive(Clone, Debug)]
pub struct CipherBenchPlan {
    /// The measuring options.
    pub method: MeasureOptions,
    /// The number of messages in the file.
    pub rows: i64,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// The ciphers, by the names of `PRAGMA cipher`; empty for all that exist.
    pub ciphers: Vec<String>,
    /// The parts to measure; empty for all.
    pub only: Vec<CipherBenchPart>,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CipherBenchPart {
    /// The same work as `bench pragma`.
    Warm,
    /// Reads without any cached pages.
    Cold,
    /// Opening a file, setting the key, and the first read.
    Open,
}

const TITLE: &str = "Warren: the cost of SQLite's ciphers";
const LEAD: &str = "Runs the same workload on files that differ only in their cipher; the baseline \
    is not encrypted. A cipher works when a page is loaded into SQLite's page cache or written to \
    the disk, so repeated reads from the cache cost the same with all ciphers. The settings are \
    the published production set, with SQLite's default page cache of 2 MB.";
const UNAUTHENTICATED: &str = "aes256cbc, aes128cbc and rc4 do not authenticate pages, so changes \
    to pages on the disk are not detected. rc4 is broken, and prohibited in TLS (RFC 7465)";
/// The operations of cold reads: a body, and the list of 50 messages that a mail program shows.
const COLD: [(&str, &str); 2] = [
    ("read", "reads of the body of a random message"),
    ("list", "lists of the 50 messages before a random date"),
];

/// Runs the plan; `bar` shows the progress.
pub fn run(plan: &CipherBenchPlan, bar: &ProgressBar) -> anyhow::Result<BenchReport> {
    let CipherBenchPlan { method, rows, body_bytes, .. } = plan;
    let ciphers = with_none(&plan.ciphers)?;
    let mailbox = MailboxTable { layout: BodyLayout::Last, rows: *rows, body_bytes: *body_bytes };
    let needed = mailbox.disk_bytes().saturating_mul(ciphers.len() as u64);
    disk::check(&method.folder, needed, &format!("{} files of {rows} messages", ciphers.len()))?;
    let scratch =
        ScratchFolder::new(&method.folder, "bench").context("cannot use the work directory")?;
    let profile = Profile::by_name("production").context("there is no profile `production`")?;
    let configuration = PragmaConfiguration::from_profile(profile);
    let has = |part| plan.only.is_empty() || plan.only.contains(&part);
    let mut work = CipherBenchRun {
        folder: scratch.path(),
        mailbox,
        configuration: &configuration,
        rows: ciphers.iter().map(|name| (name.as_str(), of(name))).collect(),
        bar,
        tables: Vec::new(),
        notes: vec![UNAUTHENTICATED.to_owned()],
    };
    let parts =
        [(CipherBenchPart::Warm, 6), (CipherBenchPart::Cold, 2), (CipherBenchPart::Open, 2)];
    let parts = parts.into_iter().filter(|(part, _)| has(*part));
    let mut budget =
        MeasureTimeBudget::new(method, parts.clone().map(|(_, share)| share as usize).sum());
    for (part, share) in parts {
        match part {
            CipherBenchPart::Warm => work.warm(&budget.share(share))?,
            CipherBenchPart::Cold => work.cold(&mut budget)?,
            CipherBenchPart::Open => work.open(&budget.share(share))?,
        }
    }
    let CipherBenchRun { tables, notes, .. } = work;
    bar.finish_and_clear();
    Ok(BenchReport {
        format: REPORT_FORMAT,
        benchmark: "cipher".into(),
        machine: MachineInfo::here(&method.folder),
        command: method.command.clone(),
        settings: method.settings(),
        configurations: vec![EffectiveConfiguration::read_back(
            &configuration,
            &None,
            scratch.path(),
        )?],
        tables,
        matrices: Vec::new(),
        goals: Vec::new(),
        notes,
        title: TITLE.into(),
        lead: LEAD.into(),
    })
}

/// Returns the wanted ciphers, after "no cipher", which is the baseline.
fn with_none(wanted: &[String]) -> anyhow::Result<Vec<String>> {
    let all = ciphers()?;
    for name in wanted {
        ensure!(
            all.contains(&name.as_str()),
            "this build of SQLite supports {}, not {name}",
            all.join(", ")
        );
    }
    let chosen =
        all.iter().filter(|&&name| wanted.is_empty() || wanted.iter().any(|of| of == name));
    Ok([NONE].iter().chain(chosen).map(|name| (*name).to_owned()).collect())
}

fn of(name: &str) -> CipherAndKey {
    encryption((name != NONE).then_some(name))
}

/// The state of a running benchmark.
struct CipherBenchRun<'a> {
    folder: &'a Path,
    mailbox: MailboxTable,
    configuration: &'a PragmaConfiguration,
    rows: Vec<(&'a str, CipherAndKey)>,
    bar: &'a ProgressBar,
    tables: Vec<ResultTable>,
    notes: Vec<String>,
}

impl CipherBenchRun<'_> {
    fn warm(&mut self, stop_rule: &StopRule) -> anyhow::Result<()> {
        let rows = self.rows.iter().map(|(name, encryption)| MeasuredCase {
            name,
            configuration: self.configuration,
            mailbox: self.mailbox.clone(),
            encryption: encryption.clone(),
        });
        let rows: Vec<MeasuredCase<'_>> = rows.collect();
        let fixture = MessageTableFixture {
            name: "warm",
            folder: self.folder,
            mailbox: &self.mailbox,
            transactions: TRANSACTIONS,
            only: &[],
            sets_up: false,
            bar: self.bar,
        };
        self.tables.extend(measure(fixture, &rows, stop_rule)?);
        self.rows.iter().try_for_each(|(name, _)| check_header(&self.folder.join(name), name))
    }

    fn cold(&mut self, budget: &mut MeasureTimeBudget<'_>) -> anyhow::Result<()> {
        if !cold::is_possible(self.folder)? {
            budget.share(2);
            self.notes.push(
                "no cold reads: files in the work directory stay in memory; choose a directory on \
                 a disk with --work-dir"
                    .to_owned(),
            );
            return Ok(());
        }
        let settings = &self.configuration.settings;
        for (name, encryption) in &self.rows {
            let path = self.folder.join(name);
            if !path.exists() {
                self.bar.set_message(format!("creating a file: {name}"));
                self.mailbox.make(&path, settings, encryption)?;
                check_header(&path, name)?;
            }
        }
        for (operation, about) in COLD {
            let cases = self.rows.iter().map(|(name, encryption)| {
                let path = self.folder.join(name);
                let plan = self.mailbox.plan(&path, settings, encryption, vec![]);
                BenchCase::new(*name, move |duration| cold::read(&plan, operation, duration))
            });
            let rows = whole(self.mailbox.rows);
            let body = counted(self.mailbox.body_bytes, "byte", "bytes");
            let section = BenchSection {
                name: format!("cold-{operation}"),
                unit: "operations",
                title: format!(
                    "{about}, cold: each on a new connection, with the file dropped from the \
                     operating system's cache (but not from the cache of the disk itself); opening \
                     is not counted; {rows} messages of {body}"
                ),
                cases: cases.collect(),
            };
            self.tables.push(run_section(section, &budget.next(), self.bar)?);
        }
        Ok(())
    }

    fn open(&mut self, stop_rule: &StopRule) -> anyhow::Result<()> {
        let folder = self.folder.join("open");
        std::fs::create_dir(&folder)?;
        let names: Vec<&str> = self.rows.iter().map(|(name, _)| *name).collect();
        let section = opening::section(&folder, &names)?;
        self.tables.push(run_section(section, stop_rule, self.bar)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cipher_encrypts_and_an_unknown_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mailbox = MailboxTable { layout: BodyLayout::Last, rows: 20, body_bytes: 10 };
        let all = with_none(&[]).unwrap();
        assert!(all.len() > 5 && all[0] == NONE, "{all:?}");
        for name in &all {
            let path = folder.path().join(name);
            mailbox.make(&path, &[], &of(name)).unwrap();
            check_header(&path, name).unwrap();
            let other = if name == NONE { "chacha20" } else { NONE };
            assert!(check_header(&path, other).is_err(), "{name}");
        }
        assert_eq!(with_none(&["aegis".to_owned()]).unwrap(), [NONE, "aegis"]);
        let refused = with_none(&["rot13".to_owned()]).unwrap_err().to_string();
        assert!(refused.contains("chacha20") && refused.ends_with("not rot13"), "{refused}");
    }
}
