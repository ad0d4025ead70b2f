//! Who keeps others waiting.

use std::collections::BTreeSet;

use serde_json::json;

use crate::catalogue::finding_code::FindingCode;
use crate::environment::file_environment::FileEnvironment;
use crate::environment::processes::{DeletedWal, ProcessInfo};
use crate::environment::sqlite_locks::{HeldLock, SqliteLock};
use crate::file::schema::quote_for_shell;
use crate::format::to_ms;
use crate::report::CheckResults;
use crate::report::finding::{DoctorFinding, Fix};

pub(crate) fn check(environment: &FileEnvironment, log: &mut CheckResults) {
    for deleted in &environment.users.deleted_wals {
        log.add(wal_deleted(environment, deleted));
    }
    let watch = &environment.watch;
    // Without WAL, readers keep writers waiting; in an encrypted file, the key tells.
    let is_rollback = environment.header.as_ref().is_some_and(|header| !header.is_wal);
    let keeps_waiting = |held: &&HeldLock| match held.lock {
        SqliteLock::Shared => is_rollback,
        lock => lock.is_exclusive(),
    };
    // Who commits meanwhile is at work, and lets go in between.
    if !watch.nothing_committed || watch.observations_count < 2 {
        return;
    }
    let held: Vec<&HeldLock> = watch.held.iter().filter(keeps_waiting).collect();
    let pids: BTreeSet<i32> = held.iter().map(|held| held.pid).collect();
    for pid in pids {
        let locks: Vec<SqliteLock> =
            held.iter().filter(|held| held.pid == pid).map(|held| held.lock).collect();
        let process = ProcessInfo::from_pid(pid);
        log.add(if keeps_for_itself(environment, &locks) {
            exclusive(environment, &process)
        } else {
            finding(environment, &process, &locks)
        });
    }
}

/// Is the lock that of `locking_mode = EXCLUSIVE`, which a connection keeps between its
/// transactions? In WAL mode, nothing else locks the main file so; with a rollback journal, a
/// transaction that has come so far has a journal.
fn keeps_for_itself(environment: &FileEnvironment, locks: &[SqliteLock]) -> bool {
    let has_journal = environment.journal.as_ref().is_some_and(|journal| journal.has_header);
    let is_wal = environment.header.as_ref().is_some_and(|header| header.is_wal);
    locks.contains(&SqliteLock::Exclusive) && (is_wal || !has_journal)
}

fn exclusive(environment: &FileEnvironment, process: &ProcessInfo) -> DoctorFinding {
    let who = process.display_name();
    let fix = "Nothing, if no other program is to open the file. If one is: PRAGMA locking_mode = \
                NORMAL in that program, and no transaction that stays open.";
    let what = format!("{who} keeps the file for itself");
    DoctorFinding::new(FindingCode::ExclusiveMode, what, Fix::Advice(fix.to_owned()))
        .evidence(format!(
            "EXCLUSIVE held at each of {} looks in {:.1} s, and nothing is written: locking_mode = \
             EXCLUSIVE, or BEGIN EXCLUSIVE",
            environment.watch.observations_count,
            environment.watch.time.as_secs_f64()
        ))
        .detail("process", json!(process))
        .impact("Others get \"database is locked\" for as long as it has the file open.")
}

fn wal_deleted(environment: &FileEnvironment, deleted: &DeletedWal) -> DoctorFinding {
    let DeletedWal { process, descriptor } = deleted;
    let file = quote_for_shell(&environment.path.display().to_string());
    let copy = quote_for_shell(&format!("{}.rescued", environment.path.display()));
    let pid = process.pid;
    let fix = format!(
        "cp {file} {copy} && cp /proc/{pid}/fd/{descriptor} {copy}-wal    # while it does not write"
    );
    let what = format!("{} writes to a WAL that was deleted", process.display_name());
    DoctorFinding::new(FindingCode::WalDeleted, what, Fix::Shell(fix))
        .evidence(format!("its descriptor {descriptor} is of a -wal file that has no name"))
        .detail("process", json!(process))
        .detail("descriptor", *descriptor)
        .impact(
            "All that it committed since the last checkpoint is lost when it ends: do not end it \
             before the copy is made. A checkpoint by the program itself saves it, too.",
        )
}

/// How somebody's transaction ends.
pub(super) fn end_transaction(process: &ProcessInfo) -> String {
    match process.pid {
        ..=0 => "See who has the file open, and let them end the transaction.".to_owned(),
        _ => format!(
            "Let {} end its transaction: a BEGIN without COMMIT, a SELECT that was never finished. \
             If the program ends instead, what it has not committed is lost.",
            process.display_name()
        ),
    }
}

fn finding(
    environment: &FileEnvironment,
    process: &ProcessInfo,
    locks: &[SqliteLock],
) -> DoctorFinding {
    let seconds = environment.watch.time.as_secs_f64();
    let names: Vec<String> = locks.iter().map(|lock| lock.name()).collect();
    let who = process.display_name();
    let is_reader = locks == [SqliteLock::Shared];
    let (what, cost) = if is_reader {
        ("keeps a read transaction open", "Nobody can commit a write until it ends.")
    } else {
        ("keeps a write transaction open", "Nobody else can write until it ends.")
    };
    let fix = Fix::Advice(end_transaction(process));
    let mut finding = DoctorFinding::new(FindingCode::DatabaseLocked, format!("{who} {what}"), fix)
        .evidence(format!(
            "{} held at each of {} looks in {seconds:.1} s",
            names.join(" and "),
            environment.watch.observations_count
        ))
        .detail("process", json!(process))
        .detail("locks", json!(locks))
        .detail("watched_duration_ms", to_ms(environment.watch.time))
        .impact(cost);
    if !process.command.is_empty() {
        finding = finding.evidence(format!("it was called as: {}", process.command));
    }
    finding
}
