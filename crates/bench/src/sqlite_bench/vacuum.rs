//! `warren bench vacuum`: measures rewriting a file, with temporary files in different places, and
//! the effect of `auto_vacuum` while messages are inserted and deleted.
//!
//! # Invariants
//! - Every VACUUM runs in a separate process, the shipped `warren vacuum`, so that its peak memory
//!   is its own, and on a copy of the same file, so that rounds are comparable.
//!
//! # Not here
//! - `auto_vacuum` → `vacuum/churn.rs`.

mod churn;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use engine::{Profile, ScratchFolder};
use indicatif::ProgressBar;
use rusqlite::Connection;
use serde::Deserialize;
use tempfile::TempDir;

use self::churn::megabytes;
use super::configuration::{EffectiveConfiguration, PragmaConfiguration};
use super::execute_plan::unlock;
use super::message::{BodyLayout, CipherAndKey, MailboxTable, encryption};
use super::{MeasureOptions, MeasureTimeBudget};
use crate::competitors::process;
use crate::disk;
use crate::machine::MachineInfo;
use crate::measure::RoundSample;
use crate::report::{BenchReport, REPORT_FORMAT};
use crate::suite::{BenchCase, BenchSection, run as run_section};

/// The options of the benchmark.
#[derive(Clone, Debug)]
pub struct VacuumBenchPlan {
    /// The measuring options.
    pub method: MeasureOptions,
    /// The size of the file before its VACUUM.
    pub megabytes: u64,
    /// The cipher; the file is measured without a cipher and with this one.
    pub cipher: String,
    /// The number of messages in the file on which `auto_vacuum` works.
    pub churn_rows: i64,
    /// The path of the `warren` that carries out each VACUUM.
    pub program: PathBuf,
    /// The parts to measure; empty for all.
    pub only: Vec<VacuumBenchPart>,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VacuumBenchPart {
    /// VACUUM, which rewrites a file.
    Vacuum,
    /// `auto_vacuum` while messages are inserted and deleted.
    Churn,
}

const TITLE: &str = "Warren: VACUUM and auto_vacuum";
const LEAD: &str = "VACUUM rewrites a file through a temporary file of the same size. The \
    temporary file can be on the disk, in the process's memory, or in /dev/shm, which is memory \
    outside the process. VACUUM INTO writes the new file directly. Each case runs in a separate \
    process on a copy of the same file, from which a fifth of the messages were deleted. The copy \
    is in the operating system's cache. auto_vacuum returns free pages while messages are inserted \
    and deleted; each round uses a new file.";
/// The ciphers that `warren` tries when none is given.
const FOUND_CIPHERS: [&str; 2] = ["chacha20", "aes256cbc"];
const SHM: &str = "/dev/shm";
const BODY_BYTES: usize = 3_500;
/// The size of a message in the file: a page.
const MESSAGE_BYTES: u64 = 4_096 + 150;
/// The disk space as a multiple of the file's size: the file, its copy, the new file, the
/// temporary file and the WAL.
const TIMES_ITS_SIZE: u64 = 5;

/// Runs the plan; `bar` shows the progress.
pub fn run(plan: &VacuumBenchPlan, bar: &ProgressBar) -> anyhow::Result<BenchReport> {
    let MeasureOptions { folder, command, .. } = &plan.method;
    let has = |part| plan.only.is_empty() || plan.only.contains(&part);
    let bytes = plan.megabytes.saturating_mul(1_000_000);
    let needed =
        if has(VacuumBenchPart::Vacuum) { bytes.saturating_mul(TIMES_ITS_SIZE) } else { 0 };
    let needed = needed.max(churn::disk_bytes(plan.churn_rows));
    disk::check(folder, needed, &format!("VACUUM of {} MB", plan.megabytes))?;
    let scratch = ScratchFolder::new(folder, "bench").context("cannot use the work directory")?;
    let (mut tables, mut notes, mut configured) = (Vec::new(), Vec::new(), Vec::new());
    let ciphers = [None, Some(plan.cipher.as_str())];
    let (vacuums, churns) = (
        if has(VacuumBenchPart::Vacuum) { 2 } else { 0 },
        usize::from(has(VacuumBenchPart::Churn)),
    );
    let mut budget = MeasureTimeBudget::new(&plan.method, 2 * vacuums + churns);
    if has(VacuumBenchPart::Churn) {
        let configurations = churn::configurations()?;
        for one in &configurations {
            configured.push(EffectiveConfiguration::read_back(one, &None, scratch.path())?);
        }
        let section = churn::section(scratch.path(), &configurations, plan.churn_rows, bar);
        tables.push(run_section(section, &budget.next(), bar)?);
    }
    if has(VacuumBenchPart::Vacuum) {
        let shared = shared_memory(bytes)?;
        if shared.is_none() {
            notes.push(format!("absent: temporary files in {SHM} (not enough space)"));
        }
        for cipher in ciphers {
            let file = VacuumFixture::make(plan, cipher, scratch.path(), bar)?;
            let section = file.section(plan, shared.as_ref());
            tables.push(run_section(section, &budget.share(2), bar)?);
        }
    }
    bar.finish_and_clear();
    Ok(BenchReport {
        format: REPORT_FORMAT,
        benchmark: "vacuum".into(),
        machine: MachineInfo::here(folder),
        command: command.clone(),
        settings: plan.method.settings(),
        configurations: configured,
        tables,
        matrices: Vec::new(),
        goals: Vec::new(),
        notes,
        title: TITLE.into(),
        lead: LEAD.into(),
    })
}

/// Returns a folder in memory with room for `bytes`, if there is one.
fn shared_memory(bytes: u64) -> anyhow::Result<Option<ScratchFolder>> {
    let has_room = disk::check(Path::new(SHM), bytes, "temporary files").is_ok();
    Ok(if has_room { Some(ScratchFolder::new(Path::new(SHM), "bench")?) } else { None })
}

/// A file that is rewritten repeatedly.
struct VacuumFixture {
    folder: TempDir,
    cipher: Option<String>,
}

impl VacuumFixture {
    /// Creates a file of about the planned size.
    fn make(
        plan: &VacuumBenchPlan,
        cipher: Option<&str>,
        folder: &Path,
        bar: &ProgressBar,
    ) -> anyhow::Result<Self> {
        let name = cipher.unwrap_or("no cipher");
        bar.set_message(format!("creating a file of {} MB, {name}", plan.megabytes));
        let subject =
            Self { folder: tempfile::tempdir_in(folder)?, cipher: cipher.map(str::to_owned) };
        let profile = Profile::by_name("baseline").context("there is no profile `baseline`")?;
        let settings = PragmaConfiguration::from_profile(profile).settings;
        let rows = i64::try_from(plan.megabytes.saturating_mul(1_000_000) / MESSAGE_BYTES)?.max(10);
        let mailbox = MailboxTable { layout: BodyLayout::Last, rows, body_bytes: BODY_BYTES };
        let encryption = subject.encryption();
        mailbox.make(&subject.original(), &settings, &encryption)?;
        let db = Connection::open(subject.original())?;
        if let Some((cipher, key)) = &encryption {
            unlock(&db, cipher, key)?;
            std::fs::write(subject.key_file(), key)?;
        }
        db.execute("DELETE FROM message WHERE id % 5 = 0", [])?;
        // The last connection copies the WAL into the file when it closes.
        db.close().map_err(|(_, error)| error)?;
        Ok(subject)
    }

