//! Tests of lost edits and of the history, with the shipped binary.

use serde_json::{Value, json};

use crate::fixture::{SyncFixture, check_equal, sync, track_all};
use crate::processes::{ServeProcess, json, sql, warren};

/// Prepares two devices that each edited the same cell without knowledge of the other, `b` later,
/// and that have synced since.
fn conflict(place: &SyncFixture) -> (ServeProcess, String, String) {
    let server = place.serve();
    let (a, b) = (place.at("a.db"), place.at("b.db"));
    sql(
        &a,
        "CREATE TABLE todo (list TEXT, n INTEGER, title TEXT, done INTEGER, PRIMARY KEY (list, n));
         INSERT INTO todo VALUES ('home', 1, 'paint', 0), ('home', -2, 'sweep', 0)",
    );
    track_all(&a);
    json(
        &[&["sync", &a, "--device-name", "desk"], &place.first_time(&server.address)[..]].concat(),
    );
    place.sign_in("clone", &b, &server.address);
    sql(&a, "UPDATE todo SET title = 'paint it red' WHERE n = 1; DELETE FROM todo WHERE n = -2");
    // The clocks' resolution is a millisecond; the shell takes longer to start.
    sql(&b, "UPDATE todo SET title = 'paint it blue' WHERE n = 1; UPDATE todo SET done = 1");
    for file in [&a, &b, &a] {
        sync(file);
    }
    check_equal(&a, &b);
    (server, a, b)
}

fn conflicts(file: &str) -> Vec<Value> {
    json(&["conflicts", file])["conflicts"].as_array().unwrap().clone()
}

fn ids(file: &str) -> Vec<Value> {
    conflicts(file).iter().map(|conflict| conflict["id"].clone()).collect()
}

#[test]
fn a_lost_edit_is_listed_on_both_devices_and_restored_with_one_command() {
    let place = SyncFixture::new();
    let (server, a, b) = conflict(&place);
    assert_eq!(ids(&a), ids(&b));
    let [ref deleted, ref edited] = conflicts(&a)[..] else { panic!("{:?}", conflicts(&a)) };
    let (edited, deleted) =
        if edited["column"] == "title" { (edited, deleted) } else { (deleted, edited) };
    assert_eq!((&edited["table"], &edited["key"]), (&json!("todo"), &json!("'home', 1")));
    assert_eq!(edited["lost"]["value"], "'paint it red'");
    assert_eq!(edited["lost"]["device_name"], "desk");
    assert_eq!(edited["winner"]["value"], "'paint it blue'");
    assert_eq!((&deleted["column"], &deleted["lost"]["deleted"]), (&json!(null), &json!(true)));
    let id = edited["id"].as_str().unwrap();
    let text = warren(&["conflicts", &a]).succeeded().stdout;
    assert!(text.contains(&format!("{id}  todo ('home', 1) title\n")), "{text}");
    assert!(text.contains("'paint it red' on desk"), "{text}");

    warren(&["conflicts", &b, "--restore", "00000000000", "--json"]).refused("conflict_not_found");
    let restored = json(&["conflicts", &b, "--restore", id]);
    assert_eq!(restored["restored"]["id"], id);
    assert_eq!(sql(&b, "SELECT title FROM todo WHERE n = 1"), "paint it red");
    let id = deleted["id"].as_str().unwrap();
    json(&["conflicts", &b, "--restore", &id[..7]]);
    for file in [&b, &a] {
        sync(file);
    }
    check_equal(&a, &b);
    assert_eq!(sql(&a, "SELECT title, done FROM todo"), "paint it red|1");
    for file in [&a, &b] {
        assert_eq!(conflicts(file), [json!(null); 0]);
        assert!(warren(&["conflicts", file]).succeeded().stdout.contains("no lost edits"));
    }
    server.stop();
}

