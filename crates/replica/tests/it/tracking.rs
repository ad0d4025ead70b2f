//! Tests of starting and ending tracking: which tables can be tracked, what the file pays for it,
//! and how it is removed.

use crdt::Value;
use protocol::ErrorCode;
use replica::{CellEdit, Error, Replica, SyncContext};

use crate::support::{MemoryServer, TestDevice};

fn schema(device: &TestDevice) -> Vec<String> {
    device.texts("SELECT type || name || coalesce(sql, '') FROM sqlite_schema ORDER BY 1")
}

#[test]
fn untracking_leaves_the_file_as_it_was() {
    let device = TestDevice::new(
        "CREATE TABLE t (a TEXT NOT NULL, b INT NOT NULL, v UNIQUE, PRIMARY KEY (a, b)); CREATE INDEX i ON t (v);
         INSERT INTO t VALUES ('x', 1, 2)",
    );
    let (before, rows) = (schema(&device), device.dump());
    let replica = Replica::prepare(&device.path).unwrap();
    replica.track_all().unwrap();
    assert_ne!(schema(&device), before);
    replica.untrack_all(false).unwrap();
    assert_eq!((schema(&device), device.dump()), (before, rows));
}

#[test]
fn unsent_changes_are_not_given_up_by_accident() {
    let mut server = MemoryServer::default();
    let mut device = TestDevice::tracked("CREATE TABLE t (id INTEGER PRIMARY KEY)", &mut server);
    device.sync(&mut server);
    device.write("INSERT INTO t VALUES (1)").unwrap();
    assert!(matches!(device.replica().untrack_all(false), Err(Error::UnsentChanges { count: 1 })));
    device.replica().untrack_all(true).unwrap();
    assert!(matches!(Replica::open(&device.path), Err(Error::NotTracked { .. })));
}

#[test]
fn a_file_of_another_format_is_refused_before_anything_else_is_read() {
    let mut server = MemoryServer::default();
    let device = TestDevice::tracked("CREATE TABLE t (id INTEGER PRIMARY KEY)", &mut server);
    // A column that an older format names differently is not read.
    let rename = "ALTER TABLE warren_column RENAME COLUMN position TO place";
    device.app.execute_batch(rename).unwrap();
    let check = |format: i64, code: ErrorCode, expected: &str| {
        let set = "UPDATE warren_meta SET value = ?1 WHERE key = 'format'";
        device.app.execute(set, [format]).unwrap();
        for opened in [Replica::open(&device.path), Replica::prepare(&device.path)] {
            let error = opened.unwrap_err();
            assert_eq!((error.code(), &*error.to_string()), (code, expected));
        }
    };
    check(3, ErrorCode::FormatTooNew, "file format 3 is too new (newest supported: 2)");
    check(1, ErrorCode::FormatTooOld, "file format 1 is no longer supported (oldest supported: 2)");
}

#[test]
fn what_cannot_be_tracked_is_named_with_the_reason() {
    let device = TestDevice::new(
        "CREATE TABLE good (id INTEGER PRIMARY KEY); CREATE TABLE keyless (v);
         CREATE TABLE nullkey (k TEXT PRIMARY KEY); INSERT INTO nullkey VALUES (NULL);
         CREATE VIEW seen AS SELECT 1; CREATE VIRTUAL TABLE search USING fts5(x)",
    );
    let replica = Replica::prepare(&device.path).unwrap();
    for name in ["keyless", "seen", "search", "search_data", "absent", "warren_meta"] {
        let refused = replica.track(&[name.to_owned()]);
        assert!(matches!(refused, Err(Error::Untrackable { .. })), "{name}: {refused:?}");
    }
    let (tracked, refused) = replica.track_all().unwrap();
    let names: Vec<_> = tracked.iter().map(|tracked| tracked.table.as_str()).collect();
    assert_eq!((names, refused.len()), (vec!["good", "nullkey"], 2));
}

#[test]
fn rows_from_before_tracking_lose_to_every_tracked_change() {
    let schema =
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 'old'), (2, 'old')";
    let mut server = MemoryServer::default();
    let mut first = TestDevice::tracked(schema, &mut server);
    first.write("UPDATE t SET v = 'new' WHERE id = 1; DELETE FROM t WHERE id = 2").unwrap();
    first.sync(&mut server);
    // Another old copy of the same data is tracked later: its rows are not news.
    let second = TestDevice::tracked(schema, &mut server);
    second.sync(&mut server);
    first.sync(&mut server);
    for device in [&first, &second] {
        assert_eq!(device.texts("SELECT v FROM t"), ["new"]);
    }
}

