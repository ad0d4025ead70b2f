//! Tests that writes that bypass the triggers are found by a comparison, and sent on request.

use replica::{RowDifferenceKind, TablesVerification};
use rusqlite::config::DbConfig;

use crate::support::{MemoryServer, TestDevice};

const SCHEMA: &str = "
    CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT UNIQUE, count INTEGER DEFAULT 0);
    CREATE TABLE pair (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID;";

fn verify(device: &TestDevice) -> TablesVerification {
    let mut compared = Vec::new();
    let found = device.replica().verify(device.clock_ms, |table| compared.push(table.to_owned()));
    assert_eq!(compared, ["item", "pair"]);
    found.unwrap()
}

/// Writes as a program does whose connection has triggers switched off.
fn write_past_triggers(device: &TestDevice, sql: &str) {
    let set = |is_on| {
        device.app.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, is_on).unwrap();
    };
    set(false);
    device.app.execute_batch(sql).unwrap();
    set(true);
}

#[test]
fn what_was_written_past_the_triggers_is_named_and_sent_when_asked_for() {
    let mut server = MemoryServer::default();
    let mut ada = TestDevice::tracked(SCHEMA, &mut server);
    let mut ben = TestDevice::tracked(SCHEMA, &mut server);
    ada.write("INSERT INTO item VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)").unwrap();
    ada.write("INSERT INTO pair VALUES ('x', 1), ('y', 2)").unwrap();
    ada.sync(&mut server);
    // One of the two rows is hidden on both devices.
    ben.write("INSERT INTO item VALUES (8, 'same', 0)").unwrap();
    ben.sync(&mut server);
    ada.clock_ms += 5;
    ada.write("INSERT INTO item VALUES (9, 'same', 0)").unwrap();
    ada.sync(&mut server);
    ben.sync(&mut server);
    for device in [&ada, &ben] {
        assert_eq!(device.replica().status().unwrap().visibility_overrides.len(), 1);
        let found = verify(device);
        assert_eq!((found.rows_count, found.differing_count), (6, 0), "{found:?}");
    }

    ada.write("UPDATE item SET count = 20 WHERE id = 2").unwrap();
    write_past_triggers(
        &ada,
        "UPDATE item SET name = 'ONE', count = 10 WHERE id = 1; DELETE FROM item WHERE id = 3;
         INSERT INTO pair VALUES ('z', 3); DELETE FROM pair WHERE a = 'x'",
    );
    let to_send = ada.replica().pending_upload_count().unwrap();
    let found = verify(&ada);
    let named: Vec<_> = found
        .differences
        .iter()
        .map(|one| (&*one.table, &*one.key, one.kind, one.columns.join(" ")))
        .collect();
    let expected = [
        ("item", "1", RowDifferenceKind::Changed, "name count".to_owned()),
        ("item", "3", RowDifferenceKind::Missing, String::new()),
        ("pair", "'z', 3", RowDifferenceKind::Unknown, String::new()),
        ("pair", "'x', 1", RowDifferenceKind::Missing, String::new()),
    ];
    assert_eq!(named, expected);
    assert_eq!((found.rows_count, found.differing_count), (5, 4));
    assert_eq!(ada.replica().pending_upload_count().unwrap(), to_send, "it has changed nothing");

    // A sync sees the differences only after they were captured.
    assert!(ada.sync(&mut server).in_sync);
    ben.sync(&mut server);
    assert_ne!(ada.dump(), ben.dump());
    ada.replica().capture_differences(ada.clock_ms).unwrap();
    ada.sync(&mut server);
    ben.sync(&mut server);
    assert_eq!(ada.dump(), ben.dump());
    assert_eq!(ada.texts("SELECT name FROM item WHERE id < 9"), ["ONE", "two"]);
    assert_eq!(verify(&ada).differing_count + verify(&ben).differing_count, 0);
}

#[test]
fn what_waits_to_be_shown_is_no_difference_and_few_differences_are_listed() {
    let mut server = MemoryServer::default();
    let mut ada = TestDevice::tracked(SCHEMA, &mut server);
    let ben = TestDevice::tracked(SCHEMA, &mut server);
    ada.write("INSERT INTO item VALUES (1, 'one', 1)").unwrap();
    ada.sync(&mut server);
    ben.sync(&mut server);
    ada.write("UPDATE item SET name = 'uno' WHERE id = 1").unwrap();
    ada.sync(&mut server);
    // The pull arrives, but the sync ends before its messages are materialized.
    server.lose_answer = Some(server.requests + 2);
    ada.write("UPDATE item SET count = 5 WHERE id = 1").unwrap();
    let mut late = TestDevice::open(&ben.path);
    late.write("INSERT INTO item VALUES (2, 'two', 2)").unwrap();
    late.try_sync(&mut server, false).unwrap_err();
    assert_eq!(late.texts("SELECT name FROM item"), ["one", "two"]);
    assert_eq!(verify(&late).differing_count, 0);

    write_past_triggers(
        &ada,
        "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 1509)
         INSERT INTO pair SELECT i, i FROM n",
    );
    let found = verify(&ada);
    assert_eq!((found.differing_count, found.differences.len()), (1_500, 1_000));
}
