//! Tests of two users who add the same row: of rows with one UNIQUE value one is hidden, and the
//! rows that refer to it are not left with a dangling reference.

use proptest::prelude::*;

use protocol::ErrorCode;
use replica::{Error, MergedRow, VisibilityOverrideKind};

use crate::support::{MemoryServer, TestDevice, meet};

/// Schema as Django declares it.
const SHOP: &str = "
    CREATE TABLE tag (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, color TEXT);
    CREATE TABLE product (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT);
    CREATE TABLE product_tags (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        product_id INTEGER NOT NULL REFERENCES product, tag_id INTEGER NOT NULL REFERENCES tag,
        UNIQUE (product_id, tag_id));
    CREATE TABLE shelf (
        tag_id INTEGER REFERENCES tag, place TEXT, note TEXT, PRIMARY KEY (tag_id, place)) WITHOUT ROWID;
    CREATE TABLE lamp (id TEXT PRIMARY KEY, shelf_tag INTEGER, shelf_place TEXT,
        FOREIGN KEY (shelf_tag, shelf_place) REFERENCES shelf (tag_id, place));";

const MEANING: &str = "
    SELECT p.name || ' is ' || t.name FROM product_tags JOIN product p ON p.id = product_id
        JOIN tag t ON t.id = tag_id
    UNION ALL SELECT t.name || ' on ' || place || ' ' || note FROM shelf JOIN tag t ON t.id = tag_id
    UNION ALL SELECT l.id || ' on ' || s.note FROM lamp l
        JOIN shelf s ON shelf_tag = tag_id AND shelf_place = place
    ORDER BY 1";

fn devices<const N: usize>(server: &mut MemoryServer) -> [TestDevice; N] {
    [(); N].map(|()| TestDevice::tracked(SHOP, server))
}

/// Adds a product with a tag, as `get_or_create` does.
fn add(device: &mut TestDevice, product: &str, tag: &str, color: &str) {
    device
        .write(&format!(
            "INSERT OR IGNORE INTO tag (name, color) VALUES ('{tag}', '{color}');
             INSERT INTO product (name) VALUES ('{product}');
             INSERT INTO product_tags (product_id, tag_id)
                 SELECT last_insert_rowid(), id FROM tag WHERE name = '{tag}'"
        ))
        .unwrap();
}

fn meet_and_agree(devices: &[TestDevice], server: &mut MemoryServer) {
    meet(devices, server);
    for device in devices {
        assert_eq!(device.dump(), devices[0].dump());
        assert_eq!(device.replica().conflicts().unwrap(), []);
    }
}

fn meaning(devices: &[TestDevice]) -> Vec<String> {
    for device in devices {
        assert_eq!(device.violations(), 0);
        assert_eq!(device.replica().hidden_rows().unwrap(), []);
    }
    devices[0].texts(MEANING)
}

#[test]
fn new_rows_that_are_equal_but_for_a_counted_key_become_one() {
    let mut server = MemoryServer::default();
    let mut three = devices::<3>(&mut server);
    add(&mut three[0], "pa", "urgent", "red");
    add(&mut three[1], "before", "later", "blue");
    add(&mut three[1], "pb", "urgent", "red");
    add(&mut three[2], "pc", "urgent", "red");
    three[2].write("UPDATE product SET name = 'of c' WHERE name = 'pc'").unwrap();
    three[0].sync(&mut server);
    let report = three[1].sync(&mut server);
    let merged: Vec<_> =
        report.merged_rows.iter().map(|j| (&*j.table, j.old_key, j.new_key)).collect();
    assert_eq!(merged, [("tag", 2, 1)]);
    meet_and_agree(&three, &mut server);
    let rows = ["before is later", "of c is urgent", "pa is urgent", "pb is urgent"];
    assert_eq!(meaning(&three), rows);
    assert_eq!(three[0].texts("SELECT 'x' FROM tag").len(), 2);
    // All devices share the merged row: editing and deleting it does not conflict with its
    // creators.
    three[2].write("UPDATE tag SET name = 'calm' WHERE name = 'urgent'").unwrap();
    meet_and_agree(&three, &mut server);
    assert_eq!(meaning(&three)[2], "pa is calm");
    three[0]
        .write("DELETE FROM product_tags WHERE tag_id = 1; DELETE FROM tag WHERE id = 1")
        .unwrap();
    meet_and_agree(&three, &mut server);
    assert_eq!(meaning(&three), ["before is later"]);
}

