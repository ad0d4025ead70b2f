//! Tests each finding on a file that has the fault, and on one that does not.

use std::collections::BTreeSet;
use std::path::Path;

use doctor::{FindingCode, Fix, JournalKind};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde_json::{Value, json};

use crate::fixture::{DoctorFixture, FaultCase, codes, report, sql_on};
use crate::integrity;

pub(crate) const CASES: &[FaultCase] = &[
    FaultCase {
        code: FindingCode::AutoVacuumOff,
        fault: |path| rows_and_delete(path, "", "id > 1000"),
        control: |path| rows_and_delete(path, "PRAGMA auto_vacuum = INCREMENTAL;", "id > 1000"),
        check: |finding| assert!(finding.details["free_bytes"].as_u64() > Some(1_500_000)),
    },
    FaultCase {
        code: FindingCode::BlobBeforeColumns,
        fault: |path| mails(path, "body BLOB, flags INTEGER, folder TEXT"),
        control: |path| mails(path, "flags INTEGER, folder TEXT, body BLOB"),
        check: |finding| {
            assert_eq!(finding.details["large_columns"], json!(["body"]));
            assert_eq!(finding.details["columns_behind"], json!(["flags", "folder"]));
            // These columns start after 20,000 bytes: 3,643 on the row's own page, 4,092 on each
            // overflow page.
            let pages = finding.details["overflow_pages_count"].as_f64().unwrap();
            assert!((4.0 - pages).abs() < 0.01, "{finding:?}");
            let time = |name: &str| finding.details[name].as_f64().unwrap();
            assert!(time("as_is_us") > 0.0 && time("small_first_us") > 0.0, "{finding:?}");
        },
    },
    FaultCase {
        code: FindingCode::DescendingIgnored,
        fault: |path| legacy(path, "CREATE INDEX i ON t (x DESC)"),
        control: |path| legacy(path, "CREATE INDEX i ON t (x)"),
        check: |finding| assert_eq!(finding.details["indexes"], json!(["i"])),
    },
    FaultCase {
        code: FindingCode::ForeignKeyMismatch,
        fault: |path| parents(path, "p (id INTEGER, x)", 10),
        control: |path| parents(path, "p (id INTEGER UNIQUE, x)", 10),
        check: |finding| assert_eq!(finding.details["table"], "c"),
    },
    FaultCase {
        code: FindingCode::ForeignKeyUnindexed,
        fault: |path| parents(path, "p (id INTEGER PRIMARY KEY, x)", 20_000),
        control: |path| {
            parents(path, "p (id INTEGER PRIMARY KEY, x)", 20_000);
            sql_on(path, "CREATE INDEX c_p ON c (p)");
        },
        check: |finding| {
            let details = &finding.details;
            assert_eq!((&details["table"], &details["columns"]), (&json!("c"), &json!(["p"])));
            assert_near(&details["estimated_rows_count"], 20_000.0, 0.1);
        },
    },
    FaultCase {
        code: FindingCode::ForeignKeyViolated,
        fault: |path| {
            healthy(path);
            sql_on(path, "PRAGMA foreign_keys = OFF; DELETE FROM author WHERE id = 7");
        },
        control: healthy,
        check: |finding| {
            // There are 5,000 books of 2,000 authors.
            assert_eq!(
                (&finding.details["rows_count"], &finding.details["complete"]),
                (&json!(3), &json!(true))
            );
            assert!(finding.evidence[0].contains("row 6 "), "{finding:?}");
        },
    },
    FaultCase {
        code: FindingCode::Fragmented,
        fault: |path| rows_and_delete(path, "", "id > 1000"),
        control: |path| rows_and_delete(path, "", "id > 4500"),
        check: |finding| {
            let share = finding.details["free_pages_count"].as_f64().unwrap()
                / finding.details["pages_count"].as_f64().unwrap();
            assert!((0.7..0.9).contains(&share), "{finding:?}");
        },
    },
    FaultCase {
        code: FindingCode::IdentityUnset,
        fault: |path| sql_on(path, "CREATE TABLE schema_migrations (version TEXT)"),
        control: |path| {
            let ids = "PRAGMA application_id = 1; PRAGMA user_version = 2;";
            sql_on(path, &format!("{ids} CREATE TABLE schema_migrations (version TEXT)"));
        },
        check: |finding| {
            assert_eq!(finding.details["unset"], json!(["application_id", "user_version"]));
        },
    },
    FaultCase {
        code: FindingCode::IndexCollation,
        fault: |path| with_healthy(path, "CREATE INDEX i ON author (name COLLATE NOCASE)"),
        control: |path| with_healthy(path, "CREATE INDEX i ON author (name)"),
        check: |finding| {
            assert_eq!(finding.details["index_collation"], "NOCASE");
            assert_eq!(finding.details["column_collation"], "BINARY");
        },
    },
    FaultCase {
        code: FindingCode::IndexDuplicate,
        fault: |path| with_healthy(path, "CREATE UNIQUE INDEX i ON author (id)"),
        control: |path| with_healthy(path, "CREATE INDEX i ON author (id) WHERE name > 'b'"),
        check: |finding| {
            assert_eq!(
                (&finding.details["index"], &finding.details["table"]),
                (&json!("i"), &json!("author"))
            );
            assert_eq!(finding.fix, Fix::Sql("DROP INDEX i;".to_owned()));
        },
    },
    FaultCase {
        code: FindingCode::IndexPrefix,
        fault: |path| {
            with_healthy(path, &format!("{MORE_BOOKS}; CREATE INDEX i ON book (author)"));
        },
        control: |path| with_healthy(path, &format!("{MORE_BOOKS}; CREATE INDEX i ON book (year)")),
        check: |finding| assert_eq!(finding.details["instead"], "book_author"),
    },
    FaultCase {
        code: FindingCode::IndexSingleValue,
        fault: |path| {
            with_healthy(
                path,
                "ALTER TABLE book ADD kind INTEGER DEFAULT 1;
                                          CREATE INDEX i ON book (kind); ANALYZE",
            );
        },
        control: |path| {
            with_healthy(
                path,
                "ALTER TABLE book ADD kind INTEGER;
                                            UPDATE book SET kind = id % 2;
                                            CREATE INDEX i ON book (kind); ANALYZE",
            );
        },
        check: |finding| assert_eq!(finding.details["statistics_rows_count"], json!(5000.0)),
    },
    FaultCase {
        code: FindingCode::PageSizeSmall,
        fault: |path| rows_and_delete(path, "PRAGMA page_size = 1024;", "id < 0"),
        control: |path| rows_and_delete(path, "PRAGMA page_size = 8192;", "id < 0"),
        check: |finding| assert_eq!(finding.details["page_bytes"], 1024),
    },
    FaultCase {
        code: FindingCode::PagesHalfEmpty,
        fault: |path| rows_and_delete(path, "", "id % 7 < 4"),
        control: |path| rows_and_delete(path, "", "id % 7 < 2"),
        check: |finding| {
            let fill = finding.details["fill_ratio"].as_f64().unwrap();
            assert!((0.38..0.48).contains(&fill), "{finding:?}");
        },
    },
    FaultCase {
        code: FindingCode::StatisticsAbsent,
        fault: |path| {
            with_healthy(
                path,
                &format!("{MORE_BOOKS}; CREATE INDEX i ON book (year); DELETE FROM sqlite_stat1"),
            );
        },
        control: |path| {
            with_healthy(path, &format!("{MORE_BOOKS}; CREATE INDEX i ON book (year); ANALYZE"));
        },
        check: |finding| assert_eq!(finding.details["tables"], json!(["book"])),
    },
    FaultCase {
        code: FindingCode::StatisticsStale,
        fault: |path| with_healthy(path, &format!("ANALYZE; {MORE_BOOKS}")),
        control: |path| with_healthy(path, &format!("{MORE_BOOKS}; ANALYZE")),
        check: |finding| {
            assert_eq!(finding.details["statistics_rows_count"], json!(5000.0));
            assert_near(&finding.details["estimated_rows_count"], 65_000.0, 0.1);
        },
    },
];

