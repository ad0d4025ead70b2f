//! Judges the settings that decide whether a commit is durable, whether a connection waits, and
//! whether foreign keys are enforced.

use super::facts::ConnectionFacts;
use crate::catalogue::finding_code::FindingCode;
use crate::report::finding::DoctorFinding;

/// The suggested timeout: longer than a transaction should take, shorter than a person waits for a
/// page.
const BUSY_TIMEOUT_MS: &str = "5000";
/// The maximum number of tables that a finding lists.
const TABLES_SHOWN_MAX: usize = 5;
const ROLLBACK: &[&str] = &["delete", "persist", "truncate"];

pub(super) fn busy_timeout(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    let settings = facts.settings;
    let fails_at_once = settings.number("busy_timeout")? <= 0 && !settings.is_exclusive();
    fails_at_once.then(|| {
        let what = "the connection does not wait for locks: busy_timeout is 0";
        let mut finding = facts.finding(FindingCode::BusyTimeoutAbsent, "busy_timeout", what);
        if facts.users_count > 0 {
            let count = facts.users_count;
            finding = finding.evidence(format!("processes that have the file open: {count}"));
        }
        finding
            .with_fix(facts.set("busy_timeout", BUSY_TIMEOUT_MS))
            .impact("A lock of a few milliseconds is enough for \"database is locked\".")
    })
}

pub(super) fn journal_mode(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    let is_unsafe = facts.settings.is_journal(&["memory", "off"]) && facts.other_file.is_none();
    is_unsafe.then(|| {
        let what = "transactions have no journal on the disk";
        facts
            .finding(FindingCode::JournalModeUnsafe, "journal_mode", what)
            .with_fix(facts.set("journal_mode", "WAL"))
            .impact(
                "If the program crashes or is killed within a transaction, the file is corrupt.",
            )
    })
}

pub(super) fn synchronous_off(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    (facts.settings.number("synchronous")? == 0).then(|| {
        let wanted = if facts.is_wal { "NORMAL" } else { "FULL" };
        let what = "nothing is flushed to the disk: synchronous is OFF";
        facts
            .finding(FindingCode::SynchronousOff, "synchronous", what)
            .with_fix(facts.set("synchronous", wanted))
            .impact("A power loss or a crash of the system can corrupt the file.")
    })
}

pub(super) fn synchronous_low(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    let is_low = facts.settings.number("synchronous")? == 1 && facts.settings.is_journal(ROLLBACK);
    is_low.then(|| {
        let what = "synchronous is NORMAL with a rollback journal";
        facts
            .finding(FindingCode::SynchronousLow, "synchronous", what)
            .with_fix(facts.set("synchronous", "FULL"))
            .impact(
                "There is a very small risk that a power loss at the wrong time corrupts the file.",
            )
    })
}

pub(super) fn checkpoints(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    let is_off = facts.settings.number("wal_autocheckpoint")? <= 0 && facts.is_wal;
    is_off.then(|| {
        let what = "this connection never moves the WAL into the file: wal_autocheckpoint is 0";
        facts
            .finding(FindingCode::CheckpointsOff, "wal_autocheckpoint", what)
            .with_fix(facts.set("wal_autocheckpoint", "1000"))
            .impact(
                "Unless another program checkpoints (such as Litestream), the WAL grows forever.",
            )
    })
}

pub(super) fn foreign_keys(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    let is_off = facts.settings.number("foreign_keys")? == 0 && !facts.referring.is_empty();
    is_off.then(|| {
        let tables = &facts.referring;
        let shown: Vec<&str> = tables.iter().take(TABLES_SHOWN_MAX).map(String::as_str).collect();
        let what =
            format!("the connection does not enforce the foreign keys of {}", shown.join(", "));
        facts
            .finding(FindingCode::ForeignKeysOff, "foreign_keys", what)
            .evidence(format!("tables with foreign keys: {}", tables.len()))
            .detail("tables", tables.clone())
            .with_fix(facts.set("foreign_keys", "ON"))
            .impact("Rows can refer to rows that do not exist; ON DELETE CASCADE has no effect.")
    })
}
