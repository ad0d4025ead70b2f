//! Tests the advice about the missing index of a query, and queries that need no index.

use std::path::Path;

use doctor::{DoctorReport, Error, ExamineOptions, FindingCode, Fix, examine};
use engine::FileEncryption;

use crate::findings::healthy;
use crate::fixture::{DoctorFixture, codes, sql_on, the};

fn report(path: &Path, query: &str) -> DoctorReport {
    let options = ExamineOptions { queries: vec![query.to_owned()], ..ExamineOptions::default() };
    examine(path, &FileEncryption::None, &options).unwrap()
}

/// Asserts which index is advised, and that it has the expected effect once it exists.
#[track_caller]
fn check_missing(query: &str, expected: &str) {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    healthy(&path);
    let found = report(&path, query);
    let finding = the(&found, FindingCode::QueryIndexMissing);
    let Fix::Sql(fix) = &finding.fix else { panic!("{finding:?}") };
    assert_eq!(fix, expected, "{finding:?}");
    let plan = finding.details["plan_after"].clone();

    sql_on(&path, &format!("{fix} ANALYZE;"));
    let db = rusqlite::Connection::open(&path).unwrap();
    let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
    let real: Vec<String> =
        statement.raw_query().mapped(|row| row.get(3)).map(Result::unwrap).collect();
    assert_eq!(serde_json::json!(real), plan);
    drop(statement);
    db.close().unwrap();
    assert!(!codes(&report(&path, query)).contains(&FindingCode::QueryIndexMissing));
}

#[test]
fn the_index_that_the_planner_would_take_is_proposed() {
    check_missing(
        "SELECT title FROM book WHERE title = ?1",
        "CREATE INDEX book_title ON book (title);",
    );
    check_missing(
        "SELECT * FROM book WHERE title = ?1 ORDER BY year",
        "CREATE INDEX book_title_year ON book (title, year);",
    );
    check_missing(
        "SELECT b.year FROM author a JOIN book b ON b.author = a.id WHERE a.name = ?1",
        "CREATE INDEX author_name ON author (name);",
    );
    check_missing(
        "UPDATE book SET author = 7 WHERE title = ?1",
        "CREATE INDEX book_title ON book (title);",
    );
}

/// Checks a generated column, an expression, a LIKE, and an order with mixed directions.
#[test]
fn an_index_has_the_shape_of_its_query() {
    let fixture = DoctorFixture::new();
    let path = fixture.make(
        "a.db",
        "CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT, at INTEGER, data TEXT,
                            kind AS (json_extract(data, '$.kind')));
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         INSERT INTO item (title, at, data)
         SELECT 'Title ' || (i * 7919 % 20011), i * 31 % 1009,
                json_object('kind', 'k' || (i % 97), 'n', i) FROM n",
    );
    for (query, expected) in [
        ("SELECT * FROM item WHERE kind = 'k3'", "item_kind ON item (kind)"),
        (
            "SELECT * FROM item WHERE title LIKE 'title 12%'",
            "item_title ON item (title COLLATE NOCASE)",
        ),
        (
            "SELECT * FROM item i WHERE lower(i.title) = 'title 7'",
            "item_lower ON item (lower(title))",
        ),
        (
            "SELECT * FROM item WHERE json_extract(data, '$.n') = 7",
            "item_json_extract ON item (json_extract(data, '$.n'))",
        ),
        (
            "SELECT * FROM item ORDER BY at DESC, title LIMIT 10",
            "item_at_title ON item (at DESC, title)",
        ),
    ] {
        let found = report(&path, query);
        let finding = the(&found, FindingCode::QueryIndexMissing);
        assert_eq!(finding.fix, Fix::Sql(format!("CREATE INDEX {expected};")), "{query}");
        // The index was tried on the file, which does not contain it afterwards.
        let number = |name: &str| finding.details[name].as_f64().unwrap();
        assert!(number("after_steps_count") < number("before_steps_count") / 5.0, "{finding:?}");
        assert!(number("index_bytes") > 100_000.0, "{finding:?}");
    }
}

#[test]
fn blobs_and_texts_that_are_none_are_no_trouble() {
    let fixture = DoctorFixture::new();
    let path = fixture.make(
        "a.db",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a BLOB, b TEXT, c INTEGER);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
         INSERT INTO t SELECT i, randomblob(20), CAST(x'fffe' AS TEXT), NULL FROM n",
    );
    let found = report(&path, "SELECT id FROM t WHERE a = ?1 AND b = ?2 AND c IS NULL");
    let finding = the(&found, FindingCode::QueryIndexMissing);
    // Of these three columns, only `a` is selective.
    assert_eq!(finding.fix, Fix::Sql("CREATE INDEX t_a ON t (a);".to_owned()));
    assert!(found.skipped.is_empty(), "{found:#?}");
}

#[test]
fn queries_that_are_well_served_get_none() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    healthy(&path);
    for query in [
        "SELECT * FROM book WHERE author = ?1 ORDER BY year",
        "SELECT * FROM book WHERE id = ?1",
        "INSERT INTO author (name) VALUES (?1)",
        "SELECT 1",
    ] {
        let found = report(&path, query);
        assert_eq!(codes(&found), [] as [FindingCode; 0], "{query}: {found:#?}");
    }
}

#[test]
fn a_scan_that_no_index_helps_is_told_as_such() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    healthy(&path);
    for query in
        ["SELECT sum(length(title)) FROM book", "SELECT * FROM book WHERE title LIKE '%7%'"]
    {
        let found = report(&path, query);
        assert_eq!(codes(&found), [FindingCode::QueryScans], "{query}: {found:#?}");
    }
}

#[test]
fn a_query_that_is_none_is_refused() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    healthy(&path);
    for query in ["SELEC 1", "SELECT * FROM nowhere", ""] {
        let options =
            ExamineOptions { queries: vec![query.to_owned()], ..ExamineOptions::default() };
        let error = examine(&path, &FileEncryption::None, &options).unwrap_err();
        assert!(matches!(error, Error::InvalidQuery { .. }), "{query}");
    }
}