    fn encryption(&self) -> CipherAndKey {
        encryption(self.cipher.as_deref())
    }

    fn original(&self) -> PathBuf {
        self.folder.path().join("original.sqlite")
    }

    fn key_file(&self) -> PathBuf {
        self.folder.path().join("key")
    }

    fn section<'a>(
        &'a self,
        plan: &'a VacuumBenchPlan,
        shared: Option<&'a ScratchFolder>,
    ) -> BenchSection<'a> {
        let disk = self.folder.path();
        let mut ways = vec![
            (
                "VACUUM, temporary files on this disk",
                vec!["--in-place", "--temp-store", "file"],
                disk,
            ),
            (
                "VACUUM, temporary files in memory",
                vec!["--in-place", "--temp-store", "memory"],
                disk,
            ),
        ];
        if let Some(shared) = shared {
            let arguments = vec!["--in-place", "--temp-store", "file"];
            ways.push(("VACUUM, temporary files in /dev/shm", arguments, shared.path()));
        }
        ways.push(("VACUUM INTO a new file", vec![], disk));
        let cipher = self.cipher.as_deref();
        let cases = ways.into_iter().map(|(name, arguments, temporary)| {
            BenchCase::new(name, move |_| self.vacuum(plan, &arguments, temporary))
        });
        BenchSection {
            name: format!("vacuum-{}", cipher.unwrap_or("none")),
            unit: "MB",
            title: format!(
                "a file of {} MB, {}; including the check that no rows are missing; rates count \
                 megabytes of the original file",
                plan.megabytes,
                cipher.map_or("not encrypted".to_owned(), |cipher| format!("cipher {cipher}"))
            ),
            cases: cases.collect(),
        }
    }

    fn vacuum(
        &self,
        plan: &VacuumBenchPlan,
        arguments: &[&str],
        temporary: &Path,
    ) -> anyhow::Result<RoundSample> {
        let copy = self.folder.path().join("copy.sqlite");
        std::fs::copy(self.original(), &copy)?;
        std::fs::File::open(&copy)?.sync_all()?;
        let mut command = Command::new(&plan.program);
        command.arg("vacuum").arg(&copy).args(arguments).arg("--json");
        command.env("SQLITE_TMPDIR", temporary);
        if let Some(cipher) = &self.cipher {
            command.arg("--key-file").arg(self.key_file());
            if !FOUND_CIPHERS.contains(&cipher.as_str()) {
                command.args(["--cipher", cipher]);
            }
        }
        let time_max = Duration::from_mins(1) + Duration::from_secs(plan.megabytes);
        let output = process::run(&mut command, "", time_max)?;
        let answer = VacuumResult::parse(&output.stdout)?;
        std::fs::remove_file(&copy)?;
        answer.sample()
    }
}

