//! Tests of lost edits and history: they are the same on every device, and one call restores an
//! edit.

use proptest::prelude::*;
use protocol::ErrorCode;
use replica::{Conflict, ConflictEdit, RecoveryPhrase, Replica};

use crate::support::{MORNING_MS, MemoryServer, TestDevice};

const SCHEMA: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b TEXT);
    CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent ON DELETE CASCADE);
    CREATE TABLE tagged (x TEXT, y TEXT, PRIMARY KEY (x, y)) WITHOUT ROWID;
    CREATE TABLE tag (id INTEGER PRIMARY KEY, label TEXT UNIQUE, color TEXT);
";

struct ConflictingDevices {
    server: MemoryServer,
    devices: [TestDevice; 2],
}

impl ConflictingDevices {
    /// Creates two devices that both have the rows that `before` wrote.
    fn new(before: &str) -> Self {
        let mut server = MemoryServer::default();
        let devices = [0, 1].map(|_| TestDevice::tracked(SCHEMA, &mut server));
        let mut pair = Self { server, devices };
        pair.write(0, before);
        pair.meet();
        pair
    }

    /// Writes at a time after everything that was written before.
    fn write(&mut self, device: usize, sql: &str) {
        let clock_ms = self.devices.iter().map(|device| device.clock_ms).max().unwrap();
        self.devices[device].clock_ms = clock_ms;
        self.devices[device].write(sql).unwrap();
    }

    /// Syncs until both devices have everything of each other.
    fn meet(&mut self) {
        for device in [0, 1, 0] {
            assert!(self.devices[device].sync(&mut self.server).in_sync);
        }
        assert_eq!(self.devices[0].dump(), self.devices[1].dump());
    }

    /// Returns the conflicts, which are the same on both devices.
    #[track_caller]
    fn conflicts(&mut self) -> Vec<Conflict> {
        self.meet();
        let of = |device: &TestDevice| device.replica().conflicts().unwrap();
        let (mut left, mut right) = (of(&self.devices[0]), of(&self.devices[1]));
        for conflict in left.iter_mut().chain(&mut right) {
            // Each device has its own names for devices.
            for edit in [&mut conflict.lost, &mut conflict.winner] {
                edit.origin.device_name = edit.origin.node_id.to_string();
            }
        }
        assert_eq!(left, right);
        left
    }

    /// Compares the conflicts with lines of the form `table key column: lost < winner`.
    #[track_caller]
    fn check(&mut self, expected: &[&str]) {
        let conflicts = self.conflicts();
        assert_eq!(conflicts.iter().map(line).collect::<Vec<_>>(), expected);
    }

    fn restore(&mut self, device: usize) -> Conflict {
        let conflict = self.conflicts().remove(0);
        let now_ms = self.devices[device].clock_ms + 1_000;
        let restored = self.devices[device].replica().restore(&conflict.id, now_ms).unwrap();
        assert_eq!(restored.id, conflict.id);
        let left = self.devices[device].replica().conflicts().unwrap();
        assert!(left.iter().all(|left| left.id != conflict.id), "it is shown, though not synced");
        // The test's clock makes later writes later than the restored edit.
        self.devices[device].clock_ms = now_ms + 1_000;
        conflict
    }
}

fn line(conflict: &Conflict) -> String {
    let outcome = |edit: &ConflictEdit| match &edit.value {
        Some(literal) => literal.clone(),
        None if edit.deleted => "gone".to_owned(),
        None => "there".to_owned(),
    };
    let Conflict { table, key, column, lost, winner, .. } = conflict;
    let column = column.as_deref().unwrap_or("row");
    let (lost, winner) = (outcome(lost), outcome(winner));
    format!("{table} {key} {column}: {lost} < {winner}")
}

