//! Tests of columns that are added and dropped, on one device before the other.

use replica::Error;

use crate::support::{MemoryServer, TestDevice, meet};

const SCHEMA: &str =
    "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'b')";

fn two() -> (MemoryServer, [TestDevice; 2]) {
    let mut server = MemoryServer::default();
    let devices = [0, 1].map(|_| TestDevice::tracked(SCHEMA, &mut server));
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

    assert_eq!(devices[1].sync(&mut server).missing_tables, ["t.stars"]);
    assert_eq!(devices[1].replica().status().unwrap().missing_tables, ["t.stars"]);
    devices[1].write("ALTER TABLE t ADD COLUMN stars INTEGER DEFAULT 0").unwrap();
    devices[1].sync(&mut server);
    assert_eq!(devices[0].dump(), devices[1].dump());
    assert_eq!(devices[1].texts("SELECT id || ':' || stars FROM t"), ["1:5", "2:4"]);
    assert_eq!(devices[1].replica().status().unwrap().missing_tables, [""; 0]);
}

#[test]
fn adopting_adds_the_column_by_itself() {
    let (mut server, mut devices) = two();
    devices[0].write("ALTER TABLE t ADD COLUMN stars INTEGER NOT NULL DEFAULT 3; UPDATE t SET stars = 5 WHERE id = 1").unwrap();
    devices[0].sync(&mut server);
    let report = devices[1].try_sync(&mut server, true).unwrap();
    assert_eq!(report.created_tables, ["added column t.stars"]);
    assert_eq!(devices[1].texts("SELECT id || ':' || stars FROM t"), ["1:5", "2:3"]);
}

#[test]
fn a_renamed_column_table_or_key_stops_the_sync() {
    for change in
        ["ALTER TABLE t RENAME COLUMN v TO w", "ALTER TABLE t RENAME TO u", "DROP TABLE t"]
    {
        let (mut server, devices) = two();
        devices[0].app.execute_batch(change).unwrap();
        let before = server.messages.len();
        let error = devices[0].try_sync(&mut server, false).unwrap_err();
        assert!(matches!(error, Error::SchemaChanged { .. }), "{change}: {error}");
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
    assert_eq!(devices[0].sync(&mut server).sent_count, 1, "captured again");
}

/// Statements with which the usual migration tools add a column to `t`: Django and Alembic drop the
/// old table, others rename it first.
const REBUILDS: [&str; 2] = [
    "CREATE TABLE n (id INTEGER PRIMARY KEY, v TEXT, done BOOL NOT NULL);
     INSERT INTO n SELECT id, v, 0 FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t;",
    "PRAGMA legacy_alter_table = ON; ALTER TABLE t RENAME TO o;
     CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, done BOOL);
     INSERT INTO t SELECT id, v, NULL FROM o; DROP TABLE o; PRAGMA legacy_alter_table = OFF;",
];

#[test]
fn what_is_written_after_a_rebuild_that_adds_a_column_is_kept_and_sent() {
    for rebuild in REBUILDS {
        for writes in [
            "UPDATE t SET v = 'A' WHERE id = 1; DELETE FROM t WHERE id = 2;
             INSERT INTO t (id, v, done) VALUES (3, 'c', 1)",
            // The migration itself changes existing rows.
            "UPDATE t SET v = upper(v) WHERE id = 1; UPDATE t SET id = 3, v = 'c', done = 1 WHERE id = 2",
        ] {
            let (mut server, mut devices) = two();
            devices[0].write(&format!("BEGIN; {rebuild} {writes}; COMMIT")).unwrap();
            assert_eq!(devices[0].replica().status().unwrap().uncaptured_tables, ["t"]);
            assert!(devices[0].replica().may_have_changed().unwrap());
            for device in [0, 1, 0] {
                devices[device].try_sync(&mut server, device == 1).unwrap();
            }
            assert!(!devices[0].replica().may_have_changed().unwrap());
            for device in &devices {
                assert_eq!(
                    device.texts("SELECT id || v FROM t"),
                    ["1A", "3c"],
                    "{rebuild}{writes}"
                );
                assert_eq!(
                    device.texts("SELECT id || '' FROM t WHERE done"),
                    ["3"],
                    "{rebuild}{writes}"
                );
            }
            devices[0].write("UPDATE t SET v = 'd', done = 0 WHERE id = 3").unwrap();
            assert_eq!(devices[0].sync(&mut server).sent_count, 1, "captured again");
        }
    }
}