#[test]
fn rows_that_come_to_be_equal_by_it_become_one_too() {
    let mut server = MemoryServer::default();
    let mut pair = devices::<2>(&mut server);
    pair[0].write("INSERT INTO product (name) VALUES ('p')").unwrap();
    meet_and_agree(&pair, &mut server);
    for device in &mut pair {
        device
            .write(
                "INSERT INTO tag (name) VALUES ('urgent');
                 INSERT INTO product_tags (product_id, tag_id) VALUES (1, last_insert_rowid())",
            )
            .unwrap();
    }
    meet_and_agree(&pair, &mut server);
    assert_eq!(meaning(&pair), ["p is urgent"]);
    assert_eq!(pair[1].texts("SELECT 'x' FROM product_tags").len(), 1);
}

#[test]
fn rows_without_a_unique_value_or_with_another_value_stay_two() {
    let mut server = MemoryServer::default();
    let mut pair = devices::<2>(&mut server);
    // Writes of two devices in one millisecond could be those of a copied file.
    pair[1].clock_ms += 10;
    for (device, color) in pair.iter_mut().zip(["red", "blue"]) {
        add(device, "same", "urgent", color);
    }
    meet_and_agree_but_held(&pair, &mut server);
    assert_eq!(pair[0].texts("SELECT 'x' FROM product").len(), 2);
    assert_eq!(pair[0].replica().hidden_rows().unwrap().len(), 1);
}

fn meet_and_agree_but_held(devices: &[TestDevice], server: &mut MemoryServer) {
    meet(devices, server);
    for device in devices {
        assert_eq!(device.dump(), devices[0].dump());
    }
}

/// Creates two devices that both have the tag `urgent`, red and blue, with rows that refer to it;
/// one tag is hidden.
fn two_tags(server: &mut MemoryServer) -> [TestDevice; 2] {
    let mut pair = devices::<2>(server);
    for (device, (name, color)) in pair.iter_mut().zip([("a", "red"), ("b", "blue")]) {
        add(device, &format!("p{name}"), "urgent", color);
        device
            .write(&format!(
                "INSERT INTO shelf SELECT id, 'of {name}', 'note' FROM tag;
                 INSERT INTO lamp SELECT 'lamp of {name}', tag_id, place FROM shelf"
            ))
            .unwrap();
    }
    meet_and_agree_but_held(&pair, server);
    pair
}

#[test]
fn a_hidden_row_is_merged_into_the_one_that_is_shown() {
    for by in [0, 1] {
        let mut server = MemoryServer::default();
        let mut pair = two_tags(&mut server);
        assert!(pair[0].violations() > 0, "what refers to the hidden tag dangles");
        let now_ms = pair[by].clock_ms + 5_000;
        let replica = pair[by].replica();
        let [row] = &replica.hidden_rows().unwrap()[..] else { panic!("one is held") };
        assert_eq!(row.same_as.as_deref(), Some(if row.key == "1" { "2" } else { "1" }));
        let refused = replica.delete_hidden_row(&row.id, now_ms).unwrap_err();
        let Error::Referenced { same, .. } = refused else { panic!("{refused}") };
        assert_eq!(same.as_ref(), Some(&row.id));
        let merged = replica.merge_hidden_row(&row.id[..6], now_ms).unwrap();
        assert_eq!(
            (Some(&merged.into_key), merged.moved_references_count, merged.hidden_rows_count),
            (row.same_as.as_ref(), 3, 0)
        );
        let rows = [
            "lamp of a on note",
            "lamp of b on note",
            "pa is urgent",
            "pb is urgent",
            "urgent on of a note",
            "urgent on of b note",
        ];
        assert_eq!(meaning(&pair[by..=by]), rows, "at once");
        pair[by].clock_ms += 10_000;
        meet_and_agree(&pair, &mut server);
        assert_eq!(meaning(&pair), rows);
        let replica = pair[by].replica();
        assert_eq!(
            replica.merge_hidden_row(&row.id, now_ms).unwrap_err().code(),
            ErrorCode::ConflictNotFound
        );
    }
}

