//! Tests that a sync reports lost edits, and that no device reports an edit again that was
//! dismissed.

use protocol::ErrorCode;
use replica::VisibilityOverrideKind;

use crate::support::{MemoryServer, TestDevice};

const SCHEMA: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT);
    CREATE TABLE tagged (x TEXT, y TEXT, PRIMARY KEY (x, y)) WITHOUT ROWID;";
const BEFORE: &str = "INSERT INTO t VALUES (1, 'x', 'y'); INSERT INTO tagged VALUES ('a', 'b')";

/// Edits of the same rows by three devices, each later than the one before, and the number of edits
/// that are lost then.
const CASES: &[([&str; 3], usize)] = &[
    (["UPDATE t SET a = '0'", "UPDATE t SET a = '1'", "SELECT 1"], 1),
    (["UPDATE t SET a = '0'", "UPDATE t SET a = '1'", "UPDATE t SET a = '2', b = '2'"], 2),
    (["UPDATE t SET a = '0', b = '0'", "UPDATE t SET a = '1'", "UPDATE t SET b = '2'"], 2),
    (["UPDATE t SET a = '0'", "DELETE FROM t", "SELECT 1"], 1),
    (["UPDATE t SET a = '0'", "UPDATE t SET b = '1'", "DELETE FROM t"], 2),
    (["DELETE FROM t", "UPDATE t SET a = '1'", "SELECT 1"], 1),
    (["DELETE FROM t", "UPDATE t SET a = '1'", "UPDATE t SET a = '2'"], 2),
    (
        [
            "INSERT INTO tagged VALUES ('c', 'd')",
            "INSERT INTO tagged VALUES ('c', 'd'); DELETE FROM tagged WHERE x = 'a'",
            "INSERT OR REPLACE INTO tagged VALUES ('a', 'b')",
        ],
        1,
    ),
];

fn three_devices(server: &mut MemoryServer) -> [TestDevice; 3] {
    let mut devices = [0, 1, 2].map(|_| TestDevice::tracked(SCHEMA, server));
    devices[0].write(BEFORE).unwrap();
    meet(&devices, server);
    devices
}

/// Syncs until all devices have everything. Returns the highest number of lost edits that a sync
/// reported.
fn meet(devices: &[TestDevice; 3], server: &mut MemoryServer) -> u64 {
    let reports = [0, 1, 2, 0, 1].map(|device| devices[device].sync(server));
    assert!(reports.iter().all(|report| report.in_sync));
    reports.iter().map(|report| report.conflicts_count).max().unwrap()
}

#[test]
fn what_is_dismissed_is_in_no_list_and_nothing_else_changes() {
    for (edits, lost) in CASES {
        for by in [0, 1, 2] {
            let mut server = MemoryServer::default();
            let mut devices = three_devices(&mut server);
            for (place, edit) in edits.iter().enumerate() {
                devices[place].clock_ms += 1_000 * place as u64;
                devices[place].write(edit).unwrap();
            }
            assert_eq!(meet(&devices, &mut server), *lost as u64, "{edits:?}");
            let shown = devices[0].dump();
            let mut left = *lost;
            while left > 0 {
                let replica = devices[by].replica();
                let conflicts = replica.conflicts().unwrap();
                assert_eq!(conflicts.len(), left, "{edits:?}: {conflicts:?}");
                let now_ms = devices[by].clock_ms + 5_000;
                replica.dismiss(&conflicts[0].id, now_ms).unwrap();
                left -= 1;
                assert_eq!(devices[by].replica().conflicts().unwrap().len(), left, "{edits:?}");
            }
            assert_eq!(meet(&devices, &mut server), 0, "what was dismissed is not told");
            for device in &devices {
                assert_eq!(device.replica().conflicts().unwrap(), [], "{edits:?}");
                assert_eq!(device.dump(), shown, "{edits:?}");
            }
            // Later edits of the same cells are visible, and lost, as usual.
            for device in &mut devices {
                device.clock_ms += 60_000;
            }
            devices[0].write("INSERT OR REPLACE INTO t VALUES (1, 'again', 'again')").unwrap();
            meet(&devices, &mut server);
            assert_eq!(devices[1].replica().conflicts().unwrap(), []);
            devices[1].write("UPDATE t SET a = 'of 1'").unwrap();
            devices[2].write("UPDATE t SET a = 'of 2'").unwrap();
            assert_eq!(meet(&devices, &mut server), 1);
        }
    }
}

