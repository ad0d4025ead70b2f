//! Tests that a key that a row has or had is never assigned to another one, and that a row that
//! gets another key leaves nothing behind.

use crdt::Value;
use replica::{CellEdit, EditOutcome, RenumberedRow, SchemaConflictKind, SyncReport};

use crate::support::{MemoryServer, TestDevice, meet};

const TAGS: &str = "
    CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, maker TEXT);
    CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT, tag_id INTEGER REFERENCES tag);";

const T: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
                 CREATE TABLE child (of INTEGER REFERENCES t, place TEXT, words TEXT,
                                     PRIMARY KEY (of, place)) WITHOUT ROWID;";

fn autoincrement(schema: &str) -> String {
    schema.replace("INTEGER PRIMARY KEY,", "INTEGER PRIMARY KEY AUTOINCREMENT,")
}

fn devices<const N: usize>(schema: &str, server: &mut MemoryServer) -> [TestDevice; N] {
    [(); N].map(|()| TestDevice::tracked(schema, server))
}

fn meet_and_agree(devices: &[TestDevice], server: &mut MemoryServer) {
    meet(devices, server);
    for device in devices {
        assert_eq!(device.dump(), devices[0].dump());
    }
}

fn moved(report: &SyncReport) -> Vec<(&str, i64, i64)> {
    report
        .renumbered_rows
        .iter()
        .map(|row| (row.table.as_str(), row.old_key, row.new_key))
        .collect()
}

/// Creates two devices that both have row 1 `old` of `t`.
fn pair_with_old_row(server: &mut MemoryServer) -> [TestDevice; 2] {
    let mut pair = devices(T, server);
    pair[0].write("INSERT INTO t (v) VALUES ('old')").unwrap();
    meet(&pair, server);
    pair
}

/// Creates three devices: of the two tags `red`, tag 1, the newer one, is visible, and tag 2 is
/// hidden. SQLite counts keys from the visible one.
fn three_with_held_tag(schema: &str, server: &mut MemoryServer) -> [TestDevice; 3] {
    let mut three = devices(schema, server);
    three[0].clock_ms += 10;
    for (device, maker) in three.iter_mut().zip(["a", "b"]) {
        device.write(&format!("INSERT INTO tag (name, maker) VALUES ('red', '{maker}')")).unwrap();
    }
    meet(&three, server);
    three
}

#[test]
fn a_new_row_does_not_get_the_key_of_one_that_is_held_back() {
    for schema in [TAGS.to_owned(), autoincrement(TAGS)] {
        let mut server = MemoryServer::default();
        let mut three = three_with_held_tag(&schema, &mut server);
        let add = |tag: &str, product: &str| {
            format!(
                "INSERT OR IGNORE INTO tag (name) VALUES ('{tag}');
                 INSERT INTO product (name, tag_id)
                 SELECT '{product}', id FROM tag WHERE name = '{tag}';"
            )
        };
        three[0].write(&add("red", "apple")).unwrap();
        meet(&three, &mut server);
        three[2].write(&add("blue", "plum")).unwrap();
        meet_and_agree(&three, &mut server);
        let products = "SELECT p.name || ' ' || coalesce(t.name, '-')
                        FROM product p LEFT JOIN tag t ON t.id = tag_id ORDER BY 1";
        for device in &three {
            let products = device.texts(products);
            assert!(products.contains(&"plum blue".to_owned()), "{products:?}");
            assert_eq!(products.iter().filter(|p| p.ends_with("blue")).count(), 1, "{products:?}");
            assert_eq!(device.replica().conflicts().unwrap(), []);
            assert_eq!(device.replica().hidden_rows().unwrap().len(), 1);
        }
    }
}

#[test]
fn sqlite_counts_from_rows_that_it_never_saw() {
    let mut server = MemoryServer::default();
    let mut three = three_with_held_tag(&autoincrement(TAGS), &mut server);
    for device in &mut three {
        device.write("INSERT INTO tag (name) VALUES ('blue')").unwrap();
        let keys = device.texts("SELECT CAST(id AS TEXT) FROM tag WHERE name = 'blue'");
        assert_eq!(keys, ["3"], "2 is hidden");
    }
    assert_eq!(three[2].sync(&mut server).renumbered_rows, [], "so it rarely has to move");
}

