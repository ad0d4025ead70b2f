//! Runs a test program once, reads its reports, and ends it if it takes too long.
//!
//! # Invariants
//! - A program and everything that it started share a process group, which is killed in any case
//!   when the run ends. No process that a test started outlives the run, unless it left the group.
//! - A test that runs longer than the limit fails as timed out. Its program is killed with it; the
//!   tests that ran next to it have no result, so that they can run again.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::test_job::{LINES_COUNT_MAX, TestFailure, TestJob, lines, lock};
use crate::terminal::{now, print_line};

/// The interval of checks whether a test has run for too long.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// The time for which the output of an ended program may stay open and silent: a process that it
/// left running holds it.
const OUTPUT_OPEN_MAX: Duration = Duration::from_secs(5);

/// The process groups of the running programs.
static GROUPS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// The reported results of one run of a program.
#[derive(Default)]
pub(super) struct ProgramRun {
    pub(super) passed_count: usize,
    pub(super) failed: Vec<TestFailure>,
    /// The names of the tests that passed or failed.
    pub(super) ended: BTreeSet<String>,
    /// The duration in seconds and the full name of each test.
    pub(super) durations: Vec<(f64, String)>,
    /// Whether the program was not killed, and reported a result for each test that it started.
    pub(super) is_complete: bool,
}

/// Runs the job's program with only the named tests, or with all of them if there are no names.
/// `test_time_max` limits each test, and also the time during which no test runs and nothing is
/// printed.
pub(super) fn run(job: &TestJob, tests: &[&str], test_time_max: Duration) -> Result<ProgramRun> {
    let mut command = job.command(tests);
    command.stdout(Stdio::piped()).stdin(Stdio::null()).process_group(0);
    let child = command.spawn().with_context(|| format!("cannot start {}", job.name))?;
    let group = ProcessGroup::of(&child);
    let mut watcher = ProgramWatcher::new(job);
    watcher.watch(child, &group, test_time_max)?;
    Ok(watcher.run)
}

/// Kills the running programs when this process receives a signal to end: they have process groups
/// of their own, so they do not receive a terminal's signals.
pub(super) fn end_with_signals() -> Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            lock(&GROUPS).iter().for_each(|group| kill(*group));
            signal_hook::low_level::emulate_default_handler(signal)
        } else {
            Ok(())
        }
    });
    Ok(())
}

/// Kills the process group when it is dropped.
struct ProcessGroup(u32);

impl ProcessGroup {
    /// Returns the group that a child process leads.
    fn of(child: &Child) -> Self {
        lock(&GROUPS).insert(child.id());
        Self(child.id())
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        kill(self.0);
        lock(&GROUPS).remove(&self.0);
    }
}

fn kill(group: u32) {
    let group = i32::try_from(group).ok().and_then(Pid::from_raw);
    // The group may be empty and gone, which is just as good.
    group.map(|group| kill_process_group(group, Signal::KILL).ok());
}

/// Follows a program from its start to its end.
struct ProgramWatcher<'a> {
    job: &'a TestJob,
    run: ProgramRun,
    /// The tests that have started but not ended, with the time when they started.
    running: BTreeMap<String, Instant>,
    /// The first lines that are not events.
    lines: Vec<String>,
}

impl<'a> ProgramWatcher<'a> {
    fn new(job: &'a TestJob) -> Self {
        Self { job, run: ProgramRun::default(), running: BTreeMap::new(), lines: Vec::new() }
    }

