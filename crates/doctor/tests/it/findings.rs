//! Each finding on a file that has the fault, and not on one that has it not.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use doctor::{CATALOGUE, Finding};

use crate::bed::{Bed, codes, report, sql_on, the};

/// A fault that a file can have by itself.
struct Case {
    code: &'static str,
    /// Makes the file.
    fault: fn(&Path),
    /// Makes one as like it as can be, without the fault.
    control: fn(&Path),
    /// Asserts the evidence.
    check: fn(&Finding),
}

const CASES: &[Case] = &[
    Case {
        code: "fragmented",
        fault: |path| rows_and_delete(path, "id > 1000"),
        control: |path| rows_and_delete(path, "id > 4500"),
        check: |finding| {
            let share = finding.fields["free_pages_count"].as_f64().unwrap()
                / finding.fields["pages_count"].as_f64().unwrap();
            assert!((0.7..0.9).contains(&share), "{finding:?}");
        },
    },
    Case {
        code: "page_broken",
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
];

/// What needs other processes, or another place: tested elsewhere.
const ELSEWHERE: &[&str] =
    &["blob_before_columns", "database_locked", "file_empty", "file_truncated"];

/// A file with nothing to be said about it.
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

fn rows_and_delete(path: &Path, deleted: &str) {
    sql_on(
        path,
        &format!(
            "PRAGMA application_id = 42; PRAGMA user_version = 1;
             CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
             INSERT INTO t SELECT i, printf('%0500d', i) FROM n;
             DELETE FROM t WHERE {deleted}"
        ),
    );
}

#[test]
fn a_healthy_file_gets_none() {
    let bed = Bed::new();
    let path = bed.at("healthy.db");
    healthy(&path);
    let report = report(&path);
    assert_eq!(codes(&report), [] as [&str; 0], "{report:#?}");
    assert!(report.skipped.is_empty(), "{report:#?}");
    assert_eq!((report.about.tables_count, report.about.indexes_count), (Some(2), Some(1)));
    assert_eq!((report.about.journal, report.about.cipher), (Some("wal"), Some("none")));
}

#[test]
fn each_fault_is_found_and_its_control_is_not() {
    let bed = Bed::new();
    for case in CASES {
        let (path, control) = (bed.at(case.code), bed.at(&format!("no-{}", case.code)));
        (case.fault)(&path);
        let finding = the(&report(&path), case.code);
        assert!(!finding.what.is_empty() && !finding.evidence.is_empty(), "{finding:?}");
        assert!(!finding.fields.is_empty(), "{finding:?}");
        (case.check)(&finding);

        (case.control)(&control);
        let found = codes(&report(&control));
        assert!(!found.contains(&case.code), "{}: {found:?}", case.code);
    }
}

#[test]
fn every_code_of_the_catalogue_is_tested() {
    let cases = CASES.iter().map(|case| case.code);
    let tested: BTreeSet<&str> = cases.chain(ELSEWHERE.iter().copied()).collect();
    let codes: BTreeSet<&str> = CATALOGUE.iter().map(|entry| entry.code).collect();
    assert_eq!(tested, codes);
}
