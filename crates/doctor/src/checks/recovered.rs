//! Checks whether a journal or a WAL that was left behind belongs to the file.
//!
//! SQLite identifies a journal and a WAL only by their names. If a backup replaces a file, the old
//! WAL next to it belongs to another database, and corrupts the backup as soon as a program opens
//! it (<https://sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use>).

use std::time::Duration;

use engine::{ReadOnlyMode, open_read_only};

use crate::catalogue::finding_code::FindingCode;
use crate::checks::file;
use crate::environment::wal;
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

/// The findings of the integrity check in a file that is a mixture of two.
const FAULTS: &[FindingCode] =
    &[FindingCode::IndexBroken, FindingCode::PageBroken, FindingCode::UniqueViolated];
/// The findings about a journal or a WAL that belongs to the file.
const LEFT: &[FindingCode] = &[FindingCode::HotJournal, FindingCode::WalLeftBehind];

pub(crate) fn check(subject: &OpenedFile, log: &mut CheckResults) -> Result<(), CheckError> {
    if subject.open_mode != ReadOnlyMode::Overlay || subject.environment.recovery_bytes() == 0 {
        return Ok(());
    }
    if !FAULTS.iter().any(|code| log.has(*code)) {
        if log.integrity.complete {
            add_tried_evidence(log);
        }
        return Ok(());
    }
    report_missing(subject, log);
    if is_whole_alone(subject)? {
        log.findings.retain(|it| !FAULTS.contains(&it.code) && !LEFT.contains(&it.code));
        log.add(foreign(subject));
    }
    Ok(())
}

fn add_tried_evidence(log: &mut CheckResults) {
    for finding in log.findings.iter_mut().filter(|finding| LEFT.contains(&finding.code)) {
        finding.evidence.push("tried in memory: together with it, the file is intact".to_owned());
    }
}

/// Checks whether the main file is intact without its journal or WAL.
fn is_whole_alone(subject: &OpenedFile) -> Result<bool, CheckError> {
    let opened =
        open_read_only(&subject.environment.path, &subject.encryption, ReadOnlyMode::Immutable);
    // Possibly only both files together can be opened.
    let Ok((mut db, _)) = opened else { return Ok(false) };
    subject.grant_time(Duration::MAX);
    subject.time_limit.guard(&mut db)?;
    let said = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    match said.map_err(CheckError::from) {
        Ok(said) => Ok(said == "ok"),
        Err(error) if error.is_fault() => Ok(false),
        Err(error) => Err(error),
    }
}

fn foreign(subject: &OpenedFile) -> DoctorFinding {
    let environment = &subject.environment;
    let suffix = if environment.is_hot { "-journal" } else { "-wal" };
    let name = environment.path.file_name().unwrap_or_default().to_string_lossy();
    let fix = format!(
        "Before any program opens the file, copy both, then move {name}{suffix} away. If the file \
         was restored from a backup, nothing else is needed."
    );
    let what =
        format!("{name}{suffix} belongs to another database, or to another state of this one");
    DoctorFinding::new(FindingCode::CompanionForeign, what, Fix::Advice(fix))
        .evidence(format!(
            "tried in memory: alone, the file is intact; with {name}{suffix}, it is not"
        ))
        .detail("companion", format!("{name}{suffix}"))
        .impact("The next program that opens the file corrupts it.")
}

/// Reports pages that are neither in the WAL nor in the file.
fn report_missing(subject: &OpenedFile, log: &mut CheckResults) {
    let Some((pages, in_wal)) = wal::committed(&subject.environment.path) else { return };
    let page_size = u64::from(subject.header.page_size);
    let in_file = subject.environment.stamp.bytes / page_size;
    // The page count may be any number, so the code iterates over the pages in the WAL, never up to
    // the count.
    let is_beyond = |page: &&u32| u64::from(**page) > in_file && **page <= pages;
    let beyond = u64::try_from(in_wal.iter().filter(is_beyond).count()).unwrap_or(u64::MAX);
    let missing = u64::from(pages).saturating_sub(in_file).saturating_sub(beyond);
    if missing > 0 && !log.has(FindingCode::FileTruncated) {
        let expected = u64::from(pages) * page_size;
        log.add(file::truncated(&subject.environment, expected, missing).evidence(format!(
            "page count in the WAL: {pages}; missing both in the WAL and in the file: {missing}"
        )));
    }
}
