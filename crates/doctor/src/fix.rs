//! Carries out the fix of a finding: it is rehearsed in memory on a copy of the file, checked, and
//! undone if it did not help.
//!
//! # Invariants
//! - Nothing in the file changes before a complete copy of it is on the disk (`fix/undo.rs`).
//! - A fix that does not pass the check afterwards is undone: the file is restored.
//! - Only findings whose fix needs no decision are fixed ([`DoctorFinding::fix_sql`]).
//!
//! # Not here
//! - The fix of each finding → `checks.rs`.

pub(crate) mod undo;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::{FileEncryption, Profile, ReadOnlyMode, clock};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::catalogue::finding_code::FindingCode;
use crate::environment::file_holders::{FileHolder, file_holders};
use crate::error::{Error, Result, io, sqlite};
use crate::examine;
use crate::file::schema::quote_if_needed;
use crate::format::to_ms;
use crate::options::ExamineOptions;
use crate::report::DoctorReport;
use crate::report::finding::DoctorFinding;
use crate::report::severity::Severity;

/// The maximum size of a file that is rehearsed: VACUUM would take as much memory.
const REHEARSED_BYTES_MAX: u64 = 256 << 20;
/// The time to wait while others have the file locked.
const BUSY_TIME: Duration = Duration::from_secs(1);
/// The profile that opens a file without changing any setting that the file stores.
pub(crate) const AS_IS: Profile =
    Profile { name: "as_is", about: "no setting is changed", base: &[], changes: &[] };

/// The findings to fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixSelection {
    /// Fixes all findings that can be fixed automatically.
    All,
    /// Fixes the findings with this code.
    Code(FindingCode),
}

/// The result of fixing a file, or of a dry run.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FixReport {
    /// The fixes in the order in which they run; empty if there is nothing to fix.
    pub fixes: Vec<AppliedFix>,
    /// Whether the fixes ran on a copy in memory and the copy was intact afterwards; false if the
    /// file is too large for a rehearsal, or if there is nothing to fix.
    pub rehearsed: bool,
    /// Whether the fixes ran on the file; false for a dry run, and if there is nothing to fix.
    pub done: bool,
    /// The size of the main file before the fixes, in bytes.
    pub before_bytes: u64,
    /// The size of the main file after the fixes, in bytes; for a dry run, the size of the copy in
    /// memory. Null if no fix ran.
    pub after_bytes: Option<u64>,
    /// The path of the directory with the copy of the file from before the fixes; null if the file
    /// was not changed.
    pub undo_path: Option<String>,
    /// The examination of the file after the fixes; for a dry run, and if there is nothing to fix,
    /// the examination before.
    pub report: DoctorReport,
}

/// The fix of one finding.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AppliedFix {
    /// The code of the finding.
    pub code: FindingCode,
    /// The summary of the finding, in one line.
    pub summary: String,
    /// The SQL statements of the fix.
    pub sql: String,
    /// The duration of the statements in memory, in milliseconds; null if they did not run in
    /// memory.
    pub rehearsal_duration_ms: Option<u64>,
}

