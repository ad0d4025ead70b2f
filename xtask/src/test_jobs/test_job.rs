//! Describes a test program, a failure of one of its tests, and the lines that it prints.

use std::fmt::{self, Display, Formatter};
use std::io::{BufRead, BufReader, Read};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

/// The number of lines of a program that may wait to be read, and that are kept.
pub(crate) const LINES_COUNT_MAX: usize = 10_000;

/// The number of lines of a failure's output that are repeated at the end.
const OUTPUT_LINES_COUNT: usize = 12;

/// A test program.
pub(crate) struct TestJob {
    pub(crate) name: String,
    pub(crate) command: Command,
    /// Whether the tests need a real disk for their temporary files.
    pub(crate) is_about_disk: bool,
    /// Whether the tests can be listed and run one by one (libtest). Otherwise the program is
    /// retried as a whole.
    pub(crate) has_named_tests: bool,
}

impl TestJob {
    /// Returns the command that runs the named tests, or all of them if there are no names.
    pub(crate) fn command(&self, tests: &[&str]) -> Command {
        let mut command = Command::new(self.command.get_program());
        command.args(self.command.get_args());
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(folder) = self.command.get_current_dir() {
            command.current_dir(folder);
        }
        if !tests.is_empty() {
            command.arg("--exact").args(tests);
        }
        command
    }
}

/// A failed test or step.
#[derive(PartialEq, Clone, Debug)]
pub(crate) struct TestFailure {
    /// The full name: the job, the test, and a note in brackets if the test did not end normally.
    pub(crate) name: String,
    /// The test's name in its program, if it can run alone.
    pub(crate) test: Option<String>,
    /// The first lines of the output.
    pub(crate) output: String,
}

impl TestFailure {
    pub(crate) fn new(name: String, test: Option<String>, output: &str) -> Self {
        let lines: Vec<_> = output.lines().take(OUTPUT_LINES_COUNT).collect();
        Self { name, test, output: lines.join("\n") }
    }
}

impl Display for TestFailure {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "FAILED {}\n{}", self.name, self.output)
    }
}

/// Sends the lines of a program while it prints them; a program that prints faster than they are
/// read has to wait.
pub(crate) fn lines(output: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(LINES_COUNT_MAX);
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if sender.send(text).is_err() {
                return;
            }
            line.clear();
        }
    });
    receiver
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
