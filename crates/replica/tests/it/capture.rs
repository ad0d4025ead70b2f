//! Tests that every write of any program to a tracked table reaches the other device, value for
//! value.

use crate::support::{MemoryServer, TestDevice};

fn check(schema: &str, writes: &[&str]) -> [TestDevice; 2] {
    let mut server = MemoryServer::default();
    let mut devices = [0, 1].map(|_| TestDevice::tracked(schema, &mut server));
    for write in writes {
        devices[0].write(write).unwrap();
        devices[0].sync(&mut server);
    }
    devices[1].sync(&mut server);
    assert_eq!(devices[0].dump(), devices[1].dump());
    devices
}

#[test]
fn every_storage_class_arrives_as_it_is() {
    let devices = check(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v)",
        &["INSERT INTO t VALUES (1, NULL), (2, 9223372036854775807), (3, 0.1), (4, 'é' || char(0) || 'x'),
           (5, x'00ff'), (6, 1e308), (7, -9223372036854775808), (8, ''), (9, x''), (10, 9e999)"],
    );
    assert_eq!(devices[1].dump().len(), 10);
}

#[test]
fn a_change_of_nothing_but_case_or_storage_class_is_a_change() {
    let devices = check(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT COLLATE NOCASE, w)",
        &["INSERT INTO t VALUES (1, 'a', 1)", "UPDATE t SET v = 'A'", "UPDATE t SET w = 1.0"],
    );
    assert_eq!(devices[1].dump(), ["t: Integer(1), Text([65]), Real(1.0)"]);
}

#[test]
fn a_key_that_changes_moves_the_row() {
    let devices = check(
        "CREATE TABLE t (k TEXT COLLATE NOCASE PRIMARY KEY NOT NULL, v)",
        &[
            "INSERT INTO t VALUES ('a', 1), ('b', 2)",
            "UPDATE t SET k = 'A' WHERE k = 'a'",
            "UPDATE t SET k = 'c' WHERE k = 'b'",
        ],
    );
    assert_eq!(devices[1].texts("SELECT k FROM t ORDER BY k"), ["A", "c"]);
}

#[test]
fn replace_takes_the_rows_that_it_deletes_along() {
    let devices = check(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT UNIQUE, v TEXT)",
        &[
            "INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y')",
            "REPLACE INTO t VALUES (3, 'a', 'z')",
            "UPDATE OR REPLACE t SET u = 'b' WHERE id = 3",
        ],
    );
    assert_eq!(devices[1].texts("SELECT id || v FROM t"), ["3z"]);
}

#[test]
fn replace_goes_by_indexes_of_some_rows_too() {
    let devices = check(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT, kind TEXT, v TEXT);
         CREATE UNIQUE INDEX one ON t (u) WHERE kind = 'where' AND v <> 'x' -- of some
",
        &[
            "INSERT INTO t VALUES (1, 'a', 'where', 'y'), (2, 'a', 'no', 'y'), (3, 'b', 'where', 'x')",
            "REPLACE INTO t VALUES (4, 'a', 'where', 'z')",
            "INSERT INTO t VALUES (5, 'b', 'where', 'z')",
        ],
    );
    let ids = devices[1].texts("SELECT group_concat(id, '') FROM t ORDER BY id");
    assert_eq!(ids, ["2345"]);
}

#[test]
fn upserts_cascades_and_deletes_of_everything_are_seen() {
    let devices = check(
        "CREATE TABLE p (id INTEGER PRIMARY KEY, n INTEGER);
         CREATE TABLE c (id INTEGER PRIMARY KEY, p REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE);
         CREATE TABLE d (id INTEGER PRIMARY KEY)",
        &["INSERT INTO p VALUES (1, 1), (2, 2); INSERT INTO c VALUES (1, 1), (2, 2); INSERT INTO d VALUES (1), (2)",
          "INSERT INTO p VALUES (1, 9) ON CONFLICT (id) DO UPDATE SET n = n + excluded.n",
          "DELETE FROM p WHERE id = 2", "UPDATE p SET id = 5", "DELETE FROM d"],
    );
    assert_eq!(devices[1].dump(), ["c: Integer(1), Integer(5)", "p: Integer(5), Integer(10)"]);
}

