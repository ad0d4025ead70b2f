//! Manages the measured files: one for each case, created when the case first runs, and copied for
//! each round.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use engine::{remove_if_there, side_file_path};
use indicatif::ProgressBar;

use super::configuration::{EffectiveConfiguration, PragmaConfiguration};
use super::execute_plan::execute_plan;
use super::message::{CipherAndKey, MailboxTable, steps};
use super::plan::{LabPlan, LabResult, LabStep, StepTiming};
use crate::format::{counted, whole};
use crate::measure::{CPU_US, RoundSample, time};
use crate::suite::{BenchCase, CaseGroup, ResultTable, StopRule, TableHeading, run_group};

/// The sizes of transactions: one operation, and a size that the published program never tried.
pub(crate) const TRANSACTIONS: &[usize] = &[1, 100];
/// The `--only` name of the creation of new files.
pub(crate) const SETUP: &str = "setup";

/// A table of messages in a folder, and the operations to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageTableFixture<'a> {
    /// The name of the fixture, if a report has several; it begins the names of its tables.
    pub(crate) name: &'a str,
    pub(crate) folder: &'a Path,
    pub(crate) mailbox: &'a MailboxTable,
    /// The sizes of write transactions.
    pub(crate) transactions: &'a [usize],
    /// The steps to measure, by name, or by operation for all transaction sizes; empty for all.
    pub(crate) only: &'a [String],
    /// Whether the creation of new files is measured in addition to the operations.
    pub(crate) sets_up: bool,
    /// The progress bar, which shows what is created.
    pub(crate) bar: &'a ProgressBar,
}

impl MessageTableFixture<'_> {
    /// Returns one heading for each selected step.
    pub(crate) fn headings(&self) -> Vec<TableHeading> {
        let rows = whole(self.mailbox.rows);
        let body = counted(self.mailbox.body_bytes, "byte", "bytes");
        let steps = steps(self.transactions, 0.0).into_iter();
        let headings = steps.filter(|step| self.wants(&step.name)).map(|step| TableHeading {
            name: format!("{}-{}", self.name, step.name),
            unit: "operations",
            title: format!("{}; {rows} messages of {body}", about(&step.cycle, step.transaction)),
        });
        let setup = self.has_setup().then(|| TableHeading {
            name: format!("{}-{SETUP}", self.name),
            unit: "files",
            title: "new files: opened, configured, given their tables, closed".to_owned(),
        });
        headings.chain(setup).collect()
    }

    fn has_setup(&self) -> bool {
        self.sets_up && self.wants(SETUP)
    }

    /// Returns the selected steps, and the inserts whose rows they delete.
    pub(crate) fn steps(&self, seconds: f64) -> Vec<LabStep> {
        let mut steps = steps(self.transactions, seconds);
        steps.retain(|step| {
            self.wants(&step.name) || self.wants(&step.name.replace("insert", "delete"))
        });
        steps
    }

    /// Returns one sample for each heading of an operation.
    pub(crate) fn samples(&self, answer: &LabResult) -> Vec<RoundSample> {
        answer.steps.iter().filter(|step| self.wants(&step.name)).map(sample).collect()
    }

    fn wants(&self, step: &str) -> bool {
        let operation = step.split_once('-').map_or(step, |(operation, _)| operation);
        self.only.is_empty() || self.only.iter().any(|name| name == step || name == operation)
    }
}

/// Returns the names of all steps with descriptions.
pub(crate) fn step_names(transactions: &[usize]) -> Vec<(String, String)> {
    let steps = steps(transactions, 0.0).into_iter();
    let named = steps.map(|step| {
        let about = about(&step.cycle, step.transaction);
        (step.name, about)
    });
    named.collect()
}

/// A row in the tables of a fixture, measured in a file with its name.
#[derive(Clone, Debug)]
pub(crate) struct MeasuredCase<'a> {
    pub(crate) name: &'a str,
    pub(crate) configuration: &'a PragmaConfiguration,
    /// The table, with as many rows and bytes as those of the other cases.
    pub(crate) mailbox: MailboxTable,
    pub(crate) encryption: CipherAndKey,
}