#[test]
fn what_is_written_after_a_rebuild_during_a_sync_is_kept_and_sent() {
    let (mut server, mut devices) = two();
    devices[1].write("UPDATE t SET v = 'A' WHERE id = 1").unwrap();
    devices[1].sync(&mut server);
    devices[0].clock_ms += 1_000;
    let program = TestDevice::open(&devices[0].path);
    let write = "DELETE FROM t WHERE id = 2; UPDATE t SET v = 'B' WHERE id = 1";
    server.meanwhile = Some(Box::new(move || {
        program.app.execute_batch(&format!("{} {write}", REBUILDS[1])).unwrap();
    }));
    for device in [0, 0, 1] {
        devices[device].sync(&mut server);
    }
    for device in &devices {
        assert_eq!(device.texts("SELECT id || v FROM t"), ["1B"]);
    }
}

#[test]
fn a_sync_is_due_for_a_column_that_is_not_captured_yet() {
    let (mut server, mut devices) = two();
    devices[0].write("ALTER TABLE t ADD COLUMN stars INTEGER DEFAULT 0").unwrap();
    devices[0].write("UPDATE t SET stars = 5 WHERE id = 1").unwrap();
    let replica = devices[0].replica();
    assert_eq!(replica.pending_upload_count().unwrap(), 0);
    assert!(replica.may_have_changed().unwrap());
    devices[0].sync(&mut server);
    assert!(!replica.may_have_changed().unwrap());
    // A change that stops the sync is not a reason to sync.
    devices[0].write("ALTER TABLE t RENAME COLUMN stars TO rating").unwrap();
    assert!(!replica.may_have_changed().unwrap());
}

#[test]
fn changes_to_a_rebuilt_table_are_sent_when_its_tracking_ends() {
    let (mut server, mut devices) = two();
    devices[0].write(REBUILDS[0]).unwrap();
    devices[0].write("UPDATE t SET v = 'A' WHERE id = 1").unwrap();
    devices[0].replica().untrack(&["t".to_owned()], devices[0].clock_ms).unwrap();
    devices[0].sync(&mut server);
    devices[1].sync(&mut server);
    assert_eq!(devices[1].texts("SELECT id || v FROM t"), ["1A", "2b"]);
}

/// The table is tracked here while another device's rows of it wait to be shown.
#[test]
fn a_rebuild_before_the_first_sync_deletes_nothing_and_takes_nothing_back() {
    let (mut server, mut devices) = two();
    devices[1].replica().untrack(&["t".to_owned()], devices[1].clock_ms).unwrap();
    devices[0].write("UPDATE t SET v = 'A' WHERE id = 1; INSERT INTO t VALUES (3, 'c')").unwrap();
    devices[0].sync(&mut server);
    devices[1].sync(&mut server);
    devices[1].replica().track(&["t".to_owned()]).unwrap();
    devices[1].write(REBUILDS[1]).unwrap();
    devices[1].write("UPDATE t SET v = 'B' WHERE id = 2").unwrap();
    for device in [1, 0, 1] {
        devices[device].try_sync(&mut server, device == 0).unwrap();
    }
    for device in &devices {
        assert_eq!(device.texts("SELECT id || v FROM t"), ["1A", "2B", "3c"]);
    }
}

