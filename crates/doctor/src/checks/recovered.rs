//! The journal or the WAL that was left: does the file get whole by it?
//!
//! SQLite knows a journal and a WAL by their names alone. Beside a backup that was put in the place
//! of a file, the WAL of that file is another database's, and spoils the backup as soon as a program
//! opens it (<https://sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use>).

use std::time::Duration;

use engine::{Untouched, open_untouched};

use crate::checks::file;
use crate::finding::{Finding, Mend};
use crate::report::Log;
use crate::subject::Subject;
use crate::trouble::Trouble;
use crate::wal;

/// What the integrity check says of a file that is a mixture of two.
const FAULTS: &[&str] = &["index_broken", "page_broken", "unique_violated"];
/// What is said of a journal or a WAL that is the file's own.
const LEFT: &[&str] = &["hot_journal", "wal_left_behind"];

pub(crate) fn check(subject: &Subject, log: &mut Log) -> Result<(), Trouble> {
    if subject.how != Untouched::Overlay || subject.outside.recovery_bytes() == 0 {
        return Ok(());
    }
    if !FAULTS.iter().any(|code| log.has(code)) {
        if log.integrity.is_complete {
            note_tried(log);
        }
        return Ok(());
    }
    tell_missing(subject, log);
    if is_whole_alone(subject)? {
        log.findings.retain(|it| !FAULTS.contains(&it.code) && !LEFT.contains(&it.code));
        log.find(foreign(subject));
    }
    Ok(())
}

fn note_tried(log: &mut Log) {
    for finding in log.findings.iter_mut().filter(|finding| LEFT.contains(&finding.code)) {
        finding.evidence.push("tried in memory: with it, the file is whole".to_owned());
    }
}

/// Is the main file well without what is beside it?
fn is_whole_alone(subject: &Subject) -> Result<bool, Trouble> {
    let opened = open_untouched(&subject.outside.path, &subject.encryption, Untouched::Immutable);
    // It may be that only the two together open.
    let Ok((mut db, _)) = opened else { return Ok(false) };
    subject.allow(Duration::MAX);
    subject.budget.guard(&mut db)?;
    let said = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    match said.map_err(Trouble::from) {
        Ok(said) => Ok(said == "ok"),
        Err(trouble) if trouble.is_fault() => Ok(false),
        Err(trouble) => Err(trouble),
    }
}

fn foreign(subject: &Subject) -> Finding {
    let outside = &subject.outside;
    let suffix = if outside.is_hot { "-journal" } else { "-wal" };
    let name = outside.path.file_name().unwrap_or_default().to_string_lossy();
    let mend = format!(
        "Before any program opens the file: copy both, then move {name}{suffix} away. If the file \
         was put there from a backup, that is all."
    );
    let what = format!("{name}{suffix} is of another database, or of another state of this one");
    Finding::new("companion_foreign", what, Mend::Advice(mend))
        .evidence(format!(
            "tried in memory: alone, the file is whole; with {name}{suffix}, it is not"
        ))
        .field("companion", format!("{name}{suffix}"))
        .cost("The next program that opens the file spoils it.")
}

/// Pages that neither the WAL nor the file has.
fn tell_missing(subject: &Subject, log: &mut Log) {
    let Some((pages, in_wal)) = wal::committed(&subject.outside.path) else { return };
    let page_size = u64::from(subject.header.page_size);
    let in_file = subject.outside.stamp.bytes / page_size;
    // A number that somebody wrote: what is counted is what the WAL has, never up to it.
    let is_beyond = |page: &&u32| u64::from(**page) > in_file && **page <= pages;
    let beyond = u64::try_from(in_wal.iter().filter(is_beyond).count()).unwrap_or(u64::MAX);
    let missing = u64::from(pages).saturating_sub(in_file).saturating_sub(beyond);
    if missing > 0 && !log.has("file_truncated") {
        let expected = u64::from(pages) * page_size;
        log.find(file::truncated(&subject.outside, expected, missing).evidence(format!(
            "the WAL tells of {pages} pages, and neither it nor the file has {missing} of them"
        )));
    }
}