#[test]
fn a_sync_says_that_edits_were_lost_and_one_that_is_let_be_is_in_no_list() {
    let place = SyncFixture::new();
    let (server, a, b) = conflict(&place);
    let id = conflicts(&a)[0]["id"].as_str().unwrap().to_owned();
    let dismissed = json(&["conflicts", &a, "--dismiss", &id]);
    assert_eq!(dismissed["dismissed"]["id"], id);
    warren(&["conflicts", &a, "--dismiss", &id, "--json"]).refused("conflict_not_found");
    let before = sql(&a, "SELECT * FROM todo");
    for file in [&a, &b] {
        sync(file);
        assert_eq!(conflicts(file).len(), 1, "the other");
    }
    assert_eq!(sql(&b, "SELECT * FROM todo"), before);
    check_equal(&a, &b);

    sql(&a, "UPDATE todo SET title = 'of a' WHERE n = 1");
    sql(&b, "UPDATE todo SET title = 'of b' WHERE n = 1");
    sync(&a);
    let said = warren(&["sync", &b]).succeeded().stdout;
    let line =
        format!(", overwritten by concurrent edits (review or restore: `warren conflicts {b}`)");
    assert!(said.contains(&line), "{said}");
    assert!(json(&["sync", &a])["conflicts_count"].as_u64() >= Some(1));
    server.stop();
}

#[test]
fn rows_that_are_held_back_are_listed_given_another_value_or_deleted() {
    let place = SyncFixture::new();
    let server = place.serve();
    let files = ["a.db", "b.db"].map(|name| place.at(name));
    for (file, name) in files.iter().zip(["a", "b"]) {
        sql(file, "CREATE TABLE user (id TEXT PRIMARY KEY, email TEXT UNIQUE)");
        track_all(file);
        let both = format!("('{name}1', 'ada@x.org'), ('{name}2', 'bob@x.org')");
        sql(file, &format!("INSERT INTO user VALUES {both}"));
        place.sign_in("sync", file, &server.address);
    }
    let report = json(&["sync", &files[0]]);
    assert_eq!(report["hidden_rows_count"], 2, "{report}");
    let said = warren(&["conflicts", &files[0]]).succeeded().stdout;
    assert!(said.contains("user ('a1') is hidden: a newer row has the same"), "{said}");
    let held = json(&["conflicts", &files[0]])["hidden_rows"].clone();
    let ids = [0, 1].map(|place| held[place]["id"].as_str().unwrap());
    let give = |given| ["conflicts", &files[0], "--json", "--resolve", ids[0], given];
    warren(&give("email=bob@x.org")).refused("constraint_violated");
    warren(&give("email=ada@y.org")).succeeded();
    json(&["conflicts", &files[0], "--dismiss", ids[1]]);
    for file in [&files[0], &files[1], &files[0]] {
        assert_eq!(json(&["sync", file])["in_sync"], true);
    }
    for file in &files {
        let users = "a1|ada@y.org\nb1|ada@x.org\nb2|bob@x.org";
        assert_eq!(sql(file, "SELECT * FROM user ORDER BY id"), users);
        assert_eq!(json(&["conflicts", file]), json!({"conflicts": [], "hidden_rows": []}));
    }
    server.stop();
}

#[test]
fn history_lists_the_changes_of_a_row() {
    let place = SyncFixture::new();
    let (server, a, _) = conflict(&place);
    let changes = json(&["history", &a, "todo", "home", "1"])["changes"].clone();
    let changes = changes.as_array().unwrap();
    let values: Vec<_> = changes
        .iter()
        .flat_map(|change| change["cells"].as_array().unwrap())
        .filter(|cell| cell["column"] == "title")
        .map(|cell| (cell["value"].as_str().unwrap(), cell["visible"].as_bool().unwrap()))
        .collect();
    let expected = [("'paint'", false), ("'paint it red'", false), ("'paint it blue'", true)];
    assert_eq!(values, expected);
    assert_eq!(changes[0]["changed_ms"].as_u64().unwrap() / 86_400_000, 0, "the baseline");
    let text = warren(&["history", &a, "todo", "'home'", "-2"]).succeeded().stdout;
    assert!(text.contains("before it was tracked  written on desk"), "{text}");
    assert!(text.contains("deleted on desk") && text.contains("* done = 1"), "{text}");
    let none = warren(&["history", &a, "todo", "home", "9"]).succeeded().stdout;
    assert!(none.starts_with("no changes of row (home, 9) in todo"), "{none}");
    server.stop();
}

