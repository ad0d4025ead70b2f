//! Test programs, a few at once: what failed, what was slowest, and one closing line.
//!
//! A program says what happens in lines of JSON, as libtest does
//! (`--format json`, <https://github.com/rust-lang/rust/issues/49359>); `web/tests/reporter.mjs` does
//! the same for Node. Other lines are shown if something failed.
//!
//! # Invariants
//! - A program that ends badly without a failed test counts as one failure, named after it.
//! - A program that hangs is killed after [`JOB_SILENCE_MAX`], and the tests that it did not end are named.

use std::collections::{BTreeSet, VecDeque};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;

use crate::{now, say};

/// Programs that run at one time: most wait, for disks, servers and browsers, a part of theirs.
const JOBS_COUNT_MAX: usize = 2;

/// How long a program may say nothing. The longest test takes a minute, and four on a machine that
/// has four times as much to do; how long they take together says nothing about any of them.
const JOB_SILENCE_MAX: Duration = Duration::from_mins(15);

/// Those that take longest, first: else others are long done when they end.
const LONG: &[&str] = &[
    "cli e2e",
    "cli actual",
    "cli faults",
    "cli attacks",
    "replica it",
    "engine it",
    "web plan-screens",
    "web bundlers",
    "web plan-large",
];

/// Lines of a program that wait to be read, and those that are kept.
const LINES_COUNT_MAX: usize = 10_000;

/// How many of the slowest tests are named in the end.
const SLOWEST_COUNT: usize = 30;

/// How much of what a failed test said is told again in the end.
const OUTPUT_LINES_COUNT: usize = 12;

/// Below this much room in memory, temporary files go to the disk: a whole run holds half of it at most,
/// when the tests of large first syncs run.
const MEMORY_BYTES_MIN: u64 = 4 << 30;

/// A program that tests.
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) command: Command,
    /// Whether it is about the disk, so that its temporary files belong there.
    pub(crate) is_about_disk: bool,
}

/// What became of tests.
#[derive(Default, Debug)]
struct Outcome {
    passed_count: usize,
    failed: Vec<Failure>,
    /// With the seconds that each took.
    took: Vec<(f64, String)>,
}

/// A test that failed.
#[derive(PartialEq, Debug)]
struct Failure {
    /// With the name of its job.
    test: String,
    /// The first of what it said.
    output: String,
}

impl Failure {
    fn new(test: String, output: &str) -> Self {
        let lines: Vec<_> = output.lines().take(OUTPUT_LINES_COUNT).collect();
        Self { test, output: lines.join("\n") }
    }
}

/// Runs them, and says how they ended. The last line is `N passed, N failed`.
pub(crate) fn run(jobs: Vec<Job>) -> Result<bool> {
    run_all(jobs)?.report()
}

fn run_all(mut jobs: Vec<Job>) -> Result<Outcome> {
    jobs.sort_by_key(|job| LONG.iter().position(|name| *name == job.name).unwrap_or(LONG.len()));
    let memory = folder_in_memory()?;
    if let Some(folder) = &memory {
        for job in jobs.iter_mut().filter(|job| !job.is_about_disk) {
            job.command.env("TMPDIR", folder.path());
        }
    }
    let waiting = Mutex::new(VecDeque::from(jobs));
    let outcome = Mutex::new(Outcome::default());
    // Its guard ends here: in the loop's own condition it would live as long as the job runs.
    let next = || lock(&waiting).pop_front();
    let work = || -> Result<()> {
        while let Some(job) = next() {
            let ran = run_one(job)?;
            lock(&outcome).add(ran);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..JOBS_COUNT_MAX).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    Ok(outcome.into_inner().unwrap_or_else(PoisonError::into_inner))
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.passed_count += other.passed_count;
        self.failed.extend(other.failed);
        self.took.extend(other.took);
    }

    fn report(mut self) -> Result<bool> {
        self.took.sort_by(|(left, _), (right, _)| right.total_cmp(left));
        say(format_args!("the slowest of {} tests:", self.took.len()))?;
        for (seconds, test) in self.took.iter().take(SLOWEST_COUNT) {
            say(format_args!("{seconds:8.1} s  {test}"))?;
        }
        // Once more at the end, where one looks first, and which is kept of long logs.
        for Failure { test, output } in &self.failed {
            say(format_args!("FAILED {test}\n{output}"))?;
        }
        say(format_args!("{} passed, {} failed", self.passed_count, self.failed.len()))?;
        Ok(self.failed.is_empty())
    }
}

/// A folder for temporary files that no disk has to flush, where there is room for one. What a process
/// that is killed leaves behind is the same there: the difference is a power loss, which no test makes.
fn folder_in_memory() -> Result<Option<TempDir>> {
    const SHARED_MEMORY: &str = "/dev/shm";
    let df = Command::new("df").args(["--block-size=1", "--output=avail", SHARED_MEMORY]).output();
    let available = df.ok().and_then(|df| {
        let text = String::from_utf8(df.stdout).ok()?;
        text.lines().nth(1)?.trim().parse::<u64>().ok()
    });
    if available.is_none_or(|bytes| bytes < MEMORY_BYTES_MIN) {
        return Ok(None);
    }
    // PostgreSQL runs as a user of its own.
    let mut folder = tempfile::Builder::new();
    folder.prefix("warren-tests-").permissions(Permissions::from_mode(0o755));
    Ok(Some(folder.tempdir_in(SHARED_MEMORY)?))
}

