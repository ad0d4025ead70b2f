//! Tests the advice for a program's whole log: indexes that it needs, indexes that do not pay off,
//! and statements that cannot be run.

use std::fmt::Write;
use std::path::Path;

use doctor::{DoctorFinding, DoctorReport, ExamineOptions, FindingCode, QueryLog, examine};
use engine::FileEncryption;

use crate::fixture::{DoctorFixture, SqliteShell, sql_on};

const SCHEMA: &str = "
    CREATE TABLE item (id INTEGER PRIMARY KEY, owner INTEGER, title TEXT, at INTEGER, done INTEGER);
    CREATE TABLE tag (item INTEGER, name TEXT);
    CREATE INDEX item_title ON item (title);
    CREATE INDEX tag_item ON tag (item);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
    INSERT INTO item SELECT i, i * 31 % 400, 'Title ' || i, i * 7919 % 10007, i % 20 > 0 FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
    INSERT INTO tag SELECT i * 7 % 5000, 'tag ' || (i * 13 % 311) FROM n;";

fn report(path: &Path, log: &str) -> DoctorReport {
    let mut workload = QueryLog::default();
    workload.read(log.as_bytes()).unwrap();
    let budget = std::time::Duration::from_mins(2);
    let options = ExamineOptions {
        workload: Some(workload),
        time_limit: budget,
        ..ExamineOptions::default()
    };
    examine(path, &FileEncryption::None, &options).unwrap()
}

fn missing(report: &DoctorReport) -> Vec<String> {
    let found = report.findings.iter().filter(|it| it.code == FindingCode::QueryIndexMissing);
    found.map(|finding| finding.fix.to_string()).collect()
}

fn finding<'a>(report: &'a DoctorReport, fix: &str) -> &'a DoctorFinding {
    report.findings.iter().find(|it| it.fix.to_string() == fix).unwrap()
}

#[test]
fn one_index_serves_what_several_queries_want() {
    let fixture = DoctorFixture::new();
    let path = fixture.make("a.db", SCHEMA);
    let mut log = String::new();
    for i in 0..20 {
        writeln!(log, "SELECT * FROM item WHERE owner = {i};").unwrap();
        writeln!(log, "SELECT * FROM item WHERE owner = {i} ORDER BY at DESC LIMIT 3;").unwrap();
        writeln!(log, "SELECT count(*) FROM item WHERE owner = {i} AND at > 100").unwrap();
    }
    log.push_str("SELECT name FROM tag WHERE item = 3\nPRAGMA user_version;\nwhat?\n");
    log.push_str("SELECT * FROM elsewhere\n");
    let before = std::fs::read(&path).unwrap();
    let found = report(&path, &log);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let fix = "CREATE INDEX item_owner_at ON item (owner, at);";
    assert_eq!(missing(&found), [fix], "{found:#?}");
    let details = &finding(&found, fix).details;
    assert_eq!(details["queries"].as_array().unwrap().len(), 3);
    assert_eq!((&details["calls_count"], &details["writes_count"]), (&60.into(), &0.into()));
    assert!(details["saved_ratio"].as_f64().unwrap() > 0.8, "{details:#?}");

    let load = found.workload.unwrap();
    assert_eq!((load.statements_count, load.shapes_count, load.others_count), (62, 5, 1));
    assert_eq!((load.unread_lines_count, load.timed), (1, false));
    assert_eq!(load.rejected[0].message, "no such table: elsewhere");
    assert_eq!(load.unused_indexes, ["item_title"]);
    let query = load.queries.iter().find(|query| query.shape.ends_with("LIMIT ?")).unwrap();
    assert_eq!((query.calls_count, &query.indexes[..]), (20, &["item_owner_at".to_owned()][..]));
    assert!(query.after_steps_count.unwrap() < query.before_steps_count.unwrap() / 10, "{query:?}");

    sql_on(&path, fix);
    let again = report(&path, &log);
    assert!(missing(&again).is_empty(), "{again:#?}");
}