/// Measures the rows, the baseline first. The baseline uses the fixture's own table. The files stay
/// in the fixture's folder.
pub(crate) fn measure(
    fixture: MessageTableFixture<'_>,
    rows: &[MeasuredCase<'_>],
    stop_rule: &StopRule,
) -> anyhow::Result<Vec<ResultTable>> {
    let cases = rows.iter().map(|MeasuredCase { name, configuration, mailbox, encryption }| {
        case(MessageTableFixture { mailbox, ..fixture }, name, name, configuration, encryption)
    });
    let group = CaseGroup { headings: fixture.headings(), cases: cases.collect() };
    run_group(group, stop_rule, fixture.bar)
}

/// Measures a configuration on its own file, called `file`, whose every connection must have the
/// settings that a new file gets. Each round has a new copy of the file: its position on the disk
/// and in memory makes a difference of a few percent, which would be the same in every round and
/// pass for a difference between configurations.
pub(crate) fn case<'a>(
    fixture: MessageTableFixture<'a>,
    name: &str,
    file: &str,
    configuration: &PragmaConfiguration,
    encryption: &CipherAndKey,
) -> BenchCase<'a, Vec<RoundSample>> {
    case_by(fixture, name, file, configuration, encryption, execute_plan)
}

/// Measures a configuration like [`case`], but with another function that carries out the plan.
pub(crate) fn case_by<'a>(
    fixture: MessageTableFixture<'a>,
    name: &str,
    file: &str,
    configuration: &PragmaConfiguration,
    encryption: &CipherAndKey,
    carry_out: impl Fn(&LabPlan) -> anyhow::Result<LabResult> + 'a,
) -> BenchCase<'a, Vec<RoundSample>> {
    let path = fixture.folder.join(file);
    let (configuration, encryption) = (configuration.clone(), encryption.clone());
    let mut made: Option<EffectiveConfiguration> = None;
    BenchCase::new(name, move |duration: Duration| {
        let settings = &configuration.settings;
        let configured = if let Some(configured) = &made {
            configured
        } else {
            fixture.bar.set_message(format!("creating a file: {}", configuration.name));
            fixture.mailbox.make(&path, settings, &encryption)?;
            made.insert(EffectiveConfiguration::read_back(
                &configuration,
                &encryption,
                fixture.folder,
            )?)
        };
        let copy = RoundCopy::copy(&path)?;
        let steps = fixture.steps(duration.as_secs_f64());
        let answer = carry_out(&fixture.mailbox.plan(&copy.0, settings, &encryption, steps))?;
        configured.check(&answer.settings)?;
        let mut samples = fixture.samples(&answer);
        if fixture.has_setup() {
            let new = path.with_extension("new");
            let set_up = || fixture.mailbox.set_up(&new, settings, &encryption);
            samples.push(self::set_up(&new, duration, set_up)?);
        }
        Ok(samples)
    })
}

/// Creates one new file after the other for about `duration`. Removing them does not count.
fn set_up(
    new: &Path,
    duration: Duration,
    make: impl Fn() -> anyhow::Result<()>,
) -> anyhow::Result<RoundSample> {
    let (mut files, mut elapsed) = (0, Duration::ZERO);
    while files == 0 || elapsed < duration {
        let _gone_at_the_end = RoundCopy(new.to_owned());
        let ((), took) = time(&make)?;
        elapsed += took;
        files += 1;
    }
    Ok(RoundSample::each(files, elapsed))
}

/// A file for one round, which is removed when this value is dropped.
pub(crate) struct RoundCopy(pub(crate) PathBuf);

impl RoundCopy {
    pub(crate) fn copy(original: &Path) -> anyhow::Result<Self> {
        let copy = Self(original.with_extension("round"));
        std::fs::copy(original, &copy.0).with_context(|| copy.0.display().to_string())?;
        // Without this, the disk would be busy with the copy while the case is measured.
        File::open(&copy.0)?.sync_all()?;
        Ok(copy)
    }
}

impl Drop for RoundCopy {
    fn drop(&mut self) {
        // The loop includes the side files of the journal modes. Files that cannot be removed now
        // are removed with the folder.
        for side in ["", "-wal", "-shm", "-journal"] {
            drop(remove_if_there(&side_file_path(&self.0, side)));
        }
    }
}