fn run_one(mut job: Job) -> Result<Outcome> {
    let start = now();
    let child = job.command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn();
    let mut child = child.with_context(|| format!("cannot start {}", job.name))?;
    let mut watched = Watched::new(job.name);
    let ended = watched.follow(&mut child)?;
    if !ended {
        child.kill()?;
    }
    let status = child.wait()?;
    watched.end(ended, status.success());
    let Watched { name, outcome, lines, .. } = watched;
    if !outcome.failed.is_empty() {
        lines.iter().try_for_each(say)?;
    }
    let counts = format!("{} passed, {} failed", outcome.passed_count, outcome.failed.len());
    say(format_args!("{name}: {counts} in {:.1} s", start.elapsed().as_secs_f64()))?;
    Ok(outcome)
}

/// A job that runs.
struct Watched {
    name: String,
    outcome: Outcome,
    /// Its tests that have begun and not ended.
    running: BTreeSet<String>,
    /// What else it said, the first of it.
    lines: Vec<String>,
}

impl Watched {
    fn new(name: String) -> Self {
        let (outcome, running) = (Outcome::default(), BTreeSet::new());
        Self { name, outcome, running, lines: Vec::new() }
    }

    /// Reads what it says to the end, and returns whether that came, or it fell silent.
    fn follow(&mut self, child: &mut Child) -> Result<bool> {
        let stdout = child.stdout.take().context("stdout is piped")?;
        let lines = lines(stdout);
        loop {
            match lines.recv_timeout(JOB_SILENCE_MAX) {
                Ok(line) => self.hear(&line)?,
                Err(RecvTimeoutError::Disconnected) => return Ok(true),
                Err(RecvTimeoutError::Timeout) => return Ok(false),
            }
        }
    }

    fn hear(&mut self, line: &str) -> Result<()> {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            self.outcome.passed_count += passed_count(line).unwrap_or(0);
            if self.lines.len() < LINES_COUNT_MAX {
                self.lines.push(line.to_owned());
            }
            return Ok(());
        };
        let (Some(kind), Some(name)) = (event["event"].as_str(), event["name"].as_str()) else {
            return Ok(());
        };
        let test = format!("{}: {name}", self.name);
        match kind {
            "started" => drop(self.running.insert(test)),
            "ok" | "failed" => {
                self.running.remove(&test);
                if let Some(seconds) = event["exec_time"].as_f64() {
                    self.outcome.took.push((seconds, test.clone()));
                }
                if kind == "ok" {
                    self.outcome.passed_count += 1;
                } else {
                    let output = event["stdout"].as_str().unwrap_or_default();
                    say(format_args!("---- {test} ----\n{output}"))?;
                    self.outcome.failed.push(Failure::new(test, output));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, ended: bool, succeeded: bool) {
        let why = if ended { "did not end" } else { "hung" };
        let unended = std::mem::take(&mut self.running);
        let said = self.lines.join("\n");
        let unended =
            unended.into_iter().map(|test| Failure::new(format!("{test} ({why})"), &said));
        self.outcome.failed.extend(unended);
        if !succeeded && self.outcome.failed.is_empty() {
            self.outcome.failed.push(Failure::new(format!("{} (ended badly)", self.name), &said));
        }
    }
}

/// Examples in documentation cannot be told to speak JSON: `test result: ok. 2 passed; 0 failed; …`.
fn passed_count(line: &str) -> Option<usize> {
    line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse().ok()
}

/// The lines of a program, as they come; one that says more than is read waits.
fn lines(stdout: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(LINES_COUNT_MAX);
    thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        let mut line = Vec::new();
        while stdout.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if sender.send(text).is_err() {
                return;
            }
            line.clear();
        }
    });
    receiver
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(name: &str, script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job { name: name.to_owned(), command, is_about_disk: false }
    }

    fn outcome(script: &str) -> Outcome {
        run_one(shell("job", script)).unwrap()
    }

    #[test]
    fn tests_are_counted_and_timed() {
        let outcome = outcome(
            r#"echo '{"type":"test","event":"started","name":"a"}'
               echo '{"type":"test","event":"ok","name":"a","exec_time":1.5}'
               echo '{"type":"test","event":"ignored","name":"b"}'
               echo '{"type":"test","event":"failed","name":"c","exec_time":2,"stdout":"why"}'
               echo 'test result: ok. 2 passed; 0 failed; 0 ignored'
               echo 'not JSON'; exit 101"#,
        );
        assert_eq!(outcome.passed_count, 3);
        assert_eq!(outcome.failed, [Failure::new("job: c".to_owned(), "why")]);
        assert_eq!(outcome.took, [(1.5, "job: a".to_owned()), (2.0, "job: c".to_owned())]);
    }

    #[test]
    fn a_program_that_dies_fails_and_so_does_what_it_did_not_end() {
        let badly = Failure::new("job (ended badly)".to_owned(), "why");
        assert_eq!(outcome("echo why; exit 3").failed, [badly]);
        let begun = r#"echo '{"event":"started","name":"a"}'; kill -9 $$"#;
        assert_eq!(outcome(begun).failed, [Failure::new("job: a (did not end)".to_owned(), "")]);
        assert!(outcome("true").failed.is_empty());
    }

    #[test]
    fn two_run_at_one_time() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // Each end of a pipe waits until the other is opened.
        let jobs = [format!("cat {}", pipe.display()), format!("echo x > {}", pipe.display())];
        let jobs = jobs.iter().map(|script| shell("end", script)).collect();
        assert!(run_all(jobs).unwrap().failed.is_empty());
    }
}
