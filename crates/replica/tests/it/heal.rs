//! Tests that a sync finds and repairs the losses of either side.

use protocol::ServerLoss;

use crate::support::{MemoryServer, TestDevice};

const SCHEMA: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)";

#[test]
fn a_server_that_was_restored_gets_back_what_it_lost() {
    let mut server = MemoryServer::default();
    let mut devices = [0, 1].map(|_| TestDevice::tracked(SCHEMA, &mut server));
    devices[0].write("INSERT INTO t VALUES (1, 'a')").unwrap();
    devices[0].sync(&mut server);
    let backup = server.messages.clone();
    devices[0].write("INSERT INTO t VALUES (2, 'b')").unwrap();
    devices[0].sync(&mut server);
    server.messages = backup;
    devices[1].write("INSERT INTO t VALUES (3, 'c')").unwrap();
    devices[1].sync(&mut server);
    let report = devices[0].sync(&mut server);
    assert!(report.reconciled && report.in_sync, "{report:?}");
    devices[1].sync(&mut server);
    assert_eq!(devices[1].texts("SELECT id || v FROM t"), ["1a", "2b", "3c"]);
}

#[test]
fn what_the_server_has_lost_is_known_until_it_has_it_again() {
    let (mut server, devices) = in_step();
    let loss = ServerLoss {
        repaired_ms: 1,
        missing_count: Some(3),
        devices_away: vec!["phone".to_owned()],
    };
    server.loss = Some(loss.clone());
    let known = |device: &TestDevice| device.replica().remote().unwrap().unwrap().server_loss;
    assert_eq!(devices[0].sync(&mut server).server_loss, Some(loss.clone()));
    assert_eq!(known(&devices[0]), Some(loss));
    // The second device sends the missing messages.
    server.messages.truncate(80);
    assert_eq!(devices[1].sync(&mut server).server_loss, None);
    devices[0].sync(&mut server);
    assert_eq!(known(&devices[0]), None);
}

/// Creates two devices in sync, with a hundred rows.
fn in_step() -> (MemoryServer, [TestDevice; 2]) {
    let mut server = MemoryServer::default();
    let mut devices = [0, 1].map(|_| TestDevice::tracked(SCHEMA, &mut server));
    let rows: Vec<_> = (0..100).map(|id| format!("({id}, 'row {id}')")).collect();
    devices[0].write(&format!("INSERT INTO t VALUES {}", rows.join(", "))).unwrap();
    for device in [&devices[0], &devices[1], &devices[0]] {
        device.sync(&mut server);
    }
    (server, devices)
}

fn check_in_step(server: &mut MemoryServer, devices: &[TestDevice; 2], rows: usize) {
    for device in devices {
        let report = device.sync(server);
        assert!(report.in_sync && !report.reconciled, "{report:?}");
    }
    assert_eq!(devices[0].dump(), devices[1].dump());
    assert_eq!(devices[0].dump().len(), rows);
    assert_eq!(server.messages.len(), rows + 2, "and two declarations of the table");
}

#[test]
fn messages_that_the_server_lost_come_back() {
    let (mut server, devices) = in_step();
    for place in [70, 40, 3] {
        server.messages.remove(place);
    }
    let requests = server.requests;
    let report = devices[1].sync(&mut server);
    assert!(report.in_sync && report.reconciled, "{report:?}");
    assert_eq!((report.sent_count, report.received_count), (3, 0));
    assert!(server.requests - requests < 8, "{} requests", server.requests - requests);
    check_in_step(&mut server, &devices, 100);
}

#[test]
fn messages_that_were_deleted_from_the_device_come_back() {
    let (mut server, devices) = in_step();
    let sql = "DELETE FROM warren_message WHERE id IN (4, 50, 51, 101)";
    assert_eq!(devices[1].app.execute(sql, []).unwrap(), 4);
    let report = devices[1].sync(&mut server);
    assert!(report.in_sync && report.reconciled, "{report:?}");
    assert_eq!((report.sent_count, report.received_count), (0, 4));
    check_in_step(&mut server, &devices, 100);
}

#[test]
fn a_recorded_fingerprint_that_is_wrong_is_made_anew() {
    let (mut server, devices) = in_step();
    let sql = "UPDATE warren_meta SET value = 7 WHERE key = 'messages_count'";
    devices[1].app.execute(sql, []).unwrap();
    let report = devices[1].sync(&mut server);
    assert!(report.in_sync && report.reconciled, "{report:?}");
    assert_eq!((report.sent_count, report.received_count), (0, 0));
    check_in_step(&mut server, &devices, 100);
}

#[test]
fn a_device_that_was_restored_gets_back_what_it_lost() {
    let (mut server, mut devices) = in_step();
    let backup = std::fs::read(&devices[1].path).unwrap();
    devices[1].write("INSERT INTO t VALUES (200, 'after the backup')").unwrap();
    devices[0].write("UPDATE t SET v = 'changed meanwhile' WHERE id = 5").unwrap();
    for device in [&devices[1], &devices[0], &devices[1]] {
        device.sync(&mut server);
    }
    // The backup is written in place: to the system it is the same file, so it continues as the
    // same device.
    devices[1].app.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    std::fs::write(&devices[1].path, backup).unwrap();
    devices[1].app = TestDevice::open(&devices[1].path).app;
    devices[1].write("INSERT INTO t VALUES (201, 'after the restore')").unwrap();
    let report = devices[1].sync(&mut server);
    assert!(report.in_sync, "{report:?}");
    devices[0].sync(&mut server);
    assert_eq!(devices[0].dump(), devices[1].dump());
    let ours = devices[1].texts("SELECT v FROM t WHERE id IN (5, 200, 201) ORDER BY id");
    assert_eq!(ours, ["changed meanwhile", "after the backup", "after the restore"]);
}

#[test]
fn a_comparison_that_is_cut_off_is_made_again() {
    for lost in 1..8 {
        let (mut server, devices) = in_step();
        server.messages.truncate(60);
        devices[1]
            .app
            .execute("DELETE FROM warren_message WHERE id BETWEEN 20 AND 28", [])
            .unwrap();
        server.lose_answer = Some(server.requests + lost);
        let first = devices[1].try_sync(&mut server, false);
        server.lose_answer = None;
        if first.is_err() {
            assert!(devices[1].sync(&mut server).in_sync, "answer {lost} lost");
        }
        check_in_step(&mut server, &devices, 100);
    }
}
