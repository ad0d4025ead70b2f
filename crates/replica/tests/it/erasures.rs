//! Tests that erased values are gone: from the server's messages, and from every byte of every
//! device's file.

use std::fs;

use crdt::{CHUNK_BYTES, Change, EncryptionMode, Fingerprint, Message, NodeId, SealKey, Timestamp};
use protocol::{EraseRequest, ErrorCode};
use replica::{ErasureTarget, Replica, SyncReport};
use zeroize::Zeroizing;

use crate::support::{MemoryServer, TestDevice};

const SCHEMA: &str = "
    CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, text, code TEXT NOT NULL DEFAULT 'c');
    CREATE TABLE tag (name TEXT PRIMARY KEY, color TEXT UNIQUE);";
const SECRET: &str = "correct horse battery staple";

/// Creates devices of an account, end-to-end encrypted or not; the second device has a WAL.
fn devices(server: &mut MemoryServer, is_sealed: bool) -> [TestDevice; 3] {
    let devices = [0, 1, 2].map(|_| TestDevice::tracked(SCHEMA, server));
    if is_sealed {
        let phrase = devices[0].replica().create_recovery_phrase().unwrap();
        for device in &devices[1..] {
            device.replica().set_recovery_phrase(&phrase).unwrap();
        }
        devices[0].replica().confirm_new_account().unwrap();
    }
    devices[1].app.pragma_update(None, "journal_mode", "wal").unwrap();
    devices
}

fn meet(devices: &[TestDevice], server: &mut MemoryServer) -> Vec<SyncReport> {
    let mut reports = Vec::new();
    for device in devices.iter().chain(devices) {
        let report = device.sync(server);
        assert!(report.in_sync, "{report:?}");
        assert_eq!((report.unscrubbed.as_deref(), report.unerased_count), (None, 0));
        reports.push(report);
    }
    let dump = devices[0].dump();
    for device in devices {
        assert_eq!(device.dump(), dump);
    }
    reports
}

/// Replaces the contents of messages as the server does, all or none. Returns `false` if a message
/// is not the expected one.
fn replace(server: &mut MemoryServer, request: &EraseRequest) -> bool {
    assert_eq!(EncryptionMode::from_bytes(&request.key_id), server.form);
    let mut messages = server.messages.clone();
    for erasure in &request.erasures {
        let timestamp = Timestamp::from_bytes(&erasure.timestamp).unwrap();
        let known = messages.iter_mut().find(|message| message.timestamp == timestamp);
        let Some(known) = known else { return false };
        let hash = Fingerprint::from_message(timestamp, &known.content).digest_bytes();
        if hash[..] != erasure.hash[..] && known.content != erasure.content {
            return false;
        }
        known.content = erasure.content.clone();
    }
    server.messages = messages;
    true
}

/// Erases as `warren erase` does. Returns the number of messages that changed on the server.
fn erase(device: &TestDevice, server: &mut MemoryServer, target: ErasureTarget<'_>) -> usize {
    let requests = device.replica().erasure_requests(target).unwrap();
    for request in &requests {
        assert!(replace(server, request));
    }
    requests.iter().map(|request| request.erasures.len()).sum()
}

fn cell<'a>(key: &'a [String], column: &'a str) -> ErasureTarget<'a> {
    ErasureTarget::Cell { table: "note", key, column }
}

fn key(literal: &str) -> Vec<String> {
    vec![literal.to_owned()]
}

fn holds(bytes: &[u8], marker: &[u8]) -> bool {
    bytes.windows(marker.len()).any(|window| window == marker)
}

/// Checks whether the device's file, its journal or its WAL contains these bytes anywhere.
fn file_holds(device: &TestDevice, marker: &str) -> bool {
    ["", "-wal", "-journal"].iter().any(|suffix| {
        let mut path = device.path.clone().into_os_string();
        path.push(suffix);
        holds(&fs::read(path).unwrap_or_default(), marker.as_bytes())
    })
}

fn server_holds(server: &MemoryServer, marker: &str) -> bool {
    server.messages.iter().any(|message| holds(&message.content, marker.as_bytes()))
}

