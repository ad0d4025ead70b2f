//! Runs test programs, a few at a time, and reports the failed tests, those that passed only in a
//! retry, and the slowest.
//!
//! A program reports in lines of JSON, like libtest (`--format json`,
//! <https://github.com/rust-lang/rust/issues/49359>); `web/tests/reporter.mjs` does the same for
//! Node. Other lines are shown if a test failed.
//!
//! # Invariants
//! - Each test has a time limit of its own, [`TEST_TIME_MAX`]. A test that exceeds it, or kills its
//!   program, costs only its own result: the other tests of that program run in another process.
//! - A failed test runs again, alone, after all programs have ended, at most [`RETRIES_COUNT`]
//!   times. If it then passes, it is reported as flaky and does not fail the run.
//! - A program that fails without a failed test counts as one failure, named after it.

pub(crate) mod test_job;
mod test_program;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

use self::test_program::ProgramRun;
use crate::terminal::{now, print_line};
use crate::test_jobs::test_job::{TestFailure, TestJob, lock};

/// The number of programs that run at a time: most spend a part of their time waiting for disks,
/// servers and browsers.
const JOBS_COUNT_MAX: usize = 2;

/// The time limit of a test: eight times what the slowest takes on an idle machine.
const TEST_TIME_MAX: Duration = Duration::from_mins(8);

/// The default number of retries of a failed test.
const RETRIES_COUNT: u32 = 2;

/// The pause before the first retry. Each later one waits twice as long.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The largest number of failures that are retried: more of them have a common cause.
const RETRIED_COUNT_MAX: usize = 20;

/// The jobs that take longest, which start first: otherwise they would run alone at the end.
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

/// The number of the slowest tests that are listed at the end.
const SLOWEST_COUNT: usize = 30;

/// With less free memory than this, temporary files go to the disk: a whole run needs at most half
/// of it, during the tests of large initial syncs.
const MEMORY_BYTES_MIN: u64 = 4 << 30;

/// The results of tests.
#[derive(Default, Debug)]
pub(crate) struct TestReport {
    passed_count: usize,
    failed: Vec<TestFailure>,
    /// Failures of tests that passed in a retry. They count as passed, too.
    flaky: Vec<TestFailure>,
    /// The duration in seconds and the full name of each test.
    durations: Vec<(f64, String)>,
}

/// Splits the arguments of a command, `[--retries N] [NAME…]`, into the names and the number of
/// retries.
pub(crate) fn retries<'a>(args: &'a [&'a str]) -> Result<(&'a [&'a str], u32)> {
    match args {
        ["--retries", count, names @ ..] => {
            Ok((names, count.parse().context("--retries must be a number")?))
        }
        ["--retries"] => anyhow::bail!("--retries must be a number"),
        names => Ok((names, RETRIES_COUNT)),
    }
}

/// The settings with which test programs run.
struct JobRunner {
    test_time_max: Duration,
    retries_count: u32,
    retry_delay: Duration,
}

/// Runs the jobs, then retries their failed tests, at most `retries_count` times.
pub(crate) fn run(jobs: Vec<TestJob>, retries_count: u32) -> Result<TestReport> {
    test_program::end_with_signals()?;
    let runner =
        JobRunner { test_time_max: TEST_TIME_MAX, retries_count, retry_delay: RETRY_DELAY };
    runner.run(jobs)
}

impl JobRunner {
    fn run(&self, mut jobs: Vec<TestJob>) -> Result<TestReport> {
        jobs.sort_by_key(|job| {
            LONG.iter().position(|name| *name == job.name).unwrap_or(LONG.len())
        });
        let memory = folder_in_memory()?;
        if let Some(folder) = &memory {
            for job in jobs.iter_mut().filter(|job| !job.is_about_disk) {
                job.command.env("TMPDIR", folder.path());
            }
        }
        let waiting = Mutex::new(VecDeque::from(jobs));
        let ended = Mutex::new(Vec::new());
        // The guard is dropped here: in the loop's own condition it would live as long as the job
        // runs.
        let next = || lock(&waiting).pop_front();
        let work = || -> Result<()> {
            while let Some(job) = next() {
                let report = self.run_job(&job)?;
                lock(&ended).push((job, report));
            }
            Ok(())
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..JOBS_COUNT_MAX).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().expect("a worker does not panic"))
        })?;
        let mut ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        let failed_count = ended.iter().map(|(_, report)| report.failed.len()).sum::<usize>();
        let mut sum = TestReport::default();
        for (job, report) in &mut ended {
            if failed_count <= RETRIED_COUNT_MAX {
                self.retry(job, report)?;
            }
            sum.add(std::mem::take(report));
        }
        Ok(sum)
    }

    /// Runs a program; if its process dies, runs the remaining tests in another, until none
    /// remains.
    fn run_job(&self, job: &TestJob) -> Result<TestReport> {
        let start = now();
        let mut report = TestReport::default();
        let mut left: Option<Vec<String>> = None;
        loop {
            let tests: Vec<&str> = left.iter().flatten().map(String::as_str).collect();
            let ran = test_program::run(job, &tests, self.test_time_max)?;
            // If no test has ended, the next process would make no progress either.
            let is_last = ran.is_complete || !job.has_named_tests || ran.ended.is_empty();
            if !is_last {
                let tests = left.map_or_else(|| test_program::list(job), Ok)?;
                left = Some(tests.into_iter().filter(|test| !ran.ended.contains(test)).collect());
            }
            report.add(ran.into());
            if is_last || left.as_ref().is_some_and(Vec::is_empty) {
                break;
            }
        }
        let counts = format!("{} passed, {} failed", report.passed_count, report.failed.len());
        print_line(format_args!(
            "{}: {counts} in {:.1} s",
            job.name,
            start.elapsed().as_secs_f64()
        ))?;
        Ok(report)
    }

    /// Retries the failed tests of a job.
    fn retry(&self, job: &TestJob, report: &mut TestReport) -> Result<()> {
        for tried in 0..self.retries_count {
            if report.failed.is_empty() {
                break;
            }
            // No code unparks this thread.
            thread::park_timeout(self.retry_delay * 2_u32.pow(tried));
            if job.has_named_tests && report.failed.iter().all(|failure| failure.test.is_some()) {
                for failure in std::mem::take(&mut report.failed) {
                    self.retry_test(job, failure, report)?;
                }
            } else {
                let again = test_program::run(job, &[], self.test_time_max)?;
                if again.is_passed() {
                    let flaky = std::mem::take(&mut report.failed);
                    *report = TestReport { flaky, ..again.into() };
                }
            }
        }
        Ok(())
    }

    fn retry_test(
        &self,
        job: &TestJob,
        failure: TestFailure,
        report: &mut TestReport,
    ) -> Result<()> {
        print_line(format_args!("trying again: {}", failure.name))?;
        let test: Vec<&str> = failure.test.as_deref().into_iter().collect();
        let again = test_program::run(job, &test, self.test_time_max)?;
        if again.is_passed() {
            report.passed_count += again.passed_count;
            report.flaky.push(failure);
        } else {
            report.failed.push(failure);
        }
        Ok(())
    }
}