#[test]
fn a_new_row_does_not_get_the_key_of_one_that_was_deleted() {
    let mut server = MemoryServer::default();
    let mut pair = pair_with_old_row(&mut server);
    pair[0]
        .write(
            "DELETE FROM t;
             INSERT INTO t (v) VALUES ('new');
             INSERT INTO child VALUES (1, 'left', 'of new');",
        )
        .unwrap();
    pair[1]
        .write("UPDATE t SET v = 'old, edited'; INSERT INTO child VALUES (1, 'left', 'of old')")
        .unwrap();
    assert_eq!(moved(&pair[0].sync(&mut server)), [("t", 1, 2)]);
    meet_and_agree(&pair, &mut server);
    for device in &pair {
        let rows = device.texts("SELECT v || ' ' || words FROM t JOIN child ON of = id");
        assert_eq!(rows, ["old, edited of old", "new of new"]);
        assert_eq!(device.violations(), 0);
    }
}

#[test]
fn a_new_row_that_is_gone_again_takes_no_other_with_it() {
    let mut server = MemoryServer::default();
    let mut three = three_with_held_tag(TAGS, &mut server);
    // Key 2 belongs to the hidden row; no device has used key 3.
    three[2]
        .write(
            "INSERT INTO tag (name) VALUES ('blue');
             INSERT INTO product VALUES (2, 'a pear, say', 2);
             INSERT INTO tag (name) VALUES ('green');
             DELETE FROM product;
             DELETE FROM tag WHERE name <> 'red';
             INSERT INTO tag (name) VALUES ('white');
             INSERT INTO tag (name) VALUES ('black');
             DELETE FROM tag WHERE name = 'black';",
        )
        .unwrap();
    assert_eq!(moved(&three[2].sync(&mut server)), [("tag", 2, 4)], "above all that are noted");
    meet_and_agree(&three, &mut server);
    assert_eq!(three[0].texts("SELECT id || name FROM tag ORDER BY id"), ["1red", "4white"]);
    assert_eq!(three[0].replica().hidden_rows().unwrap().len(), 1);
}

#[test]
fn what_was_written_before_the_new_row_means_the_old_one() {
    let mut server = MemoryServer::default();
    let mut pair = devices::<2>(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, of INTEGER REFERENCES t);
         CREATE TABLE loose (id TEXT PRIMARY KEY, of INTEGER REFERENCES t, note TEXT)",
        &mut server,
    );
    pair[0].write("INSERT INTO t (v) VALUES ('old')").unwrap();
    meet(&pair, &mut server);
    // Foreign keys are off, as in many programs.
    pair[0].app.pragma_update(None, "foreign_keys", false).unwrap();
    pair[0]
        .write(
            "INSERT INTO loose VALUES ('a', 1, NULL), ('b', 1, NULL);
             DELETE FROM t;
             INSERT INTO t (v) VALUES ('new');
             INSERT INTO t (v, of) VALUES ('newer', 1);
             INSERT INTO loose VALUES ('c', 1, NULL);
             UPDATE loose SET note = 'touched' WHERE id = 'a';
             UPDATE loose SET of = NULL WHERE id = 'b';
             UPDATE loose SET of = 1 WHERE id = 'b';",
        )
        .unwrap();
    meet_and_agree(&pair, &mut server);
    for device in &pair {
        let rows = device.texts("SELECT l.id || t.v FROM loose l JOIN t ON t.id = l.of ORDER BY 1");
        assert_eq!(rows, ["aold", "bnew", "cnew"], "a deleted row that is referred to is kept");
        let rows = device.texts("SELECT c.v || p.v FROM t c JOIN t p ON p.id = c.of");
        assert_eq!(rows, ["newernew"]);
    }
}