#[test]
fn edits_that_were_seen_are_not_lost() {
    let mut pair = ConflictingDevices::new("INSERT INTO t VALUES (1, 'x', 'y')");
    pair.write(0, "UPDATE t SET a = 'of 0'");
    pair.meet();
    pair.write(1, "UPDATE t SET a = 'of 1'");
    pair.meet();
    pair.write(0, "DELETE FROM t");
    pair.meet();
    pair.write(1, "INSERT INTO t VALUES (1, 'again', 'y')");
    pair.check(&[]);
}

#[test]
fn of_edits_that_did_not_see_each_other_one_is_lost_for_each_cell() {
    let mut pair = ConflictingDevices::new("INSERT INTO t VALUES (1, 'x', 'y'), (2, 'x', 'y')");
    pair.write(0, "UPDATE t SET a = 'first'; UPDATE t SET a = 'of 0', b = 'also 0' WHERE id = 1");
    pair.write(1, "UPDATE t SET a = 'of 1', b = 'also 1' WHERE id = 1");
    pair.check(&["t 1 a: 'of 0' < 'of 1'", "t 1 b: 'also 0' < 'also 1'"]);
    assert_eq!(pair.devices[0].texts("SELECT a FROM t WHERE id = 2"), ["first"]);
    let conflict = pair.conflicts().remove(0);
    assert!(conflict.lost.origin.timestamp.millis() > MORNING_MS);
    let of_0 = pair.devices[0].replica().status().unwrap().node_id;
    assert_eq!(conflict.lost.origin.timestamp.node_id(), of_0);
}

#[test]
fn an_edit_made_while_the_other_arrives_did_not_see_it() {
    let mut pair = ConflictingDevices::new("INSERT INTO t VALUES (1, 'x', 'y')");
    pair.write(0, "UPDATE t SET a = 'of 0'");
    pair.write(1, "UPDATE t SET a = 'of 1'");
    pair.devices[0].sync(&mut pair.server);
    // The device receives the other edit and timestamps its own in one sync.
    pair.devices[1].sync(&mut pair.server);
    pair.check(&["t 1 a: 'of 0' < 'of 1'"]);
}

#[test]
fn a_restored_edit_wins_everywhere_and_is_in_no_list() {
    for device in [0, 1] {
        let mut pair = ConflictingDevices::new("INSERT INTO t VALUES (1, 'x', 'y')");
        pair.write(0, "UPDATE t SET a = 'of 0'");
        pair.write(1, "UPDATE t SET a = 'of 1'");
        pair.restore(device);
        assert_eq!(pair.devices[device].texts("SELECT a FROM t"), ["of 0"]);
        pair.check(&[]);
        assert_eq!(pair.devices[1 - device].texts("SELECT a FROM t"), ["of 0"]);
        pair.write(1, "UPDATE t SET a = 'knowing that'");
        pair.check(&[]);
    }
}

#[test]
fn an_edit_that_was_lost_to_a_delete_brings_the_row_back() {
    let mut pair = ConflictingDevices::new("INSERT INTO t VALUES (1, 'x', 'y'), (2, 'x', 'y')");
    pair.write(0, "UPDATE t SET a = 'of 0', b = 'also 0' WHERE id = 1");
    pair.write(1, "DELETE FROM t");
    pair.check(&["t 1 a: 'of 0' < gone", "t 1 b: 'also 0' < gone"]);
    pair.restore(1);
    pair.check(&[]);
    assert_eq!(pair.devices[0].texts("SELECT id || a || b FROM t"), ["1of 0also 0"]);
}

#[test]
fn a_delete_that_was_lost_to_an_edit_can_be_done_again() {
    let mut pair = ConflictingDevices::new("INSERT INTO t VALUES (1, 'x', 'y')");
    pair.write(0, "DELETE FROM t");
    pair.write(1, "UPDATE t SET a = 'of 1'");
    pair.check(&["t 1 row: gone < there"]);
    pair.restore(0);
    pair.check(&[]);
    assert_eq!(pair.devices[1].dump().len(), 0);
}