#[test]
fn a_sync_tells_of_lost_edits_once_and_of_none_where_everybody_knew() {
    let mut server = MemoryServer::default();
    let mut devices = three_devices(&mut server);
    for place in [0, 1, 2, 1, 0] {
        devices[place].clock_ms += 60_000;
        devices[place].write(&format!("UPDATE t SET a = 'known {place}'")).unwrap();
        assert_eq!(meet(&devices, &mut server), 0);
    }
    devices[0].write("UPDATE t SET a = 'of 0'").unwrap();
    devices[1].clock_ms += 60_000;
    devices[1].write("UPDATE t SET a = 'of 1'").unwrap();
    devices[0].sync(&mut server);
    assert_eq!(devices[1].sync(&mut server).conflicts_count, 1);
    assert_eq!(devices[1].sync(&mut server).conflicts_count, 0, "once");
    assert_eq!(devices[0].sync(&mut server).conflicts_count, 1, "who lost it hears of it, too");
    let new = TestDevice::tracked(SCHEMA, &mut server);
    assert_eq!(new.sync(&mut server).conflicts_count, 0, "a new device lost nothing");
    assert_eq!(new.replica().conflicts().unwrap().len(), 1);
}

const USERS: &str = "CREATE TABLE user (id TEXT PRIMARY KEY, email TEXT UNIQUE, age INTEGER)";

/// Creates two devices that give one e-mail address to two users; the first user is hidden.
fn devices_with_hidden_row(server: &mut MemoryServer) -> [TestDevice; 2] {
    let mut devices = [0, 1].map(|_| TestDevice::tracked(USERS, server));
    devices[1].clock_ms += 1_000;
    devices[0].write("INSERT INTO user VALUES ('a', 'ada@x.org', 36)").unwrap();
    devices[1].write("INSERT INTO user VALUES ('b', 'ada@x.org', 45)").unwrap();
    for device in [0, 1, 0] {
        devices[device].sync(server);
    }
    devices
}

#[test]
fn a_row_that_is_held_back_is_listed_and_shown_with_another_value() {
    let mut server = MemoryServer::default();
    let devices = devices_with_hidden_row(&mut server);
    let [row] = &devices[1].replica().hidden_rows().unwrap()[..] else { panic!("one is held") };
    assert_eq!(
        (row.table.as_str(), row.key.as_str(), row.kind),
        ("user", "'a'", VisibilityOverrideKind::Displaced)
    );
    assert_eq!(row.cells[0], ("email".into(), "'ada@x.org'".into()));
    assert_eq!(devices[0].replica().hidden_rows().unwrap()[0].id, row.id);
    let replica = devices[1].replica();
    let now_ms = devices[1].clock_ms + 5_000;
    for (column, value) in [("email", "ada@x.org"), ("age", "7"), ("none", "x")] {
        let refused = replica.resolve_hidden_row(&row.id, column, value, now_ms).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::ConstraintViolated, "{column}");
    }
    replica.resolve_hidden_row(&row.id[..5], "email", "ada@y.org", now_ms).unwrap();
    assert_eq!(replica.hidden_rows().unwrap(), []);
    for device in [1, 0, 1] {
        devices[device].sync(&mut server);
    }
    for device in &devices {
        let rows = device.texts("SELECT id || email || age FROM user ORDER BY id");
        assert_eq!(rows, ["aada@y.org36", "bada@x.org45"]);
        assert_eq!(device.replica().hidden_rows().unwrap(), []);
        assert_eq!(device.replica().conflicts().unwrap(), []);
    }
}

#[test]
fn a_row_that_is_held_back_is_let_go_on_all_devices() {
    let mut server = MemoryServer::default();
    let devices = devices_with_hidden_row(&mut server);
    let id = devices[0].replica().hidden_rows().unwrap()[0].id.clone();
    devices[0].replica().delete_hidden_row(&id, devices[0].clock_ms + 5_000).unwrap();
    assert_eq!(
        devices[0].replica().delete_hidden_row(&id, 0).unwrap_err().code(),
        ErrorCode::ConflictNotFound
    );
    for device in [0, 1, 0] {
        assert!(devices[device].sync(&mut server).in_sync);
    }
    for device in &devices {
        assert_eq!(device.texts("SELECT id FROM user"), ["b"]);
        assert_eq!(device.replica().hidden_rows().unwrap(), []);
        assert_eq!(device.replica().conflicts().unwrap(), []);
    }
}
