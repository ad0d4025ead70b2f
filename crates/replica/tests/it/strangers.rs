//! Tests of messages from untrusted devices: whatever they contain, every sync ends, and devices
//! that have seen the same messages hold the same rows.

use crdt::{CellWrite, Change, Message, NodeId, Timestamp, Value};
use proptest::prelude::*;
use replica::VisibilityOverrideKind;

use crate::support::{MORNING_MS, MemoryServer, TestDevice};

/// Schema with every kind of constraint that SQLite has.
const SCHEMA: &str = "
    CREATE TABLE room (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, floor INTEGER DEFAULT 1);
    CREATE TABLE booking (
        id TEXT NOT NULL COLLATE NOCASE PRIMARY KEY,
        room INTEGER REFERENCES room,
        days INTEGER NOT NULL CHECK (days BETWEEN 1 AND 3),
        who TEXT,
        active INTEGER NOT NULL DEFAULT 1,
        UNIQUE (room, days) ON CONFLICT REPLACE
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX one_active ON booking (who) WHERE active;
    CREATE UNIQUE INDEX one_name ON room (lower(name), floor % 2);
    CREATE TABLE mark (a REAL, b INTEGER, note TEXT, PRIMARY KEY (a, b)) STRICT;
";

fn any_cell_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => (0i64..5).prop_map(Value::Integer),
        4 => prop::sample::select(vec!["a", "A", "b", "1", ""]).prop_map(|t| Value::Text(t.into())),
        1 => Just(Value::Null),
        1 => prop::sample::select(vec![1.0, f64::NAN, -0.0, 2.5]).prop_map(Value::Real),
        1 => Just(Value::Blob(vec![1])),
    ]
}

fn any_change() -> impl Strategy<Value = Change> {
    let table =
        prop::sample::select(vec!["room", "booking", "booking", "mark", "Booking", "other"]);
    let key = prop_oneof![
        6 => (1i64..4).prop_map(|id| vec![Value::Integer(id)]),
        6 => prop::sample::select(vec!["a", "A", "b"]).prop_map(|id| vec![Value::Text(id.into())]),
        4 => (1i64..3, 1i64..3).prop_map(|(a, b)| {
            vec![Value::Real(f64::from(i32::try_from(a).unwrap())), Value::Integer(b)]
        }),
        2 => prop::collection::vec(any_cell_value(), 0..4),
    ];
    let column = prop::sample::select(vec![
        "name", "floor", "room", "days", "who", "active", "note", "id", "none",
    ]);
    let cells = prop::collection::vec((column, any_cell_value()), 0..6);
    let whole = (any_cell_value(), 1i64..5, any_cell_value(), 0i64..2).prop_map(|values| {
        let (room, days, who, active) = values;
        let (days, active) = (Value::Integer(days), Value::Integer(active));
        vec![("room", room), ("days", days), ("who", who), ("active", active)]
    });
    let cells = prop_oneof![cells, whole];
    (table, key, cells, prop::bool::weighted(0.2)).prop_map(|(table, key, cells, is_delete)| {
        let table = table.to_owned();
        if is_delete {
            return Change::Delete { table, key, replaced: [].into() };
        }
        let cells =
            cells.into_iter().map(|(column, value)| CellWrite::new(column, value)).collect();
        Change::Write { table, key, cells, replaced_tombstone: None }
    })
}

fn message((place, change): (usize, Change)) -> Message {
    let millis = MORNING_MS + 1_000 + place as u64;
    let timestamp = Timestamp::new(millis, 0, NodeId(7)).unwrap();
    Message { timestamp, content: change.encode() }
}

