//! Tests that every device lists deleted rows with their last values.

use replica::{DeletedRow, Replica};

use crate::support::{MemoryServer, TestDevice};

const SCHEMA: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT)";

fn deleted(device: &TestDevice) -> Vec<DeletedRow> {
    device.replica().deleted_rows("T", 10, device.clock_ms).unwrap()
}

/// Returns the rows' keys and texts, as literals, the newest deletion first.
fn texts(rows: &[DeletedRow]) -> Vec<(&str, Vec<&str>)> {
    rows.iter()
        .map(|row| {
            let texts = row.cells.iter().skip(1).map(|(_, value)| value.as_str());
            (row.key.as_str(), texts.collect())
        })
        .collect()
}

#[test]
fn every_device_tells_the_last_values_of_what_was_deleted() {
    let mut server = MemoryServer::default();
    let mut devices = [0, 1].map(|_| TestDevice::tracked(SCHEMA, &mut server));
    devices[0].write("INSERT INTO t VALUES (1, 'x', 'y'), (2, 'p', 'q'), (3, 'u', 'v')").unwrap();
    devices[0].sync(&mut server);
    devices[1].sync(&mut server);
    assert_eq!(deleted(&devices[1]), []);

    devices[1].write("UPDATE t SET b = 'z' WHERE id = 1").unwrap();
    devices[1].sync(&mut server);
    devices[1].clock_ms += 1_000;
    devices[1].write("DELETE FROM t WHERE id = 1").unwrap();
    devices[1].clock_ms += 1_000;
    devices[1].write("DELETE FROM t WHERE id = 2").unwrap();
    let expected = [("2", vec!["'p'", "'q'"]), ("1", vec!["'x'", "'z'"])];
    assert_eq!(texts(&deleted(&devices[1])), expected, "before it is synced");
    devices[1].sync(&mut server);
    devices[0].sync(&mut server);
    assert_eq!(texts(&deleted(&devices[0])), expected, "elsewhere");

    // A row that is written again is no longer deleted.
    devices[0].clock_ms += 5_000;
    devices[0].write("INSERT INTO t VALUES (2, 'p', 'q')").unwrap();
    assert_eq!(texts(&deleted(&devices[0])), expected[1..]);
    assert_eq!(devices[0].replica().deleted_rows("t", 0, devices[0].clock_ms).unwrap(), []);
    assert_eq!(devices[0].replica().deleted_rows("none", 9, devices[0].clock_ms).unwrap(), []);
}

#[test]
fn what_was_recorded_is_found_without_a_server() {
    let mut device = TestDevice::new(SCHEMA);
    Replica::prepare(&device.path).unwrap().track_all().unwrap();
    device.write("INSERT INTO t VALUES (1, 'x', 'y'), (2, 'p', 'q')").unwrap();
    device.replica().record_history(device.clock_ms).unwrap();
    assert_eq!(device.replica().history("t", &["1".into()]).unwrap().len(), 1);
    device.write("DELETE FROM t WHERE id = 1").unwrap();
    assert_eq!(texts(&deleted(&device)), [("1", vec!["'x'", "'y'"])]);
}