#[test]
fn rows_that_are_nothing_but_their_key_are_lost_and_restored_too() {
    let mut pair = ConflictingDevices::new("INSERT INTO tagged VALUES ('p', 'q')");
    pair.write(0, "DELETE FROM tagged");
    pair.devices[0].sync(&mut pair.server);
    pair.write(0, "INSERT INTO tagged VALUES ('p', 'q')");
    pair.write(1, "DELETE FROM tagged");
    pair.check(&["tagged 'p', 'q' row: there < gone"]);
    pair.restore(1);
    pair.check(&[]);
    assert_eq!(pair.devices[0].texts("SELECT x || y FROM tagged"), ["pq"]);
}

#[test]
fn a_delete_that_a_reference_undid_is_not_lost_again() {
    let mut pair = ConflictingDevices::new("INSERT INTO parent VALUES (1, 'x')");
    pair.write(0, "INSERT INTO child VALUES (1, 1)");
    pair.write(0, "UPDATE parent SET name = 'edited'");
    pair.write(1, "DELETE FROM parent");
    // The parent is resurrected, with the edit that the delete did not see, so nothing is missing.
    pair.check(&[]);
    assert_eq!(pair.devices[1].texts("SELECT name FROM parent"), ["edited"]);
    // A device that edits the resurrected row has seen its visible values.
    pair.write(1, "UPDATE parent SET name = 'knowing both'");
    pair.check(&[]);
}

#[test]
fn a_row_that_is_held_back_was_not_seen() {
    let mut pair = ConflictingDevices::new("");
    pair.write(0, "INSERT INTO tag VALUES (1, 'a', 'red')");
    pair.write(1, "INSERT INTO tag VALUES (2, 'a', 'blue')");
    pair.check(&[]);
    assert_eq!(pair.devices[1].texts("SELECT color FROM tag"), ["blue"]);
    pair.write(1, "INSERT INTO tag VALUES (1, 'c', 'green')");
    pair.check(&["tag 1 color: 'red' < 'green'", "tag 1 label: 'a' < 'c'"]);
}

#[test]
fn restoring_keeps_the_tables_rules() {
    let mut pair = ConflictingDevices::new(
        "INSERT INTO parent VALUES (1, 'x'); INSERT INTO child VALUES (1, 1)",
    );
    pair.write(0, "UPDATE child SET parent = 1; UPDATE child SET parent = NULL");
    pair.write(1, "DELETE FROM parent");
    pair.meet();
    let conflict = pair.conflicts().remove(0);
    let error = pair.devices[0].replica().restore("ffffffffffffffffffff", 0).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConflictNotFound);
    assert_eq!(
        pair.devices[0].replica().restore("", 0).unwrap_err().code(),
        ErrorCode::ConflictNotFound
    );
    pair.devices[0].replica().restore(&conflict.id[..6], MORNING_MS + 9_000).unwrap();
    assert_eq!(pair.devices[0].violations(), 0);
    pair.devices[0].clock_ms = MORNING_MS + 10_000;
    pair.check(&[]);
}

#[test]
fn a_copy_that_is_named_anew_keeps_what_its_changes_replaced() {
    let mut server = MemoryServer::default();
    let mut original = TestDevice::tracked(SCHEMA, &mut server);
    original.write("INSERT INTO t VALUES (1, 'x', 'y')").unwrap();
    original.sync(&mut server);
    let path = original.path.with_file_name("copy.db");
    std::fs::copy(&original.path, &path).unwrap();
    let mut copy = TestDevice::open(&path);
    let node = "SELECT value FROM warren_meta WHERE key = 'node_id'";
    let node: i64 = original.app.query_row(node, [], |row| row.get(0)).unwrap();
    drop(copy.replica());
    copy.app.execute("UPDATE warren_meta SET value = ?1 WHERE key = 'node_id'", [node]).unwrap();
    copy.clock_ms = original.clock_ms;
    original.write("UPDATE t SET b = 'of the original'").unwrap();
    copy.write("UPDATE t SET a = 'of the copy'").unwrap();
    original.sync(&mut server);
    // Untracking timestamps the first edit with the original's node id; the second one gets a
    // timestamp on top of it, and both get a new node id.
    copy.replica().untrack(&["tagged".into()], copy.clock_ms).unwrap();
    copy.write("UPDATE t SET a = 'again of the copy'").unwrap();
    assert!(copy.sync(&mut server).registered_copy);
    original.sync(&mut server);
    for device in [&original, &copy] {
        assert_eq!(device.texts("SELECT a || b FROM t"), ["again of the copyof the original"]);
        assert_eq!(device.replica().conflicts().unwrap(), []);
    }
}

