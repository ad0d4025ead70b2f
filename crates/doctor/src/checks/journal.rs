//! The rollback journal and the write-ahead log: which of them there is, and whether it is well.

use serde_json::json;

use super::locks;
use crate::figure::{bytes, count};
use crate::finding::{Finding, Mend};
use crate::locks::Lock;
use crate::outside::Outside;
use crate::processes::Process;
use crate::report::Log;
use crate::schema::shell_word;
use crate::subject::Subject;

/// SQLite's own `wal_autocheckpoint`: a WAL that is well is about so long.
const AUTOCHECKPOINT_PAGES: u64 = 1_000;
/// Four times that is more than a large transaction now and then.
const WAL_PAGES_MAX: u64 = 4 * AUTOCHECKPOINT_PAGES;
/// From here on a WAL is large beside any file.
const WAL_BYTES_MAX: u64 = 100_000_000;

pub(crate) fn check(outside: &Outside, log: &mut Log) {
    if outside.is_hot {
        log.find(hot(outside));
    }
    let is_left = outside.has_wal_content()
        && !outside.watch.is_connected
        && outside.users.processes.is_empty()
        && !outside.is_networked();
    if is_left {
        log.find(left_behind(outside));
    } else {
        check_wal(outside, log);
    }
    if let Some(header) = &outside.header {
        check_mode(outside, header.is_wal, log);
    }
}

/// The same of an encrypted file, whose header only its key shows.
pub(crate) fn check_encrypted(subject: &Subject, log: &mut Log) {
    if subject.outside.header.is_none() {
        check_mode(&subject.outside, subject.header.is_wal, log);
    }
}

fn check_mode(outside: &Outside, is_wal: bool, log: &mut Log) {
    let processes = &outside.users.processes;
    if is_wal || processes.is_empty() || outside.is_networked() {
        return;
    }
    let names: Vec<String> = processes.iter().map(Process::title).collect();
    let (code, what) = match processes.len() {
        1 => ("not_wal", "a program works on it with a rollback journal"),
        _ => ("rollback_journal_shared", "several programs work on it with a rollback journal"),
    };
    let finding = Finding::new(code, what, Mend::Sql("PRAGMA journal_mode = WAL;".to_owned()))
        .evidence(format!("open in {}", names.join(", ")))
        .evidence("the header says: no WAL")
        .field("processes", json!(processes))
        .cost("Each write waits for all readers, and each reader for the write; it flushes twice.");
    log.find(finding);
}

fn hot(outside: &Outside) -> Finding {
    let journal = outside.journal.as_ref().map_or(0, |journal| journal.bytes);
    let sql = "SELECT count(*) FROM sqlite_schema";
    let mend = with_key(outside, "hot_journal", sql, "rolls it back");
    Finding::new("hot_journal", "a transaction was begun and never ended", mend)
        .fix(sql)
        .evidence(format!("a journal of {} is there, and nobody writes", bytes(journal)))
        .field("journal_bytes", journal)
        .cost("The file holds half a transaction. Whoever deletes the journal makes that lasting.")
}

fn left_behind(outside: &Outside) -> Finding {
    let wal = outside.wal.as_ref().map_or(0, |wal| wal.bytes);
    let what = "a WAL was left by a program that did not close the file";
    let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
    let mend = with_key(outside, "wal_left_behind", sql, "moves it into the file");
    Finding::new("wal_left_behind", what, mend)
        .fix(sql)
        .evidence(format!("a WAL of {}, and no process has the file open", bytes(wal)))
        .field("wal_bytes", wal)
        .cost("Who copies the file without its -wal loses what was committed into that.")
}

/// A statement for a shell. A shell without the key of an encrypted file would take its journal or
/// WAL for void, and delete it.
fn with_key(outside: &Outside, code: &str, sql: &str, effect: &str) -> Mend {
    if outside.is_keyed || outside.header.is_none() {
        return Mend::Advice(format!(
            "Open it once for writing with the program that has its key, or let warren doctor \
             --fix {code} do it with the key: that {effect}. Never open it with what lacks the \
             key: that would take it for void, delete it, and leave the file broken."
        ));
    }
    let file = shell_word(&outside.path.display().to_string());
    Mend::Shell(format!("sqlite3 {file} '{sql}'    # {effect}"))
}

fn check_wal(outside: &Outside, log: &mut Log) {
    let Some((wal, index)) = outside.wal.as_ref().zip(outside.watch.index.as_ref()) else {
        return;
    };
    let page = u64::from(wal.page_size.unwrap_or(4_096));
    if wal.bytes < WAL_PAGES_MAX * page {
        return;
    }
    let (frames, copied) = (index.frames_count, index.copied_count);
    let state = format!(
        "a WAL of {}; {} of its {} pages are copied into the file",
        bytes(wal.bytes),
        count(copied.into()),
        count(frames.into())
    );
    let mut is_pinned = false;
    for held in &outside.watch.held {
        let Lock::WalRead(mark) = held.lock else { continue };
        let Some(mark) = index.mark(mark).filter(|mark| copied < frames && *mark < frames) else {
            continue;
        };
        is_pinned = true;
        log.find(pinned(outside, &Process::of(held.pid), frames - mark).evidence(&state));
    }
    let is_large = wal.bytes > outside.stamp.bytes || wal.bytes > WAL_BYTES_MAX;
    if is_large && !is_pinned {
        log.find(large(copied == frames, wal.bytes).evidence(&state));
    }
}

fn pinned(outside: &Outside, process: &Process, behind: u32) -> Finding {
    let seconds = outside.watch.time.as_secs_f64();
    let mend = Mend::Advice(locks::end_transaction(process));
    let who = process.title();
    Finding::new("wal_pinned", format!("{who} reads an old state, and the WAL grows"), mend)
        .evidence(format!(
            "its snapshot is {} pages old, and stayed so for {seconds:.1} s",
            count(behind.into())
        ))
        .field("process", json!(process))
        .field("behind_pages", behind)
        .cost("Until it ends, no checkpoint gets past it: the WAL grows, and reads get slower.")
}

fn large(is_copied: bool, wal_bytes: u64) -> Finding {
    let what = if is_copied {
        "the WAL keeps the size that it once had"
    } else {
        "the WAL is not copied into the file, and nobody is in the way"
    };
    let mend = "PRAGMA wal_checkpoint(TRUNCATE), on a connection of the program. PRAGMA \
                journal_size_limit = 67108864 on each that writes keeps it short; and see that \
                nobody sets wal_autocheckpoint = 0.";
    Finding::new("wal_large", what, Mend::Advice(mend.to_owned()))
        .field("wal_bytes", wal_bytes)
        .field("is_copied", is_copied)
        .cost(format!("{} of disk, and longer lookups in its index", bytes(wal_bytes)))
}