#[test]
fn a_leaked_value_is_erased_everywhere_and_all_else_stays() {
    for is_sealed in [false, true] {
        let mut server = MemoryServer::default();
        let mut devices = devices(&mut server, is_sealed);
        let insert = format!("INSERT INTO note VALUES (1, 'title', '{SECRET}', 'kept')");
        devices[0].write(&insert).unwrap();
        meet(&devices, &mut server);
        devices[1].write("UPDATE note SET text = 'changed', title = 'other title'").unwrap();
        devices[2].write("UPDATE note SET code = 'of another device'").unwrap();
        meet(&devices, &mut server);
        assert!(is_sealed || devices.iter().all(|device| file_holds(device, SECRET)));
        assert_eq!(server_holds(&server, SECRET), !is_sealed);
        let dump = devices[0].dump();

        assert_eq!(erase(&devices[2], &mut server, cell(&key("1"), "TEXT")), 1);
        let reports = meet(&devices, &mut server);
        assert_eq!(
            reports.iter().map(|report| report.erased_count).sum::<u64>(),
            3,
            "by each, once"
        );
        assert!(!server_holds(&server, SECRET));
        let new = TestDevice::new("");
        let replica = Replica::create(&new.path).unwrap();
        if let Some(phrase) = devices[0].replica().recovery_phrase().unwrap() {
            replica.set_recovery_phrase(&phrase).unwrap();
        }
        new.sign_in(&mut server);
        new.sync(&mut server);
        for device in devices.iter().chain([&new]) {
            assert!(!file_holds(device, SECRET), "sealed: {is_sealed}");
            assert_eq!(device.dump(), dump);
            let history = device.replica().history("note", &key("1")).unwrap();
            let first = history[0].cells.iter().map(|cell| cell.value.as_str());
            assert_eq!(first.collect::<Vec<_>>(), ["'title'", "'(erased)'", "'kept'"]);
            assert_eq!(device.replica().conflicts().unwrap(), []);
        }
        assert_eq!(erase(&devices[0], &mut server, cell(&key("1"), "text")), 0, "nothing is left");
        // The devices continue to work.
        devices[0].clock_ms += 1_000;
        devices[0].write("UPDATE note SET text = 'new'").unwrap();
        meet(&devices, &mut server);
        assert_eq!(devices[2].texts("SELECT text FROM note"), ["new"]);
    }
}

#[test]
fn pages_that_another_program_reads_are_written_anew_at_a_later_sync() {
    let mut server = MemoryServer::default();
    let mut devices = devices(&mut server, false);
    devices[0].write(&format!("INSERT INTO note VALUES (1, '', '{SECRET}', '')")).unwrap();
    meet(&devices, &mut server);
    devices[0].write("UPDATE note SET text = ''").unwrap();
    meet(&devices, &mut server);
    erase(&devices[0], &mut server, cell(&key("1"), "text"));
    let reader = &devices[1];
    reader.app.execute_batch("BEGIN; SELECT count(*) FROM note").unwrap();
    let report = reader.sync(&mut server);
    assert_eq!((report.in_sync, report.erased_count), (true, 1));
    assert!(report.unscrubbed.unwrap().contains("next sync"));
    reader.app.execute_batch("COMMIT").unwrap();
    assert_eq!(reader.sync(&mut server).unscrubbed, None);
    assert!(!file_holds(reader, SECRET));
    meet(&devices, &mut server);
}

#[test]
fn what_the_table_shows_is_not_erased() {
    let mut server = MemoryServer::default();
    let mut devices = devices(&mut server, false);
    devices[0].write(&format!("INSERT INTO note VALUES (1, '', '{SECRET}', '')")).unwrap();
    meet(&devices, &mut server);
    let replica = devices[0].replica();
    let key = key("1");
    for target in [cell(&key, "text"), ErasureTarget::Row { table: "note", key: &key }] {
        let refused = replica.erasure_requests(target).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::StillShown);
    }
    let nothing = [
        cell(&key, "none"),
        ErasureTarget::Row { table: "none", key: &key },
        ErasureTarget::Rejected,
        ErasureTarget::Again,
    ];
    for target in nothing {
        assert_eq!(replica.erasure_requests(target).unwrap(), []);
    }
}

