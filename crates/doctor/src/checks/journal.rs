//! Checks the rollback journal and the WAL: which of them exists, and whether it is in good state.

use indicatif::{DecimalBytes, HumanCount};
use serde_json::json;

use super::locks;
use crate::catalogue::finding_code::FindingCode;
use crate::environment::file_environment::FileEnvironment;
use crate::environment::processes::ProcessInfo;
use crate::environment::sqlite_locks::SqliteLock;
use crate::file::opened_file::OpenedFile;
use crate::file::schema::quote_for_shell;
use crate::format::counted;
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

/// The default of `wal_autocheckpoint`: a WAL that is checkpointed has about this many pages.
const AUTOCHECKPOINT_PAGES: u64 = 1_000;
/// The minimum size of a WAL that is reported, in pages. Four times the default is more than an
/// occasional large transaction needs.
const WAL_PAGES_MAX: u64 = 4 * AUTOCHECKPOINT_PAGES;
/// The size above which a WAL is large compared with any file.
const WAL_BYTES_MAX: u64 = 100_000_000;

pub(crate) fn check(environment: &FileEnvironment, log: &mut CheckResults) {
    if environment.is_hot {
        log.add(hot_journal(environment));
    }
    let is_left = environment.has_wal_content()
        && !environment.watch.is_connected
        && environment.users.processes.is_empty()
        && !environment.is_networked();
    if is_left {
        log.add(wal_left_behind(environment));
    } else {
        check_wal(environment, log);
    }
    if let Some(header) = &environment.header {
        check_mode(environment, header.is_wal, log);
    }
}

/// Checks the journal mode of an encrypted file, whose header can be read only with its key.
pub(crate) fn check_encrypted(subject: &OpenedFile, log: &mut CheckResults) {
    if subject.environment.header.is_none() {
        check_mode(&subject.environment, subject.header.is_wal, log);
    }
}

fn check_mode(environment: &FileEnvironment, is_wal: bool, log: &mut CheckResults) {
    let processes = &environment.users.processes;
    if is_wal || processes.is_empty() || environment.is_networked() {
        return;
    }
    let names: Vec<String> = processes.iter().map(ProcessInfo::display_name).collect();
    let (code, what) = match processes.len() {
        1 => (FindingCode::NotWal, "a program uses the file with a rollback journal"),
        _ => (
            FindingCode::RollbackJournalShared,
            "several programs use the file with a rollback journal",
        ),
    };
    let finding = DoctorFinding::new(code, what, Fix::Sql("PRAGMA journal_mode = WAL;".to_owned()))
        .evidence(format!("open in {}", names.join(", ")))
        .evidence("according to its header, the file does not use WAL")
        .detail("processes", json!(processes))
        .impact(
            "Each write waits for all readers, readers wait for each write, and each transaction \
             flushes twice.",
        );
    log.add(finding);
}

fn hot_journal(environment: &FileEnvironment) -> DoctorFinding {
    let journal = environment.journal.as_ref().map_or(0, |journal| journal.bytes);
    let sql = "SELECT count(*) FROM sqlite_schema";
    let fix = with_key(environment, FindingCode::HotJournal, sql, "rolls the transaction back");
    DoctorFinding::new(FindingCode::HotJournal, "a transaction was started and never ended", fix)
        .fix_sql(sql)
        .evidence(format!("a journal of {}, and no process is writing", DecimalBytes(journal)))
        .detail("journal_bytes", journal)
        .impact("The file contains half a transaction. Deleting the journal makes this permanent.")
}

fn wal_left_behind(environment: &FileEnvironment) -> DoctorFinding {
    let wal = environment.wal.as_ref().map_or(0, |wal| wal.bytes);
    let what = "a program left a WAL behind, because it did not close the file";
    let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
    let fix = with_key(environment, FindingCode::WalLeftBehind, sql, "moves the WAL into the file");
    DoctorFinding::new(FindingCode::WalLeftBehind, what, fix)
        .fix_sql(sql)
        .evidence(format!("a WAL of {}, and no process has the file open", DecimalBytes(wal)))
        .detail("wal_bytes", wal)
        .impact("A copy of the file without its -wal lacks the transactions in the WAL.")
}