#[test]
fn many_changes_of_a_cell_between_syncs_are_one_message() {
    let mut server = MemoryServer::default();
    let mut device =
        TestDevice::tracked("CREATE TABLE t (id INTEGER PRIMARY KEY, v, w)", &mut server);
    device.write("INSERT INTO t VALUES (1, 0, 0)").unwrap();
    device.sync(&mut server);
    let before = server.messages.len();
    for value in 0..100 {
        device.write(&format!("UPDATE t SET v = {value}")).unwrap();
    }
    device.write("INSERT INTO t VALUES (2, 0, 0); DELETE FROM t WHERE id = 2").unwrap();
    assert_eq!(
        device.sync(&mut server).sent_count,
        1,
        "the last value; who never came does not go"
    );
    assert_eq!(server.messages.len(), before + 1);
}

#[test]
fn the_triggers_clock_is_the_wall_clock_in_milliseconds() {
    let mut server = MemoryServer::default();
    let device = TestDevice::tracked("CREATE TABLE t (id INTEGER PRIMARY KEY)", &mut server);
    device.app.execute_batch("INSERT INTO t VALUES (1)").unwrap();
    let off =
        "SELECT abs(at_ms - CAST(strftime('%s', 'now') AS INTEGER) * 1000) FROM warren_outbox";
    let off_ms: i64 = device.app.query_row(off, [], |row| row.get(0)).unwrap();
    assert!(off_ms < 60_000, "{off_ms} ms off");
}

#[test]
fn a_change_that_is_rolled_back_is_not_captured() {
    let mut server = MemoryServer::default();
    let mut device = TestDevice::tracked("CREATE TABLE t (id INTEGER PRIMARY KEY, v)", &mut server);
    device.sync(&mut server);
    device.write("BEGIN; INSERT INTO t VALUES (1, 1); ROLLBACK").unwrap();
    assert_eq!(device.sync(&mut server).sent_count, 0);
}

#[test]
fn more_changes_in_a_millisecond_than_the_counter_has_are_stamped() {
    let mut server = MemoryServer::default();
    let mut device = TestDevice::tracked("CREATE TABLE t (id INTEGER PRIMARY KEY)", &mut server);
    device
        .write(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70000)
                INSERT INTO t SELECT i FROM n",
        )
        .unwrap();
    let report = device.sync(&mut server);
    assert_eq!(
        (report.sent_count, report.in_sync),
        (70_001, true),
        "70,000 rows and the declaration"
    );
}

#[test]
fn the_users_own_triggers_fire_for_a_search_index_and_do_not_fork_the_data() {
    let schema = "CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT, edits INTEGER DEFAULT 0);
        CREATE VIRTUAL TABLE search USING fts5(body, content='note', content_rowid='id');
        CREATE TRIGGER note_i AFTER INSERT ON note BEGIN INSERT INTO search(rowid, body) VALUES (new.id, new.body); END;
        CREATE TRIGGER note_u AFTER UPDATE OF body ON note BEGIN
            INSERT INTO search(search, rowid, body) VALUES ('delete', old.id, old.body);
            INSERT INTO search(rowid, body) VALUES (new.id, new.body);
            UPDATE note SET edits = edits + 1 WHERE id = new.id;
        END;";
    let mut server = MemoryServer::default();
    let mut devices = [0, 1].map(|_| TestDevice::tracked(schema, &mut server));
    devices[0].write("INSERT INTO note (id, body) VALUES (1, 'apple')").unwrap();
    devices[0].sync(&mut server);
    devices[1].sync(&mut server);
    devices[0].write("UPDATE note SET body = 'pear'").unwrap();
    devices[0].sync(&mut server);
    devices[1].sync(&mut server);
    let found = "SELECT body || edits FROM note WHERE id IN (SELECT rowid FROM search WHERE search MATCH 'pear')";
    assert_eq!(devices[1].texts(found), ["pear1"]);
    assert_eq!(devices[1].texts("SELECT 'x' FROM search WHERE search MATCH 'apple'").len(), 0);
    assert_eq!(
        devices[1].sync(&mut server).sent_count,
        0,
        "what triggers did here is not sent back"
    );
}