#[test]
fn a_deleted_row_is_erased_with_its_key_and_its_large_values() {
    for is_sealed in [false, true] {
        let mut server = MemoryServer::default();
        let mut devices = devices(&mut server, is_sealed);
        // The value has more than one chunk, of which one belongs to the other row, too.
        let large = |end: &str| {
            let same = "s".repeat(CHUNK_BYTES);
            format!("'{same}{}'", end.repeat(100_000 / end.len()))
        };
        let (one, two) = (large("the large secret"), large("not secret"));
        let sql = format!(
            "INSERT INTO tag VALUES ('{SECRET}', 'red'), ('kept', 'blue');
             INSERT INTO note VALUES (1, '', {one}, ''), (2, '', {two}, '')"
        );
        devices[0].write(&sql).unwrap();
        meet(&devices, &mut server);
        devices[1]
            .write("DELETE FROM tag WHERE color = 'red'; DELETE FROM note WHERE id = 1")
            .unwrap();
        meet(&devices, &mut server);
        let tag = key(SECRET);
        let tag = ErasureTarget::Row { table: "tag", key: &tag };
        assert_eq!(erase(&devices[0], &mut server, tag), 2, "the insert and the delete");
        let note = key("1");
        let note = ErasureTarget::Row { table: "note", key: &note };
        assert_eq!(erase(&devices[0], &mut server, note), 3, "and the part that is its alone");
        meet(&devices, &mut server);
        for device in &devices {
            for marker in [SECRET, "the large secret"] {
                assert!(!file_holds(device, marker), "{marker}, sealed: {is_sealed}");
            }
            assert_eq!(device.texts("SELECT name FROM tag"), ["kept"]);
            assert_eq!(device.texts("SELECT substr(text, -10) FROM note"), ["not secret"]);
            assert_eq!(device.replica().history("tag", &key(SECRET)).unwrap(), []);
        }
        assert!(!server_holds(&server, SECRET));
        // A new row may have the same key.
        devices[2].clock_ms += 5_000;
        devices[2].write("INSERT INTO note VALUES (1, 'again', '', '')").unwrap();
        meet(&devices, &mut server);
        assert_eq!(devices[0].texts("SELECT title FROM note WHERE id = 1"), ["again"]);
    }
}

#[test]
fn edits_of_a_device_that_was_away_meet_what_was_erased() {
    let mut server = MemoryServer::default();
    let mut devices = devices(&mut server, false);
    devices[0].write(&format!("INSERT INTO note VALUES (1, 't', '{SECRET}', 'c')")).unwrap();
    meet(&devices, &mut server);
    devices[0].write("UPDATE note SET text = 'changed'").unwrap();
    devices[0].sync(&mut server);
    // A device that was away has later edits: of another cell, and of the same cell from its old
    // value.
    devices[2].clock_ms += 60_000;
    devices[2].write("UPDATE note SET title = 'of who was away', text = text || '!'").unwrap();
    assert_eq!(erase(&devices[0], &mut server, cell(&key("1"), "text")), 1);
    meet(&devices, &mut server);
    // The device's own edit contains the secret again, as a value of its own.
    assert_eq!(devices[0].texts("SELECT text FROM note"), [format!("{SECRET}!")]);
    devices[0].clock_ms += 120_000;
    devices[0].write("UPDATE note SET text = 'changed again'").unwrap();
    meet(&devices, &mut server);
    assert!(erase(&devices[0], &mut server, cell(&key("1"), "text")) > 0);
    meet(&devices, &mut server);
    for device in &devices {
        assert_eq!(
            device.texts("SELECT title || text FROM note"),
            ["of who was awaychanged again"]
        );
        assert!(!file_holds(device, SECRET));
    }
}

#[test]
fn a_restored_server_is_told_and_erased_again() {
    for is_sealed in [false, true] {
        let mut server = MemoryServer::default();
        let mut devices = devices(&mut server, is_sealed);
        let sql = format!(
            "INSERT INTO note VALUES (1, 't', '{SECRET}', 'c'), (2, '{SECRET}', '{SECRET}', 'c')"
        );
        devices[0].write(&sql).unwrap();
        devices[0].sync(&mut server);
        devices[0].write("UPDATE note SET title = '', text = ''").unwrap();
        meet(&devices, &mut server);
        let backup = server.messages.clone();
        erase(&devices[0], &mut server, cell(&key("1"), "text"));
        erase(&devices[0], &mut server, cell(&key("2"), "text"));
        devices[0].sync(&mut server);
        devices[1].sync(&mut server);
        // The third device has not received the erasures; on the restored server it erases
        // something else.
        server.messages = backup;
        erase(&devices[2], &mut server, cell(&key("2"), "title"));
        assert!(devices[2].sync(&mut server).in_sync);
        for device in &devices[..2] {
            let report = device.sync(&mut server);
            assert_eq!((report.in_sync, report.unerased_count), (false, 2));
            assert!(!file_holds(device, &format!("{SECRET}{SECRET}")));
        }
        assert_eq!(erase(&devices[1], &mut server, ErasureTarget::Again), 2);
        meet(&devices, &mut server);
        for device in &devices {
            assert!(!file_holds(device, SECRET));
            assert_eq!(device.texts("SELECT title || text FROM note"), ["", ""]);
        }
        assert!(!server_holds(&server, SECRET));
    }
}

