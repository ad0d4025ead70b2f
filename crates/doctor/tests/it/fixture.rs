//! Provides a directory of files for tests, and helpers that run the doctor on them.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use doctor::{
    DoctorFinding, DoctorReport, Error, ExamineOptions, FindingCode, Fix, FixSelection, Severity,
    examine, fix, undo_fix,
};
use engine::FileEncryption;
use rusqlite::Connection;
use tempfile::TempDir;

/// A directory for one test.
pub(crate) struct DoctorFixture(TempDir);

impl DoctorFixture {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Creates a file with these statements.
    pub(crate) fn make(&self, name: &str, sql: &str) -> PathBuf {
        let path = self.at(name);
        sql_on(&path, sql);
        path
    }
}

/// A fault of a file that needs no other process.
pub(crate) struct FaultCase {
    pub(crate) code: FindingCode,
    /// Creates the file with the fault.
    pub(crate) fault: fn(&Path),
    /// Creates a file that is as similar as possible, without the fault.
    pub(crate) control: fn(&Path),
    /// Asserts the evidence.
    pub(crate) check: fn(&DoctorFinding),
}

impl FaultCase {
    /// Checks that the fault is found, that its fix works, and that the control has no fault.
    #[track_caller]
    pub(crate) fn check(&self) {
        let fixture = DoctorFixture::new();
        let (path, control) =
            (fixture.at(self.code.as_str()), fixture.at(&format!("no-{}", self.code)));
        (self.fault)(&path);
        let finding = the(&report(&path), self.code);
        assert!(!finding.summary.is_empty() && !finding.evidence.is_empty(), "{finding:?}");
        assert!(!finding.details.is_empty(), "{finding:?}");
        (self.check)(&finding);
        self.check_fix(&path, &finding);
        apply_fix(&path, &finding.fix);
        if !matches!(finding.fix, Fix::Advice(_)) {
            let left = report(&path);
            assert!(!codes(&left).contains(&self.code), "{}: {left:#?}", self.code);
            assert!(left.integrity.complete, "{left:#?}");
        }

        (self.control)(&control);
        let report = report(&control);
        assert!(!codes(&report).contains(&self.code), "{}: {report:#?}", self.code);
        let gravest = report.severity();
        assert!(gravest < Some(Severity::Error), "{}: {report:#?}", self.code);
        assert!(report.integrity.complete, "{report:#?}");
    }
}

impl FaultCase {
    /// Checks that `fix` works, too, and can be undone.
    #[track_caller]
    fn check_fix(&self, path: &Path, finding: &DoctorFinding) {
        let options = ExamineOptions::default();
        let wanted = FixSelection::Code(self.code);
        let fix = |is_dry_run| fix(path, &FileEncryption::None, &options, wanted, is_dry_run);
        let before = std::fs::read(path).unwrap();
        if finding.fix_sql.is_none() {
            assert!(matches!(fix(false).unwrap_err(), Error::NotFixable { .. }), "{}", self.code);
            return;
        }
        let dry = fix(true).unwrap();
        assert!(dry.rehearsed && !dry.done && dry.undo_path.is_none(), "{dry:#?}");
        assert!(std::fs::read(path).unwrap() == before, "{}", self.code);

        let fixed = fix(false).unwrap();
        assert!(fixed.done && !codes(&fixed.report).contains(&self.code), "{fixed:#?}");
        assert_eq!(fixed.after_bytes, dry.after_bytes, "{}", self.code);
        assert!(undo_fix(path).unwrap() == Path::new(&fixed.undo_path.unwrap()));
        assert!(std::fs::read(path).unwrap() == before, "{}", self.code);
        assert!(matches!(undo_fix(path).unwrap_err(), Error::NoUndo { .. }));
    }
}

/// Carries out the fix of a finding, if it can be executed, and checks that the file is intact and
/// its views work.
#[track_caller]
pub(crate) fn apply_fix(path: &Path, fix: &Fix) {
    match fix {
        Fix::Advice(_) => return,
        Fix::Sql(sql) => sql_on(path, sql),
        Fix::Shell(line) => {
            let done = Command::new("sh").args(["-ec", line]).output().unwrap();
            assert!(done.status.success(), "{line}: {done:?}");
        }
    }
    let db = Connection::open(path).unwrap();
    let integrity: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok", "{fix:?}");
    let mut views = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'view'").unwrap();
    for view in views.query_map([], |row| row.get::<_, String>(0)).unwrap() {
        db.prepare(&format!("SELECT * FROM \"{}\"", view.unwrap())).unwrap();
    }
}

/// Runs statements, and closes the file.
pub(crate) fn sql_on(path: &Path, sql: &str) {
    let db = Connection::open(path).unwrap();
    db.execute_batch(sql).unwrap_or_else(|error| panic!("{error}: {sql}"));
    db.close().unwrap();
}

/// Examines a file that is not encrypted.
pub(crate) fn report(path: &Path) -> DoctorReport {
    examine(path, &FileEncryption::None, &ExamineOptions::default()).unwrap()
}

/// Returns the only finding with this code.
#[track_caller]
pub(crate) fn the(report: &DoctorReport, code: FindingCode) -> DoctorFinding {
    let mut found = report.findings.iter().filter(|finding| finding.code == code);
    let finding = found.next().unwrap_or_else(|| panic!("no {code}: {report:#?}"));
    assert!(found.next().is_none(), "twice: {report:#?}");
    finding.clone()
}

/// Returns the codes that were found, in order.
pub(crate) fn codes(report: &DoctorReport) -> Vec<FindingCode> {
    report.findings.iter().map(|finding| finding.code).collect()
}

/// SQLite's shell, with a file open, until it is dropped.
pub(crate) struct SqliteShell(Child);

impl SqliteShell {
    /// Starts the shell, and returns when these statements have run.
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

impl Drop for SqliteShell {
    fn drop(&mut self) {
        // The shell may have ended on its own.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
