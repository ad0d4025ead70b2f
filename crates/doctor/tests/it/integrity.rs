//! Tests the findings about damage: `PRAGMA integrity_check` finds it, or the doctor finds more,
//! and a similar healthy file is not reported as damaged.

use std::fs;
use std::path::Path;
use std::time::Duration;

use doctor::{ExamineOptions, FindingCode, Fix, Severity, examine};
use engine::FileEncryption;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde_json::json;

use crate::findings::healthy;
use crate::fixture::{
    DoctorFixture, FaultCase, SqliteShell, apply_fix, codes, report, sql_on, the,
};

pub(crate) const CASES: &[FaultCase] = &[
    FaultCase {
        code: FindingCode::ConstraintViolated,
        fault: |path| {
            checked(path);
            sql_on(path, "PRAGMA ignore_check_constraints = ON; INSERT INTO t VALUES (-1)");
        },
        control: checked,
        check: |finding| assert_eq!(finding.details["name"], "t"),
    },
    FaultCase {
        code: FindingCode::ForeignKeyParentAbsent,
        fault: |path| sql_on(path, "CREATE TABLE c (p REFERENCES p); INSERT INTO c VALUES (0)"),
        control: referred,
        check: |finding| assert_eq!(finding.details["parents"], json!(["p"])),
    },
    FaultCase {
        code: FindingCode::IndexBroken,
        fault: |path| {
            needles(path);
            change(path, 2, b"needle", b"Needle");
        },
        control: needles,
        check: |finding| {
            assert_eq!(finding.details["index"], "i");
            assert_eq!(finding.fix, Fix::Sql("REINDEX i;".to_owned()));
        },
    },
    FaultCase {
        code: FindingCode::PageBroken,
        fault: |path| {
            healthy(path);
            let mut bytes = fs::read(path).unwrap();
            bytes[4096 * 9..][..100].fill(0xaa);
            fs::write(path, bytes).unwrap();
        },
        control: healthy,
        check: |finding| {
            assert!(finding.evidence.iter().any(|line| line.contains("page 10")), "{finding:?}");
        },
    },
    FaultCase {
        code: FindingCode::SequenceExhausted,
        fault: |path| counted(path, i64::MAX),
        control: |path| counted(path, i64::MAX - 1),
        check: |finding| assert_eq!(finding.details["table"], "t"),
    },
    FaultCase {
        code: FindingCode::TriggerBroken,
        fault: |path| {
            audited(path);
            sql_on(path, "DROP TABLE audit");
        },
        control: audited,
        check: |finding| {
            assert_eq!(finding.details["triggers"], json!(["note"]));
            assert!(finding.summary.starts_with("UPDATE on t fails"), "{finding:?}");
        },
    },
    FaultCase {
        code: FindingCode::UniqueViolated,
        fault: |path| {
            sql_on(
                path,
                "CREATE TABLE t (x); INSERT INTO t VALUES (1), (1); CREATE INDEX i ON t (x)",
            );
            let unique =
                "UPDATE sqlite_schema SET sql = 'CREATE UNIQUE INDEX i ON t (x)' WHERE name = 'i'";
            sql_on(path, &format!("PRAGMA writable_schema = ON; {unique}"));
        },
        control: |path| sql_on(path, "CREATE TABLE t (x UNIQUE); INSERT INTO t VALUES (1), (2)"),
        check: |finding| assert_eq!(finding.details["table"], "t"),
    },
    FaultCase {
        code: FindingCode::ViewBroken,
        fault: |path| {
            viewed(path);
            sql_on(path, "PRAGMA legacy_alter_table = ON; ALTER TABLE t RENAME TO u");
        },
        control: viewed,
        check: |finding| assert_eq!(finding.details["view"], "v"),
    },
    FaultCase {
        code: FindingCode::VirtualTableBroken,
        fault: |path| {
            searched(path);
            sql_on(path, "DELETE FROM t WHERE id = 2");
        },
        control: searched,
        check: |finding| assert_eq!(finding.details["module"], "fts5"),
    },
];