/// The codes whose faults need other processes, another place, a key or a query: other files test
/// them.
const ELSEWHERE: &[FindingCode] = &[
    FindingCode::BusyTimeoutAbsent,
    FindingCode::CacheLarge,
    FindingCode::CacheSmall,
    FindingCode::CheckpointsOff,
    FindingCode::CipherUnauthenticated,
    FindingCode::CompanionForeign,
    FindingCode::CompanionIrregular,
    FindingCode::DatabaseLocked,
    FindingCode::DiskTooSmall,
    FindingCode::DoubleQuotedStrings,
    FindingCode::EncodingWide,
    FindingCode::EncryptionIneffective,
    FindingCode::ExclusiveMode,
    FindingCode::FileEmpty,
    FindingCode::FileTruncated,
    FindingCode::ForeignKeysOff,
    FindingCode::HardLinked,
    FindingCode::HotJournal,
    FindingCode::JournalModeUnsafe,
    FindingCode::NetworkFileSystem,
    FindingCode::NotWal,
    FindingCode::QueryIndexMissing,
    FindingCode::QueryScans,
    FindingCode::RollbackJournalShared,
    FindingCode::SecureDeleteOff,
    FindingCode::SettingIneffective,
    FindingCode::SettingsMismatch,
    FindingCode::SqliteFaulty,
    FindingCode::SynchronousLow,
    FindingCode::SynchronousOff,
    FindingCode::TempInMemory,
    FindingCode::TempTooSmall,
    FindingCode::TempUnencrypted,
    FindingCode::ThreadsUnsafe,
    FindingCode::WalDeleted,
    FindingCode::WalLarge,
    FindingCode::WalLeftBehind,
    FindingCode::WalPinned,
];

/// Adds books up to 65,000 in total.
const MORE_BOOKS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 5001 UNION ALL SELECT i + 1 FROM n WHERE i < 65000)
     INSERT INTO book SELECT i, i % 2000 + 1, 1900 + i % 120, 'book number ' || i FROM n";

