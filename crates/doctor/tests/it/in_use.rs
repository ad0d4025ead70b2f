//! Tests the findings about files that other processes have open, and about processes that block
//! others.

use std::fs::{self, File};
use std::process::Command;
use std::thread;

use doctor::{FindingCode, Severity, file_holders};

use crate::fixture::{DoctorFixture, SqliteShell, apply_fix, codes, report, the};

/// The statement that inserts 20 MB into a table `t`.
const ROWS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
     INSERT INTO t SELECT printf('%01000d', i) FROM n;";
/// The number of children that are started one after the other.
const CHILDREN: usize = 20;
/// The number of directories in which each child searches for its program, which takes some
/// milliseconds.
const FOLDERS: usize = 60_000;

#[test]
fn who_keeps_the_write_lock_is_named() {
    let fixture = DoctorFixture::new();
    for journal in ["DELETE", "WAL"] {
        let sql = format!("PRAGMA journal_mode = {journal}; CREATE TABLE t (x)");
        let path = fixture.make(journal, &sql);
        let mut shell = SqliteShell::start(&path, "BEGIN IMMEDIATE; INSERT INTO t VALUES (1);");
        let held = report(&path);
        let finding = the(&held, FindingCode::DatabaseLocked);
        assert_eq!(finding.severity, Severity::Error);
        assert_eq!(finding.details["process"]["pid"], shell.pid(), "{finding:?}");
        assert_eq!(finding.details["process"]["name"], "sqlite3", "{finding:?}");
        let lock = if journal == "WAL" { "wal_write" } else { "reserved" };
        assert!(finding.details["locks"].to_string().contains(lock), "{finding:?}");
        // The content of the file can still be read.
        assert!(held.skipped.is_empty(), "{held:#?}");

        shell.run("COMMIT;");
        assert!(!codes(&report(&path)).contains(&FindingCode::DatabaseLocked));
    }
}