/// Checks a query whose table is written a thousand times as often as it is read.
#[test]
fn an_index_that_costs_more_than_it_saves_is_not_advised() {
    let fixture = DoctorFixture::new();
    let path = fixture.make("a.db", SCHEMA);
    let insert = "INSERT INTO item (owner, at) VALUES (1, 2);\n";
    let read = "SELECT * FROM item WHERE owner = 7;\n";
    let seldom = report(&path, &format!("{}{read}", insert.repeat(2_000)));
    assert!(missing(&seldom).is_empty(), "{seldom:#?}");
    let often = report(&path, &format!("{}{}", insert.repeat(2_000), read.repeat(2_000)));
    let fix = "CREATE INDEX item_owner ON item (owner);";
    assert_eq!(missing(&often), [fix]);
    assert_eq!(finding(&often, fix).details["writes_count"], 2_000);
}

#[test]
fn times_of_the_log_rank_and_a_value_that_never_changes_makes_an_index_partial() {
    let fixture = DoctorFixture::new();
    let path = fixture.make("a.db", SCHEMA);
    let log = "  Item Load (40.0ms)  SELECT * FROM item WHERE done = 0 ORDER BY at\n\
               \x20 Item Load (60.0ms)  SELECT * FROM item WHERE done = 0 ORDER BY at\n\
               \x20 Tag Load (900.0ms)  SELECT * FROM tag WHERE name = ?  [[\"name\", \"tag 7\"]]\n";
    let found = report(&path, log);
    let partial = "CREATE INDEX item_at ON item (at) WHERE done = 0;";
    let mut fixes = missing(&found);
    fixes.sort();
    assert_eq!(fixes, [partial, "CREATE INDEX tag_name ON tag (name);"], "{found:#?}");
    let load = found.workload.unwrap();
    assert!(load.timed);
    assert_eq!(load.queries[0].logged_us, Some(900_000.0));
    assert_eq!(load.queries[0].time_ratio, Some(0.9));
    // If the value differs between the calls, it is a parameter, even if the log shows a literal.
    let log = "SELECT * FROM item WHERE done = 0 ORDER BY at\n\
               SELECT * FROM item WHERE done = 1 ORDER BY at\n";
    assert!(!missing(&report(&path, log)).contains(&partial.to_owned()));
}

/// Checks that statements of a log never change anything.
#[test]
fn a_log_from_strangers_does_nothing() {
    let fixture = DoctorFixture::new();
    let path = fixture.make("a.db", SCHEMA);
    let before = std::fs::read(&path).unwrap();
    let target = fixture.at("b.db");
    let log = format!(
        "DELETE FROM item;\nUPDATE item SET owner = 1;\n\
         SELECT load_extension('x');\nSELECT * FROM item; DROP TABLE item;\n\
         WITH x AS (SELECT 1) DELETE FROM item;\nATTACH '{0}' AS b;\nVACUUM INTO '{0}';\n\
         SELECT writefile('{0}', 'x');\nSELECT hex(zeroblob(2000000000));\n\
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n;\n",
        target.display()
    );
    let mut workload = QueryLog::default();
    workload.read(log.as_bytes()).unwrap();
    let budget = std::time::Duration::from_secs(5);
    let options = ExamineOptions {
        workload: Some(workload),
        time_limit: budget,
        ..ExamineOptions::default()
    };
    let found = examine(&path, &FileEncryption::None, &options).unwrap();
    assert!(found.workload.is_some_and(|load| load.shapes_count > 3));
    assert!(!target.exists());
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

/// Checks a server's file, which is in use, so that no index can be tried on it.
#[test]
fn of_a_file_in_use_the_planner_tells_what_an_index_would_serve() {
    let fixture = DoctorFixture::new();
    let path = fixture.make("a.db", &format!("PRAGMA journal_mode = WAL; {SCHEMA}"));
    let _shell = SqliteShell::start(&path, "SELECT count(*) FROM item;");
    let log =
        "SELECT * FROM item WHERE owner = 1\nSELECT * FROM item WHERE owner = 1 ORDER BY at\n";
    let found = report(&path, log);
    let fix = "CREATE INDEX item_owner_at ON item (owner, at);";
    assert_eq!(missing(&found), [fix], "{found:#?}");
    let details = &finding(&found, fix).details;
    assert_eq!(details["queries"].as_array().unwrap().len(), 2, "{details:#?}");
    assert!(!details.contains_key("saved_ratio"), "{details:#?}");
    assert!(found.skipped.iter().any(|it| it.check.starts_with("all new indexes")), "{found:#?}");
}
