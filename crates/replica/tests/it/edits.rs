//! Tests of edits that include the value their user saw: a value that the user had not seen is a
//! lost edit, on all devices.

use crdt::Value;
use protocol::ErrorCode;
use replica::{CellEdit, EditOutcome};

use crate::support::{MemoryServer, TestDevice, meet};

const SCHEMA: &str = "
    CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL, weight REAL, at_most INTEGER,
                       CHECK (length(text) < 100));";

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// Replaces the value that the user saw in a cell of row 1.
fn edit(device: &mut TestDevice, column: &str, (seen, value): (Value, Value)) -> EditOutcome {
    device.clock_ms += 1_000;
    let edit = CellEdit { table: "Note", key: &[Value::Integer(1)], column, value, seen };
    device.replica().edit(&edit, device.clock_ms).unwrap()
}

fn pair(server: &mut MemoryServer) -> [TestDevice; 2] {
    let mut devices = [0, 1].map(|_| TestDevice::tracked(SCHEMA, server));
    devices[0].write("INSERT INTO note VALUES (1, 'old', 2.0, 7)").unwrap();
    devices[0].sync(server);
    devices[1].sync(server);
    devices
}

/// Creates two devices: a note of bob's arrived while a form of ada's was open, which shows `old`.
fn overtaken(server: &mut MemoryServer) -> [TestDevice; 2] {
    let [mut ada, mut bob] = pair(server);
    bob.write("UPDATE note SET text = 'of bob'").unwrap();
    bob.sync(server);
    ada.sync(server);
    ada.clock_ms = bob.clock_ms;
    [ada, bob]
}

/// Returns the values of the lost edits, which every device lists in the same way.
fn lost(devices: &[TestDevice]) -> Vec<String> {
    let list = |device: &TestDevice| -> Vec<_> {
        let conflicts = device.replica().conflicts().unwrap().into_iter();
        conflicts
            .map(|conflict| (conflict.id, conflict.lost.value.expect("a cell was lost")))
            .collect()
    };
    let first = list(&devices[0]);
    for device in &devices[1..] {
        assert_eq!(list(device), first);
    }
    first.into_iter().map(|(_, value)| value).collect()
}

#[test]
fn typing_over_what_arrived_meanwhile_lists_it_as_lost() {
    let mut server = MemoryServer::default();
    let [mut ada, bob] = overtaken(&mut server);
    assert_eq!(edit(&mut ada, "text", (text("old"), text("of ada"))), EditOutcome::Unseen);
    assert_eq!(ada.replica().conflicts().unwrap().len(), 1, "before the next sync, too");
    let devices = [ada, bob];
    meet(&devices, &mut server);
    for device in &devices {
        assert_eq!(device.texts("SELECT text FROM note"), ["of ada"]);
    }
    assert_eq!(lost(&devices), ["'of bob'"]);
    let [mut ada, bob] = devices;
    let id = ada.replica().conflicts().unwrap()[0].id.clone();
    ada.clock_ms += 1_000;
    ada.replica().dismiss(&id, ada.clock_ms).unwrap();
    let devices = [ada, bob];
    meet(&devices, &mut server);
    assert_eq!(lost(&devices), Vec::<String>::new());
}

#[test]
fn who_saw_what_is_there_replaces_it_knowingly() {
    let mut server = MemoryServer::default();
    let [mut ada, bob] = overtaken(&mut server);
    assert_eq!(edit(&mut ada, "TEXT", (text("of bob"), text("of ada"))), EditOutcome::Written);
    assert_eq!(edit(&mut ada, "text", (text("of ada"), text("again"))), EditOutcome::Written);
    // The cell already has the value that both typed.
    assert_eq!(edit(&mut ada, "text", (text("old"), text("again"))), EditOutcome::Written);
    // In some programs every number is a float, or every whole number is an integer.
    let number = |value: f64| Value::Real(value);
    assert_eq!(edit(&mut ada, "at_most", (number(7.0), number(8.0))), EditOutcome::Written);
    let seen = (Value::Integer(2), Value::Integer(3));
    assert_eq!(edit(&mut ada, "weight", seen), EditOutcome::Written);
    let devices = [ada, bob];
    meet(&devices, &mut server);
    assert_eq!(lost(&devices), Vec::<String>::new());
    let row = devices[1].texts("SELECT text || weight || at_most FROM note");
    assert_eq!(row, ["again3.08"]);
}

#[test]
fn two_windows_of_one_device_lose_nothing_in_silence() {
    let mut server = MemoryServer::default();
    let [mut ada, bob] = pair(&mut server);
    assert_eq!(edit(&mut ada, "text", (text("old"), text("left"))), EditOutcome::Written);
    assert_eq!(edit(&mut ada, "text", (text("old"), text("right"))), EditOutcome::Unseen);
    assert_eq!(ada.replica().conflicts().unwrap().len(), 1);
    let third = TestDevice::tracked(SCHEMA, &mut server);
    let devices = [ada, bob, third];
    meet(&devices, &mut server);
    assert_eq!(lost(&devices), ["'left'"], "the others list it as well, and a new device");
}

#[test]
fn what_nobody_wrote_is_seen_by_nobody() {
    let mut server = MemoryServer::default();
    let [mut ada, bob] = pair(&mut server);
    assert_eq!(edit(&mut ada, "text", (text("never"), text("mine"))), EditOutcome::Unseen);
    let devices = [ada, bob];
    meet(&devices, &mut server);
    assert_eq!(lost(&devices), ["'old'"]);
}

#[test]
fn an_edit_of_a_row_that_is_gone_writes_nothing() {
    let mut server = MemoryServer::default();
    let [mut ada, mut bob] = pair(&mut server);
    bob.write("DELETE FROM note").unwrap();
    bob.sync(&mut server);
    ada.sync(&mut server);
    assert_eq!(edit(&mut ada, "text", (text("old"), text("mine"))), EditOutcome::Missing);
    assert_eq!(ada.texts("SELECT text FROM note"), Vec::<String>::new());
    assert_eq!(ada.sync(&mut server).sent_count, 0);
}

#[test]
fn an_edit_is_under_the_tables_own_rules() {
    let mut server = MemoryServer::default();
    let [ada, _] = pair(&mut server);
    let try_edit = |table: &str, column: &str, value: Value| {
        let key = &[Value::Integer(1)];
        let edit = CellEdit { table, key, column, value, seen: text("old") };
        ada.replica().edit(&edit, ada.clock_ms).map_err(|error| error.code())
    };
    assert_eq!(
        try_edit("note", "text", text(&"x".repeat(100))),
        Err(ErrorCode::ConstraintViolated)
    );
    assert_eq!(try_edit("note", "text", Value::Null), Err(ErrorCode::ConstraintViolated));
    assert_eq!(try_edit("note", "none", Value::Null), Err(ErrorCode::Untrackable));
    assert_eq!(try_edit("nothing", "text", Value::Null), Err(ErrorCode::Untrackable));
    assert_eq!(ada.texts("SELECT text FROM note"), ["old"]);
    assert_eq!(ada.sync(&mut server).sent_count, 0);
}