/// A server, or an attacker with another key, replaces a message.
#[test]
fn of_an_encrypted_account_nobody_without_the_phrase_erases_anything() {
    let mut server = MemoryServer::default();
    let mut devices = devices(&mut server, true);
    devices[0].write("INSERT INTO note VALUES (1, 'title', 'text', 'c')").unwrap();
    devices[0].sync(&mut server);
    let place = server.messages.len() - 1;
    let before = server.messages[place].clone();
    let timestamp = before.timestamp;
    let other_key = SealKey::new(Zeroizing::new([7; 32]));
    let forged =
        [Change::Erased.encode(), other_key.seal(timestamp, &Change::Erased.encode(), [0; 8])];
    for content in forged {
        server.messages[place] = Message { timestamp, content };
        let report = devices[0].sync(&mut server);
        assert_eq!(
            (report.in_sync, report.erased_count, report.rejected.count() > 0),
            (false, 0, true)
        );
        assert_eq!(devices[0].texts("SELECT title || text FROM note"), ["titletext"]);
    }
    server.messages[place] = before;
    meet(&devices, &mut server);
}

/// Messages that no device can read are erased from the vault.
#[test]
fn what_was_refused_is_erased() {
    let mut server = MemoryServer::default();
    let mut devices = devices(&mut server, true);
    devices[0].write("INSERT INTO note VALUES (1, 'title', 'text', 'c')").unwrap();
    devices[0].sync(&mut server);
    let timestamp = Timestamp::new(5, 0, NodeId(7)).unwrap();
    let content = SECRET.to_owned().into();
    server.messages.push(Message { timestamp, content });
    for device in &devices {
        assert_eq!(device.sync(&mut server).rejected.count(), 1);
    }
    assert_eq!(erase(&devices[1], &mut server, ErasureTarget::Rejected), 1);
    meet(&devices, &mut server);
    for device in &devices {
        assert_eq!(device.replica().status().unwrap().rejected_count, 0);
        assert!(!file_holds(device, SECRET));
    }
    assert_eq!(erase(&devices[1], &mut server, ErasureTarget::Rejected), 0);
}

/// Devices write to a few rows and erase any of them, at random, with syncs in between.
#[test]
fn whatever_is_erased_when_devices_hold_the_same_rows() {
    for seed in 0..60_u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = move |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let mut server = MemoryServer::default();
        let mut devices = devices(&mut server, seed % 2 == 1);
        devices[0].write("INSERT INTO note VALUES (1, 'a', 'b', 'c'), (2, 'a', 'b', 'c')").unwrap();
        meet(&devices, &mut server);
        for step in 0..40 {
            let device = usize::try_from(next(3)).unwrap();
            let row = 1 + next(3);
            devices[device].clock_ms += next(50);
            let sql = match next(7) {
                0 => format!("INSERT OR REPLACE INTO note VALUES ({row}, {step}, {step}, 'n')"),
                1 => format!("UPDATE note SET text = 'x{step}' WHERE id = {row}"),
                2 => format!("UPDATE note SET title = 'y{step}', text = '' WHERE id = {row}"),
                3 => format!("DELETE FROM note WHERE id = {row}"),
                4 => format!("INSERT OR REPLACE INTO tag VALUES ('{row}', 'color {}')", next(2)),
                5 => {
                    devices[device].sync(&mut server);
                    continue;
                }
                _ => {
                    devices[device].sync(&mut server);
                    let key = key(&row.to_string());
                    let column = ["title", "text", "code"][usize::try_from(next(3)).unwrap()];
                    let row = ErasureTarget::Row { table: "note", key: &key };
                    let target = if next(2) == 0 { cell(&key, column) } else { row };
                    let requests = devices[device].replica().erasure_requests(target);
                    for request in requests.unwrap_or_default() {
                        assert!(replace(&mut server, &request), "seed {seed}");
                    }
                    continue;
                }
            };
            devices[device].write(&sql).unwrap();
        }
        meet(&devices, &mut server);
        let new = TestDevice::tracked(SCHEMA, &mut server);
        if let Some(phrase) = devices[0].replica().recovery_phrase().unwrap() {
            new.replica().set_recovery_phrase(&phrase).unwrap();
        }
        new.sync(&mut server);
        assert_eq!(new.dump(), devices[0].dump(), "seed {seed}");
        let ids = |device: &TestDevice| -> Vec<_> {
            device.replica().conflicts().unwrap().into_iter().map(|one| one.id).collect()
        };
        for device in &devices {
            assert_eq!(ids(device), ids(&new), "seed {seed}");
        }
    }
}