/// Returns the visible rows of a device that gets the messages in this order, in `portions` of
/// these sizes.
fn shown_after(messages: &[Message], portions: &[usize]) -> Vec<String> {
    let mut server = MemoryServer::default();
    let device = TestDevice::tracked(SCHEMA, &mut server);
    let (mut rest, mut portions) = (messages, portions.iter().cycle());
    while !rest.is_empty() {
        let (portion, later) = rest.split_at(rest.len().min(*portions.next().unwrap()));
        server.messages.extend_from_slice(portion);
        rest = later;
        device.sync(&mut server);
    }
    assert!(device.sync(&mut server).in_sync);
    device.dump()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn what_is_shown_depends_on_the_set_alone(
        changes in prop::collection::vec(any_change(), 1..30),
        (order, portions) in (any::<u64>(), prop::collection::vec(1usize..12, 1..4)),
    ) {
        let messages: Vec<_> = changes.into_iter().enumerate().map(message).collect();
        let mut shuffled = messages.clone();
        shuffled.sort_by_key(|m| (m.timestamp.millis() ^ order).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let at_once = shown_after(&messages, &[messages.len()]);
        prop_assert_eq!(&at_once, &shown_after(&shuffled, &portions));
        prop_assert_eq!(&at_once, &shown_after(&messages, &[1]));
    }
}

/// Syncs the devices until each has everything.
fn sync_all(devices: &[&TestDevice], server: &mut MemoryServer) {
    for _ in 0..3 {
        for device in devices {
            device.sync(server);
        }
    }
}

/// One device takes a room; the other moves a booking into it, with a value that the first one
/// refuses.
#[test]
fn a_row_that_its_table_refuses_displaces_nobody() {
    let schema = "CREATE TABLE booking (id INTEGER PRIMARY KEY, room TEXT UNIQUE,
                                        days INTEGER CHECK (days > 0))";
    // The other device's program is newer, and allows values that this one refuses.
    let newer = schema.replace("days > 0", "days > -9");
    let mut server = MemoryServer::default();
    let mut ada = TestDevice::tracked(schema, &mut server);
    let mut ben = TestDevice::tracked(&newer, &mut server);
    ada.write("INSERT INTO booking VALUES (1, 'blue', 2), (2, 'red', 2)").unwrap();
    sync_all(&[&ada, &ben], &mut server);
    ben.clock_ms += 100;
    ben.write("DELETE FROM booking WHERE id = 1").unwrap();
    ben.write("UPDATE booking SET room = 'blue', days = 0 WHERE id = 2").unwrap();
    ada.clock_ms += 200;
    ada.write("UPDATE booking SET days = 3 WHERE id = 1").unwrap();
    ben.clock_ms += 200;
    ben.write("UPDATE booking SET days = -1 WHERE id = 2").unwrap();
    sync_all(&[&ada, &ben], &mut server);
    assert_eq!(ada.texts("SELECT room || days FROM booking"), ["blue3"]);
    let overrides = ada.replica().status().unwrap().visibility_overrides;
    assert_eq!(
        (overrides[0].key.as_str(), overrides[0].kind),
        ("2", VisibilityOverrideKind::Constraint)
    );
    let report = ada.sync(&mut server);
    assert_eq!(
        report.visibility_override_counts[&VisibilityOverrideKind::Constraint],
        1,
        "{report:?}"
    );

    // The row is shown once it is valid.
    ben.clock_ms += 500;
    ben.write("UPDATE booking SET days = 1, room = 'green' WHERE id = 2").unwrap();
    sync_all(&[&ben, &ada], &mut server);
    assert_eq!(ada.texts("SELECT room FROM booking ORDER BY id"), ["blue", "green"]);
}

