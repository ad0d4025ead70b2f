//! Tests loads of unusual schemas. Each is carried out, and leaves the tables as they were.

use rusqlite::Connection;

use super::*;
use crate::tune::tune_load::TuneLoad;

const ROWS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)";

fn count(db: &Connection, table: &str) -> i64 {
    db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

/// Checks the remaining operations, and returns the notes.
#[track_caller]
fn check(schema: &str, tables: &[&str], operations: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("awkward.sqlite");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&schema.replace("ROWS", ROWS)).unwrap();
    let counts = || tables.iter().map(|table| count(&db, table)).collect::<Vec<_>>();
    let before = counts();
    let load = shape(&path, &None, TuneWorkload::Mixed).unwrap();
    let names: Vec<&str> = load.operations.keys().map(String::as_str).collect();
    assert_eq!(names, operations, "{:#?}", load.notes);
    run(&load, &path);
    assert_eq!(counts(), before);
    let faults: i64 = {
        let sql = "SELECT count(*) FROM pragma_foreign_key_check";
        db.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(faults, 0);
    load.notes
}

fn run(load: &TuneLoad, path: &Path) {
    let today = PragmaSettings::default().with("foreign_keys", "ON");
    let answer = execute_plan(&load.plan(path, &today, &None, 0.02)).unwrap();
    assert!(answer.steps.iter().all(|step| step.operations > 0), "{answer:?}");
}

#[test]
fn a_plain_table_gets_everything() {
    let notes = check(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b INTEGER); CREATE INDEX t_a ON t (a);
         INSERT INTO t ROWS SELECT i, 'a' || i % 7, i FROM n",
        &["t"],
        &["t delete", "t insert", "t lookup in t_a", "t read by key", "t scan", "t update of b"],
    );
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn keys_of_several_columns_are_found_without_a_rowid_and_with() {
    check(
        "CREATE TABLE t (a BLOB, b TEXT, c INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID;
         INSERT INTO t ROWS SELECT randomblob(8), 'b' || i, i FROM n;
         CREATE TABLE \"odd \"\" name\" (rowid TEXT, b INTEGER, c INTEGER, PRIMARY KEY (b, c));
         INSERT INTO \"odd \"\" name\" ROWS SELECT 'r' || i, i % 3, i FROM n",
        &["t", "\"odd \"\" name\""],
        &[
            "odd \" name delete",
            "odd \" name insert",
            "odd \" name read by key",
            "odd \" name scan",
            "odd \" name update of rowid",
            "t delete",
            "t insert",
            "t read by key",
            "t scan",
            "t update of c",
        ],
    );
}

#[test]
fn references_are_kept_and_generated_columns_left_alone() {
    let notes = check(
        "CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
         INSERT INTO parent ROWS SELECT i, 'p' || i FROM n;
         CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL REFERENCES parent,
             n INTEGER, twice AS (n * 2), thrice AS (n * 3) STORED);
         INSERT INTO child (parent, n) ROWS SELECT i, i FROM n;
         CREATE TABLE pair (a REFERENCES parent, b REFERENCES child, PRIMARY KEY (a, b));
         INSERT INTO pair ROWS SELECT i, i FROM n",
        &["parent", "child", "pair"],
        &[
            "child delete",
            "child insert",
            "child read by key",
            "child scan",
            "child update of n",
            "pair read by key",
            "pair scan",
            "parent delete",
            "parent insert",
            "parent lookup in sqlite_autoindex_parent_1",
            "parent read by key",
            "parent scan",
        ],
    );
    let notes = notes.join("\n");
    assert!(notes.contains("pair: no inserts: (a, b) references other rows"), "{notes}");
    assert!(notes.contains("parent: no updates: no column"), "{notes}");
}

#[test]
fn strict_tables_checks_and_triggers_have_their_say() {
    let notes = check(
        "CREATE TABLE s (id INTEGER PRIMARY KEY, n INTEGER CHECK (n BETWEEN 1 AND 200),
             code TEXT UNIQUE CHECK (length(code) = 3), b BLOB) STRICT;
         INSERT INTO s ROWS SELECT i, i, printf('%03d', i), randomblob(4) FROM n;
         CREATE TABLE guarded (id INTEGER PRIMARY KEY, n INTEGER);
         INSERT INTO guarded ROWS SELECT i, i FROM n;
         CREATE TRIGGER guard BEFORE UPDATE ON guarded BEGIN SELECT RAISE(ABORT, 'no'); END;
         CREATE TABLE log (n INTEGER);
         CREATE TRIGGER note AFTER INSERT ON guarded BEGIN INSERT INTO log VALUES (1); END",
        &["s", "guarded"],
        &[
            "guarded delete",
            "guarded insert",
            "guarded read by key",
            "guarded scan",
            "s lookup in sqlite_autoindex_s_1",
            "s read by key",
            "s scan",
            "s update of n",
        ],
    );
    let notes = notes.join("\n");
    assert!(notes.contains("guarded: update of n: no"), "{notes}");
    assert!(notes.contains("s inserts: a constraint rejects every row"), "{notes}");
    assert!(notes.contains("1 empty table"), "{notes}");
}

#[test]
fn virtual_tables_views_and_odd_indexes_are_left_out() {
    let notes = check(
        "CREATE VIRTUAL TABLE f USING fts5 (body); INSERT INTO f VALUES ('words');
         CREATE TABLE t (a INTEGER, b TEXT COLLATE NOCASE);
         INSERT INTO t ROWS SELECT i, 'b' || i FROM n;
         CREATE VIEW v AS SELECT * FROM t;
         CREATE INDEX t_part ON t (a) WHERE a > 10;
         CREATE INDEX t_expression ON t (lower(b));
         CREATE INDEX t_binary ON t (b COLLATE BINARY)",
        &["t"],
        &["t delete", "t insert", "t read by key", "t scan", "t update of a"],
    );
    let notes = notes.join("\n");
    for expected in ["f: virtual", "t_part is partial", "t_expression is partial", "t_binary"] {
        assert!(notes.contains(expected), "{expected}: {notes}");
    }
}

#[test]
fn values_of_all_kinds_are_bound() {
    check(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, mixed, b BLOB UNIQUE);
         INSERT INTO t ROWS SELECT i * 1000000000000,
             CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN i WHEN 2 THEN i / 3.0 ELSE 'é' || i END,
             randomblob(16) FROM n;
         UPDATE t SET mixed = CAST(x'ff' AS TEXT) WHERE id = 1000000000000;
         CREATE INDEX t_mixed ON t (mixed)",
        &["t"],
        &[
            "t delete",
            "t insert",
            "t lookup in sqlite_autoindex_t_1",
            "t lookup in t_mixed",
            "t read by key",
            "t scan",
            "t update of mixed",
        ],
    );
}

#[test]
fn a_file_without_rows_has_no_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.sqlite");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    let error = shape(&path, &None, TuneWorkload::Mixed).unwrap_err().to_string();
    assert!(error.contains("no table has rows"), "{error}");
}

#[test]
fn reads_only_where_nothing_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.sqlite");
    let schema = "CREATE TABLE t (a INTEGER PRIMARY KEY CHECK (a < 300));
                  INSERT INTO t VALUES (100), (299)";
    Connection::open(&path).unwrap().execute_batch(schema).unwrap();
    let load = shape(&path, &None, TuneWorkload::Mixed).unwrap();
    let phases: Vec<&str> = load.phases.iter().map(|phase| phase.name).collect();
    assert_eq!(phases, ["reads"], "{:?}", load.notes);
    run(&load, &path);
}