#[test]
fn no_column_keeps_a_value_of_another_row() {
    let mut server = MemoryServer::default();
    let mut pair: [TestDevice; 2] = devices(T, &mut server);
    pair[0].write("INSERT INTO t (v) VALUES ('of a')").unwrap();
    pair[0].sync(&mut server);
    let (a, b) = pair.split_at_mut(1);
    let b = &mut b[0];
    b.app.execute_batch("ALTER TABLE t ADD COLUMN secret TEXT DEFAULT 'none'").unwrap();
    b.write("INSERT INTO t (v, secret) VALUES ('of b', 'salary of b')").unwrap();
    assert_eq!(moved(&b.sync(&mut server)), [("t", 1, 2)]);
    for device in [&a[0], b, &a[0]] {
        device.try_sync(&mut server, true).unwrap();
    }
    for device in [&a[0], b] {
        let rows = device.texts("SELECT id || v || ', ' || secret FROM t ORDER BY id");
        assert_eq!(rows, ["1of a, none", "2of b, salary of b"]);
    }
}

#[test]
fn a_search_index_of_the_program_follows() {
    let mut server = MemoryServer::default();
    let schema = "
        CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);
        CREATE VIRTUAL TABLE found USING fts5 (v, content = 't', content_rowid = 'id');
        CREATE TRIGGER a AFTER INSERT ON t BEGIN
            INSERT INTO found (rowid, v) VALUES (new.id, new.v); END;
        CREATE TRIGGER b AFTER DELETE ON t BEGIN
            INSERT INTO found (found, rowid, v) VALUES ('delete', old.id, old.v); END;
        CREATE TRIGGER c AFTER UPDATE ON t BEGIN
            INSERT INTO found (found, rowid, v) VALUES ('delete', old.id, old.v);
            INSERT INTO found (rowid, v) VALUES (new.id, new.v); END;";
    let mut pair: [TestDevice; 2] = [(); 2].map(|()| {
        let device = TestDevice::new(schema);
        replica::Replica::prepare(&device.path).unwrap().track(&["t".to_owned()]).unwrap();
        device.sign_in(&mut server);
        device
    });
    pair[0].write("INSERT INTO t (v) VALUES ('one')").unwrap();
    meet(&pair, &mut server);
    pair[0].write("DELETE FROM t; INSERT INTO t (v) VALUES ('two')").unwrap();
    pair[1].write("INSERT INTO t (v) VALUES ('three')").unwrap();
    meet(&pair, &mut server);
    for device in &pair {
        assert_eq!(device.texts("SELECT v FROM t ORDER BY v"), ["three", "two"]);
        for (word, count) in [("one", "0"), ("two", "1"), ("three", "1")] {
            let sql =
                format!("SELECT CAST(count(*) AS TEXT) FROM found WHERE found MATCH '{word}'");
            assert_eq!(device.texts(&sql), [count], "{word}");
        }
        let check = "INSERT INTO found (found, rank) VALUES ('integrity-check', 1)";
        device.app.execute_batch(check).unwrap();
    }
}

#[test]
fn a_trigger_that_keeps_keys_as_they_are_stops_no_move() {
    for refusal in ["RAISE(ABORT, 'keys are for ever')", "RAISE(IGNORE)"] {
        let mut server = MemoryServer::default();
        let mut pair = pair_with_old_row(&mut server);
        let trigger =
            format!("CREATE TRIGGER keys BEFORE UPDATE OF id ON t BEGIN SELECT {refusal}; END");
        pair[0].app.execute_batch(&trigger).unwrap();
        pair[0].write("DELETE FROM t; INSERT INTO t (v) VALUES ('new')").unwrap();
        assert_eq!(moved(&pair[0].sync(&mut server)), [("t", 1, 2)]);
        meet_and_agree(&pair, &mut server);
        assert_eq!(pair[1].texts("SELECT id || v FROM t"), ["2new"]);
    }
}