#[test]
fn a_held_row_that_nothing_needs_is_let_go() {
    let schema = "CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT UNIQUE, color TEXT);
                  CREATE TABLE item (id TEXT PRIMARY KEY, tag TEXT REFERENCES tag (name));";
    let mut server = MemoryServer::default();
    let mut pair = [(); 2].map(|()| TestDevice::tracked(schema, &mut server));
    for (device, color) in pair.iter_mut().zip(["red", "blue"]) {
        let tag = format!("INSERT INTO tag (name, color) VALUES ('urgent', '{color}')");
        device.write(&format!("{tag}; INSERT INTO item VALUES ('{color}', 'urgent')")).unwrap();
    }
    meet_and_agree_but_held(&pair, &mut server);
    let held = pair[0].replica().hidden_rows().unwrap().remove(0);
    // The items refer to the name, which the visible row has, too.
    pair[0].replica().delete_hidden_row(&held.id, pair[0].clock_ms + 5_000).unwrap();
    pair[0].clock_ms += 10_000;
    meet_and_agree(&pair, &mut server);
    assert_eq!(pair[1].violations(), 0);
}

#[test]
fn what_refers_to_a_merged_row_later_can_follow() {
    let mut server = MemoryServer::default();
    let mut pair = two_tags(&mut server);
    let held = pair[0].replica().hidden_rows().unwrap().remove(0);
    pair[0].replica().merge_hidden_row(&held.id, pair[0].clock_ms + 5_000).unwrap();
    pair[0].clock_ms += 10_000;
    pair[1]
        .write(&format!(
            "PRAGMA foreign_keys = OFF; INSERT INTO product (name) VALUES ('late');
         INSERT INTO product_tags (product_id, tag_id) VALUES (last_insert_rowid(), {})",
            held.key
        ))
        .unwrap();
    meet_and_agree_but_held(&pair, &mut server);
    let [missing] = &pair[1].replica().hidden_rows().unwrap()[..] else { panic!("one is missing") };
    assert_eq!(
        (missing.kind, &missing.id, &missing.same_as),
        (VisibilityOverrideKind::DanglingReference, &held.id, &held.same_as)
    );
    let now_ms = pair[1].clock_ms + 20_000;
    assert_eq!(
        pair[1].replica().delete_hidden_row(&missing.id, now_ms).unwrap_err().code(),
        ErrorCode::Referenced
    );
    assert_eq!(
        pair[1].replica().merge_hidden_row(&missing.id, now_ms).unwrap().moved_references_count,
        1
    );
    pair[1].clock_ms += 30_000;
    meet_and_agree(&pair, &mut server);
    assert!(meaning(&pair).contains(&"late is urgent".to_owned()));
}

#[test]
fn rows_that_would_get_one_key_and_differ_are_not_merged() {
    let mut server = MemoryServer::default();
    let mut pair = devices::<2>(&mut server);
    for (device, color) in pair.iter_mut().zip(["red", "blue"]) {
        device
            .write(&format!(
                "INSERT INTO tag (name, color) VALUES ('urgent', '{color}');
                 INSERT INTO shelf SELECT id, 'left', 'note of {color}' FROM tag"
            ))
            .unwrap();
    }
    meet_and_agree_but_held(&pair, &mut server);
    let (before, held) = (pair[0].dump(), pair[0].replica().hidden_rows().unwrap().remove(0));
    let now_ms = pair[0].clock_ms + 5_000;
    let refused = pair[0].replica().merge_hidden_row(&held.id, now_ms).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ConstraintViolated);
    assert!(refused.to_string().contains("shelf"), "{refused}");
    assert_eq!(pair[0].dump(), before, "nothing changed");
    pair[0].write("UPDATE shelf SET note = 'one'").unwrap();
    let merged = pair[0].replica().merge_hidden_row(&held.id, now_ms).unwrap();
    assert_eq!((merged.moved_references_count, merged.hidden_rows_count), (1, 0));
    pair[0].clock_ms += 10_000;
    meet_and_agree(&pair, &mut server);
    assert_eq!(meaning(&pair), ["urgent on left one"]);
}

