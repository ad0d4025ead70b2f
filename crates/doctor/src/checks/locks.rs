//! Who keeps others waiting.

use std::collections::BTreeSet;

use serde_json::json;

use crate::finding::{Finding, Mend};
use crate::locks::{Held, Lock};
use crate::outside::Outside;
use crate::processes::{DeletedWal, Process};
use crate::report::Log;
use crate::schema::shell_word;

pub(crate) fn check(outside: &Outside, log: &mut Log) {
    for deleted in &outside.users.deleted_wals {
        log.find(wal_deleted(outside, deleted));
    }
    let watch = &outside.watch;
    // Without WAL, readers keep writers waiting; in an encrypted file, the key tells.
    let is_rollback = outside.header.as_ref().is_some_and(|header| !header.is_wal);
    let keeps_waiting = |held: &&Held| match held.lock {
        Lock::Shared => is_rollback,
        lock => lock.excludes(),
    };
    // Who commits meanwhile is at work, and lets go in between.
    if !watch.is_still || watch.looks_count < 2 {
        return;
    }
    let held: Vec<&Held> = watch.held.iter().filter(keeps_waiting).collect();
    let pids: BTreeSet<i32> = held.iter().map(|held| held.pid).collect();
    for pid in pids {
        let locks: Vec<Lock> =
            held.iter().filter(|held| held.pid == pid).map(|held| held.lock).collect();
        let process = Process::of(pid);
        log.find(if keeps_for_itself(outside, &locks) {
            exclusive(outside, &process)
        } else {
            finding(outside, &process, &locks)
        });
    }
}

/// Is the lock that of `locking_mode = EXCLUSIVE`, which a connection keeps between its
/// transactions? In WAL mode, nothing else locks the main file so; with a rollback journal, a
/// transaction that has come so far has a journal.
fn keeps_for_itself(outside: &Outside, locks: &[Lock]) -> bool {
    let has_journal = outside.journal.as_ref().is_some_and(|journal| journal.has_header);
    let is_wal = outside.header.as_ref().is_some_and(|header| header.is_wal);
    locks.contains(&Lock::Exclusive) && (is_wal || !has_journal)
}

fn exclusive(outside: &Outside, process: &Process) -> Finding {
    let who = process.title();
    let mend = "Nothing, if no other program is to open the file. If one is: PRAGMA locking_mode = \
                NORMAL in that program, and no transaction that stays open.";
    let what = format!("{who} keeps the file for itself");
    Finding::new("exclusive_mode", what, Mend::Advice(mend.to_owned()))
        .evidence(format!(
            "EXCLUSIVE held at each of {} looks in {:.1} s, and nothing is written: locking_mode = \
             EXCLUSIVE, or BEGIN EXCLUSIVE",
            outside.watch.looks_count,
            outside.watch.time.as_secs_f64()
        ))
        .field("process", json!(process))
        .cost("Others get \"database is locked\" for as long as it has the file open.")
}

fn wal_deleted(outside: &Outside, deleted: &DeletedWal) -> Finding {
    let DeletedWal { process, descriptor } = deleted;
    let file = shell_word(&outside.path.display().to_string());
    let copy = shell_word(&format!("{}.rescued", outside.path.display()));
    let pid = process.pid;
    let mend = format!(
        "cp {file} {copy} && cp /proc/{pid}/fd/{descriptor} {copy}-wal    # while it does not write"
    );
    let what = format!("{} writes to a WAL that was deleted", process.title());
    Finding::new("wal_deleted", what, Mend::Shell(mend))
        .evidence(format!("its descriptor {descriptor} is of a -wal file that has no name"))
        .field("process", json!(process))
        .field("descriptor", *descriptor)
        .cost(
            "All that it committed since the last checkpoint is lost when it ends: do not end it \
             before the copy is made. A checkpoint by the program itself saves it, too.",
        )
}

/// How somebody's transaction ends.
pub(super) fn end_transaction(process: &Process) -> String {
    match process.pid {
        ..=0 => "See who has the file open, and let them end the transaction.".to_owned(),
        _ => format!(
            "Let {} end its transaction: a BEGIN without COMMIT, a SELECT that was never finished. \
             If the program ends instead, what it has not committed is lost.",
            process.title()
        ),
    }
}

fn finding(outside: &Outside, process: &Process, locks: &[Lock]) -> Finding {
    let seconds = outside.watch.time.as_secs_f64();
    let names: Vec<String> = locks.iter().map(|lock| lock.name()).collect();
    let who = process.title();
    let is_reader = locks == [Lock::Shared];
    let (what, cost) = if is_reader {
        ("keeps a read transaction open", "Nobody can commit a write until it ends.")
    } else {
        ("keeps a write transaction open", "Nobody else can write until it ends.")
    };
    let mend = Mend::Advice(end_transaction(process));
    let mut finding = Finding::new("database_locked", format!("{who} {what}"), mend)
        .evidence(format!(
            "{} held at each of {} looks in {seconds:.1} s",
            names.join(" and "),
            outside.watch.looks_count
        ))
        .field("process", json!(process))
        .field("locks", json!(locks))
        .field("watched_seconds", seconds)
        .cost(cost);
    if !process.command.is_empty() {
        finding = finding.evidence(format!("it was called as: {}", process.command));
    }
    finding
}
