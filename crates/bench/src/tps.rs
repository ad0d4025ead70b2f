//! `warren bench tps`: compares Warren's transactions per second with the bare cost of the work.
//!
//! Repeats the published experiment (100,000 transactions a second over a billion rows) on one
//! machine in one run: the bare loop, the engine, and the competitors that were requested.
//! `docs/internals/engine.md` explains the tables.
//!
//! # Not here
//! - Checkpoints → `sqlite_bench/checkpoint.rs`, which does the same work.
//! - Rounds, ratios, spread → `suite.rs`. Pages and columns → `html_report.rs`, `text_report.rs`.

pub(crate) mod accounts;
pub(crate) mod bare_loop;
mod competitors;
pub(crate) mod fixture;
mod pauses;
mod postgres;
pub(crate) mod producers;
mod sections;
mod vaults;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use engine::{Cipher, DatabaseKey, FileEncryption, ScratchFolder};
use indicatif::ProgressBar;

use self::accounts::UNIT;
use self::fixture::TpsFixture;
use self::vaults::VaultFilesFixture;
use crate::competitors::{UnavailableCompetitor, target};
use crate::disk;
use crate::format::{counted, format_threshold};
use crate::machine::MachineInfo;
use crate::postgres::BenchPostgres;
use crate::report::{BenchReport, REPORT_FORMAT};
use crate::report_setting::ReportSetting;
use crate::suite::{self, BenchSection, ResultTable, StopRule};

/// The options of the benchmark.
#[derive(Clone, Debug)]
pub struct TpsBenchPlan {
    /// The number of rows of the table.
    pub rows: i64,
    /// How long each case works in each round.
    pub duration: Duration,
    /// The number of rounds, each in a random order.
    pub rounds: usize,
    /// The parts to measure; empty for all.
    pub only: Vec<TpsBenchPart>,
    /// The competitors with which Warren is compared.
    pub against: Vec<TpsCompetitor>,
    /// The cipher of the table; `None` for no encryption.
    pub cipher: Option<Cipher>,
    /// The number of files of the vaults table.
    pub vaults: usize,
    /// The folder in which the run creates its files.
    pub folder: PathBuf,
    /// Whether the loaded table stays in the folder, and an existing one is used.
    pub keep: bool,
    /// The folder with the competitors' drivers.
    pub competitors: PathBuf,
    /// The command line, for the report.
    pub command: String,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TpsBenchPart {
    /// The published rows that are about SQLite.
    Published,
    /// Different numbers of callers, answered after commit or after fsync.
    Durability,
    /// Transactions of which some fail.
    Isolation,
    /// Reads together with writes.
    Mixed,
    /// The longest waits while the WAL is moved into the file.
    Pauses,
    /// The cost of encryption for different sizes of commits.
    Cipher,
    /// Thousands of databases at the same time.
    Vaults,
}

/// A competitor with which Warren is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TpsCompetitor {
    /// A server that the benchmark starts, from the distribution's package.
    Postgres,
    /// Libraries for SQLite: the drivers in `bench/competitors`.
    Libraries,
}

const TITLE: &str = "Warren: transactions per second";
const LEAD: &str = "A transaction moves money between two accounts of a table with two UPDATEs. \
    The bare loop is one thread that calls SQLite with prepared statements, a thousand \
    transactions per commit, without isolation and without callers that wait: it shows the cost of \
    the work alone. Cases run in random order; ratios compare cases of the same round. Published \
    figures were measured elsewhere, on a laptop with ten cores.";

/// The most rows of a table with another cipher, which limits its disk space, however large the
/// main table is.
const CIPHER_ROWS_MAX: i64 = 10_000_000;