#[test]
fn a_row_that_follows_and_collides_is_held_back_and_said() {
    let mut server = MemoryServer::default();
    let mut pair = devices::<2>(&mut server);
    pair[0]
        .write(
            "INSERT INTO product (name) VALUES ('p'); ALTER TABLE product_tags ADD COLUMN by TEXT",
        )
        .unwrap();
    pair[1].write("ALTER TABLE product_tags ADD COLUMN by TEXT").unwrap();
    meet_and_agree(&pair, &mut server);
    for (device, color) in pair.iter_mut().zip(["red", "blue"]) {
        device
            .write(&format!(
                "INSERT INTO tag (name, color) VALUES ('urgent', '{color}');
                 INSERT INTO product_tags (product_id, tag_id, by)
                     VALUES (1, last_insert_rowid(), 'who likes {color}')"
            ))
            .unwrap();
    }
    meet_and_agree_but_held(&pair, &mut server);
    let held = pair[0].replica().hidden_rows().unwrap().remove(0);
    let merged = pair[0].replica().merge_hidden_row(&held.id, pair[0].clock_ms + 5_000).unwrap();
    assert_eq!((merged.moved_references_count, merged.hidden_rows_count), (1, 1));
    pair[0].clock_ms += 10_000;
    meet_and_agree_but_held(&pair, &mut server);
    assert_eq!(pair[1].violations(), 0);
    let held = pair[1].replica().hidden_rows().unwrap().remove(0);
    assert_eq!(held.table, "product_tags");
    // No row refers to it, so it may be deleted.
    pair[1].replica().delete_hidden_row(&held.id, pair[1].clock_ms + 50_000).unwrap();
    pair[1].clock_ms += 60_000;
    meet_and_agree(&pair, &mut server);
    assert_eq!(meaning(&pair), ["p is urgent"]);
}

/// Creates two devices, each of which inserts a tag, red or blue, and then runs `statements`;
/// `schema` adds the tables of the test. One tag is hidden.
fn two_tags_and(schema: &str, statements: &str, server: &mut MemoryServer) -> [TestDevice; 2] {
    let tag = "CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT UNIQUE, color TEXT)";
    let mut pair = [(); 2].map(|()| TestDevice::tracked(&format!("{tag}; {schema}"), server));
    for (device, color) in pair.iter_mut().zip(["red", "blue"]) {
        let tag = format!("INSERT INTO tag (name, color) VALUES ('urgent', '{color}')");
        device.write(&format!("{tag}; {}", statements.replace("COLOR", color))).unwrap();
    }
    meet_and_agree_but_held(&pair, server);
    pair
}

fn merge_the_tag(device: &mut TestDevice) -> MergedRow {
    let held = device.replica().hidden_rows().unwrap();
    let tag = held.iter().find(|row| row.table == "tag").unwrap();
    let merged = device.replica().merge_hidden_row(&tag.id, device.clock_ms + 5_000).unwrap();
    device.clock_ms += 10_000;
    merged
}

#[test]
fn a_row_whose_key_refers_to_the_merged_row_twice_follows_as_a_whole() {
    let mut server = MemoryServer::default();
    let schema = "CREATE TABLE pair (a INTEGER REFERENCES tag, b INTEGER REFERENCES tag, note TEXT,
                      PRIMARY KEY (a, b))";
    let statements = "INSERT INTO pair SELECT id, id, 'COLOR' FROM tag WHERE color = 'COLOR'";
    let mut pair = two_tags_and(schema, statements, &mut server);
    let held = pair[0].replica().hidden_rows().unwrap().remove(0);
    let same_as = held.same_as.clone().unwrap();
    // Both rows would get the same key.
    let refused =
        pair[0].replica().merge_hidden_row(&held.id, pair[0].clock_ms + 5_000).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ConstraintViolated);
    pair[0].write(&format!("DELETE FROM pair WHERE a = {same_as}")).unwrap();
    assert_eq!(merge_the_tag(&mut pair[0]).into_key, same_as);
    meet_and_agree(&pair, &mut server);
    assert_eq!(pair[1].violations(), 0);
    assert_eq!(pair[1].texts("SELECT a || b FROM pair"), [format!("{same_as}{same_as}")]);
}

#[test]
fn a_row_that_is_held_back_itself_follows_too() {
    let mut server = MemoryServer::default();
    let schema = "CREATE TABLE price (id INTEGER PRIMARY KEY, code TEXT UNIQUE, note TEXT,
                      tag_id INTEGER REFERENCES tag)";
    let statements = "INSERT INTO price (code, note, tag_id)
                      SELECT 'x', 'of COLOR', id FROM tag WHERE color = 'COLOR'";
    let mut pair = two_tags_and(schema, statements, &mut server);
    assert_eq!(pair[0].replica().hidden_rows().unwrap().len(), 2);
    assert_eq!(merge_the_tag(&mut pair[0]).moved_references_count, 1);
    meet_and_agree(&pair, &mut server);
    let [price] = &pair[1].replica().hidden_rows().unwrap()[..] else { panic!("one is held") };
    pair[1]
        .replica()
        .resolve_hidden_row(&price.id, "code", "y", pair[1].clock_ms + 15_000)
        .unwrap();
    pair[1].clock_ms += 20_000;
    meet_and_agree(&pair, &mut server);
    for device in &pair {
        assert_eq!(device.violations(), 0);
        let tags = "SELECT note || ' ' || name FROM price JOIN tag ON tag.id = tag_id ORDER BY 1";
        assert_eq!(device.texts(tags), ["of blue urgent", "of red urgent"]);
    }
}

