//! Tests of values that exceed one message: their chunks arrive first, and are joined when the
//! value is shown.

use std::fmt::Write as _;

use crdt::{CHUNK_BYTES, Change, Message};
use replica::VisibilityOverrideKind;

use crate::support::{MemoryServer, TestDevice};

const SCHEMA: &str = "CREATE TABLE file (name TEXT PRIMARY KEY, content, note)";
/// Upper limit that no message approaches: nginx lets a MiB through.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Returns SQL for `count` bytes, which differ for each `seed`.
fn bytes(count: usize, seed: u32) -> String {
    let mut hex = String::with_capacity(2 * count);
    let mut state = seed;
    while hex.len() < 2 * count {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        write!(hex, "{state:08x}").unwrap();
    }
    format!("x'{}'", &hex[..2 * count])
}

fn contents(device: &TestDevice) -> Vec<String> {
    device.texts(
        "SELECT name || typeof(content) || hex(content) || coalesce(note, '') FROM file ORDER BY name",
    )
}

fn part_count(server: &MemoryServer) -> usize {
    let parts = server.messages.iter().map(|message| Change::decode(&message.content).unwrap());
    parts.filter(|change| matches!(change, Change::Chunk { .. })).count()
}

fn check(phrase: bool) {
    let mut server = MemoryServer::default();
    let [mut one, mut two] = [0, 1].map(|_| TestDevice::tracked(SCHEMA, &mut server));
    if phrase {
        let phrase = one.replica().create_recovery_phrase().unwrap();
        two.replica().set_recovery_phrase(&phrase).unwrap();
    }
    let sizes = [CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES, 20 << 20];
    for (number, size) in sizes.into_iter().enumerate() {
        let blob = bytes(size, u32::try_from(number).unwrap());
        one.write(&format!("INSERT INTO file VALUES ('{number} blob', {blob}, 'n')")).unwrap();
        let text = format!("CAST({blob} AS TEXT)");
        one.write(&format!("INSERT INTO file VALUES ('{number} text', {text}, 'n')")).unwrap();
    }
    one.write("INSERT INTO file VALUES ('after', 'small', NULL)").unwrap();
    one.sync(&mut server);
    let largest = server.messages.iter().map(|message| message.content.len()).max().unwrap();
    assert!(largest < MESSAGE_BYTES_MAX, "{largest}");
    let report = two.sync(&mut server);
    assert!(
        report.in_sync && report.visibility_override_counts.values().sum::<u64>() == 0,
        "{report:?}"
    );
    assert_eq!(contents(&two), contents(&one));
    // Chunks that already exist are not sent again.
    let before = server.messages.len();
    two.write("UPDATE file SET content = content || x'00' WHERE name = '3 blob'").unwrap();
    two.write("UPDATE file SET note = 'm'").unwrap();
    two.write("INSERT INTO file SELECT 'copy of ' || name, content, note FROM file").unwrap();
    two.sync(&mut server);
    assert!(server.messages.len() - before <= 1 + 9 + 9 + 9, "{}", server.messages.len() - before);
    one.sync(&mut server);
    assert_eq!(contents(&two), contents(&one));
}

#[test]
fn large_values_arrive_as_they_are() {
    check(false);
}

#[test]
fn large_values_arrive_as_they_are_sealed() {
    check(true);
}

#[test]
fn large_values_of_before_are_part_of_the_baseline_and_seen_again_after_a_rebuild() {
    let mut server = MemoryServer::default();
    let one = TestDevice::new(SCHEMA);
    let blob = bytes(700_000, 1);
    one.app.execute_batch(&format!("INSERT INTO file VALUES ('a', {blob}, NULL)")).unwrap();
    replica::Replica::prepare(&one.path).unwrap().track_all().unwrap();
    one.sign_in(&mut server);
    assert_eq!(one.sync(&mut server).sent_count, 5, "the declaration, three parts, the row");
    let two = TestDevice::tracked(SCHEMA, &mut server);
    two.sync(&mut server);
    assert_eq!(contents(&two), contents(&one));
    // A migration does this: the triggers are gone for a while, and no value has changed.
    let rebuild = "CREATE TABLE new (name TEXT PRIMARY KEY, content, note);
                   INSERT INTO new SELECT * FROM file; DROP TABLE file;
                   ALTER TABLE new RENAME TO file";
    one.app.execute_batch(rebuild).unwrap();
    assert_eq!(one.sync(&mut server).sent_count, 0);
}

