//! Tests fixes that the doctor carries out: on files that a crash left behind, with keys, while
//! programs use the file, and fixes that fail.

use std::fs;
use std::path::Path;

use doctor::{Error, ExamineOptions, FindingCode, FixSelection, fix, undo_fix};
use engine::{DatabaseKey, FileEncryption, Passphrase, Profile, open_connection};
use rusqlite::Connection;

use crate::findings::healthy;
use crate::fixture::{DoctorFixture, SqliteShell, codes, report, sql_on};

fn fixed(
    path: &Path,
    encryption: &FileEncryption,
    wanted: FixSelection,
) -> doctor::Result<doctor::FixReport> {
    fix(path, encryption, &ExamineOptions::default(), wanted, false)
}

/// Creates a file with half a transaction and its journal, under this key.
fn killed(fixture: &DoctorFixture, encryption: &FileEncryption) -> std::path::PathBuf {
    let (live, path) = (fixture.at("live.db"), fixture.at("a.db"));
    let (db, _) = open_connection(&live, encryption, Profile::SERVER, false, true).unwrap();
    db.execute_batch(
        "PRAGMA journal_mode = DELETE; CREATE TABLE t (x);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         INSERT INTO t SELECT i FROM n;
         PRAGMA cache_size = 2; BEGIN; UPDATE t SET x = x + 1",
    )
    .unwrap();
    fs::copy(&live, &path).unwrap();
    fs::copy(fixture.at("live.db-journal"), fixture.at("a.db-journal")).unwrap();
    path
}

#[test]
fn a_hot_journal_is_rolled_back_with_the_key() {
    let key = FileEncryption::Key { key: DatabaseKey::from_bytes([7; 32]), cipher: None };
    let phrase =
        FileEncryption::Passphrase { passphrase: Passphrase::new(b"hasen".to_vec()), cipher: None };
    for encryption in [key, phrase, FileEncryption::None] {
        let fixture = DoctorFixture::new();
        let path = killed(&fixture, &encryption);
        let before = fs::read(&path).unwrap();
        let done = fixed(&path, &encryption, FixSelection::Code(FindingCode::HotJournal)).unwrap();
        assert!(done.report.integrity.complete && done.rehearsed, "{done:#?}");
        assert!(!codes(&done.report).contains(&FindingCode::HotJournal), "{done:#?}");
        assert!(!fixture.at("a.db-journal").exists());
        let (db, _) = open_connection(&path, &encryption, Profile::SERVER, true, false).unwrap();
        let sum: i64 = db.query_row("SELECT sum(x) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(sum, 200_010_000);
        drop(db);

        undo_fix(&path).unwrap();
        assert!(fs::read(&path).unwrap() == before && fixture.at("a.db-journal").exists());
    }
}

#[test]
fn all_is_fixed_in_one_go_and_the_size_is_told() {
    let fixture = DoctorFixture::new();
    let path = fixture.make(
        "a.db",
        "CREATE TABLE t (x); CREATE INDEX i ON t (x); CREATE INDEX j ON t (x);
         CREATE TABLE big (x); INSERT INTO big VALUES (zeroblob(9000000)); DROP TABLE big",
    );
    let done = fixed(&path, &FileEncryption::None, FixSelection::All).unwrap();
    let ran: Vec<&str> = done.fixes.iter().map(|fix| fix.sql.as_str()).collect();
    assert_eq!(ran, ["DROP INDEX j;", "PRAGMA auto_vacuum = INCREMENTAL;\nVACUUM;"]);
    assert_eq!(codes(&done.report), [] as [FindingCode; 0]);
    assert!(done.before_bytes > 9_000_000 && done.after_bytes < Some(100_000), "{done:#?}");
    let again = fixed(&path, &FileEncryption::None, FixSelection::All).unwrap();
    assert!(again.fixes.is_empty() && again.undo_path.is_none());
}

#[test]
fn nothing_is_fixed_beside_a_program_or_in_a_file_that_is_broken_otherwise() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    healthy(&path);
    sql_on(&path, "CREATE INDEX again ON book (author, year)");
    let shell = SqliteShell::start(&path, "SELECT count(*) FROM book;");
    let error =
        fixed(&path, &FileEncryption::None, FixSelection::Code(FindingCode::IndexDuplicate))
            .unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error}");
    assert!(error.to_string().contains("sqlite3"), "{error}");
    drop(shell);

    let mut bytes = fs::read(&path).unwrap();
    bytes[4096 * 9..][..100].fill(0xaa);
    fs::write(&path, &bytes).unwrap();
    let error =
        fixed(&path, &FileEncryption::None, FixSelection::Code(FindingCode::IndexDuplicate))
            .unwrap_err();
    assert!(matches!(error, Error::NotFixable { .. }));
    assert!(fs::read(&path).unwrap() == bytes);
}

/// Checks a fix that only the file's own program can carry out, because its collation orders the
/// index that VACUUM rebuilds.
#[test]
fn a_fix_that_fails_leaves_everything_as_it_was() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    let db = Connection::open(&path).unwrap();
    db.create_collation("own", |a: &str, b: &str| a.cmp(b)).unwrap();
    db.execute_batch(
        "CREATE TABLE t (x COLLATE own); CREATE INDEX i ON t (x);
         CREATE TABLE big (x); INSERT INTO big VALUES (zeroblob(9000000)); DROP TABLE big",
    )
    .unwrap();
    drop(db);
    assert!(codes(&report(&path)).contains(&FindingCode::Fragmented));
    let before = fs::read(&path).unwrap();
    let error = fixed(&path, &FileEncryption::None, FixSelection::Code(FindingCode::Fragmented))
        .unwrap_err();
    assert!(matches!(error, Error::FixFailed { .. }), "{error}");
    assert!(fs::read(&path).unwrap() == before);
    assert!(!fixture.at("a.db.undo-1").exists());
}