#[test]
fn tables_of_one_name_with_other_keys_stop_nobody() {
    let mut server = MemoryServer::default();
    let one =
        "CREATE TABLE item (id INTEGER PRIMARY KEY, note TEXT); CREATE TABLE good (id PRIMARY KEY)";
    let two = "CREATE TABLE item (shop TEXT NOT NULL, id INTEGER NOT NULL, note TEXT,
                                  PRIMARY KEY (shop, id)); CREATE TABLE good (id PRIMARY KEY)";
    let mut ada = TestDevice::tracked(one, &mut server);
    let mut ben = TestDevice::tracked(two, &mut server);
    ada.write("INSERT INTO item VALUES (1, 'a'), (2, 'b'); INSERT INTO good VALUES (1)").unwrap();
    ben.write("INSERT INTO item VALUES ('x', 1, 'c'); INSERT INTO good VALUES (2)").unwrap();
    sync_all(&[&ada, &ben], &mut server);
    ada.write("DELETE FROM item WHERE id = 1").unwrap();
    ben.write("DELETE FROM item").unwrap();
    ben.write("INSERT INTO item VALUES ('y', 1, 'd')").unwrap();
    sync_all(&[&ada, &ben], &mut server);
    assert_eq!(ada.texts("SELECT note FROM item"), ["b"]);
    assert_eq!(ben.texts("SELECT note FROM item"), ["d"]);
    for device in [&ada, &ben] {
        assert_eq!(device.texts("SELECT count(*) || '' FROM good"), ["2"]);
        let report = device.sync(&mut server);
        assert_eq!(
            (
                report.in_sync,
                report.visibility_override_counts[&VisibilityOverrideKind::InvalidKey]
            ),
            (true, 1),
            "{report:?}"
        );
    }
    // The table gets the other device's key, and shows the rows that waited.
    ada.app.execute_batch("DROP TABLE item").unwrap();
    ada.app.execute_batch(two.split(';').next().unwrap()).unwrap();
    let replica = ada.replica();
    replica.untrack(&["item".into()], ada.clock_ms).unwrap();
    replica.track(&["item".into()]).unwrap();
    drop(replica);
    ada.sync(&mut server);
    assert_eq!(ada.texts("SELECT note FROM item"), ["d"]);
}

#[test]
fn triggers_that_refuse_stop_no_sync() {
    let schema = "CREATE TABLE item (id INTEGER PRIMARY KEY, note TEXT)";
    let mut server = MemoryServer::default();
    let mut ada = TestDevice::tracked(schema, &mut server);
    let ben = TestDevice::tracked(schema, &mut server);
    ben.app
        .execute_batch(
            "CREATE TRIGGER no_update AFTER UPDATE ON item BEGIN SELECT RAISE(ABORT, 'no'); END;
             CREATE TRIGGER no_delete BEFORE DELETE ON item BEGIN SELECT RAISE(ABORT, 'no'); END;
             CREATE TRIGGER no_log AFTER INSERT ON item BEGIN INSERT INTO missing VALUES (1); END;",
        )
        .unwrap();
    for sql in [
        "INSERT INTO item VALUES (1, 'a'), (2, 'b')",
        "UPDATE item SET note = 'c' WHERE id = 1",
        "DELETE FROM item WHERE id = 2",
    ] {
        ada.write(sql).unwrap();
        sync_all(&[&ada, &ben], &mut server);
        assert_eq!(ada.dump(), ben.dump(), "{sql}");
    }
}

#[test]
fn a_table_that_only_its_program_can_write_to_stays_as_it_is() {
    let schema =
        "CREATE TABLE item (id INTEGER PRIMARY KEY, note TEXT); CREATE TABLE good (id PRIMARY KEY)";
    let mut server = MemoryServer::default();
    let mut ada = TestDevice::tracked(schema, &mut server);
    let ben = TestDevice::tracked(schema, &mut server);
    let index = "CREATE INDEX by_sound ON item (soundex_of(note))";
    // The index is created as its own program would, which has the function.
    let flags = rusqlite::functions::FunctionFlags::SQLITE_DETERMINISTIC
        | rusqlite::functions::FunctionFlags::SQLITE_UTF8;
    ben.app.create_scalar_function("soundex_of", 1, flags, |_| Ok(1)).unwrap();
    ben.app.execute_batch(index).unwrap();
    ada.write("INSERT INTO item VALUES (1, 'a'); INSERT INTO good VALUES (1)").unwrap();
    ada.sync(&mut server);
    let report = ben.sync(&mut server);
    assert_eq!(report.schema_conflicts[0].table, "item");
    assert!(report.schema_conflicts[0].reason.contains("soundex_of"), "{report:?}");
    assert_eq!(ben.texts("SELECT count(*) || '' FROM good"), ["1"]);
    ben.app.execute_batch("DROP INDEX by_sound").unwrap();
    assert!(ben.sync(&mut server).schema_conflicts.is_empty());
    assert_eq!(ben.texts("SELECT note FROM item"), ["a"]);
}
