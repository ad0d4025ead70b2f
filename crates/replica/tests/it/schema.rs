//! Columns that come and go, on one device before the other.

use replica::Error;

use crate::support::{Device, MemoryServer};

const SCHEMA: &str =
    "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'b')";

fn two() -> (MemoryServer, [Device; 2]) {
    let mut server = MemoryServer::default();
    let devices = [0, 1].map(|_| Device::tracked(SCHEMA, &mut server));
    for device in [0, 1, 0] {
        devices[device].sync(&mut server);
    }
    (server, devices)
}

#[test]
fn an_added_column_is_noticed_and_its_values_reach_devices_that_have_it() {
    let (mut server, mut devices) = two();
    devices[0].write("ALTER TABLE t ADD COLUMN stars INTEGER DEFAULT 0").unwrap();
    devices[0].write("UPDATE t SET stars = 5 WHERE id = 1").unwrap();
    devices[0].sync(&mut server);
    devices[0].write("UPDATE t SET stars = 4 WHERE id = 2").unwrap();
    devices[0].sync(&mut server);

    devices[1].sync(&mut server);
    assert_eq!(devices[1].replica().status().unwrap().unknown, ["t.stars"]);
    devices[1].write("ALTER TABLE t ADD COLUMN stars INTEGER DEFAULT 0").unwrap();
    devices[1].sync(&mut server);
    assert_eq!(devices[0].dump(), devices[1].dump());
    assert_eq!(devices[1].texts("SELECT id || ':' || stars FROM t"), ["1:5", "2:4"]);
    assert_eq!(devices[1].replica().status().unwrap().unknown, [""; 0]);
}

#[test]
fn adopting_adds_the_column_by_itself() {
    let (mut server, mut devices) = two();
    devices[0].write("ALTER TABLE t ADD COLUMN stars INTEGER NOT NULL DEFAULT 3; UPDATE t SET stars = 5 WHERE id = 1").unwrap();
    devices[0].sync(&mut server);
    let report = devices[1].try_sync(&mut server, true).unwrap();
    assert_eq!(report.adopted, ["added column t.stars"]);
    assert_eq!(devices[1].texts("SELECT id || ':' || stars FROM t"), ["1:5", "2:3"]);
}

#[test]
fn a_renamed_column_table_or_key_stops_the_sync_and_says_what_to_do() {
    for change in
        ["ALTER TABLE t RENAME COLUMN v TO w", "ALTER TABLE t RENAME TO u", "DROP TABLE t"]
    {
        let (mut server, devices) = two();
        devices[0].app.execute_batch(change).unwrap();
        let before = server.messages.len();
        let error = devices[0].try_sync(&mut server, false).unwrap_err();
        assert!(matches!(error, Error::SchemaChanged { .. }), "{change}: {error}");
        assert!(error.to_string().contains("warren untrack"), "{error}");
        assert_eq!(server.messages.len(), before);
    }
}

#[test]
fn a_dropped_column_can_be_dropped_after_untracking_and_the_rest_goes_on() {
    let (mut server, mut devices) = two();
    let refused = devices[0].app.execute_batch("ALTER TABLE t DROP COLUMN v").unwrap_err();
    assert!(refused.to_string().contains("warren_"), "SQLite names our trigger: {refused}");
    devices[0].replica().untrack(&["t".to_owned()], devices[0].clock_ms).unwrap();
    devices[0].app.execute_batch("ALTER TABLE t DROP COLUMN v").unwrap();
    devices[0].replica().track(&["t".to_owned()]).unwrap();
    devices[0].write("INSERT INTO t VALUES (3)").unwrap();
    devices[0].sync(&mut server);
    devices[1].sync(&mut server);
    assert_eq!(devices[1].texts("SELECT id || coalesce(v, '') FROM t"), ["1a", "2b", "3"]);
}

#[test]
fn a_table_that_was_rebuilt_without_its_triggers_is_compared() {
    let (mut server, mut devices) = two();
    devices[0]
        .write("CREATE TABLE n (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO n SELECT id, upper(v) FROM t WHERE id = 1;
                INSERT INTO n VALUES (3, 'c'); DROP TABLE t; ALTER TABLE n RENAME TO t")
        .unwrap();
    devices[0].sync(&mut server);
    devices[1].sync(&mut server);
    for device in &devices {
        assert_eq!(device.texts("SELECT id || v FROM t"), ["1A", "3c"]);
    }
    devices[0].write("UPDATE t SET v = 'd' WHERE id = 3").unwrap();
    assert_eq!(devices[0].sync(&mut server).sent, 1, "captured again");
}

#[test]
fn generated_columns_are_left_to_each_device() {
    let schema =
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT, b INT AS (a * 2) STORED, c INT AS (a * 3))";
    let mut server = MemoryServer::default();
    let mut devices = [0, 1].map(|_| Device::tracked(schema, &mut server));
    devices[0].write("INSERT INTO t (id, a) VALUES (1, 2)").unwrap();
    devices[0].sync(&mut server);
    devices[1].sync(&mut server);
    assert_eq!(devices[1].texts("SELECT a || b || c FROM t"), ["246"]);
}