#[test]
fn a_trigger_of_a_table_that_does_not_sync_stops_no_move() {
    let mut server = MemoryServer::default();
    let mut pair = pair_with_old_row(&mut server);
    let draft = "
        CREATE TABLE draft (of INTEGER REFERENCES t, words TEXT);
        CREATE TRIGGER fixed BEFORE UPDATE ON draft BEGIN SELECT RAISE(ABORT, 'it is sent'); END;";
    pair[0].app.execute_batch(draft).unwrap();
    pair[0]
        .write(
            "DELETE FROM t; INSERT INTO t (v) VALUES ('new');
             INSERT INTO draft VALUES (1, 'about new');",
        )
        .unwrap();
    assert_eq!(moved(&pair[0].sync(&mut server)), [("t", 1, 2)]);
    assert_eq!(
        pair[0].texts("SELECT v || ' ' || words FROM draft JOIN t ON id = of"),
        ["new about new"]
    );
}

#[test]
fn a_table_that_takes_no_other_key_keeps_its_row() {
    let mut server = MemoryServer::default();
    let schema = "CREATE TABLE t (id INTEGER PRIMARY KEY CHECK (id < 2), v TEXT)";
    let mut pair: [TestDevice; 2] = devices(schema, &mut server);
    pair[0].write("INSERT INTO t (v) VALUES ('old')").unwrap();
    meet(&pair, &mut server);
    pair[0].write("DELETE FROM t; INSERT INTO t (v) VALUES ('new')").unwrap();
    assert_eq!(pair[0].sync(&mut server).renumbered_rows, []);
    meet_and_agree(&pair, &mut server);
    assert_eq!(pair[1].texts("SELECT id || v FROM t"), ["1new"]);
}

#[test]
fn a_new_row_that_its_program_saves_as_a_whole_stays_new() {
    let mut server = MemoryServer::default();
    let mut pair: [TestDevice; 2] = devices(T, &mut server);
    for (device, name) in pair.iter_mut().zip(["a", "b"]) {
        device
            .write(&format!(
                "INSERT INTO t (v) VALUES ('draft of {name}');
                 INSERT INTO child VALUES (1, 'left', 'of {name}');
                 INSERT OR REPLACE INTO t (id, v) VALUES (1, 'of {name}');"
            ))
            .unwrap();
    }
    meet_and_agree(&pair, &mut server);
    let rows = pair[0].texts("SELECT v || ' ' || words FROM t JOIN child ON of = id ORDER BY 1");
    assert_eq!(rows, ["of a of a", "of b of b"]);
}

#[test]
fn a_table_that_is_tracked_later_refers_to_the_rows_that_it_meant() {
    for is_key_known in [false, true] {
        let mut server = MemoryServer::default();
        let schema = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)";
        let mut pair: [TestDevice; 2] = devices(schema, &mut server);
        if is_key_known {
            pair[1].write("INSERT INTO t (v) VALUES ('old')").unwrap();
            meet(&pair, &mut server);
            pair[1].write("DELETE FROM t").unwrap();
        }
        pair[0].write("INSERT INTO t (v) VALUES ('of a')").unwrap();
        pair[1].write("INSERT INTO t (v) VALUES ('of b')").unwrap();
        let late = "CREATE TABLE late (name TEXT PRIMARY KEY, of INTEGER REFERENCES t);
                    INSERT INTO late SELECT 'about b', id FROM t WHERE v = 'of b'";
        pair[1].app.execute_batch(late).unwrap();
        pair[1].replica().track(&["late".to_owned()]).unwrap();
        pair[0].sync(&mut server);
        pair[1].sync(&mut server);
        pair[0].try_sync(&mut server, true).unwrap();
        for device in &pair {
            let rows = device.texts("SELECT name || v FROM late JOIN t ON id = of");
            assert_eq!(rows, ["about bof b"]);
        }
    }
}