/// Fixes the selected findings, or reports what a fix would do.
///
/// # Errors
/// [`Error::NotFixable`] if a fix needs a decision first, [`Error::InUse`] if a program has the
/// file open, [`Error::FixFailed`] if the file had a problem afterwards and was therefore restored.
pub fn fix(
    path: &Path,
    encryption: &FileEncryption,
    options: &ExamineOptions,
    wanted: FixSelection,
    is_dry_run: bool,
) -> Result<FixReport> {
    let path = path.canonicalize().map_err(io(path))?;
    let before = examine(&path, encryption, options)?;
    let mut fixes = chosen(&before, wanted)?;
    let mut fixed = FixReport {
        fixes: Vec::new(),
        rehearsed: false,
        done: false,
        before_bytes: before.file.file_bytes,
        after_bytes: None,
        undo_path: None,
        report: before,
    };
    if fixes.is_empty() {
        return Ok(fixed);
    }
    check_fixable(&fixed.report, &fixes)?;
    check_unused(&path)?;
    let rehearsed = rehearse(&path, encryption, &mut fixes, fixed.before_bytes)?;
    (fixed.rehearsed, fixed.after_bytes) = (rehearsed.is_some(), rehearsed);
    fixed.fixes = fixes;
    if is_dry_run {
        return Ok(fixed);
    }
    let folder = undo::save(&path)?;
    let codes: BTreeSet<FindingCode> = fixed.fixes.iter().map(|fix| fix.code).collect();
    let done = apply(&path, encryption, &fixed.fixes)
        .and_then(|()| check(&path, encryption, options, &fixed.report, &codes));
    match done {
        Ok(report) => {
            fixed.done = true;
            fixed.after_bytes = Some(report.file.file_bytes);
            fixed.undo_path = Some(folder.display().to_string());
            fixed.report = report;
            Ok(fixed)
        }
        Err(error) => {
            undo::restore(&path, &folder)?;
            Err(error)
        }
    }
}

/// Restores the file as it was before the newest fix. Returns the directory that contained the
/// copy.
pub fn undo_fix(path: &Path) -> Result<PathBuf> {
    let path = path.canonicalize().map_err(io(path))?;
    let folder = undo::newest(&path)?;
    check_unused(&path)?;
    undo::restore(&path, &folder)?;
    Ok(folder)
}

/// Returns the fixes to run, in order.
fn chosen(report: &DoctorReport, wanted: FixSelection) -> Result<Vec<AppliedFix>> {
    let is_wanted = |finding: &&DoctorFinding| match wanted {
        FixSelection::All => finding.fix_sql.is_some(),
        FixSelection::Code(code) => finding.code == code,
    };
    let mut fixes = Vec::new();
    for finding in report.findings.iter().filter(is_wanted) {
        let Some(sql) = &finding.fix_sql else {
            return Err(Error::NotFixable { code: finding.code, why: finding.fix.to_string() });
        };
        let (summary, sql) = (finding.summary.clone(), sql.clone());
        fixes.push(AppliedFix { code: finding.code, summary, sql, rehearsal_duration_ms: None });
    }
    fixes.sort_by_key(|fix| rank(&fix.sql));
    // One VACUUM is enough for all.
    let has_other = fixes.iter().any(|fix| fix.sql.ends_with("\nVACUUM;"));
    let mut seen = BTreeSet::new();
    fixes.retain(|fix| !(has_other && fix.sql == "VACUUM;") && seen.insert(fix.sql.clone()));
    Ok(fixes)
}

/// Returns the rank of a fix: recovery comes first, and rewriting the whole file last.
fn rank(sql: &str) -> usize {
    const ORDER: &[&str] = &[
        "SELECT",
        "PRAGMA wal_checkpoint",
        "REINDEX",
        "INSERT",
        "DROP",
        "CREATE",
        "PRAGMA optimize",
    ];
    let last = if sql.contains("VACUUM") { ORDER.len() + 1 } else { ORDER.len() };
    ORDER.iter().position(|start| sql.starts_with(start)).unwrap_or(last)
}

/// Refuses to fix a damaged file, which must be saved first.
fn check_fixable(report: &DoctorReport, fixes: &[AppliedFix]) -> Result<()> {
    const BROKEN: &[FindingCode] = &[
        FindingCode::CompanionForeign,
        FindingCode::FileTruncated,
        FindingCode::PageBroken,
        FindingCode::UniqueViolated,
    ];
    match report.findings.iter().find(|finding| BROKEN.contains(&finding.code)) {
        Some(finding) => {
            let why = format!("the file is damaged ({}): {}", finding.code, finding.fix);
            Err(Error::NotFixable { code: fixes[0].code, why })
        }
        None => Ok(()),
    }
}

pub(crate) fn check_unused(path: &Path) -> Result<()> {
    let users: Vec<String> = file_holders(path).iter().map(FileHolder::display_name).collect();
    if users.is_empty() { Ok(()) } else { Err(Error::InUse(users.join(", "))) }
}