    fn watch(&mut self, mut child: Child, group: &ProcessGroup, limit: Duration) -> Result<()> {
        let lines = lines(child.stdout.take().context("stdout is piped")?);
        let mut heard = now();
        let is_killed = loop {
            match lines.recv_timeout(WATCH_INTERVAL) {
                Ok(line) => {
                    heard = now();
                    self.read(line)?;
                }
                Err(RecvTimeoutError::Disconnected) => break false,
                // The loop ends only if no line is left to read; otherwise results would be lost.
                Err(RecvTimeoutError::Timeout) => {
                    if heard.elapsed() > OUTPUT_OPEN_MAX && child.try_wait()?.is_some() {
                        break false;
                    }
                }
            }
            let began = self.running.values().min().copied().unwrap_or(heard);
            if began.elapsed() > limit {
                self.time_out(limit);
                break true;
            }
        };
        if is_killed {
            kill(group.0);
        }
        let status = child.wait()?;
        self.end(is_killed, status.success())
    }

    fn read(&mut self, line: String) -> Result<()> {
        let event = serde_json::from_str::<Value>(&line).unwrap_or_default();
        let (Some(kind), Some(name)) = (event["event"].as_str(), event["name"].as_str()) else {
            if !event.is_object() {
                self.read_text(line);
            }
            return Ok(());
        };
        match kind {
            "started" => drop(self.running.insert(name.to_owned(), now())),
            "ok" | "failed" => {
                self.running.remove(name);
                let test = self.full_name(name);
                if let Some(seconds) = event["exec_time"].as_f64() {
                    self.run.durations.push((seconds, test));
                }
                if kind == "ok" {
                    self.run.passed_count += 1;
                    self.run.ended.insert(name.to_owned());
                } else {
                    let output = event["stdout"].as_str().unwrap_or_default();
                    print_line(format_args!("---- {} ----\n{output}", self.full_name(name)))?;
                    self.fail(name, "", output);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn read_text(&mut self, line: String) {
        if !self.job.has_named_tests {
            self.run.passed_count += passed_count(&line).unwrap_or(0);
        }
        if self.lines.len() < LINES_COUNT_MAX {
            self.lines.push(line);
        }
    }

    fn full_name(&self, test: &str) -> String {
        format!("{}: {test}", self.job.name)
    }

    /// Records a failed test. `note` is empty or describes in brackets how the test ended.
    fn fail(&mut self, name: &str, note: &str, output: &str) {
        let test = format!("{}{note}", self.full_name(name));
        self.run.ended.insert(name.to_owned());
        self.run.failed.push(TestFailure::new(test, Some(name.to_owned()), output));
    }

    fn time_out(&mut self, limit: Duration) {
        let seconds = limit.as_secs_f64();
        let running = std::mem::take(&mut self.running);
        if running.is_empty() {
            self.fail_as_program(&format!("no output for {seconds} s"));
        }
        for (name, began) in running {
            if began.elapsed() > limit {
                self.fail(
                    &name,
                    &format!(" (timed out after {seconds} s)"),
                    &self.lines.join("\n"),
                );
            }
        }
    }

    fn fail_as_program(&mut self, note: &str) {
        let test = format!("{} ({note})", self.job.name);
        self.run.failed.push(TestFailure::new(test, None, &self.lines.join("\n")));
    }

    fn end(&mut self, is_killed: bool, is_success: bool) -> Result<()> {
        let running = std::mem::take(&mut self.running);
        let is_whole = !is_killed && running.is_empty();
        for name in running.keys() {
            self.fail(name, " (did not end)", &self.lines.join("\n"));
        }
        self.run.is_complete = is_whole && (is_success || !self.run.failed.is_empty());
        if !is_success && self.run.failed.is_empty() {
            self.fail_as_program("exited with an error");
        }
        if self.run.failed.is_empty() { Ok(()) } else { self.lines.iter().try_for_each(print_line) }
    }
}

/// Lists the names of all tests of a libtest program.
pub(super) fn list(job: &TestJob) -> Result<Vec<String>> {
    let mut command = Command::new(job.command.get_program());
    let listed = command.args(["--list", "--format=terse"]).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8(listed.stdout)?;
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Reads the count from the output of documentation examples, which have no JSON: `test result: ok.
/// 2 passed; 0 failed; …`.
fn passed_count(line: &str) -> Option<usize> {
    line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse().ok()
}
