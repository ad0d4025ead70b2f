//! Tests that replicas that have seen the same messages hold the same rows, with intact foreign
//! keys.

use proptest::prelude::*;

use crate::support::{MORNING_MS, MemoryServer, TestDevice};
use replica::VisibilityOverrideKind;

const SCHEMA: &str = "
    CREATE TABLE artist (id INTEGER PRIMARY KEY, name TEXT NOT NULL, note TEXT);
    CREATE TABLE album (id INTEGER PRIMARY KEY, title TEXT, artist INTEGER REFERENCES artist);
    CREATE TABLE line (album INTEGER NOT NULL REFERENCES album ON DELETE CASCADE, place INTEGER NOT NULL,
                       note TEXT, PRIMARY KEY (album, place)) WITHOUT ROWID;
    CREATE TABLE pair (a INTEGER NOT NULL REFERENCES artist, b INTEGER NOT NULL REFERENCES album,
                       PRIMARY KEY (a, b));
    CREATE TABLE person (id INTEGER PRIMARY KEY, boss INTEGER REFERENCES person ON DELETE SET NULL);
    CREATE TABLE tag (id INTEGER PRIMARY KEY, label TEXT UNIQUE, color TEXT);
";

#[derive(Clone, Debug)]
enum ConvergenceStep {
    Write { device: usize, sql: String },
    Skew { device: usize, ms: i64 },
    ServerSkew { ms: i64 },
    Sync { device: usize, lose: bool },
}

fn any_write() -> impl Strategy<Value = String> {
    let id = 1..4i64;
    let text = prop::sample::select(vec!["a", "b", "c"]);
    let table = prop::sample::select(vec!["artist", "album", "person", "tag"]);
    prop_oneof![
        3 => (id.clone(), text.clone()).prop_map(|(i, t)| format!("INSERT INTO artist (id, name) VALUES ({i}, '{t}')")),
        2 => (id.clone(), text.clone()).prop_map(|(i, t)| format!("UPDATE artist SET note = '{t}' WHERE id = {i}")),
        2 => (id.clone(), text.clone()).prop_map(|(i, t)| format!("UPDATE artist SET name = '{t}' WHERE id = {i}")),
        4 => (table, id.clone()).prop_map(|(t, i)| format!("DELETE FROM {t} WHERE id = {i}")),
        3 => (id.clone(), id.clone(), text.clone()).prop_map(|(i, a, t)| format!("INSERT INTO album VALUES ({i}, '{t}', {a})")),
        2 => (id.clone(), id.clone()).prop_map(|(i, a)| format!("UPDATE album SET artist = {a} WHERE id = {i}")),
        1 => (id.clone(), id.clone()).prop_map(|(i, j)| format!("UPDATE album SET id = {j} WHERE id = {i}")),
        2 => (id.clone(), id.clone(), text.clone()).prop_map(|(i, p, t)| format!("INSERT OR REPLACE INTO line VALUES ({i}, {p}, '{t}')")),
        1 => (id.clone(), id.clone()).prop_map(|(i, p)| format!("DELETE FROM line WHERE album = {i} AND place = {p}")),
        2 => (id.clone(), id.clone()).prop_map(|(a, b)| format!("INSERT INTO pair VALUES ({a}, {b})")),
        2 => (id.clone(), id.clone()).prop_map(|(a, b)| format!("DELETE FROM pair WHERE a = {a} AND b = {b}")),
        2 => (id.clone(), id.clone()).prop_map(|(i, b)| format!("INSERT INTO person VALUES ({i}, {b})")),
        2 => (id.clone(), id.clone()).prop_map(|(i, b)| format!("UPDATE person SET boss = {b} WHERE id = {i}")),
        3 => (id.clone(), text.clone(), text.clone()).prop_map(|(i, l, c)| format!("INSERT OR REPLACE INTO tag VALUES ({i}, '{l}', '{c}')")),
        2 => (id, text).prop_map(|(i, l)| format!("UPDATE OR REPLACE tag SET label = '{l}' WHERE id = {i}")),
        1 => Just("DELETE FROM pair".to_owned()),
    ]
}

const YEAR_MS: i64 = 365 * 86_400_000;

/// Generates a change of a clock: by minutes, days, or twenty years back to ten ahead.
fn any_jump() -> impl Strategy<Value = i64> {
    prop_oneof![
        -600_000i64..600_000,
        -9 * 86_400_000i64..9 * 86_400_000,
        -20 * YEAR_MS..10 * YEAR_MS
    ]
}

fn any_step(devices: usize) -> impl Strategy<Value = ConvergenceStep> {
    prop_oneof![
        6 => (0..devices, any_write()).prop_map(|(device, sql)| ConvergenceStep::Write { device, sql }),
        1 => (0..devices, -100_000i64..100_000).prop_map(|(device, ms)| ConvergenceStep::Skew { device, ms }),
        1 => (0..devices, any_jump()).prop_map(|(device, ms)| ConvergenceStep::Skew { device, ms }),
        1 => any_jump().prop_map(|ms| ConvergenceStep::ServerSkew { ms }),
        2 => (0..devices, prop::bool::weighted(0.2)).prop_map(|(device, lose)| ConvergenceStep::Sync { device, lose }),
    ]
}