#[test]
fn a_table_that_does_not_sync_follows_a_merge() {
    let mut server = MemoryServer::default();
    let mut pair = two_tags_and("SELECT 1", "SELECT 1", &mut server);
    let held = pair[0].replica().hidden_rows().unwrap().remove(0);
    let own = format!(
        "PRAGMA foreign_keys = OFF; CREATE TABLE own (tag_id INTEGER REFERENCES tag);
         INSERT INTO own VALUES ({})",
        held.key
    );
    pair[0].app.execute_batch(&own).unwrap();
    assert_eq!(pair[0].violations(), 1);
    merge_the_tag(&mut pair[0]);
    assert_eq!(pair[0].violations(), 0);
    assert_eq!(Some(pair[0].texts("SELECT tag_id || '' FROM own").remove(0)), held.same_as);
}

/// The row is deleted on one device and referred to on another, while its name goes to a new row.
#[test]
fn a_deleted_row_that_others_refer_to_is_shown_with_another_value() {
    let mut server = MemoryServer::default();
    let schema = "CREATE TABLE item (id TEXT PRIMARY KEY, tag_id INTEGER REFERENCES tag)";
    let mut pair = two_tags_and(schema, "DELETE FROM tag", &mut server);
    pair[0].write("INSERT INTO tag VALUES (7, 'urgent', 'grey')").unwrap();
    meet_and_agree(&pair, &mut server);
    pair[0].write("DELETE FROM tag; INSERT INTO tag VALUES (8, 'urgent', 'pink')").unwrap();
    pair[1].write("INSERT INTO item VALUES ('late', 7)").unwrap();
    meet_and_agree_but_held(&pair, &mut server);
    let [missing] = &pair[1].replica().hidden_rows().unwrap()[..] else { panic!("one is missing") };
    assert_eq!((missing.kind, &*missing.key), (VisibilityOverrideKind::DanglingReference, "7"));
    pair[1]
        .replica()
        .resolve_hidden_row(&missing.id, "name", "was urgent", pair[1].clock_ms + 5_000)
        .unwrap();
    pair[1].clock_ms += 10_000;
    meet_and_agree(&pair, &mut server);
    for device in &pair {
        assert_eq!(device.violations(), 0);
        let tags = device.texts("SELECT id || name FROM tag ORDER BY id");
        assert_eq!(tags, ["7was urgent", "8urgent"]);
    }
}

const WORDS: [&str; 3] = ["urgent", "later", "done"];

#[derive(Clone, Debug)]
enum JoinStep {
    /// Adds a product with a tag from [`WORDS`].
    Add(usize),
    Sync,
    /// Syncs, and loses the answer to the request with this number.
    FailingSync(u64),
}

fn any_step() -> impl Strategy<Value = (usize, JoinStep)> {
    let step = prop_oneof![
        4 => (0..WORDS.len()).prop_map(JoinStep::Add),
        2 => Just(JoinStep::Sync),
        1 => (1_u64..6).prop_map(JoinStep::FailingSync),
    ];
    (0_usize..4, step)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whoever_adds_a_tag_there_is_one_of_each_name(
        steps in prop::collection::vec(any_step(), 1..40),
    ) {
        let mut server = MemoryServer::default();
        let mut four = devices::<4>(&mut server);
        let mut expected = Vec::new();
        for (number, (device, step)) in steps.into_iter().enumerate() {
            match step {
                JoinStep::Add(word) => {
                    let (name, word) = (format!("p{number}"), WORDS[word]);
                    add(&mut four[device], &name, word, "grey");
                    expected.push(format!("{name} is {word}"));
                }
                JoinStep::Sync => drop(four[device].sync(&mut server)),
                JoinStep::FailingSync(which) => {
                    server.lose_answer = Some(server.requests + which);
                    drop(four[device].try_sync(&mut server, false));
                    server.lose_answer = None;
                }
            }
        }
        meet_and_agree(&four, &mut server);
        expected.sort();
        prop_assert_eq!(meaning(&four), expected);
    }
}