impl ProgramRun {
    fn is_passed(&self) -> bool {
        self.failed.is_empty() && self.passed_count > 0
    }
}

impl From<ProgramRun> for TestReport {
    fn from(ran: ProgramRun) -> Self {
        let ProgramRun { passed_count, failed, durations, .. } = ran;
        Self { passed_count, failed, flaky: Vec::new(), durations }
    }
}

impl TestReport {
    fn add(&mut self, other: Self) {
        self.passed_count += other.passed_count;
        self.failed.extend(other.failed);
        self.flaky.extend(other.flaky);
        self.durations.extend(other.durations);
    }

    pub(crate) fn is_passed(&self) -> bool {
        self.failed.is_empty()
    }

    /// Prints the slowest tests, the flaky ones, and last the failures, including `steps`: the end
    /// is where people look first, and the part of a long log that is kept. The last line is `N
    /// passed, N failed`.
    pub(crate) fn print(mut self, steps: &[TestFailure]) -> Result<()> {
        self.durations.sort_by(|(left, _), (right, _)| right.total_cmp(left));
        if !self.durations.is_empty() {
            print_line(format_args!("slowest of {} tests:", self.durations.len()))?;
        }
        for (seconds, test) in self.durations.iter().take(SLOWEST_COUNT) {
            print_line(format_args!("{seconds:8.1} s  {test}"))?;
        }
        for TestFailure { name, output, .. } in &self.flaky {
            print_line(format_args!("FLAKY {name}: failed once with\n{output}"))?;
        }
        steps.iter().chain(&self.failed).try_for_each(print_line)?;
        let names = |failures: &[TestFailure]| {
            failures.iter().map(|failure| failure.name.as_str()).collect::<Vec<_>>().join("; ")
        };
        let lists = [("flaky", &self.flaky[..]), ("failed steps", steps), ("failed", &self.failed)];
        for (what, failures) in lists.into_iter().filter(|(_, failures)| !failures.is_empty()) {
            print_line(format_args!("{what}: {}", names(failures)))?;
        }
        print_line(format_args!("{} passed, {} failed", self.passed_count, self.failed.len()))
    }
}

/// Creates a directory for temporary files in memory, so that no disk must flush them, if there is
/// enough. A killed process leaves the same files there as on a disk: only a power loss differs,
/// which no test causes.
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