/// The output of `warren vacuum --json`.
#[derive(Clone, Debug, Deserialize)]
struct VacuumResult {
    before_bytes: u64,
    after_bytes: u64,
    duration_ms: f64,
    /// The peak memory, if the system reports it.
    peak_memory_bytes: Option<u64>,
}

impl VacuumResult {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let answer = serde_json::from_str(text);
        answer.with_context(|| format!("unexpected output of `warren vacuum`: {}", text.trim()))
    }

    fn sample(&self) -> anyhow::Result<RoundSample> {
        let Self { before_bytes, after_bytes, duration_ms, peak_memory_bytes } = *self;
        ensure!(
            after_bytes < before_bytes,
            "VACUUM wrote {after_bytes} bytes for a file of {before_bytes}, although a fifth of it \
             was free"
        );
        // The duration is in whole milliseconds; 0 stands for less than one.
        let seconds = duration_ms.max(1.0) / 1e3;
        let elapsed = Duration::try_from_secs_f64(seconds)?;
        let mut sample = RoundSample::new(before_bytes / 1_000_000, elapsed);
        sample.metrics.push(("seconds", seconds));
        let peak = peak_memory_bytes.map(|bytes| ("memory peak, MB", megabytes(bytes)));
        sample.metrics.extend(peak);
        sample.metrics.push(("file after, MB", megabytes(after_bytes)));
        Ok(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_warren_vacuum_answers_is_a_sample() {
        let text = r#"{"path":"x","method":"copy","before_bytes":5000000,"after_bytes":4000000,
                       "rows_count":7,"duration_ms":500,"peak_memory_bytes":12000000}"#;
        let sample = VacuumResult::parse(text).unwrap().sample().unwrap();
        assert!((sample.rate() - 10.0).abs() < 1e-9, "{sample:?}");
        let metrics = [("seconds", 0.5), ("memory peak, MB", 12.0), ("file after, MB", 4.0)];
        assert_eq!(sample.metrics, metrics);
        let silent = text.replace("12000000", "null");
        assert_eq!(VacuumResult::parse(&silent).unwrap().sample().unwrap().metrics.len(), 2);
        let same = VacuumResult::parse(&text.replace("4000000", "5000000")).unwrap();
        assert!(same.sample().is_err(), "nothing was given back");
        let refused = VacuumResult::parse(r#"{"error":{"code":"busy"}}"#).unwrap_err();
        assert!(refused.to_string().contains("busy"));
    }
}