/// Returns a statement for a shell. A shell without the key of an encrypted file would consider its
/// journal or WAL invalid, and delete it.
fn with_key(environment: &FileEnvironment, code: FindingCode, sql: &str, effect: &str) -> Fix {
    if environment.is_keyed || environment.header.is_none() {
        return Fix::Advice(format!(
            "Open the file once for writing with the program that has its key, or run warren \
             doctor --fix {code} with the key: this {effect}. Never open the file with a program \
             that lacks the key: it would treat the journal or WAL as invalid, delete it, and \
             leave the file corrupt."
        ));
    }
    let file = quote_for_shell(&environment.path.display().to_string());
    Fix::Shell(format!("sqlite3 {file} '{sql}'    # {effect}"))
}

fn check_wal(environment: &FileEnvironment, log: &mut CheckResults) {
    let Some((wal, index)) = environment.wal.as_ref().zip(environment.watch.index.as_ref()) else {
        return;
    };
    let page = u64::from(wal.page_size.unwrap_or(4_096));
    if wal.bytes < WAL_PAGES_MAX * page {
        return;
    }
    let (frames, copied) = (index.frames_count, index.copied_count);
    let state = format!(
        "a WAL of {}; pages copied into the file: {} of {}",
        DecimalBytes(wal.bytes),
        HumanCount(copied.into()),
        HumanCount(frames.into())
    );
    let mut is_pinned = false;
    for held in &environment.watch.held {
        let SqliteLock::WalRead(mark) = held.lock else { continue };
        let Some(mark) = index.mark(mark).filter(|mark| copied < frames && *mark < frames) else {
            continue;
        };
        is_pinned = true;
        log.add(
            wal_pinned(environment, &ProcessInfo::from_pid(held.pid), frames - mark)
                .evidence(&state),
        );
    }
    let is_large = wal.bytes > environment.stamp.bytes || wal.bytes > WAL_BYTES_MAX;
    if is_large && !is_pinned {
        log.add(wal_large(copied == frames, wal.bytes).evidence(&state));
    }
}

fn wal_pinned(environment: &FileEnvironment, process: &ProcessInfo, behind: u32) -> DoctorFinding {
    let seconds = environment.watch.time.as_secs_f64();
    let fix = Fix::Advice(locks::end_transaction(process));
    let who = process.display_name();
    DoctorFinding::new(
        FindingCode::WalPinned,
        format!("{who} reads an old snapshot, and the WAL grows"),
        fix,
    )
    .evidence(format!(
        "its snapshot is {} behind the end of the WAL, for {seconds:.1} s or longer",
        counted(behind.into(), "page", "pages")
    ))
    .detail("process", json!(process))
    .detail("behind_pages_count", behind)
    .impact("Checkpoints cannot pass this snapshot until it ends: the WAL grows, reads get slower.")
}

fn wal_large(is_copied: bool, wal_bytes: u64) -> DoctorFinding {
    let what = if is_copied {
        "the WAL is copied into the file, but keeps its largest size"
    } else {
        "the WAL is not copied into the file, although no reader pins it"
    };
    let fix = "Run PRAGMA wal_checkpoint(TRUNCATE) on a connection of the program. PRAGMA \
                journal_size_limit = 67108864 on each connection that writes keeps the WAL small. \
                Make sure that no connection sets wal_autocheckpoint = 0.";
    DoctorFinding::new(FindingCode::WalLarge, what, Fix::Advice(fix.to_owned()))
        .detail("wal_bytes", wal_bytes)
        .detail("copied", is_copied)
        .impact(format!(
            "The WAL takes {} on the disk, and lookups in its index take longer.",
            DecimalBytes(wal_bytes)
        ))
}
