//! Tests with a real database, Chinook: 11 tables, composite keys, a table that has only its key,
//! foreign keys.

use std::path::Path;

use replica::{AccountCheck, Replica, SyncContext};
use rusqlite::Connection;

use crate::support::{MORNING_MS, MemoryServer, TestDevice, dump, shape};

fn chinook() -> TestDevice {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/chinook.sqlite");
    let mut device = TestDevice::new("");
    std::fs::copy(source, &device.path).unwrap_or_else(|e| panic!("{source}: {e}"));
    device.app = Connection::open(&device.path).unwrap();
    device
}

fn clone(path: &Path, server: &mut MemoryServer) -> TestDevice {
    let replica = Replica::create(path).unwrap();
    let request = protocol::RegisterDeviceRequest { name: "clone".into(), ..Default::default() };
    replica.sign_in(server, "http://server", &request, AccountCheck::ServerAndLogin).unwrap();
    let options = SyncContext {
        create_missing: true,
        now_ms: &|| MORNING_MS + 10_000,
        progress: &mut |_| {},
    };
    let report = replica.sync(server, options).unwrap();
    assert!(report.in_sync);
    TestDevice::open(path)
}

#[test]
fn a_clone_has_every_table_and_row_and_both_go_on() {
    let mut server = MemoryServer::default();
    let mut original = chinook();
    let replica = Replica::prepare(&original.path).unwrap();
    let (tracked, refused) = replica.track_all().unwrap();
    assert_eq!((tracked.len(), refused.len()), (11, 0));
    assert_eq!(tracked.iter().map(|table| table.rows_count).sum::<u64>(), 15_607);
    original.sign_in(&mut server);
    let report = original.sync(&mut server);
    assert_eq!(
        (report.sent_count, report.in_sync),
        (15_607 + 11, true),
        "a row each, a declaration each"
    );

    let mut copy = clone(&original.path.with_file_name("clone.db"), &mut server);
    assert_eq!(original.dump(), dump(&copy.app));
    assert_eq!(copy.violations(), 0);
    assert_eq!(shape(&original.app), shape(&copy.app));
    let indexes =
        "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql NOT NULL ORDER BY name";
    assert_eq!(original.texts(indexes), copy.texts(indexes));

    original.write("UPDATE Track SET Name = 'Näme' WHERE TrackId = 1").unwrap();
    original.write("DELETE FROM PlaylistTrack WHERE PlaylistId = 1").unwrap();
    copy.write("INSERT INTO Artist VALUES (276, 'New'); UPDATE Invoice SET Total = 1.5 WHERE InvoiceId = 7").unwrap();
    copy.sync(&mut server);
    original.sync(&mut server);
    copy.sync(&mut server);
    assert_eq!(original.dump(), copy.dump());
    assert_eq!(copy.texts("SELECT Name FROM Track WHERE TrackId = 1"), ["Näme"]);
}