const SHOP: &str = "
    CREATE TABLE tag (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, maker TEXT);
    CREATE TABLE product (id TEXT PRIMARY KEY, tag_id INTEGER NOT NULL REFERENCES tag);";
const PRODUCTS: &str = "SELECT p.id, name FROM product p JOIN tag t ON t.id = tag_id ORDER BY p.id";

/// Prepares two devices that each added the tag `urgent` and a product with it, and that have
/// synced since.
fn two_tags(place: &SyncFixture, makers: [&str; 2]) -> (ServeProcess, [String; 2], Vec<Value>) {
    let server = place.serve();
    let files = ["a.db", "b.db"].map(|name| place.at(name));
    for (file, maker) in files.iter().zip(makers) {
        sql(file, SHOP);
        track_all(file);
        sql(file, &format!("INSERT INTO tag (name, maker) VALUES ('urgent', '{maker}')"));
        let name = std::path::Path::new(file).file_stem().unwrap().to_str().unwrap();
        sql(file, &format!("INSERT INTO product SELECT 'of {name}', id FROM tag"));
    }
    let first = place.sign_in("sync", &files[0], &server.address);
    let reports = vec![first, place.sign_in("sync", &files[1], &server.address), sync(&files[0])];
    (server, files, reports)
}

#[test]
fn two_people_who_add_the_same_tag_have_one() {
    let place = SyncFixture::new();
    let (server, files, reports) = two_tags(&place, ["", ""]);
    assert_eq!(reports[1]["merged_rows"], json!([{"table": "tag", "old_key": 1, "new_key": 1}]));
    for file in &files {
        assert_eq!(sql(file, PRODUCTS), "of a|urgent\nof b|urgent");
        assert_eq!(sql(file, "PRAGMA foreign_key_check"), "");
        assert_eq!(json(&["conflicts", file])["hidden_rows"], json!([]));
    }
    server.stop();
}

#[test]
fn a_hidden_row_is_merged_into_the_one_that_is_shown() {
    let place = SyncFixture::new();
    let (server, files, _) = two_tags(&place, ["ada", "bob"]);
    let [a, b] = &files;
    assert_ne!(sql(a, "PRAGMA foreign_key_check"), "", "the hidden tag is referred to");
    let held = json(&["conflicts", a])["hidden_rows"][0].clone();
    let id = held["id"].as_str().unwrap();
    let said = warren(&["sync", a]).succeeded().stdout;
    let hidden = "in sync (not shown: 1 hidden row). Sent ";
    assert!(said.contains(hidden), "{said}");
    let listed = warren(&["conflicts", a]).succeeded().stdout;
    assert!(listed.contains(&format!("--merge {id}")), "{listed}");
    let refused = warren(&["conflicts", a, "--dismiss", id, "--json"]);
    refused.refused("referenced");
    let merged = json(&["conflicts", a, "--merge", id]);
    assert_eq!(
        (&merged["merged"]["into_key"], &merged["merged"]["moved_references_count"]),
        (&held["same_as"], &json!(1))
    );
    for file in [a, b] {
        sync(file);
    }
    check_equal(a, b);
    for file in &files {
        assert_eq!(sql(file, PRODUCTS), "of a|urgent\nof b|urgent");
        assert_eq!(sql(file, "PRAGMA foreign_key_check"), "");
        assert_eq!(json(&["conflicts", file])["hidden_rows"], json!([]));
    }
    server.stop();
}
