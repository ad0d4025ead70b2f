//! Tests the checks of a program's settings: real connections report them, and the doctor judges
//! them with their files. `src/checks/connection/tests.rs` tests the judgments one by one.

use std::fmt::Write;
use std::path::Path;

use doctor::{
    ConnectionSettings, DoctorReport, ExamineOptions, FindingCode, Fix, FixSelection, JournalKind,
    Severity, examine, fix,
};
use engine::{DatabaseKey, FileEncryption, Profile, open_connection};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::findings::healthy;
use crate::fixture::{DoctorFixture, apply_fix, codes, the};

const PRAGMAS: &str = "journal_mode synchronous busy_timeout foreign_keys cache_size mmap_size \
    temp_store secure_delete auto_vacuum encoding page_size wal_autocheckpoint locking_mode cipher";
const PRODUCTION: &str = "PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 30000;
    PRAGMA foreign_keys = ON; PRAGMA cache_size = -16000; PRAGMA secure_delete = ON;
    PRAGMA temp_store = FILE;";

/// Reports the settings of a connection as the snippets do.
fn ask(db: &Connection) -> String {
    let mut text = format!("sqlite_version={}\n", rusqlite::version());
    writeln!(text, "file={}\nTMPDIR=/tmp", db.path().unwrap()).unwrap();
    for name in PRAGMAS.split(' ') {
        let value = db.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).unwrap();
        match value {
            Value::Integer(number) => writeln!(text, "{name}={number}").unwrap(),
            Value::Text(value) => writeln!(text, "{name}={value}").unwrap(),
            other => panic!("{name}: {other:?}"),
        }
    }
    text
}

fn options(settings: &str) -> ExamineOptions {
    let settings = ConnectionSettings::parse(settings.as_bytes()).unwrap();
    ExamineOptions { settings: Some(settings), ..ExamineOptions::default() }
}

fn report(path: &Path, settings: &str) -> DoctorReport {
    examine(path, &FileEncryption::None, &options(settings)).unwrap()
}

#[test]
fn a_production_connection_gets_no_finding_also_while_it_is_open() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    healthy(&path);
    let db = Connection::open(&path).unwrap();
    db.execute_batch(PRODUCTION).unwrap();
    let settings = ask(&db);
    for _ in 0..2 {
        let report = report(&path, &settings);
        assert_eq!(codes(&report), [] as [FindingCode; 0], "{report:#?}");
        assert!(report.skipped.is_empty(), "{report:#?}");
        let said = format!("program settings (SQLite {}, cipher ", rusqlite::version());
        assert!(report.checked.iter().any(|line| line.starts_with(&said)), "{report:#?}");
    }
}

#[test]
fn what_a_live_connection_sets_is_judged_with_its_file() {
    let fixture = DoctorFixture::new();
    let check = |sql: &str, expected: FindingCode| {
        let path = fixture.at(expected.as_str());
        healthy(&path);
        let db = Connection::open(&path).unwrap();
        db.execute_batch(&format!("{PRODUCTION} {sql}")).unwrap();
        let report = report(&path, &ask(&db));
        let finding = the(&report, expected);
        assert!(matches!(finding.fix, Fix::Advice(_)) && finding.fix_sql.is_none(), "{finding:?}");
        let codes: Vec<FindingCode> =
            codes(&report).into_iter().filter(|code| *code != FindingCode::NotWal).collect();
        assert_eq!(codes, [expected], "{report:#?}");
    };
    check("PRAGMA busy_timeout = 0", FindingCode::BusyTimeoutAbsent);
    check("PRAGMA wal_autocheckpoint = 0", FindingCode::CheckpointsOff);
    // In the file that `healthy` creates, books refer to authors.
    check("PRAGMA foreign_keys = OFF", FindingCode::ForeignKeysOff);
    check(
        "PRAGMA synchronous = FULL; PRAGMA journal_mode = MEMORY",
        FindingCode::JournalModeUnsafe,
    );
    check("PRAGMA secure_delete = OFF", FindingCode::SecureDeleteOff);
    check("PRAGMA journal_mode = DELETE", FindingCode::SynchronousLow);
    check("PRAGMA synchronous = OFF", FindingCode::SynchronousOff);
}