#[test]
fn sealed_messages_have_conflicts_too() {
    let mut server = MemoryServer::default();
    let phrase = RecoveryPhrase::generate();
    let mut devices = [0, 1].map(|_| {
        let device = TestDevice::new(SCHEMA);
        let replica = Replica::prepare(&device.path).unwrap();
        replica.set_recovery_phrase(&phrase).unwrap();
        replica.confirm_new_account().unwrap();
        replica.track_all().unwrap();
        device.sign_in(&mut server);
        device
    });
    devices[0].write("INSERT INTO t VALUES (1, 'of 0', NULL)").unwrap();
    devices[1].clock_ms += 5;
    devices[1].write("INSERT INTO t VALUES (1, 'of 1', NULL)").unwrap();
    for device in [0, 1, 0] {
        devices[device].sync(&mut server);
    }
    for device in &devices {
        let conflicts = device.replica().conflicts().unwrap();
        assert_eq!(conflicts.iter().map(line).collect::<Vec<_>>(), ["t 1 a: 'of 0' < 'of 1'"]);
    }
}

#[test]
fn history_tells_who_wrote_what_and_what_is_shown() {
    let mut pair =
        ConflictingDevices::new("INSERT INTO t VALUES (1, 'x', 'y'), (12, 'other', NULL)");
    pair.write(0, "UPDATE t SET a = 'of 0' WHERE id = 1");
    pair.write(1, "UPDATE t SET a = 'of 1', b = 'of 1' WHERE id = 1");
    pair.meet();
    let node = pair.devices[1].replica().status().unwrap().node_id;
    let sql = "INSERT INTO warren_device VALUES (?1, 'laptop')";
    pair.devices[0].app.execute(sql, [node.0.cast_signed()]).unwrap();
    let history = |pair: &ConflictingDevices, key: &[&str]| {
        let key: Vec<_> = key.iter().map(|&part| part.to_owned()).collect();
        let entries = pair.devices[0].replica().history("T", &key).unwrap();
        let lines = entries.iter().map(|entry| {
            let cells = entry.cells.iter().map(|cell| {
                let mark = if cell.visible { "" } else { "-" };
                format!(" {mark}{}={}", cell.column, cell.value)
            });
            let what = if entry.deleted { "deleted" } else { "written" };
            let mark = if entry.visible { "" } else { "-" };
            let cells = cells.collect::<Vec<_>>().concat();
            format!("{}: {mark}{what}{cells}", entry.origin.device_name)
        });
        lines.collect::<Vec<_>>()
    };
    let three = [
        "test: -written -a='x' -b='y'",
        "test: -written -a='of 0'",
        "laptop: written a='of 1' b='of 1'",
    ];
    assert_eq!(history(&pair, &["1"]), three);
    assert_eq!(history(&pair, &["3"]), [""; 0]);
    assert_eq!(history(&pair, &["1", "2"]), [""; 0]);
    pair.write(0, "DELETE FROM t WHERE id = 1");
    pair.meet();
    let four = history(&pair, &["1"]);
    assert_eq!(four[2..], ["laptop: -written -a='of 1' -b='of 1'", "test: deleted"]);
}