/// Runs the plan; `bar` shows the progress.
pub fn run(plan: &TpsBenchPlan, bar: &ProgressBar) -> anyhow::Result<BenchReport> {
    anyhow::ensure!(plan.rows > 0 && plan.rounds > 0, "nothing to measure");
    check_disk(plan)?;
    // PostgreSQL runs as a different user if this process runs as root.
    let temporary = ScratchFolder::new(&plan.folder, "bench");
    let temporary = temporary.and_then(ScratchFolder::let_others_enter);
    let temporary = temporary.context("cannot use the work directory")?;
    let folder = if plan.keep { &*plan.folder } else { temporary.path() };
    bar.set_message("loading");
    let fixture = load(folder, plan.cipher, plan.rows, bar)?;
    let mut report = BenchReport {
        format: REPORT_FORMAT,
        benchmark: "tps".into(),
        machine: MachineInfo::here(&plan.folder),
        command: plan.command.clone(),
        settings: settings(&fixture, plan)?,
        configurations: Vec::new(),
        tables: Vec::new(),
        matrices: Vec::new(),
        goals: Vec::new(),
        notes: Vec::new(),
        title: TITLE.into(),
        lead: LEAD.into(),
    };
    let mut run = TpsBenchRun { plan, bar, tables: &mut report.tables };
    run.one_database(&fixture)?;
    fixture.check_sum()?;
    if plan.wants(TpsBenchPart::Cipher) {
        let beds = cipher_beds(temporary.path(), &fixture, plan.rows.min(CIPHER_ROWS_MAX), bar)?;
        run.sections(sections::ciphers(&beds))?;
    }
    if plan.wants(TpsBenchPart::Vaults) {
        bar.set_message("vaults");
        let vaults =
            VaultFilesFixture::create(temporary.path(), plan.vaults, &fixture.runtime, bar)?;
        run.sections([vaults.section()])?;
    }
    for competitor in &plan.against {
        match competitor {
            TpsCompetitor::Postgres => against_postgres(&mut run, temporary.path(), &fixture)?,
            TpsCompetitor::Libraries => {
                let absent = against_libraries(&mut run, temporary.path(), &fixture)?;
                report.notes.extend(absent);
            }
        }
    }
    bar.finish_and_clear();
    Ok(report)
}

impl TpsBenchPlan {
    fn wants(&self, part: TpsBenchPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

struct TpsBenchRun<'a> {
    plan: &'a TpsBenchPlan,
    bar: &'a ProgressBar,
    tables: &'a mut Vec<ResultTable>,
}

impl TpsBenchRun<'_> {
    fn one_database(&mut self, fixture: &TpsFixture) -> anyhow::Result<()> {
        type SectionBuilder = fn(&TpsFixture) -> BenchSection<'static>;
        let parts: [(TpsBenchPart, SectionBuilder); 5] = [
            (TpsBenchPart::Published, sections::published),
            (TpsBenchPart::Durability, sections::durability),
            (TpsBenchPart::Isolation, sections::isolation),
            (TpsBenchPart::Mixed, sections::mixed),
            (TpsBenchPart::Pauses, pauses::section),
        ];
        for (part, build) in parts {
            if self.plan.wants(part) {
                self.sections([build(fixture)])?;
            }
        }
        Ok(())
    }

    fn sections<'s>(
        &mut self,
        sections: impl IntoIterator<Item = BenchSection<'s>>,
    ) -> anyhow::Result<()> {
        let stop_rule = StopRule::rounds(self.plan.rounds, self.plan.duration);
        for section in sections {
            let table = suite::run(section, &stop_rule, self.bar)?;
            self.tables.push(table);
        }
        Ok(())
    }
}

/// Creates the table in a file of `folder`, unless it exists.
pub(crate) fn load(
    folder: &Path,
    cipher: Option<Cipher>,
    rows: i64,
    bar: &ProgressBar,
) -> anyhow::Result<TpsFixture> {
    let name = cipher.map_or("none", Cipher::name);
    let encryption = match cipher {
        None => FileEncryption::None,
        Some(_) => FileEncryption::Key { key: DatabaseKey::from_bytes([7; 32]), cipher },
    };
    TpsFixture::load(folder.join(format!("accounts-{rows}-{name}.db")), encryption, rows, bar)
}

/// Loads a table for each cipher. The table without a cipher is the first, because it is the
/// baseline.
fn cipher_beds(
    folder: &Path,
    fixture: &TpsFixture,
    rows: i64,
    bar: &ProgressBar,
) -> anyhow::Result<Vec<(String, TpsFixture)>> {
    let ciphers = [None, Some(Cipher::ChaCha20), Some(Cipher::Aes256Cbc), Some(Cipher::Aegis)];
    let beds = ciphers.into_iter().map(|cipher| {
        let name = cipher.map_or("none", Cipher::name);
        bar.set_message(format!("loading, {name}"));
        let mut loaded = load(folder, cipher, rows, bar)?;
        loaded.runtime.clone_from(&fixture.runtime);
        Ok((name.to_owned(), loaded))
    });
    beds.collect()
}