#[test]
fn a_deleted_row_that_others_refer_to_is_not_new_after_a_rebuild() {
    let schema = "CREATE TABLE p (id INTEGER PRIMARY KEY, v TEXT);
                  CREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p);
                  INSERT INTO p VALUES (1, 'a')";
    let mut server = MemoryServer::default();
    let mut devices = [0, 1].map(|_| TestDevice::tracked(schema, &mut server));
    for device in [0, 1, 0] {
        devices[device].sync(&mut server);
    }
    devices[0].write("DELETE FROM p").unwrap();
    devices[1].write("INSERT INTO c VALUES (1, 1)").unwrap();
    for device in [0, 1, 0] {
        devices[device].sync(&mut server);
    }
    devices[1]
        .write(
            "PRAGMA foreign_keys = OFF; CREATE TABLE n (id INTEGER PRIMARY KEY, v TEXT);
                INSERT INTO n SELECT * FROM p; DROP TABLE p; ALTER TABLE n RENAME TO p;
                PRAGMA foreign_keys = ON",
        )
        .unwrap();
    assert_eq!(devices[1].sync(&mut server).sent_count, 0);
    devices[1].write("DELETE FROM c").unwrap();
    for device in [1, 0] {
        devices[device].sync(&mut server);
        assert_eq!(devices[device].texts("SELECT v FROM p"), [""; 0]);
    }
}

#[test]
fn a_default_that_nobody_wrote_is_no_edit_after_a_rebuild() {
    let (mut server, mut devices) = two();
    devices[0].write("ALTER TABLE t ADD COLUMN stars INTEGER DEFAULT '3'").unwrap();
    devices[0].sync(&mut server);
    devices[1].write("INSERT INTO t VALUES (3, 'c')").unwrap();
    for device in [1, 0] {
        devices[device].sync(&mut server);
    }
    devices[0]
        .write(
            "CREATE TABLE n (id INTEGER PRIMARY KEY, v TEXT, stars INTEGER DEFAULT '3');
                INSERT INTO n SELECT * FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t",
        )
        .unwrap();
    assert_eq!(devices[0].sync(&mut server).sent_count, 0);
}

#[test]
fn generated_columns_are_left_to_each_device() {
    let schema =
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT, b INT AS (a * 2) STORED, c INT AS (a * 3))";
    let mut server = MemoryServer::default();
    let mut devices = [0, 1].map(|_| TestDevice::tracked(schema, &mut server));
    devices[0].write("INSERT INTO t (id, a) VALUES (1, 2)").unwrap();
    devices[0].sync(&mut server);
    devices[1].sync(&mut server);
    assert_eq!(devices[1].texts("SELECT a || b || c FROM t"), ["246"]);
}

/// Migration of Django's `AddField` with a default: the table is rebuilt with the default in every
/// row and in no declaration. Each device migrates when its program is updated.
const ADD_FIELD: &str = "
    BEGIN;
    CREATE TABLE new (id INTEGER PRIMARY KEY, v, state TEXT NOT NULL);
    INSERT INTO new SELECT id, v, 'draft' FROM t; DROP TABLE t; ALTER TABLE new RENAME TO t;
    COMMIT";

#[test]
fn a_default_that_a_migration_writes_on_every_device_takes_no_edit_back() {
    let mut server = MemoryServer::default();
    let mut devices: [TestDevice; 3] = [(); 3]
        .map(|()| TestDevice::tracked("CREATE TABLE t (id INTEGER PRIMARY KEY, v)", &mut server));
    devices[0].write("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')").unwrap();
    for device in &devices {
        device.sync(&mut server);
    }
    devices[0].app.execute_batch(ADD_FIELD).unwrap();
    devices[0].clock_ms += 1_000;
    // One row is edited before the first sync, and one after it.
    devices[0].app.execute_batch("UPDATE t SET state = 'done' WHERE id = 1").unwrap();
    devices[0].sync(&mut server);
    devices[0].write("UPDATE t SET state = 'done' WHERE id = 2").unwrap();
    devices[0].sync(&mut server);
    // This device gets the edits before it migrates, and the third device after it.
    devices[1].clock_ms += 5_000;
    devices[1].sync(&mut server);
    for device in &mut devices[1..] {
        device.clock_ms += 10_000;
        device.app.execute_batch(ADD_FIELD).unwrap();
    }
    for round in 0..2 {
        for device in &devices {
            let report = device.sync(&mut server);
            assert!(report.in_sync && report.conflicts_count == 0, "{round}: {report:?}");
        }
    }
    for device in &devices {
        let states = device.texts("SELECT id || v || state FROM t ORDER BY id");
        assert_eq!(states, ["1adone", "2bdone", "3cdraft", "4ddraft"]);
        assert_eq!(device.replica().conflicts().unwrap(), []);
    }
}