#[test]
fn a_reader_that_stays_is_named_where_it_holds_writers_up() {
    let fixture = DoctorFixture::new();
    let read = "BEGIN; SELECT count(*) FROM t;";
    let path = fixture.make("rollback", "CREATE TABLE t (x)");
    let shell = SqliteShell::start(&path, read);
    let finding = the(&report(&path), FindingCode::DatabaseLocked);
    assert_eq!(finding.details["process"]["pid"], shell.pid(), "{finding:?}");
    assert_eq!(finding.details["locks"], serde_json::json!(["shared"]));

    let path = fixture.make("wal", "PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    let _shell = SqliteShell::start(&path, read);
    assert!(!codes(&report(&path)).contains(&FindingCode::DatabaseLocked));
}

#[test]
fn a_file_that_is_written_now_says_who_and_skips_the_rest() {
    let fixture = DoctorFixture::new();
    let path = fixture.make("a.db", "CREATE TABLE t (x)");
    // These are more pages than the cache can hold: they are written before the commit.
    let sql = format!("PRAGMA cache_size = 2; BEGIN; {ROWS}");
    let _shell = SqliteShell::start(&path, &sql);
    let report = report(&path);
    assert_eq!(codes(&report)[0], FindingCode::DatabaseLocked);
    assert!(report.skipped.iter().any(|skipped| skipped.reason.contains("locked")), "{report:#?}");
}

#[test]
fn a_reader_that_pins_the_wal_is_named() {
    let fixture = DoctorFixture::new();
    let path = fixture.make("a.db", "PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    let mut reader = SqliteShell::start(&path, "SELECT 1;");
    let mut writer = SqliteShell::start(&path, ROWS);
    // The whole WAL is in the file, so its reader pins nothing.
    reader.run("BEGIN; SELECT count(*) FROM t;");
    assert!(!codes(&report(&path)).contains(&FindingCode::WalPinned));

    writer.run("UPDATE t SET x = x || '!';");
    let finding = the(&report(&path), FindingCode::WalPinned);
    assert_eq!(finding.details["process"]["pid"], reader.pid(), "{finding:?}");
    assert!(finding.details["behind_pages_count"].as_u64() > Some(4_000), "{finding:?}");

    reader.run("COMMIT;");
    assert!(!codes(&report(&path)).contains(&FindingCode::WalPinned));
}

#[test]
fn a_wal_that_nobody_checkpoints_is_found() {
    let fixture = DoctorFixture::new();
    let sql = "PRAGMA journal_mode = WAL; CREATE TABLE t (x);";
    let path = fixture.make("a.db", sql);
    let _shell = SqliteShell::start(&path, &format!("PRAGMA wal_autocheckpoint = 0; {ROWS}"));
    let finding = the(&report(&path), FindingCode::WalLarge);
    assert_eq!(finding.details["copied"], false);
    // A reader of the newest snapshot pins nothing.
    let reader = SqliteShell::start(&path, "BEGIN; SELECT count(*) FROM t;");
    let found = codes(&report(&path));
    assert!(
        found.contains(&FindingCode::WalLarge) && !found.contains(&FindingCode::WalPinned),
        "{found:?}"
    );
    drop(reader);
    assert!(finding.details["wal_bytes"].as_u64() > Some(20_000_000), "{finding:?}");

    let path = fixture.make("b.db", sql);
    let _shell = SqliteShell::start(&path, "INSERT INTO t VALUES (1);");
    assert!(!codes(&report(&path)).contains(&FindingCode::WalLarge));
}

#[test]
fn what_a_killed_process_left_is_found() {
    let fixture = DoctorFixture::new();
    let path = fixture.make("wal.db", "PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    let shell = SqliteShell::start(&path, "INSERT INTO t VALUES (1);");
    assert!(!codes(&report(&path)).contains(&FindingCode::WalLeftBehind));
    drop(shell);
    let finding = the(&report(&path), FindingCode::WalLeftBehind);
    assert_eq!(finding.details["wal_bytes"], fs::metadata(fixture.at("wal.db-wal")).unwrap().len());

    let path = fixture.make("journal.db", &format!("CREATE TABLE t (x); {ROWS}"));
    // More pages than the cache can hold are written before the commit.
    let spill = "PRAGMA cache_size = 10; BEGIN; UPDATE t SET x = x || '!';";
    let shell = SqliteShell::start(&path, spill);
    assert!(!codes(&report(&path)).contains(&FindingCode::HotJournal));
    drop(shell);
    let found = report(&path);
    let finding = the(&found, FindingCode::HotJournal);
    assert_eq!(finding.severity, Severity::Error);
    // The content is checked as it will be after the recovery, but the doctor does not roll back.
    assert!(found.skipped.is_empty() && found.integrity.complete, "{found:#?}");
    assert!(finding.evidence.iter().any(|it| it.contains("tried in memory")), "{finding:?}");
    assert!(fs::metadata(fixture.at("journal.db-journal")).unwrap().len() > 1_000_000);
    apply_fix(&path, &finding.fix);
    assert!(!codes(&report(&path)).contains(&FindingCode::HotJournal));
}

/// Checks files that a program keeps locked, as browsers do: this is not a fault, and no process
/// must end.
#[test]
fn a_program_that_keeps_its_file_for_itself_is_no_fault() {
    let fixture = DoctorFixture::new();
    for journal in ["DELETE", "TRUNCATE", "WAL"] {
        let sql = format!("PRAGMA journal_mode = {journal}; CREATE TABLE t (x)");
        let path = fixture.make(journal, &sql);
        let sql = format!(
            "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = {journal};
             INSERT INTO t VALUES (1);"
        );
        let shell = SqliteShell::start(&path, &sql);
        let report = report(&path);
        let finding = the(&report, FindingCode::ExclusiveMode);
        assert_eq!(finding.details["process"]["pid"], shell.pid(), "{finding:?}");
        assert_eq!(report.severity(), Some(Severity::Info), "{report:#?}");
        // With a WAL, the file is read as it would be recovered.
        assert_eq!(report.integrity.complete, journal == "WAL", "{report:#?}");
    }
}

#[test]
fn a_wal_that_was_deleted_under_its_program_is_saved() {
    let fixture = DoctorFixture::new();
    let path = fixture.make("a b.db", "PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    let shell = SqliteShell::start(&path, "INSERT INTO t VALUES (1), (2);");
    for suffix in ["-wal", "-shm"] {
        fs::remove_file(fixture.at(&format!("a b.db{suffix}"))).unwrap();
        let report = report(&path);
        let finding = the(&report, FindingCode::WalDeleted);
        assert_eq!(finding.details["process"]["pid"], shell.pid(), "{finding:?}");
        assert!(!codes(&report).contains(&FindingCode::DatabaseLocked), "{report:#?}");
        let line = finding.fix.to_string();
        assert!(Command::new("sh").args(["-ec", &line]).status().unwrap().success(), "{line}");
        let db = rusqlite::Connection::open(fixture.at("a b.db.rescued")).unwrap();
        let count: i64 = db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 2);
    }
}

#[test]
fn a_rollback_journal_is_named_by_how_many_use_it() {
    let fixture = DoctorFixture::new();
    let path = fixture.make("a.db", "CREATE TABLE t (x)");
    let modes = || {
        let found = codes(&report(&path));
        [FindingCode::NotWal, FindingCode::RollbackJournalShared].map(|code| found.contains(&code))
    };
    assert_eq!(modes(), [false, false]);
    let mut one = SqliteShell::start(&path, "SELECT * FROM t;");
    assert_eq!(modes(), [true, false]);
    let two = SqliteShell::start(&path, "SELECT * FROM t;");
    assert_eq!(modes(), [false, true]);
    drop(two);
    one.run("PRAGMA journal_mode = WAL; SELECT * FROM t;");
    assert_eq!(modes(), [false, false]);
}

#[test]
fn a_child_that_is_just_being_started_is_not_a_holder() {
    let fixture = DoctorFixture::new();
    let path = fixture.make("open.db", "CREATE TABLE t (x)");
    // A child has this file open, too, until its program runs, and it searches every directory for
    // that.
    let open = File::open(&path).unwrap();
    let folders = "x:".repeat(FOLDERS) + "/usr/bin:/bin";
    thread::scope(|scope| {
        let start = || Command::new("true").env("PATH", &folders).status().unwrap();
        let children = scope.spawn(move || (0..CHILDREN).all(|_| start().success()));
        while !children.is_finished() {
            let found = file_holders(&path);
            assert!(found.is_empty(), "{found:?}");
        }
        assert!(children.join().unwrap());
    });
    drop(open);
}
