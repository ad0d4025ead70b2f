//! Finds processes that make others wait for their locks.

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
    // Without WAL, readers make writers wait. The header of an encrypted file does not show the
    // mode.
    let is_rollback = environment.header.as_ref().is_some_and(|header| !header.is_wal);
    let keeps_waiting = |held: &&HeldLock| match held.lock {
        SqliteLock::Shared => is_rollback,
        lock => lock.is_exclusive(),
    };
    // A process that commits during this time is working, and releases its locks between commits.
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

/// Checks whether the lock is that of `locking_mode = EXCLUSIVE`, which a connection keeps between
/// its transactions. In WAL mode, nothing else locks the main file like this; with a rollback
/// journal, a transaction that has this lock has a journal.
fn keeps_for_itself(environment: &FileEnvironment, locks: &[SqliteLock]) -> bool {
    let has_journal = environment.journal.as_ref().is_some_and(|journal| journal.has_header);
    let is_wal = environment.header.as_ref().is_some_and(|header| header.is_wal);
    locks.contains(&SqliteLock::Exclusive) && (is_wal || !has_journal)
}

fn exclusive(environment: &FileEnvironment, process: &ProcessInfo) -> DoctorFinding {
    let who = process.display_name();
    let fix = "Do nothing if no other program needs the file. Otherwise set PRAGMA locking_mode = \
                NORMAL in the program that keeps the lock, and leave no transaction open there.";
    let what = format!("{who} keeps the file locked for itself");
    DoctorFinding::new(FindingCode::ExclusiveMode, what, Fix::Advice(fix.to_owned()))
        .evidence(format!(
            "EXCLUSIVE lock held in each of {} readings within {:.1} s, and nothing was written: \
             locking_mode = EXCLUSIVE, or BEGIN EXCLUSIVE",
            environment.watch.observations_count,
            environment.watch.time.as_secs_f64()
        ))
        .detail("process", json!(process))
        .impact("Other programs get \"database is locked\" while this process has the file open.")
}

fn wal_deleted(environment: &FileEnvironment, deleted: &DeletedWal) -> DoctorFinding {
    let DeletedWal { process, descriptor } = deleted;
    let file = quote_for_shell(&environment.path.display().to_string());
    let copy = quote_for_shell(&format!("{}.rescued", environment.path.display()));
    let pid = process.pid;
    let fix = format!(
        "cp {file} {copy} && cp /proc/{pid}/fd/{descriptor} {copy}-wal    # while the program does \
         not write"
    );
    let what = format!("{} writes to a WAL that was deleted", process.display_name());
    DoctorFinding::new(FindingCode::WalDeleted, what, Fix::Shell(fix))
        .evidence(format!(
            "its file descriptor {descriptor} refers to a -wal file that was deleted"
        ))
        .detail("process", json!(process))
        .detail("descriptor", *descriptor)
        .impact(
            "All its commits since the last checkpoint are lost when it ends: do not end it \
             before you have the copy. A checkpoint by the program itself also saves them.",
        )
}

/// Returns the advice how to end the open transaction of a process.
pub(super) fn end_transaction(process: &ProcessInfo) -> String {
    match process.pid {
        ..=0 => {
            "Find the process that has the file open, and end the transaction there.".to_owned()
        }
        _ => format!(
            "End the transaction in {}: a BEGIN without COMMIT, or a SELECT that was never \
             finished. If you end the program instead, its uncommitted changes are lost.",
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
        ("keeps a read transaction open", "No program can commit until the transaction ends.")
    } else {
        ("keeps a write transaction open", "No other program can write until the transaction ends.")
    };
    let fix = Fix::Advice(end_transaction(process));
    let mut finding = DoctorFinding::new(FindingCode::DatabaseLocked, format!("{who} {what}"), fix)
        .evidence(format!(
            "{} held in each of {} readings within {seconds:.1} s",
            names.join(" and "),
            environment.watch.observations_count
        ))
        .detail("process", json!(process))
        .detail("locks", json!(locks))
        .detail("watched_duration_ms", to_ms(environment.watch.time))
        .impact(cost);
    if !process.command.is_empty() {
        finding = finding.evidence(format!("command line: {}", process.command));
    }
    finding
}
