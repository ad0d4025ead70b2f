//! Tests of wrong clocks, of devices and of the server: no device waits, and no two devices differ.

use crdt::{CellWrite, Change, Message, NodeId, Timestamp, Value};

use crate::support::{MORNING_MS, MemoryServer, TestDevice};

const SCHEMA: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)";
const DAY_MS: u64 = 86_400_000;
const YEAR_MS: u64 = 365 * DAY_MS;

fn values(device: &TestDevice) -> Vec<String> {
    device.texts("SELECT id || v FROM t ORDER BY id")
}

/// Creates the message of another device's row, with a timestamp of the test's choice.
fn row(timestamp: Timestamp, id: i64, v: &str) -> Message {
    let cells = vec![CellWrite::new("v", Value::Text(v.into()))];
    let (table, key) = ("t".into(), vec![Value::Integer(id)]);
    let content = Change::Write { table, key, cells, replaced_tombstone: None }.encode();
    Message { timestamp, content }
}

#[test]
fn a_server_that_was_years_off_once_splits_nobody_and_stops_nobody() {
    for ahead_ms in [-20 * YEAR_MS.cast_signed(), 400_000, 10 * YEAR_MS.cast_signed()] {
        let mut server = MemoryServer::default();
        let mut devices = [0, 1, 2].map(|_| TestDevice::tracked(SCHEMA, &mut server));
        devices[0].write("INSERT INTO t VALUES (1, 'first')").unwrap();
        server.now_ms.set(MORNING_MS.saturating_add_signed(ahead_ms));
        devices[0].sync(&mut server);
        devices[1].sync(&mut server);
        devices[1].write("UPDATE t SET v = 'while wrong'").unwrap();
        devices[1].sync(&mut server);
        devices[2].sync(&mut server);
        server.now_ms.set(MORNING_MS + 10_000);
        devices[2].write("UPDATE t SET v = 'edited after'").unwrap();
        for device in [2, 0, 1] {
            assert!(devices[device].sync(&mut server).in_sync, "{ahead_ms}");
        }
        devices[0].write("INSERT INTO t VALUES (2, 'goes on')").unwrap();
        for device in [0, 1, 2] {
            assert!(devices[device].sync(&mut server).in_sync);
        }
        for device in &devices {
            assert_eq!(values(device), ["1edited after", "2goes on"], "{ahead_ms}");
        }
    }
}

#[test]
fn what_the_server_refuses_as_too_far_ahead_is_stamped_again_in_its_order() {
    let mut server = MemoryServer::default();
    let mut wrong = TestDevice::tracked(SCHEMA, &mut server);
    let mut right = TestDevice::tracked(SCHEMA, &mut server);
    wrong.clock_ms += 3 * YEAR_MS;
    wrong.write("INSERT INTO t VALUES (1, 'a'), (2, 'b')").unwrap();
    wrong.write("UPDATE t SET v = 'c' WHERE id = 1").unwrap();
    wrong.write("DELETE FROM t WHERE id = 2").unwrap();
    assert!(wrong.sync(&mut server).in_sync);
    right.sync(&mut server);
    right.clock_ms = MORNING_MS + 12_000;
    right.write("UPDATE t SET v = 'd' WHERE id = 1").unwrap();
    server.now_ms.set(MORNING_MS + 12_000);
    right.sync(&mut server);
    wrong.sync(&mut server);
    for device in [&wrong, &right] {
        assert_eq!(values(device), ["1d"], "the clock stepped back");
    }
    let latest = server.messages.iter().map(|message| message.timestamp.millis()).max();
    assert!(latest < Some(MORNING_MS + 400_000));
}

#[test]
fn a_full_counter_and_the_ends_of_time_stop_nobody() {
    let last = Timestamp::new(Timestamp::MILLIS_MAX, u16::MAX, NodeId(u64::MAX)).unwrap();
    let full = Timestamp::new(MORNING_MS + 299_000, u16::MAX, NodeId(9)).unwrap();
    for timestamp in [Timestamp::ZERO, full, last] {
        let mut server = MemoryServer::default();
        let mut devices = [0, 1].map(|_| TestDevice::tracked(SCHEMA, &mut server));
        devices[0].write("INSERT INTO t VALUES (2, 'mine')").unwrap();
        devices[0].sync(&mut server);
        server.messages.push(row(timestamp, 1, "strange"));
        for device in &devices {
            device.sync(&mut server);
        }
        for (number, device) in devices.iter_mut().enumerate() {
            device.write(&format!("INSERT INTO t VALUES (1{number}, 'own')")).unwrap();
            // A value with the last possible timestamp stays, because no edit can be later.
            device.write("UPDATE t SET v = 'edited' WHERE id = 1").unwrap();
            assert!(device.sync(&mut server).in_sync, "{timestamp}");
        }
        assert!(devices[0].sync(&mut server).in_sync);
        assert_eq!(values(&devices[0]), values(&devices[1]), "{timestamp}");
        let shown = values(&devices[0]);
        let expected = if timestamp == last { "1strange" } else { "1edited" };
        assert_eq!(shown.contains(&expected.to_owned()), timestamp != Timestamp::ZERO, "{shown:?}");
    }
}

#[test]
fn what_one_server_had_dated_years_ahead_stops_nobody_at_another() {
    let mut wrong = MemoryServer::default();
    let mut device = TestDevice::tracked(SCHEMA, &mut wrong);
    wrong.now_ms.set(MORNING_MS + 5 * YEAR_MS);
    device.write("INSERT INTO t VALUES (1, 'mine')").unwrap();
    let years_ahead = |place| Timestamp::new(MORNING_MS + 5 * YEAR_MS, place, NodeId(9)).unwrap();
    wrong.messages.extend([row(years_ahead(1), 2, "theirs"), row(years_ahead(2), 1, "edited")]);
    wrong.messages.push(Message { timestamp: years_ahead(3), content: vec![9].into() });
    device.sync(&mut wrong);
    device.write("INSERT INTO t VALUES (3, 'later')").unwrap();

    let mut right = MemoryServer::default();
    let other = TestDevice::tracked(SCHEMA, &mut right);
    assert!(device.sync(&mut right).in_sync);
    assert!(other.sync(&mut right).in_sync);
    for device in [&device, &other] {
        assert_eq!(values(device), ["1edited", "2theirs", "3later"]);
    }
}

#[test]
fn two_servers_in_turn_with_clocks_that_disagree() {
    let (mut ahead, mut behind) = (MemoryServer::default(), MemoryServer::default());
    let mut device = TestDevice::tracked(SCHEMA, &mut ahead);
    let other = TestDevice::tracked(SCHEMA, &mut ahead);
    ahead.now_ms.set(MORNING_MS + 5 * YEAR_MS);
    behind.now_ms.set(MORNING_MS - 5 * YEAR_MS);
    for round in 0..4 {
        device.clock_ms += 1_000;
        device.write(&format!("INSERT OR REPLACE INTO t VALUES (1, 'round {round}')")).unwrap();
        device.sync(&mut ahead);
        device.sync(&mut behind);
    }
    other.sync(&mut ahead);
    assert_eq!(values(&other), ["1round 3"]);
    assert_eq!(values(&device), ["1round 3"]);
}