fn referred(path: &Path) {
    sql_on(path, "CREATE TABLE p (x UNIQUE); CREATE TABLE c (p REFERENCES p (x))");
}

fn checked(path: &Path) {
    sql_on(path, "CREATE TABLE t (x CHECK (x > 0)); INSERT INTO t VALUES (1)");
}

/// Creates a table on page 2 and its index on page 3.
fn needles(path: &Path) {
    sql_on(
        path,
        "CREATE TABLE t (x); CREATE INDEX i ON t (x); INSERT INTO t VALUES ('needle'), ('hay')",
    );
}

fn counted(path: &Path, last: i64) {
    let sql = "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, x)";
    sql_on(path, &format!("{sql}; INSERT INTO t VALUES ({last}, 1)"));
}

fn audited(path: &Path) {
    sql_on(
        path,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x, y AS (x + 1)); CREATE TABLE audit (x);
         CREATE TRIGGER note AFTER UPDATE OF x ON t BEGIN INSERT INTO audit VALUES (new.x); END;
         CREATE TRIGGER other AFTER INSERT ON t BEGIN DELETE FROM t WHERE id = 0; END",
    );
}

fn viewed(path: &Path) {
    sql_on(path, "CREATE TABLE t (x); CREATE VIEW v AS SELECT x FROM t");
}

/// Creates a full-text index of a table, which a trigger updates only for inserts.
fn searched(path: &Path) {
    sql_on(
        path,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x);
         CREATE VIRTUAL TABLE f USING fts5 (x, content = 't', content_rowid = 'id');
         CREATE TRIGGER fill AFTER INSERT ON t BEGIN
             INSERT INTO f (rowid, x) VALUES (new.id, new.x); END;
         INSERT INTO t VALUES (1, 'one fish'), (2, 'two fish')",
    );
}

/// Replaces bytes of a page.
fn change(path: &Path, page: usize, from: &[u8], to: &[u8]) {
    let mut bytes = fs::read(path).unwrap();
    let page = &mut bytes[4096 * (page - 1)..4096 * page];
    let at = page.windows(from.len()).position(|window| window == from).unwrap();
    page[at..at + to.len()].copy_from_slice(to);
    fs::write(path, bytes).unwrap();
}

#[test]
fn each_fault_is_found_and_its_control_is_not() {
    for case in CASES {
        case.check();
    }
}

/// Checks whether SQLite itself finds the file intact.
fn is_ok(path: &Path) -> bool {
    let db = Connection::open(path).unwrap();
    let said = db.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    said.is_ok_and(|said| said == "ok")
}

/// Checks a page that ordinary inserts would use as a free one.
#[test]
fn a_page_that_is_in_use_and_free_is_found() {
    let fixture = DoctorFixture::new();
    let path = fixture.make(
        "a.db",
        "CREATE TABLE t (x); CREATE TABLE u (x); INSERT INTO u VALUES (zeroblob(40000));
         INSERT INTO t VALUES (1); DELETE FROM u",
    );
    let mut bytes = fs::read(&path).unwrap();
    let trunk = u32::from_be_bytes(bytes[32..36].try_into().unwrap());
    let leaf = 4096 * (usize::try_from(trunk).unwrap() - 1) + 8;
    bytes[leaf..leaf + 4].copy_from_slice(&2_u32.to_be_bytes());
    fs::write(&path, bytes).unwrap();
    assert!(!is_ok(&path));
    assert!(codes(&report(&path)).contains(&FindingCode::PageBroken));
}

#[test]
fn an_r_tree_out_of_step_is_found() {
    let fixture = DoctorFixture::new();
    let sql =
        "CREATE VIRTUAL TABLE r USING rtree (id, a, b); INSERT INTO r VALUES (1, 2, 3), (2, 3, 4)";
    let path = fixture.make("a.db", sql);
    assert!(report(&path).integrity.complete);
    sql_on(&path, "DELETE FROM r_rowid WHERE rowid = 2");
    assert_eq!(the(&report(&path), FindingCode::VirtualTableBroken).details["module"], "rtree");
}

