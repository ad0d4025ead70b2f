//! Tests of the recovery extension: the three facts that `src/recovery.rs` relies on and no header
//! promises.

use std::cell::RefCell;

use rusqlite::Connection;
use sqlite3mc_sys::{DatabaseRecovery, RecoveredValue, RecoveryOptions};

type RecoveredStatements = Vec<(String, Vec<RecoveredValue>)>;

fn recover(input: &Connection, at_first: impl FnOnce(&Connection)) -> RecoveredStatements {
    let statements = RefCell::new(RecoveredStatements::new());
    let options =
        RecoveryOptions { lost_and_found: Some(c"lost_and_found"), includes_free_pages: false };
    let mut recovery = DatabaseRecovery::new(input, options, |sql, values| {
        statements.borrow_mut().push((sql.to_owned(), values.to_vec()));
        true
    })
    .expect("begins");
    assert!(recovery.workspace().is_none());
    assert!(!recovery.step().expect("steps"));
    at_first(recovery.workspace().expect("it is the first connection that the first step opens"));
    while !recovery.step().expect("steps") {}
    assert!(recovery.workspace().is_none());
    drop(recovery);
    statements.into_inner()
}

#[test]
fn values_are_parameters_and_the_schema_that_was_found_can_be_asked_for() {
    let input = Connection::open_in_memory().unwrap();
    input
        .execute_batch(
            "CREATE TABLE t (a, b, c AS (a), d);
             INSERT INTO t VALUES ('x' || char(0) || 'y' || char(10), zeroblob(3), -0.5),
                                  (NULL, CAST(x'ff' AS TEXT), 9223372036854775807)",
        )
        .unwrap();
    let statements = recover(&input, |workspace| {
        let name: String =
            workspace.query_row("SELECT name FROM recovery.schema", [], |row| row.get(0)).unwrap();
        assert_eq!(name, "t");
        let page: Vec<u8> = workspace.query_row("SELECT getpage(2)", [], |row| row.get(0)).unwrap();
        assert_eq!((page.len(), page[0]), (4096, 13));
    });
    let rows: Vec<_> = statements.iter().filter(|(sql, _)| sql.starts_with("INSERT")).collect();
    // All rows have the same text without a value; the column after the virtual one is included.
    let sql = "INSERT OR IGNORE INTO 't'(_rowid_, 'a', 'b', 'd') VALUES (?1, ?2, ?3, ?4)";
    assert!(rows.iter().all(|(found, _)| found == sql), "{rows:?}");
    let text = |bytes: &[u8]| RecoveredValue::Text(bytes.to_vec());
    let (integer, blob) = (RecoveredValue::Integer, RecoveredValue::Blob(vec![0; 3]));
    assert_eq!(rows[0].1, [integer(1), text(b"x\0y\n"), blob, RecoveredValue::Real(-0.5)]);
    assert_eq!(rows[1].1, [integer(2), RecoveredValue::Null, text(b"\xff"), integer(i64::MAX)]);
}

#[test]
fn other_connections_of_the_process_quote_as_ever() {
    let input = Connection::open_in_memory().unwrap();
    input.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
    let quoted = |db: &Connection| {
        db.query_row("SELECT quote('x')", [], |row| row.get::<_, String>(0)).unwrap()
    };
    recover(&input, |_| assert_eq!(quoted(&Connection::open_in_memory().unwrap()), "'x'"));
    assert_eq!(quoted(&input), "'x'");
    assert_eq!(quoted(&Connection::open_in_memory().unwrap()), "'x'");
}

/// Checks that the callback is no longer called then.
#[test]
fn it_ends_when_nothing_more_is_taken_and_when_it_is_dropped() {
    let input = Connection::open_in_memory().unwrap();
    input.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)").unwrap();
    let mut taken = 0;
    let mut recovery = DatabaseRecovery::new(&input, RecoveryOptions::default(), |_, _| {
        taken += 1;
        taken < 3
    })
    .unwrap();
    let error = loop {
        match recovery.step() {
            Ok(is_done) => assert!(!is_done),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("callback"), "{error}");
    drop(recovery);
    assert_eq!(taken, 3);

    let mut recovery =
        DatabaseRecovery::new(&input, RecoveryOptions::default(), |_, _| true).unwrap();
    assert!(!recovery.step().unwrap());
    drop(recovery);
    input.execute_batch("INSERT INTO t VALUES (3)").unwrap();
}
