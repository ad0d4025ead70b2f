//! A folder of files, and what the doctor says of them.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use doctor::{Finding, Options, Report, examine};
use engine::Encryption;
use rusqlite::Connection;
use tempfile::TempDir;

/// A folder for one test.
pub(crate) struct Bed(TempDir);

impl Bed {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file that these statements make.
    pub(crate) fn make(&self, name: &str, sql: &str) -> PathBuf {
        let path = self.at(name);
        sql_on(&path, sql);
        path
    }
}

/// Runs statements, and closes the file.
pub(crate) fn sql_on(path: &Path, sql: &str) {
    let db = Connection::open(path).unwrap();
    db.execute_batch(sql).unwrap_or_else(|error| panic!("{error}: {sql}"));
    db.close().unwrap();
}

/// What the doctor says of a file that is not encrypted.
pub(crate) fn report(path: &Path) -> Report {
    examine(path, &Encryption::None, &Options::default()).unwrap()
}

/// The one finding of this code.
#[track_caller]
pub(crate) fn the(report: &Report, code: &str) -> Finding {
    let mut found = report.findings.iter().filter(|finding| finding.code == code);
    let finding = found.next().unwrap_or_else(|| panic!("no {code}: {report:#?}"));
    assert!(found.next().is_none(), "twice: {report:#?}");
    finding.clone()
}

/// The codes that were found, in order.
pub(crate) fn codes(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(|finding| finding.code).collect()
}

/// SQLite's shell, with a file open, until it is dropped.
pub(crate) struct Shell(Child);

impl Shell {
    /// Returns when these statements have run.
    pub(crate) fn start(path: &Path, sql: &str) -> Self {
        let mut shell = Command::new("sqlite3");
        shell.args(["-batch", "-bail"]).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = Self(shell.spawn().unwrap());
        shell.run(sql);
        shell
    }

    pub(crate) fn run(&mut self, sql: &str) {
        let input = self.0.stdin.as_mut().unwrap();
        writeln!(input, "{sql}\n.print ready").unwrap();
        let mut lines = BufReader::new(self.0.stdout.as_mut().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "ready"), "the shell ended at {sql}");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