/// Restores the backup of a file next to the WAL that the file had.
#[test]
fn a_wal_of_another_file_is_not_called_a_broken_file() {
    let fixture = DoctorFixture::new();
    let rows = |count: u32| {
        format!(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, x); CREATE INDEX i ON t (x);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
             INSERT INTO t SELECT i, printf('%0100d', i * 7919 % 10007) FROM n;"
        )
    };
    let backup = fixture.make("backup.db", &rows(3_000));
    let path = fixture.make("a.db", &format!("PRAGMA journal_mode = WAL; {}", rows(9_000)));
    drop(SqliteShell::start(
        &path,
        "PRAGMA wal_autocheckpoint = 0; UPDATE t SET x = x || 'y' WHERE id % 9 = 0;",
    ));
    let left = report(&path);
    assert!(left.integrity.complete, "{left:#?}");
    the(&left, FindingCode::WalLeftBehind);

    fs::copy(&backup, &path).unwrap();
    let foreign = report(&path);
    let finding = the(&foreign, FindingCode::CompanionForeign);
    assert_eq!(finding.details["companion"], "a.db-wal");
    assert!(matches!(finding.fix, Fix::Advice(_)), "{finding:?}");
    assert!(
        !codes(&foreign)
            .iter()
            .any(|code| [FindingCode::PageBroken, FindingCode::WalLeftBehind].contains(code))
    );
    fs::remove_file(fixture.at("a.db-wal")).unwrap();
    fs::remove_file(fixture.at("a.db-shm")).unwrap();
    assert!(is_ok(&path));
}

#[test]
fn what_neither_the_file_nor_its_wal_has_is_missed() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    healthy(&path);
    drop(SqliteShell::start(&path, "UPDATE author SET name = 'x' WHERE id = 7;"));
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2 / 4096 * 4096).unwrap();
    let found = report(&path);
    let finding = the(&found, FindingCode::FileTruncated);
    assert!(finding.details["expected_bytes"].as_u64() > finding.details["file_bytes"].as_u64());
    assert_eq!(finding.severity, Severity::Error);
}

#[test]
fn another_name_of_the_file_is_told() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    healthy(&path);
    fs::hard_link(&path, fixture.at("b.db")).unwrap();
    let finding = the(&report(&path), FindingCode::HardLinked);
    assert!(finding.details["other_names"].to_string().contains("b.db"), "{finding:?}");

    // The file contains half a transaction, whose journal is next to the other name.
    sql_on(&path, "PRAGMA journal_mode = DELETE");
    drop(SqliteShell::start(
        &path,
        "PRAGMA cache_size = 2; BEGIN; UPDATE book SET title = title || '!';",
    ));
    let other = report(&fixture.at("b.db"));
    assert!(!codes(&other).contains(&FindingCode::PageBroken), "{other:#?}");
    assert!(other.skipped.iter().any(|skipped| skipped.reason.contains("next to another name")));
    apply_fix(&path, &the(&report(&path), FindingCode::HotJournal).fix);
    assert!(is_ok(&path));
}