fn check(count: usize, steps: &[ConvergenceStep], last_order: &[usize]) {
    let mut server = MemoryServer::default();
    let mut devices: Vec<_> =
        (0..count).map(|_| TestDevice::tracked(SCHEMA, &mut server)).collect();
    for step in steps {
        match step {
            // Programs also run writes that the local constraints refuse.
            ConvergenceStep::Write { device, sql } => drop(devices[*device].write(sql)),
            ConvergenceStep::Skew { device, ms } => {
                devices[*device].clock_ms = devices[*device].clock_ms.saturating_add_signed(*ms);
            }
            ConvergenceStep::ServerSkew { ms } => {
                server.now_ms.set(MORNING_MS.saturating_add_signed(*ms));
            }
            ConvergenceStep::Sync { device, lose } => {
                server.lose_answer = lose.then_some(server.requests + 1);
                drop(devices[*device].try_sync(&mut server, false));
                server.lose_answer = None;
            }
        }
    }
    // The server's clock is right again; those of the devices stay wrong.
    server.now_ms.set(MORNING_MS + 20_000);
    for device in last_order.iter().chain(last_order) {
        devices[*device].sync(&mut server);
    }
    let expected = devices[0].dump();
    for (number, device) in devices.iter().enumerate() {
        assert_eq!(device.dump(), expected, "device {number} differs from device 0");
        assert_eq!(device.violations(), 0, "device {number} has broken foreign keys");
        let status = device.replica().status().unwrap();
        assert_eq!(status.fingerprint(), server.fingerprint());
        assert_eq!((status.unsent_count, status.pending_count), (0, 0));
    }
}

fn orders(count: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..count).collect::<Vec<_>>()).prop_shuffle()
}

proptest! {
    // Each test runs 256 histories, or the number in PROPTEST_CASES.
    #[test]
    fn two_replicas_converge(steps in prop::collection::vec(any_step(2), 1..40)) {
        for order in [[0, 1], [1, 0]] {
            check(2, &steps, &order);
        }
    }

    #[test]
    fn five_replicas_converge(
        steps in prop::collection::vec(any_step(5), 1..60), order in orders(5),
    ) {
        check(5, &steps, &order);
    }
}

/// Creates two equal devices, lets each write, and checks that both orders of syncing give
/// `expected`.
fn check_two(before: &str, left: &str, right: &str, expected: &[&str]) {
    for order in [[0, 1, 0], [1, 0, 1]] {
        let mut server = MemoryServer::default();
        let mut devices = [0, 1].map(|_| TestDevice::tracked(SCHEMA, &mut server));
        devices[0].write(before).unwrap();
        devices[0].sync(&mut server);
        devices[1].sync(&mut server);
        devices[0].write(left).unwrap();
        devices[1].clock_ms = devices[0].clock_ms + 1;
        devices[1].write(right).unwrap();
        for device in order {
            devices[device].sync(&mut server);
        }
        for device in &devices {
            assert_eq!(device.dump(), expected, "order {order:?}");
            assert_eq!(device.violations(), 0);
        }
    }
}

#[test]
fn edits_of_different_cells_of_a_row_both_stay() {
    check_two(
        "INSERT INTO artist VALUES (1, 'a', 'x')",
        "UPDATE artist SET name = 'b'",
        "UPDATE artist SET note = 'y'",
        &["artist: Integer(1), Text([98]), Text([121])"],
    );
}

#[test]
fn the_later_edit_of_a_cell_wins() {
    check_two(
        "INSERT INTO artist VALUES (1, 'a', NULL)",
        "UPDATE artist SET name = 'b'",
        "UPDATE artist SET name = 'c'",
        &["artist: Integer(1), Text([99]), Null"],
    );
}

#[test]
fn a_later_write_revives_a_deleted_row_whole() {
    check_two(
        "INSERT INTO artist VALUES (1, 'a', 'x')",
        "DELETE FROM artist",
        "UPDATE artist SET note = 'y'",
        &["artist: Integer(1), Text([97]), Text([121])"],
    );
}

#[test]
fn a_parent_that_another_device_refers_to_is_kept() {
    check_two(
        "INSERT INTO artist VALUES (1, 'a', NULL); INSERT INTO artist VALUES (2, 'b', NULL)",
        "DELETE FROM artist",
        "INSERT INTO album VALUES (1, 't', 1)",
        &["album: Integer(1), Text([116]), Integer(1)", "artist: Integer(1), Text([97]), Null"],
    );
}

#[test]
fn of_two_rows_with_one_unique_value_the_newer_is_visible_and_the_other_waits() {
    let mut server = MemoryServer::default();
    let mut devices = [0, 1].map(|_| TestDevice::tracked(SCHEMA, &mut server));
    devices[0].write("INSERT INTO tag VALUES (1, 'a', 'red')").unwrap();
    devices[1].clock_ms += 5;
    devices[1].write("INSERT INTO tag VALUES (2, 'a', 'blue')").unwrap();
    for device in [0, 1, 0] {
        devices[device].sync(&mut server);
    }
    for device in &devices {
        assert_eq!(device.texts("SELECT color FROM tag"), ["blue"]);
        let overrides = device.replica().status().unwrap().visibility_overrides;
        assert_eq!(overrides.len(), 1);
        assert!(
            overrides[0].kind == VisibilityOverrideKind::Displaced
                && overrides[0].key.contains('1'),
            "{overrides:?}"
        );
    }
    devices[1].write("UPDATE tag SET label = 'b' WHERE id = 2").unwrap();
    for device in [1, 0] {
        devices[device].sync(&mut server);
    }
    for device in &devices {
        assert_eq!(device.texts("SELECT color FROM tag ORDER BY id"), ["red", "blue"]);
    }
}