#[track_caller]
fn assert_near(value: &Value, expected: f64, tolerance: f64) {
    let value = value.as_f64().unwrap();
    assert!((value / expected - 1.0).abs() < tolerance, "{value} is not about {expected}");
}

/// Creates a file without any finding.
pub(crate) fn healthy(path: &Path) {
    sql_on(
        path,
        "PRAGMA application_id = 42; PRAGMA user_version = 1; PRAGMA journal_mode = WAL;
         CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
         CREATE TABLE book (id INTEGER PRIMARY KEY, author INTEGER NOT NULL REFERENCES author,
                            year INTEGER NOT NULL, title TEXT NOT NULL);
         CREATE INDEX book_author ON book (author, year);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
         INSERT INTO author SELECT i, 'author number ' || i FROM n;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
         INSERT INTO book SELECT i, i % 2000 + 1, 1900 + i % 120, 'book number ' || i FROM n;
         ANALYZE",
    );
}

fn with_healthy(path: &Path, sql: &str) {
    healthy(path);
    sql_on(path, sql);
}

fn rows_and_delete(path: &Path, pragmas: &str, deleted: &str) {
    sql_on(
        path,
        &format!(
            "{pragmas}
             CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
             INSERT INTO t SELECT i, printf('%0500d', i) FROM n;
             DELETE FROM t WHERE {}",
            deleted.replace("1000", "4000").replace("4500", "18500")
        ),
    );
}

/// Creates mails with a body of 20,000 bytes, and these columns in this order.
fn mails(path: &Path, columns: &str) {
    sql_on(
        path,
        &format!(
            "CREATE TABLE mail (id INTEGER PRIMARY KEY, {columns});
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
             INSERT INTO mail (id, flags, folder, body) SELECT i, i % 4, 'inbox', zeroblob(20000) FROM n"
        ),
    );
}

/// Creates a file in the format of SQLite before 3.3.
fn legacy(path: &Path, index: &str) {
    let db = Connection::open(path).unwrap();
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_LEGACY_FILE_FORMAT, true).unwrap();
    db.execute_batch(&format!("CREATE TABLE t (x); {index}")).unwrap();
}

/// Creates a parent table as declared, and this number of child rows.
fn parents(path: &Path, parent: &str, children: u32) {
    sql_on(
        path,
        &format!(
            "CREATE TABLE {parent};
             CREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p (id));
             PRAGMA foreign_keys = OFF;
             INSERT INTO p VALUES (0, 'x');
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {children})
             INSERT INTO c SELECT i, 0 FROM n"
        ),
    );
}

#[test]
fn a_healthy_file_gets_none() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("healthy.db");
    healthy(&path);
    let report = report(&path);
    assert_eq!(codes(&report), [] as [FindingCode; 0], "{report:#?}");
    assert!(report.skipped.is_empty(), "{report:#?}");
    assert_eq!((report.file.tables_count, report.file.indexes_count), (Some(2), Some(1)));
    assert_eq!((report.file.journal, report.file.cipher), (Some(JournalKind::Wal), Some("none")));
}

#[test]
fn each_fault_is_found_and_its_control_is_not() {
    for case in CASES {
        case.check();
    }
}

#[test]
fn every_code_of_the_catalogue_is_tested() {
    let cases = CASES.iter().chain(integrity::CASES).map(|case| case.code);
    let tested: BTreeSet<FindingCode> = cases.chain(ELSEWHERE.iter().copied()).collect();
    let codes: BTreeSet<FindingCode> = FindingCode::ALL.iter().copied().collect();
    assert_eq!(tested, codes);
}

#[test]
fn of_two_indexes_that_are_the_same_the_one_that_does_more_stays() {
    let fixture = DoctorFixture::new();
    let cases = [
        ("CREATE UNIQUE INDEX a ON author (name); CREATE INDEX b ON author (name)", vec!["b"]),
        ("CREATE UNIQUE INDEX b ON author (name); CREATE INDEX a ON author (name)", vec!["a"]),
        ("CREATE INDEX a ON author (name); CREATE INDEX b ON author (name)", vec!["b"]),
        ("CREATE INDEX a ON author (name); CREATE INDEX b ON author (name DESC)", vec![]),
        ("CREATE INDEX a ON author (name); CREATE INDEX b ON author (name) WHERE id > 7", vec![]),
        // The first index keeps id and author unique, which the longer one does not.
        (
            "CREATE UNIQUE INDEX a ON book (id, author); CREATE INDEX b ON book (id, author, year)",
            vec![],
        ),
    ];
    for (index, (sql, expected)) in cases.iter().enumerate() {
        let path = fixture.at(&index.to_string());
        with_healthy(&path, &format!("{MORE_BOOKS}; {sql}"));
        let report = report(&path);
        let found = report.findings.iter().filter(|it| it.code.as_str().starts_with("index_"));
        let dropped: Vec<&str> =
            found.map(|finding| finding.details["index"].as_str().unwrap()).collect();
        assert_eq!(&dropped, expected, "{sql}");
    }
}