#[test]
fn what_was_set_too_late_is_found_and_mended() {
    let cases = [
        ("PRAGMA journal_mode = WAL; PRAGMA auto_vacuum = FULL;", "auto_vacuum=FULL"),
        ("CREATE TABLE first (x); PRAGMA auto_vacuum = INCREMENTAL;", "auto_vacuum=INCREMENTAL"),
        ("PRAGMA journal_mode = WAL; PRAGMA page_size = 8192;", "page_size=8192"),
        ("CREATE TABLE first (x); PRAGMA page_size = 1024;", "page_size=1024"),
    ];
    for (index, (sql, wanted)) in cases.iter().enumerate() {
        let fixture = DoctorFixture::new();
        let path = fixture.at(&index.to_string());
        let db = Connection::open(&path).unwrap();
        db.execute_batch(&format!("{sql} CREATE TABLE t (x);")).unwrap();
        let settings = format!("file={}\nwanted.{wanted}\n", path.display());
        db.close().unwrap();
        let finding = the(&report(&path, &settings), FindingCode::SettingIneffective);
        let options = options(&settings);
        let code = FixSelection::Code(FindingCode::SettingIneffective);
        let dry = fix(&path, &FileEncryption::None, &options, code, true).unwrap();
        assert!(dry.rehearsed, "{dry:#?}");
        apply_fix(&path, &finding.fix);
        let report = report(&path, &settings);
        assert_eq!(codes(&report), [] as [FindingCode; 0], "{wanted}: {report:#?}");
        assert_eq!(
            report.file.journal,
            Some(if sql.contains("WAL") { JournalKind::Wal } else { JournalKind::Rollback })
        );
    }
}

#[test]
fn settings_of_another_file_are_told_apart() {
    let fixture = DoctorFixture::new();
    let (path, other) = (fixture.at("a.db"), fixture.at("b.db"));
    healthy(&path);
    healthy(&other);
    let ask_file = |path: &Path| {
        let db = Connection::open(path).unwrap();
        db.execute_batch(PRODUCTION).unwrap();
        ask(&db)
    };
    let found = report(&path, &ask_file(&other));
    assert_eq!(codes(&found), [FindingCode::SettingsMismatch], "{found:#?}");

    // In a container, for example, the file may have another path.
    let renamed = ask_file(&path).replace(&path.display().to_string(), "/nowhere/a.db");
    let found = report(&path, &renamed);
    assert_eq!(codes(&found), [] as [FindingCode; 0], "{found:#?}");
    assert!(found.skipped.iter().any(|it| it.reason.contains("/nowhere/a.db")), "{found:#?}");

    let in_memory = "file=\njournal_mode=memory\n";
    let found = report(&path, in_memory);
    assert!(codes(&found).contains(&FindingCode::SettingsMismatch), "{found:#?}");
    assert!(!codes(&found).contains(&FindingCode::JournalModeUnsafe), "{found:#?}");
}

#[test]
fn names_that_are_not_known_are_told() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    healthy(&path);
    let found = report(&path, "journal_mode=wal\nfancy_mode=1\nwanted.color=red\n");
    let skipped: Vec<&str> = found.skipped.iter().map(|skipped| skipped.check.as_str()).collect();
    assert!(skipped.contains(&"the settings fancy_mode, wanted.color"), "{found:#?}");
    assert!(skipped.iter().any(|what| what.contains("busy_timeout")), "{found:#?}");
}

#[test]
fn what_is_meant_to_be_encrypted_is_looked_at() {
    let fixture = DoctorFixture::new();
    let (plain, encrypted) = (fixture.at("plain.db"), fixture.at("encrypted.db"));
    healthy(&plain);
    let key = FileEncryption::Key { key: DatabaseKey::from_bytes([7; 32]), cipher: None };
    let profile = Profile::by_name("server").unwrap();
    let (db, _) = open_connection(&encrypted, &key, profile, false, true).unwrap();
    db.execute_batch("CREATE TABLE t (x)").unwrap();
    db.close().unwrap();
    let meant = options("temp_store=1\ncipher=chacha20\nwanted.cipher=chacha20\n");
    let found = examine(&encrypted, &key, &meant).unwrap();
    assert_eq!(codes(&found), [FindingCode::TempUnencrypted], "{found:#?}");
    let found = report(&plain, "sqlite_version=3.54.0\nwanted.cipher=chacha20\n");
    assert_eq!(codes(&found), [FindingCode::EncryptionIneffective], "{found:#?}");
    assert_eq!(found.severity(), Some(Severity::Error));
}