fn against_postgres(
    run: &mut TpsBenchRun<'_>,
    folder: &Path,
    fixture: &TpsFixture,
) -> anyhow::Result<()> {
    run.bar.set_message("PostgreSQL: loading");
    let server = BenchPostgres::start(folder)?;
    postgres::load(&server, fixture.rows, run.bar)?;
    let title = format!(
        "PostgreSQL with a pool of 8 connections, by milliseconds between two statements ({})",
        server.settings_text()?
    );
    let mut cases = vec![sections::warren(fixture)];
    cases.extend(postgres::cases(&server, &fixture.pairs, true));
    cases.extend(postgres::cases(&server, &fixture.pairs, false));
    let name = "postgres".to_owned();
    run.sections([BenchSection { name, unit: UNIT, title, cases }])?;
    postgres::check_sum(&server, fixture.rows)
}

/// Measures the libraries and returns notes on those that are absent.
fn against_libraries(
    run: &mut TpsBenchRun<'_>,
    folder: &Path,
    fixture: &TpsFixture,
) -> anyhow::Result<Vec<String>> {
    anyhow::ensure!(
        matches!(fixture.encryption, FileEncryption::None),
        "the competitors do not support encryption; run them without --cipher"
    );
    let found = competitors::find(&run.plan.competitors, &target(&run.plan.competitors), run.bar);
    let pairs = folder.join("pairs");
    competitors::write_pairs(&pairs, &fixture.pairs)?;
    for (name, synchronous, reads, ours) in sections::beside_libraries() {
        let workload = competitors::plan::CompetitorWorkload {
            database: &fixture.path,
            pairs: &pairs,
            cache_kib: fixture::CACHE_KIB,
            synchronous,
            reads,
        };
        let mut cases = vec![ours(fixture)];
        cases.extend(competitors::cases(&found, workload));
        let title = "SQLite libraries, each used as in its documentation, with the same \
                     durability, and with a thousand callers unless marked \"one caller\"";
        let (name, title) = (name.to_owned(), title.to_owned());
        run.sections([BenchSection { name, unit: UNIT, title, cases }])?;
        fixture.check_sum()?;
    }
    Ok(found.absent.iter().map(UnavailableCompetitor::note).collect())
}

/// Returns an error before the loading starts if the disk has too little space.
fn check_disk(plan: &TpsBenchPlan) -> anyhow::Result<()> {
    let mut needed = accounts::disk_bytes(plan.rows, plan.duration);
    if plan.wants(TpsBenchPart::Cipher) {
        needed += 4 * accounts::disk_bytes(plan.rows.min(CIPHER_ROWS_MAX), plan.duration);
    }
    if plan.against.contains(&TpsCompetitor::Postgres) {
        let measured = postgres::measured(plan.duration, plan.rounds);
        needed += postgres::disk_bytes(plan.rows, measured);
    }
    disk::check(&plan.folder, needed, &counted(plan.rows, "row", "rows"))
}

fn settings(fixture: &TpsFixture, plan: &TpsBenchPlan) -> anyhow::Result<Vec<ReportSetting>> {
    let db = fixture.connection()?;
    let mut settings = vec![
        ReportSetting::new("rows", plan.rows.to_string()),
        ReportSetting::new("rounds", plan.rounds.to_string()),
        ReportSetting::new("seconds a case", format_threshold(plan.duration.as_secs_f64())),
        ReportSetting::new("cipher", plan.cipher.map_or("none", Cipher::name)),
    ];
    for name in ["journal_mode", "synchronous", "page_size", "cache_size", "foreign_keys"] {
        let value = db.query_row(&format!("PRAGMA {name}"), [], |row| {
            let value: rusqlite::types::Value = row.get(0)?;
            Ok(match value {
                rusqlite::types::Value::Integer(value) => value.to_string(),
                rusqlite::types::Value::Text(text) => text,
                other => format!("{other:?}"),
            })
        })?;
        settings.push(ReportSetting::new(name, value));
    }
    Ok(settings)
}