#[test]
fn rows_that_are_inserted_after_a_migration_do_not_make_its_value_an_edit() {
    // There are more new rows than old ones, or new rows with the default that the column declares.
    let add_nullable = "ALTER TABLE t ADD COLUMN state TEXT; UPDATE t SET state = 'draft'";
    let migrations = [
        (ADD_FIELD, "INSERT INTO t VALUES (3, 'c', 'new'), (4, 'd', 'new'), (5, 'e', 'new')"),
        (add_nullable, "INSERT INTO t (id, v) VALUES (3, 'c'), (4, 'd'), (5, 'e')"),
    ];
    for (migrate, insert) in migrations {
        let mut server = MemoryServer::default();
        let mut devices = [(); 2].map(|()| {
            TestDevice::tracked("CREATE TABLE t (id INTEGER PRIMARY KEY, v)", &mut server)
        });
        devices[0].write("INSERT INTO t VALUES (1, 'a'), (2, 'b')").unwrap();
        meet(&devices, &mut server);
        devices[1].write("DELETE FROM t WHERE id = 2").unwrap();
        devices[0].clock_ms += 5_000;
        devices[0].app.execute_batch(migrate).unwrap();
        devices[0].app.execute_batch(insert).unwrap();
        devices[0].sync(&mut server);
        devices[1].app.execute_batch(migrate).unwrap();
        meet(&devices, &mut server);
        for device in &devices {
            let rows = device.texts("SELECT id || v FROM t ORDER BY id");
            assert_eq!(rows, ["1a", "3c", "4d", "5e"], "the deleted row is back: {migrate}");
        }
    }
}

#[test]
fn who_writes_to_a_column_before_it_is_shown_has_not_seen_what_others_wrote() {
    let (mut server, mut devices) = two();
    let migrate = "ALTER TABLE t ADD COLUMN stars INTEGER";
    devices[0].app.execute_batch(migrate).unwrap();
    devices[0].sync(&mut server);
    devices[0].write("UPDATE t SET stars = 5 WHERE id = 1").unwrap();
    for device in &devices {
        device.sync(&mut server);
    }
    devices[1].clock_ms += 5_000;
    devices[1].app.execute_batch(migrate).unwrap();
    devices[1].app.execute_batch("UPDATE t SET stars = 3 WHERE id = 1").unwrap();
    for device in [1, 0] {
        devices[device].sync(&mut server);
    }
    for device in &devices {
        assert_eq!(device.texts("SELECT stars || '' FROM t WHERE id = 1"), ["3"]);
        let conflicts = device.replica().conflicts().unwrap();
        assert_eq!(conflicts.len(), 1, "the 5 is not lost in silence: {conflicts:?}");
    }
}

#[test]
fn the_value_of_a_migration_is_no_edit_of_a_row_that_waits_either() {
    let (mut server, mut devices) = two();
    let migrate = ADD_FIELD.replace("v, state", "v TEXT, state");
    devices[0].app.execute_batch(&migrate).unwrap();
    devices[0].sync(&mut server);
    devices[0].write("UPDATE t SET state = 'done' WHERE id = 1").unwrap();
    for device in &devices {
        device.sync(&mut server);
    }
    devices[1].clock_ms += 5_000;
    devices[1].app.execute_batch(&migrate).unwrap();
    // The sync records the column, but ends before it shows the values that are known for it.
    server.lose_answer = Some(server.requests + 1);
    devices[1].try_sync(&mut server, false).unwrap_err();
    devices[1]
        .app
        .execute_batch(
            "CREATE TABLE n (id INTEGER PRIMARY KEY, v TEXT, state TEXT NOT NULL);
             INSERT INTO n SELECT * FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t",
        )
        .unwrap();
    for device in [1, 0] {
        devices[device].sync(&mut server);
    }
    for device in &devices {
        assert_eq!(device.texts("SELECT state FROM t ORDER BY id"), ["done", "draft"]);
    }
}