/// Runs everything in memory. Returns the resulting size of the file, or `None` if it is too large
/// for a rehearsal.
fn rehearse(
    path: &Path,
    encryption: &FileEncryption,
    fixes: &mut [AppliedFix],
    bytes: u64,
) -> Result<Option<u64>> {
    if bytes > REHEARSED_BYTES_MAX {
        return Ok(None);
    }
    let (db, _) = engine::open_read_only(path, encryption, ReadOnlyMode::Overlay)?;
    let views = views(&db).map_err(sqlite("reading the views"))?;
    for fix in fixes {
        let started = clock::now();
        match db.execute_batch(&fix.sql) {
            Ok(()) => {}
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                return Ok(None);
            }
            Err(error) => return Err(failed(fix.code, &error)),
        }
        fix.rehearsal_duration_ms = Some(to_ms(started.elapsed()));
        check_well(&db, &views).map_err(|why| failed(fix.code, &why))?;
    }
    let size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    let bytes: i64 =
        db.query_row(size, [], |row| row.get(0)).map_err(sqlite("reading the file size"))?;
    Ok(Some(bytes.cast_unsigned()))
}

fn apply(path: &Path, encryption: &FileEncryption, fixes: &[AppliedFix]) -> Result<()> {
    let (db, _) = engine::open_connection(path, encryption, &AS_IS, false, false)?;
    db.busy_timeout(BUSY_TIME).map_err(sqlite("PRAGMA busy_timeout"))?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)
        .map_err(sqlite("setting up the connection"))?;
    let views = views(&db).map_err(sqlite("reading the views"))?;
    for fix in fixes {
        db.execute_batch(&fix.sql).map_err(|error| failed_sql(fix.code, error))?;
    }
    check_well(&db, &views).map_err(|why| failed(fixes[0].code, &why))?;
    db.close().map_err(|(_, error)| sqlite("closing the file")(error))
}

/// Examines the file again, and checks that the fixed findings are gone and that no severe one is
/// new.
fn check(
    path: &Path,
    encryption: &FileEncryption,
    options: &ExamineOptions,
    before: &DoctorReport,
    codes: &BTreeSet<FindingCode>,
) -> Result<DoctorReport> {
    let report = examine(path, encryption, options)?;
    let was_there = |code: FindingCode| before.findings.iter().any(|finding| finding.code == code);
    for finding in &report.findings {
        let is_new = finding.severity == Severity::Error && !was_there(finding.code);
        // Another finding with the same code may need a decision, and may remain.
        if is_new || (codes.contains(&finding.code) && finding.fix_sql.is_some()) {
            return Err(failed(finding.code, &finding.summary));
        }
    }
    Ok(report)
}

/// Returns the names of the views that can be read.
fn views(db: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let mut names = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'view'")?;
    let names = names.query_map([], |row| row.get::<_, String>(0))?;
    let mut readable = BTreeSet::new();
    for name in names {
        let name = name?;
        if db.prepare(&format!("SELECT * FROM {}", quote_if_needed(&name))).is_ok() {
            readable.insert(name);
        }
    }
    Ok(readable)
}

/// Checks that the file is intact, and that every view that was readable still is.
fn check_well(db: &Connection, views_before: &BTreeSet<String>) -> Result<(), String> {
    let said = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    match said {
        Ok(said) if said == "ok" => {}
        Ok(said) => return Err(said),
        Err(error) => return Err(error.to_string()),
    }
    let views = views(db).map_err(|error| error.to_string())?;
    match views_before.difference(&views).next() {
        Some(view) => Err(format!("the view {view} can no longer be read")),
        None => Ok(()),
    }
}

/// Returns the error for a fix that SQLite rejected. A full or broken disk and a locked file are
/// not the fault of the fix.
fn failed_sql(code: FindingCode, error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::DatabaseBusy) => {
            sqlite(code.as_str())(error)
        }
        _ => failed(code, &error),
    }
}

fn failed(code: FindingCode, why: &dyn Display) -> Error {
    Error::FixFailed { code, why: why.to_string() }
}