#[test]
fn tracking_again_is_no_change() {
    let mut server = MemoryServer::default();
    let device = TestDevice::tracked(
        "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)",
        &mut server,
    );
    device.sync(&mut server);
    let again = device.replica().track(&["T".to_owned()]).unwrap();
    assert!(again[0].already_tracked);
    assert_eq!(device.sync(&mut server).sent_count, 0);
}

#[test]
fn one_table_can_be_untracked_and_tracked_again() {
    let schema =
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v); CREATE TABLE u (id INTEGER PRIMARY KEY)";
    let mut server = MemoryServer::default();
    let mut devices = [0, 1].map(|_| TestDevice::tracked(schema, &mut server));
    devices[0].write("INSERT INTO t VALUES (1, 'a')").unwrap();
    devices[0].replica().untrack(&["t".to_owned()], devices[0].clock_ms).unwrap();
    devices[0].sync(&mut server);
    devices[1].sync(&mut server);
    assert_eq!(devices[1].texts("SELECT v FROM t"), ["a"], "made before it was untracked");
    devices[1].write("UPDATE t SET v = 'b'; INSERT INTO t VALUES (2, 'c')").unwrap();
    devices[1].sync(&mut server);
    devices[0].sync(&mut server);
    assert_eq!(devices[0].texts("SELECT v FROM t"), ["a"], "not tracked, not touched");
    devices[0].replica().track(&["t".to_owned()]).unwrap();
    devices[0].sync(&mut server);
    devices[1].sync(&mut server);
    for device in &devices {
        assert_eq!(device.texts("SELECT v FROM t"), ["b", "c"]);
    }
}

/// A browser's pages share their only connection with Warren.
#[test]
fn a_temp_table_of_a_tracked_name_stops_a_sync_and_takes_no_change() {
    let schema = "CREATE TABLE t (id INTEGER PRIMARY KEY, v)";
    let mut server = MemoryServer::default();
    let mut first = TestDevice::tracked(schema, &mut server);
    let second = TestDevice::tracked(schema, &mut server);
    first.write("INSERT INTO t VALUES (1, 'one')").unwrap();
    first.sync(&mut server);
    let now_ms = || first.clock_ms + 1;
    let replica = second.replica();
    let mut sync = || {
        let progress = &mut |_| {};
        let options = SyncContext { create_missing: false, now_ms: &now_ms, progress };
        replica.sync(&mut server, options)
    };
    for shadow in ["TABLE T (id INTEGER PRIMARY KEY, v)", "VIEW t AS SELECT 1 AS id, 2 AS v"] {
        let db = replica.connection();
        db.execute_batch(&format!("CREATE TEMP {shadow}")).unwrap();
        let refused = sync().unwrap_err();
        assert!(
            matches!(&refused, Error::Untrackable { table, .. } if table.to_lowercase() == "t")
        );
        let (key, value) = ([Value::Integer(1)], Value::Null);
        let edit = CellEdit { table: "t", key: &key, column: "v", value, seen: Value::Null };
        let edit = replica.edit(&edit, now_ms());
        assert!(matches!(edit, Err(Error::Untrackable { .. })), "{edit:?}");
        assert_eq!(replica.status().unwrap().unsent_count, 0, "it can still be asked");
        let (kind, _) = shadow.split_once(' ').unwrap();
        db.execute_batch(&format!("DROP {kind} temp.t")).unwrap();
    }
    let report = sync().unwrap();
    assert!(report.in_sync);
    assert_eq!(second.texts("SELECT id || v FROM main.t"), ["1one"]);
    replica.connection().execute_batch("CREATE TEMP TABLE new (id INTEGER PRIMARY KEY)").unwrap();
    replica.connection().execute_batch("CREATE TABLE main.new (id INTEGER PRIMARY KEY)").unwrap();
    let refused = replica.track(&["new".to_owned()]);
    assert!(matches!(refused, Err(Error::Untrackable { .. })), "{refused:?}");
}