#[test]
fn a_pipe_beside_the_file_holds_nobody_up() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    healthy(&path);
    for suffix in ["-journal", "-wal"] {
        let pipe = fixture.at(&format!("a.db{suffix}"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let found = report(&path);
        let finding = the(&found, FindingCode::CompanionIrregular);
        assert!(finding.summary.contains(suffix), "{finding:?}");
        assert!(
            found.integrity.complete,
            "{:?} {:?} {:?}",
            found.integrity, found.skipped, found.file
        );
        fs::remove_file(pipe).unwrap();
    }
}

/// Examines the file within this number of milliseconds.
fn report_within(path: &Path, budget: u64) -> doctor::DoctorReport {
    let options =
        ExamineOptions { time_limit: Duration::from_millis(budget), ..ExamineOptions::default() };
    examine(path, &FileEncryption::None, &options).unwrap()
}

/// Checks that neither many tables nor a short time limit is reported as a fault of the file.
#[test]
fn time_is_never_a_fault() {
    let fixture = DoctorFixture::new();
    let tables = (0..4_000).map(|index| format!("CREATE TABLE t{index} (a, b UNIQUE)"));
    let tables = tables.collect::<Vec<_>>().join(";");
    let path = fixture.make("a.db", &format!("BEGIN; {tables}; COMMIT"));
    for budget in [1, 10, 50, 200] {
        let found = report_within(&path, budget);
        assert_eq!(codes(&found), [] as [FindingCode; 0], "{budget} ms: {found:#?}");
        // Checks that were skipped for lack of time are listed.
        let is_silent = found.skipped.is_empty() && found.integrity.unchecked.is_empty();
        assert!(found.integrity.complete || !is_silent, "{budget} ms: {found:#?}");
    }
    assert!(report_within(&path, 60_000).integrity.complete);
}

/// Checks parts that only a file's own program has: a collation (Anki's), a function, a module.
#[test]
fn what_this_sqlite_has_not_is_said_and_no_fault() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    let db = Connection::open(&path).unwrap();
    db.create_collation("unicase", |a: &str, b: &str| b.cmp(a)).unwrap();
    db.execute_batch(
        "CREATE TABLE t (x COLLATE unicase UNIQUE); INSERT INTO t VALUES ('a'), ('b'), ('c');
         CREATE TABLE u (x); CREATE VIEW v AS SELECT own(x) FROM u",
    )
    .unwrap();
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false).unwrap();
    db.execute_batch(
        "PRAGMA writable_schema = ON;
         INSERT INTO sqlite_schema VALUES ('table', 'w', 'w', 0,
             'CREATE VIRTUAL TABLE w USING nobodys (x)')",
    )
    .unwrap();
    drop(db);
    let found = report(&path);
    assert_eq!(codes(&found), [] as [FindingCode; 0], "{found:#?}");
    let unchecked = found.integrity.unchecked.join("\n");
    for text in ["unicase", "nobodys"] {
        assert!(unchecked.contains(text), "{unchecked}");
    }
}

/// Checks references to tables in other files, and 0 for no reference, as in Fossil's files.
#[test]
fn references_as_documentation_are_no_error() {
    let fixture = DoctorFixture::new();
    let path = fixture.make(
        "a.fossil",
        "PRAGMA foreign_keys = OFF; CREATE TABLE blob (rid INTEGER PRIMARY KEY, x);
         CREATE TABLE delta (rid INTEGER PRIMARY KEY, srcid INTEGER NOT NULL REFERENCES blob);
         CREATE TABLE leaf (rid INTEGER PRIMARY KEY REFERENCES elsewhere);
         INSERT INTO delta VALUES (1, 0); INSERT INTO leaf VALUES (7)",
    );
    let found = report(&path);
    assert_eq!(found.severity(), Some(Severity::Warning), "{found:#?}");
    let finding = the(&found, FindingCode::ForeignKeyViolated);
    assert!(matches!(finding.fix, Fix::Advice(_)), "{finding:?}");
    the(&found, FindingCode::ForeignKeyParentAbsent);
}

/// Checks an index that a view names, and one that a foreign key needs.
#[test]
fn an_index_that_is_needed_is_not_dropped() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    healthy(&path);
    sql_on(
        &path,
        "CREATE INDEX one ON book (author, year); CREATE INDEX two ON author (name);
         CREATE INDEX three ON author (name);
         CREATE VIEW v AS SELECT * FROM author INDEXED BY two WHERE name = 'x';
         CREATE TABLE entry (id INTEGER PRIMARY KEY, author INTEGER REFERENCES author);
         CREATE INDEX entry_author ON entry (author);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         INSERT INTO entry SELECT i, 7 FROM n; ANALYZE",
    );
    let found = report(&path);
    assert!(!codes(&found).contains(&FindingCode::IndexSingleValue), "{found:#?}");
    let needless = found.findings.iter().filter(|it| it.code == FindingCode::IndexDuplicate);
    let mut dropped = Vec::new();
    for finding in needless {
        match &finding.fix {
            Fix::Advice(text) => assert!(text.contains("re-create v without INDEXED BY"), "{text}"),
            executable => dropped.push(executable),
        }
    }
    assert_eq!(dropped.len(), 1, "{found:#?}");
    apply_fix(&path, dropped[0]);
}
