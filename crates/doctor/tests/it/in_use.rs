//! Files that other processes have open, and what they keep each other from.

use doctor::Severity;

use crate::bed::{Bed, Shell, codes, report, the};

#[test]
fn who_keeps_the_write_lock_is_named() {
    let bed = Bed::new();
    for journal in ["DELETE", "WAL"] {
        let sql = format!("PRAGMA journal_mode = {journal}; CREATE TABLE t (x)");
        let path = bed.make(journal, &sql);
        let mut shell = Shell::start(&path, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1);");
        let held = report(&path);
        let finding = the(&held, "database_locked");
        assert_eq!(finding.severity, Severity::Error);
        assert_eq!(finding.fields["process"]["pid"], shell.pid(), "{finding:?}");
        assert_eq!(finding.fields["process"]["name"], "sqlite3", "{finding:?}");
        let lock = if journal == "WAL" { "wal_write" } else { "reserved" };
        assert!(finding.fields["locks"].to_string().contains(lock), "{finding:?}");
        // What is in the file can still be read.
        assert!(held.skipped.is_empty(), "{held:#?}");

        shell.run("COMMIT;");
        assert!(!codes(&report(&path)).contains(&"database_locked"));
    }
}

#[test]
fn a_reader_that_stays_is_named_where_it_holds_writers_up() {
    let bed = Bed::new();
    let read = "BEGIN; SELECT count(*) FROM t;";
    let path = bed.make("rollback", "CREATE TABLE t (x)");
    let shell = Shell::start(&path, read);
    let finding = the(&report(&path), "database_locked");
    assert_eq!(finding.fields["process"]["pid"], shell.pid(), "{finding:?}");
    assert_eq!(finding.fields["locks"], serde_json::json!(["shared"]));

    let path = bed.make("wal", "PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    let _shell = Shell::start(&path, read);
    assert!(!codes(&report(&path)).contains(&"database_locked"));
}

#[test]
fn a_file_that_is_written_now_says_who_and_skips_the_rest() {
    let bed = Bed::new();
    let path = bed.make("a.db", "CREATE TABLE t (x)");
    let _shell = Shell::start(&path, "BEGIN EXCLUSIVE;");
    let report = report(&path);
    assert_eq!(codes(&report)[0], "database_locked");
    assert!(report.skipped.iter().any(|skipped| skipped.why.contains("locked")), "{report:#?}");
}
