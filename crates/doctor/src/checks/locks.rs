//! Who keeps others waiting.

use std::collections::BTreeSet;

use serde_json::json;

use crate::finding::{Finding, Mend};
use crate::locks::{Held, Lock};
use crate::outside::Outside;
use crate::processes::Process;
use crate::report::Log;

pub(crate) fn check(outside: &Outside, log: &mut Log) {
    let watch = &outside.watch;
    let is_rollback = watch.index.is_none();
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
        log.find(finding(outside, &Process::of(pid), &locks));
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
    let mend = match process.pid {
        ..=0 => Mend::Advice("End the transaction; see who has the file open.".to_owned()),
        pid => Mend::Shell(format!("kill {pid}    # if it is not to end its transaction itself")),
    };
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