#[test]
fn a_row_tracked_later_shows_a_deleted_row_that_it_refers_to() {
    let mut server = MemoryServer::default();
    let schema = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)";
    let mut pair: [TestDevice; 2] = devices(schema, &mut server);
    pair[0].write("INSERT INTO t (v) VALUES ('gone')").unwrap();
    meet(&pair, &mut server);
    pair[0].app.pragma_update(None, "foreign_keys", false).unwrap();
    let late = "CREATE TABLE late (name TEXT PRIMARY KEY, of INTEGER REFERENCES t);
                INSERT INTO late VALUES ('x', 1)";
    pair[0].app.execute_batch(late).unwrap();
    pair[0].write("DELETE FROM t").unwrap();
    pair[0].replica().track(&["late".to_owned()]).unwrap();
    pair[0].sync(&mut server);
    pair[1].try_sync(&mut server, true).unwrap();
    pair[0].sync(&mut server);
    for device in &pair {
        assert_eq!(device.texts("SELECT name || v FROM late JOIN t ON id = of"), ["xgone"]);
    }
}

/// Opens another device, with a copy of the file.
fn copy(device: &TestDevice) -> TestDevice {
    let path = device.path.with_file_name("copy.db");
    std::fs::copy(&device.path, &path).unwrap();
    let mut copy = TestDevice::open(&path);
    copy.clock_ms = device.clock_ms;
    copy
}

#[test]
fn a_row_in_two_copies_of_a_file_stays_one_whoever_renumbers_it() {
    for is_stamped in [false, true] {
        let mut server = MemoryServer::default();
        let [mut other, mut original]: [TestDevice; 2] = devices(T, &mut server);
        other.write("INSERT INTO t (v) VALUES ('of another')").unwrap();
        other.sync(&mut server);
        original.write("INSERT INTO t (v) VALUES ('a'); INSERT INTO t (v) VALUES ('b')").unwrap();
        original.write("INSERT INTO child VALUES (2, 'left', 'of b')").unwrap();
        if is_stamped {
            original.replica().record_history(original.clock_ms).unwrap();
        }
        let mut similar = copy(&original);
        original.write("INSERT INTO t (v) VALUES ('of the original')").unwrap();
        similar.write("INSERT INTO t (v) VALUES ('of the copy')").unwrap();
        similar.write("INSERT INTO child VALUES (1, 'left', 'of a')").unwrap();
        let all = [other, original, similar];
        meet_and_agree(&all, &mut server);
        let rows = all[0].texts("SELECT v FROM t ORDER BY v");
        assert_eq!(rows, ["a", "b", "of another", "of the copy", "of the original"]);
        let rows = all[0].texts("SELECT v || ' ' || words FROM t JOIN child ON of = id ORDER BY 1");
        assert_eq!(rows, ["a of a", "b of b"]);
    }
}

#[test]
fn keys_that_a_program_chose_are_no_counted_ones() {
    let mut server = MemoryServer::default();
    let schema = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, v TEXT)";
    for schema in [schema.to_owned(), autoincrement(schema)] {
        let mut pair: [TestDevice; 2] = devices(&schema, &mut server);
        for (device, v) in pair.iter_mut().zip(["a", "b"]) {
            // The statements are a key for "unknown", upserts that find their row, ignored rows,
            // and fixtures.
            device
                .write(&format!(
                    "INSERT INTO t VALUES (-1, 'unknown', '{v}');
                     INSERT INTO t VALUES (200, 'fixture', '{v}');"
                ))
                .unwrap();
            for _ in 0..3 {
                let upsert = "INSERT INTO t (name, v) VALUES ('fixture', 'x')
                              ON CONFLICT (name) DO UPDATE SET v = v;";
                device.write(upsert).unwrap();
                device.write("INSERT OR IGNORE INTO t (name) VALUES ('unknown')").unwrap();
            }
            device.write(&format!("INSERT INTO t VALUES (300, 'second fixture', '{v}')")).unwrap();
        }
        pair[0].sync(&mut server);
        assert_eq!(pair[1].sync(&mut server).renumbered_rows, []);
        meet_and_agree(&pair, &mut server);
        assert_eq!(
            pair[0].texts("SELECT id || name FROM t ORDER BY id"),
            ["-1unknown", "200fixture", "300second fixture"]
        );
    }
}