/// Returns a step's result as a sample of the suite.
pub(crate) fn sample(timing: &StepTiming) -> RoundSample {
    let mut sample = RoundSample::new(timing.operations, Duration::from_secs_f64(timing.seconds));
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let operations = timing.operations.max(1) as f64;
    sample.metrics.extend(timing.cpu_seconds.map(|cpu| (CPU_US, cpu * 1e6 / operations)));
    sample.metrics.push(("slowest ms", timing.slowest_us / 1e3));
    sample
}

fn about(cycle: &[String], transaction: usize) -> String {
    let what = match cycle {
        [only] => match only.as_str() {
            "insert" => "inserts of a message",
            "list" => "lists of the 50 messages before a random date, without bodies",
            "read" => "reads of the body of a random message",
            "update" => "updates of the flags of a random message",
            _ => "deletes of a message",
        },
        _ => "a mix: of ten operations, 6 reads, 2 updates, 1 insert, 1 delete",
    };
    match transaction {
        1 => what.to_owned(),
        size => format!("{what}; {size} per transaction"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite_bench::message::BodyLayout;

    fn check(only: &[&str], headings: &[&str], steps: &[&str]) {
        let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
        let mailbox = MailboxTable { layout: BodyLayout::Last, rows: 20, body_bytes: 10 };
        let folder = tempfile::tempdir().unwrap();
        let fixture = MessageTableFixture {
            name: "20",
            folder: folder.path(),
            mailbox: &mailbox,
            transactions: &[1, 5],
            only: &only,
            sets_up: false,
            bar: &ProgressBar::hidden(),
        };
        let names = |all: Vec<String>| all.join(" ");
        let found = fixture.headings().into_iter().map(|heading| heading.name).collect();
        assert_eq!(names(found), headings.join(" "));
        let found = fixture.steps(1.0).into_iter().map(|step| step.name).collect();
        assert_eq!(names(found), steps.join(" "));

        let configuration =
            PragmaConfiguration { name: "x".into(), description: String::new(), settings: vec![] };
        let mut case = case(fixture, "x", "x.sqlite", &configuration, &None);
        for _ in 0..2 {
            let samples = (case.run)(Duration::from_millis(5)).unwrap();
            assert_eq!(samples.len(), headings.len());
            assert!(samples.iter().all(|sample| sample.transactions > 0), "{samples:?}");
            assert!(!folder.path().join("x.round").exists(), "each round has a copy of its own");
        }
    }

    #[test]
    fn new_files_are_made_beside_the_operations_and_are_gone() {
        let mailbox = MailboxTable { layout: BodyLayout::Last, rows: 20, body_bytes: 10 };
        let folder = tempfile::tempdir().unwrap();
        let only = ["insert", SETUP].map(str::to_owned);
        let fixture = MessageTableFixture {
            name: "20",
            folder: folder.path(),
            mailbox: &mailbox,
            transactions: &[1],
            only: &only,
            sets_up: true,
            bar: &ProgressBar::hidden(),
        };
        let names: Vec<String> =
            fixture.headings().into_iter().map(|heading| heading.name).collect();
        assert_eq!(names, ["20-insert", "20-setup"]);
        assert!(MessageTableFixture { sets_up: false, ..fixture }.headings().len() == 1);
        let wal = vec![("journal_mode".to_owned(), "WAL".to_owned())];
        let configuration =
            PragmaConfiguration { name: "x".into(), description: String::new(), settings: wal };
        let mut case = case(fixture, "x", "x.sqlite", &configuration, &None);
        let samples = (case.run)(Duration::from_millis(2)).unwrap();
        let [_, setup] = &samples[..] else { panic!("{samples:?}") };
        assert!(setup.transactions > 0 && setup.elapsed >= Duration::from_millis(2), "{setup:?}");
        assert!(!setup.metrics.is_empty());
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn steps_are_picked_by_name_and_by_operation() {
        check(&["list"], &["20-list"], &["list"]);
        check(&["update"], &["20-update", "20-update-5"], &["update", "update-5"]);
        check(&["update-5"], &["20-update-5"], &["update-5"]);
    }

    #[test]
    fn deletes_have_something_to_delete() {
        check(&["delete-5"], &["20-delete-5"], &["insert-5", "delete-5"]);
    }
}