#[test]
fn history_finds_keys_as_literals_and_as_texts() {
    let pair = ConflictingDevices::new("INSERT INTO tagged VALUES ('5', 'a b'), ('it''s', 'x')");
    let keys = [["5", "a b"], ["'5'", "'a b'"], ["it's", "x"], ["'it''s'", "'x'"]];
    for key in keys {
        let key = key.map(str::to_owned);
        let entries = pair.devices[1].replica().history("tagged", &key).unwrap();
        assert_eq!(entries.len(), 1, "{key:?}");
        assert!(entries[0].visible);
    }
}

#[derive(Clone, Debug)]
enum ConflictStep {
    Write(usize, String),
    Sync(usize),
}

fn any_step() -> impl Strategy<Value = ConflictStep> {
    let text = prop::sample::select(vec!["p", "q", "r"]);
    let id = 1..3i64;
    let sql = prop_oneof![
        3 => (id.clone(), text.clone())
            .prop_map(|(id, a)| format!("INSERT OR REPLACE INTO t VALUES ({id}, '{a}', NULL)")),
        4 => (id.clone(), text.clone())
            .prop_map(|(id, a)| format!("UPDATE t SET a = '{a}' WHERE id = {id}")),
        2 => (id.clone(), text).prop_map(|(id, b)| format!("UPDATE t SET b = '{b}' WHERE id = {id}")),
        2 => id.clone().prop_map(|id| format!("DELETE FROM t WHERE id = {id}")),
        1 => id.clone().prop_map(|id| format!("INSERT OR IGNORE INTO parent VALUES ({id}, 'n')")),
        1 => (id.clone(), id.clone())
            .prop_map(|(id, p)| format!("INSERT OR IGNORE INTO child VALUES ({id}, {p})")),
        1 => id.prop_map(|id| format!("DELETE FROM parent WHERE id = {id}")),
    ];
    prop_oneof![
        4 => (0..3usize, sql).prop_map(|(device, sql)| ConflictStep::Write(device, sql)),
        2 => (0..3usize).prop_map(ConflictStep::Sync),
    ]
}

/// Returns the conflicts that each of three devices lists after these steps and two syncs in this
/// order.
fn play(steps: &[ConflictStep], order: &[usize], seen: bool) -> [Vec<String>; 3] {
    let mut server = MemoryServer::default();
    let mut devices = [0, 1, 2].map(|_| TestDevice::tracked(SCHEMA, &mut server));
    let mut clock_ms = MORNING_MS;
    for step in steps {
        match step {
            ConflictStep::Write(device, sql) => {
                // All devices share one clock, so that later steps have later timestamps.
                devices[*device].clock_ms = clock_ms;
                drop(devices[*device].write(sql));
                clock_ms = devices[*device].clock_ms;
            }
            ConflictStep::Sync(device) => drop(devices[*device].sync(&mut server)),
        }
        if seen {
            for device in [0, 1, 2, 0, 1] {
                devices[device].sync(&mut server);
            }
        }
    }
    for device in order.iter().chain(order) {
        devices[*device].sync(&mut server);
    }
    devices.map(|device| {
        let conflicts = device.replica().conflicts().unwrap();
        let ids = conflicts.iter().map(|conflict| format!("{} {}", conflict.id, line(conflict)));
        ids.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_device_lists_the_same_conflicts(
        steps in prop::collection::vec(any_step(), 1..30),
        order in Just(vec![0, 1, 2]).prop_shuffle(),
    ) {
        let [a, b, c] = play(&steps, &order, false);
        prop_assert_eq!(&a, &b);
        prop_assert_eq!(&b, &c);
    }

    #[test]
    fn who_always_syncs_first_loses_nothing(steps in prop::collection::vec(any_step(), 1..12)) {
        prop_assert_eq!(play(&steps, &[0, 1, 2], true), [const { Vec::<String>::new() }; 3]);
    }
}