#[test]
fn rows_that_a_statement_leaves_out_take_no_key_from_the_next() {
    let mut server = MemoryServer::default();
    let schema = autoincrement("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE);");
    let mut pair: [TestDevice; 2] = devices(&schema, &mut server);
    for (device, name) in pair.iter_mut().zip(["a", "b"]) {
        device.write(&format!("INSERT INTO t (name) VALUES ('first of {name}')")).unwrap();
        // SQLite counts keys for the ignored rows, too.
        device
            .write(&format!(
                "INSERT OR IGNORE INTO t (name)
                 VALUES ('first of {name}'), ('first of {name}'), ('second of {name}')"
            ))
            .unwrap();
    }
    meet_and_agree(&pair, &mut server);
    let names = pair[0].texts("SELECT name FROM t ORDER BY name");
    assert_eq!(names, ["first of a", "first of b", "second of a", "second of b"]);
}

#[test]
fn an_integer_key_in_descending_order_is_none_that_sqlite_counts() {
    let device = TestDevice::new("CREATE TABLE t (id INTEGER PRIMARY KEY DESC, v TEXT)");
    let replica = replica::Replica::prepare(&device.path).unwrap();
    let tracked = replica.track(&["t".to_owned()]).unwrap();
    assert!(!tracked[0].auto_keys);
    let mut server = MemoryServer::default();
    device.sign_in(&mut server);
    device.app.execute_batch("INSERT INTO t (v) VALUES ('without a key')").unwrap();
    let conflicts = device.sync(&mut server).schema_conflicts;
    let kinds: Vec<_> = conflicts.iter().map(|conflict| conflict.kind).collect();
    assert_eq!(kinds, [SchemaConflictKind::NullKey]);
}

#[test]
fn an_edit_finds_its_row_under_the_key_that_it_gets() {
    let mut server = MemoryServer::default();
    let mut pair = pair_with_old_row(&mut server);
    let device = &mut pair[0];
    device.write("DELETE FROM t; INSERT INTO t (v) VALUES ('new')").unwrap();
    let [value, seen] = ["newer", "new"].map(|v| Value::Text(v.into()));
    let key = &[Value::Integer(1)];
    let edit = CellEdit { table: "T", key, column: "v", value, seen };
    device.clock_ms += 1;
    assert_eq!(device.replica().edit(&edit, device.clock_ms).unwrap(), EditOutcome::Written);
    assert_eq!(device.texts("SELECT id || v FROM t"), ["2newer"]);
    meet_and_agree(&pair, &mut server);
}

#[test]
fn a_rebuilt_table_may_have_another_row_under_a_held_key() {
    let mut server = MemoryServer::default();
    let three = three_with_held_tag(TAGS, &mut server);
    let rebuild = "
        ALTER TABLE tag RENAME TO before;
        CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, maker TEXT);
        INSERT INTO tag SELECT * FROM before;
        DROP TABLE before;
        INSERT INTO tag (name) VALUES ('blue');";
    three[2].app.execute_batch("PRAGMA legacy_alter_table = ON").unwrap();
    three[2].app.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    three[2].app.execute_batch(rebuild).unwrap();
    meet_and_agree(&three, &mut server);
    assert_eq!(three[0].texts("SELECT id || name FROM tag ORDER BY id"), ["1red", "3blue"]);
    assert_eq!(three[0].replica().hidden_rows().unwrap().len(), 1);
}

#[test]
fn a_row_that_moves_twice_is_reported_once() {
    let mut server = MemoryServer::default();
    let mut pair = pair_with_old_row(&mut server);
    pair[1].write("DELETE FROM t; INSERT INTO t (v) VALUES ('of b')").unwrap();
    pair[0].write("INSERT INTO t (v) VALUES ('of a')").unwrap();
    pair[0].sync(&mut server);
    let renumbered = pair[1].sync(&mut server).renumbered_rows;
    assert_eq!(renumbered, [RenumberedRow { table: "t".into(), old_key: 1, new_key: 3 }]);
}