#[test]
fn a_row_waits_for_its_parts_and_is_shown_when_they_are_there() {
    let mut server = MemoryServer::default();
    let [mut one, mut two] = [0, 1].map(|_| TestDevice::tracked(SCHEMA, &mut server));
    one.write("INSERT INTO file VALUES ('a', 'first', NULL), ('b', 'other', NULL)").unwrap();
    one.sync(&mut server);
    two.sync(&mut server);
    one.write(&format!("UPDATE file SET content = {} WHERE name = 'a'", bytes(600_000, 1)))
        .unwrap();
    one.sync(&mut server);
    assert_eq!(part_count(&server), 3);
    let is_part =
        |message: &Message| matches!(Change::decode(&message.content), Ok(Change::Chunk { .. }));
    // The server withholds one of the chunks.
    let place = server.messages.iter().position(is_part).unwrap();
    let withheld = server.messages.remove(place);
    let report = two.sync(&mut server);
    assert_eq!(report.visibility_override_counts[&VisibilityOverrideKind::Incomplete], 1);
    assert_eq!(two.texts("SELECT name FROM file"), ["b"], "not as it was, and not half");
    two.write("UPDATE file SET note = 'goes on' WHERE name = 'b'").unwrap();
    two.sync(&mut server);
    server.messages.push(withheld);
    let report = two.sync(&mut server);
    assert_eq!(report.visibility_override_counts[&VisibilityOverrideKind::Incomplete], 0);
    one.sync(&mut server);
    assert_eq!(contents(&two), contents(&one));
}

#[test]
fn a_large_edit_that_lost_is_told_and_restored() {
    let mut server = MemoryServer::default();
    let [mut one, mut two] = [0, 1].map(|_| TestDevice::tracked(SCHEMA, &mut server));
    one.write("INSERT INTO file VALUES ('a', 'first', NULL)").unwrap();
    one.sync(&mut server);
    two.sync(&mut server);
    two.clock_ms += 1_000;
    one.write(&format!("UPDATE file SET content = {}", bytes(600_000, 1))).unwrap();
    two.write(&format!("UPDATE file SET content = {}", bytes(600_000, 2))).unwrap();
    let lost = contents(&one);
    for device in [&one, &two, &one] {
        device.sync(&mut server);
    }
    assert_eq!(contents(&one), contents(&two));
    let conflicts = one.replica().conflicts().unwrap();
    let [conflict] = &conflicts[..] else { panic!("{conflicts:?}") };
    assert_eq!(conflict.lost.value.as_deref(), Some("'(BLOB of 600000 bytes)'"));
    one.replica().restore(&conflict.id, one.clock_ms).unwrap();
    one.clock_ms += 2_000;
    one.sync(&mut server);
    two.sync(&mut server);
    assert_eq!((contents(&one), contents(&two)), (lost.clone(), lost));
    assert!(two.replica().conflicts().unwrap().is_empty());
}

#[test]
fn a_row_of_many_columns_that_are_large_together_travels_too() {
    let mut server = MemoryServer::default();
    let names: Vec<_> = (0..300).map(|place| format!("c{place}")).collect();
    let schema = format!("CREATE TABLE wide (id INTEGER PRIMARY KEY, {})", names.join(", "));
    let [mut one, two] = [0, 1].map(|_| TestDevice::tracked(&schema, &mut server));
    let values: Vec<_> = (0..300).map(|place| bytes(30_000, place)).collect();
    one.write(&format!("INSERT INTO wide VALUES (1, {})", values.join(", "))).unwrap();
    one.sync(&mut server);
    let largest = server.messages.iter().map(|message| message.content.len()).max().unwrap();
    assert!(largest < 2 * MESSAGE_BYTES_MAX, "{largest}");
    two.sync(&mut server);
    assert_eq!(two.dump(), one.dump());
}
