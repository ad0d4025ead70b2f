//! Tests with unchanged programs of real frameworks, whose tables all have auto keys, on three
//! devices that are offline most of the time: no row is lost, and each still refers to the same
//! row.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::fixture::{SyncFixture, check_report, rows, sync, track_all};
use crate::processes::{CommandOutput, json as warren_json, python, sql};

const APPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/frameworks");
/// The number of edits of each device in each round, and the order in which the devices then sync.
const ROUNDS: [(u32, [usize; 4]); 4] =
    [(50, [0, 1, 2, 0]), (50, [2, 1, 0, 2]), (50, [1, 2, 1, 0]), (50, [0, 2, 0, 1])];

struct FrameworkApp {
    script: &'static str,
}

impl FrameworkApp {
    fn run(&self, file: &str, arguments: &[&str]) -> Value {
        let mut command = Command::new(python());
        command.arg(Path::new(APPS).join(self.script)).arg(file).args(arguments);
        CommandOutput::new(command.output().unwrap()).succeeded().value()
    }
}

fn strings(value: &Value) -> BTreeSet<String> {
    let one = |text: &Value| text.as_str().unwrap().to_owned();
    value.as_array().unwrap().iter().map(one).collect()
}

/// Creates three files: the first one's tables exist from the start, and the second is a clone.
fn three_devices(app: &FrameworkApp, address: &str, place: &SyncFixture) -> [String; 3] {
    let files = ["one.db", "two.db", "three.db"].map(|name| place.at(name));
    app.run(&files[0], &["make"]);
    let tracked = track_all(&files[0]);
    let counting = tracked["tables"].as_array().unwrap();
    assert!(counting.iter().any(|table| table["auto_keys"] == json!(true)), "{tracked}");
    place.sign_in("sync", &files[0], address);
    place.sign_in("clone", &files[1], address);
    files
}

/// Edits on all devices, syncs in several orders, and checks that the expected rows exist.
fn check_edits(app: &FrameworkApp, files: &[String; 3]) {
    let (mut added, mut removed) = (BTreeSet::new(), BTreeSet::new());
    let (mut renumbered, mut merged) = (0, 0);
    for (round, (count, order)) in ROUNDS.into_iter().enumerate() {
        for (device, file) in files.iter().enumerate() {
            let (name, seed) = (format!("{device}.{round}"), format!("{}", round * 3 + device));
            let edits = app.run(file, &["edit", &name, &seed, &count.to_string()]);
            added.extend(strings(&edits["added"]));
            removed.extend(strings(&edits["removed"]));
        }
        for device in order {
            let report = sync(&files[device]);
            renumbered += report["renumbered_rows"].as_array().unwrap().len();
            merged += report["merged_rows"].as_array().unwrap().len();
            let faults = app.run(&files[device], &["faults"]);
            assert_eq!(faults, json!([]), "of other rows, after round {round}");
        }
    }
    // Each device gets what the others sent in the last round.
    for file in files {
        sync(file);
    }
    let expected: BTreeSet<_> = added.difference(&removed).cloned().collect();
    assert!(expected.len() > 500 && renumbered > 100, "{} {renumbered}", expected.len());
    assert!(merged > 5, "genres that two devices added: {merged}");
    for file in files {
        let facts = strings(&app.run(file, &["facts"]));
        let missing: Vec<_> = expected.difference(&facts).collect();
        let extra: Vec<_> = facts.difference(&expected).collect();
        assert!(missing.is_empty() && extra.is_empty(), "missing {missing:?}, extra {extra:?}");
        assert_eq!(app.run(file, &["faults"]), json!([]));
        assert_eq!(dangling(file), "0");
        assert_eq!(warren_json(&["conflicts", file])["hidden_rows"], json!([]));
        assert_eq!(sql(file, "PRAGMA integrity_check"), "ok");
        assert_eq!(rows(file), rows(&files[0]));
    }
}

#[test]
fn a_django_app_on_three_devices_loses_no_row() {
    let app = FrameworkApp { script: "django_app.py" };
    let place = SyncFixture::new();
    let server = place.serve();
    let files = three_devices(&app, &server.address, &place);
    // The third ran Django's own migrations, too: the server already has the rows of these.
    app.run(&files[2], &["make"]);
    track_all(&files[2]);
    check_report(&place.sign_in("sync", &files[2], &server.address));
    check_edits(&app, &files);
}

#[test]
fn an_sqlalchemy_app_on_three_devices_loses_no_row() {
    let app = FrameworkApp { script: "sqlalchemy_app.py" };
    let place = SyncFixture::new();
    let server = place.serve();
    let files = three_devices(&app, &server.address, &place);
    place.sign_in("clone", &files[2], &server.address);
    check_edits(&app, &files);
}

#[test]
fn people_are_told_which_keys_are_counted_and_which_rows_got_another() {
    let place = SyncFixture::new();
    let server = place.serve();
    let files = ["a.db", "b.db"].map(|name| place.at(name));
    for file in &files {
        sql(file, "CREATE TABLE note (id INTEGER PRIMARY KEY AUTOINCREMENT, text)");
        sql(file, "CREATE TABLE word (word TEXT PRIMARY KEY)");
        let told = crate::processes::warren(&["track", file, "--all"]).succeeded().stdout;
        assert!(told.contains("SQLite assigns the keys of note:"), "{told}");
        sql(file, "INSERT INTO note (text) VALUES ('mine')");
    }
    place.sign_in("sync", &files[0], &server.address);
    let first = place.first_time(&server.address);
    let told = [&["sync", files[1].as_str()], &first[..]].concat();
    let told = crate::processes::warren(&told).succeeded().stdout;
    assert!(told.contains("note: row 1 now has key 2"), "{told}");
    warren_json(&["sync", &files[0]]);
    for file in &files {
        assert_eq!(sql(file, "SELECT id, text FROM note"), "1|mine\n2|mine");
    }
}

/// Checks a migration. A tool changes the tables of one device, which drops their triggers, and
/// the program continues, before the next sync or after it; the other device gets the column, and
/// everything that was written.
fn check_migration(app: &FrameworkApp, tool: &str, book: &str) {
    for is_synced_first in [true, false] {
        check_edits_after_migration(app, tool, book, is_synced_first);
    }
}

/// Creates a tracked bookshop with some edits.
fn make_bookshop(app: &FrameworkApp, file: &str) {
    app.run(file, &["make"]);
    track_all(file);
    app.run(file, &["edit", "before", "1", "60"]);
}

fn check_edits_after_migration(app: &FrameworkApp, tool: &str, book: &str, is_synced_first: bool) {
    let place = SyncFixture::new();
    let server = place.serve();
    let files = ["a.db", "b.db"].map(|name| place.at(name));
    make_bookshop(app, &files[0]);
    place.sign_in("sync", &files[0], &server.address);
    place.sign_in("clone", &files[1], &server.address);

    migrate(tool, &files[0]);
    if is_synced_first {
        // This sends the table's declaration: no row has changed.
        let report = sync(&files[0]);
        assert!(report["sent_count"].as_u64() <= Some(1), "{tool}: {report}");
        assert_eq!(
            (&report["schema_conflicts"], &report["conflicts_count"]),
            (&json!([]), &json!(0))
        );
    }
    app.run(&files[0], &["edit", "after", "2", "60"]);
    let written = strings(&app.run(&files[0], &["facts"]));
    if !is_synced_first {
        sync(&files[0]);
        assert_eq!(strings(&app.run(&files[0], &["facts"])), written, "{tool}");
    }
    sql(&files[0], &format!("UPDATE {book} SET subtitle = title || ', a tale'"));
    app.run(&files[1], &["edit", "meanwhile", "3", "60"]);
    for file in [&files[0], &files[1], &files[0]] {
        sync(file);
    }
    let facts = files.each_ref().map(|file| strings(&app.run(file, &["facts"])));
    assert_eq!(facts[0], facts[1]);
    assert!(facts[0].len() > 150, "{}", facts[0].len());
    for select in ["count(*) > 30", "count(subtitle) > 20", "sum(typeof(pages) <> 'integer') = 0"] {
        for file in &files {
            assert_eq!(sql(file, &format!("SELECT {select} FROM {book}")), "1", "{tool}: {select}");
        }
    }
    join_genres(&files);
    assert_eq!(rows(&files[1]).len(), rows(&files[0]).len());
    for file in &files {
        assert_eq!(dangling(file), "0");
    }
}

/// Merges genres, as a person does: one device has deleted a genre and added it again, while the
/// other has used it.
fn join_genres(files: &[String; 2]) {
    let held = |file: &str| warren_json(&["conflicts", file])["hidden_rows"].clone();
    while let Some(row) = held(&files[0]).as_array().unwrap().first() {
        warren_json(&["conflicts", &files[0], "--merge", row["id"].as_str().unwrap()]);
    }
    for file in files {
        sync(file);
    }
    assert_eq!(held(&files[1]), json!([]));
}

/// Counts references to missing rows, also to genres: their names are unique, and two people add
/// the same one.
fn dangling(file: &str) -> String {
    sql(file, "SELECT count(*) FROM pragma_foreign_key_check")
}

fn migrate(tool: &str, file: &str) {
    let mut command = Command::new(python());
    command.arg(Path::new(APPS).join("migrations.py")).args([tool, file]);
    CommandOutput::new(command.output().unwrap()).succeeded();
}

#[test]
fn what_djangos_migrations_do_to_tables_is_followed() {
    check_migration(&FrameworkApp { script: "django_app.py" }, "django", "django_shop_book");
}

#[test]
fn what_alembics_batches_do_to_tables_is_followed() {
    check_migration(&FrameworkApp { script: "sqlalchemy_app.py" }, "alembic", "book");
}

#[test]
fn what_railss_migrations_do_to_tables_is_followed() {
    check_migration(&FrameworkApp { script: "sqlalchemy_app.py" }, "rails", "book");
}

/// The program is updated at a different time on each device, and then Django writes the default
/// to every row.
#[test]
fn a_field_that_django_adds_on_every_device_takes_no_edit_back() {
    let app = FrameworkApp { script: "django_app.py" };
    let place = SyncFixture::new();
    let server = place.serve();
    let files = ["a.db", "b.db"].map(|name| place.at(name));
    make_bookshop(&app, &files[0]);
    std::fs::copy(&files[0], &files[1]).unwrap();
    place.sign_in("sync", &files[0], &server.address);
    place.sign_in("sync", &files[1], &server.address);

    migrate("django_default", &files[0]);
    sync(&files[0]);
    sql(&files[0], "UPDATE django_shop_book SET stars = 5 WHERE id % 2");
    sync(&files[0]);
    migrate("django_default", &files[1]);
    for file in [&files[1], &files[0]] {
        let report = sync(file);
        assert_eq!(
            (&report["hidden_rows_count"], &report["conflicts_count"]),
            (&json!(0), &json!(0)),
            "{report}"
        );
    }
    for file in &files {
        let stars = "SELECT count(*) > 10, sum(stars <> 3 + 2 * (id % 2)) FROM django_shop_book";
        assert_eq!(sql(file, stars), "1|0");
        assert_eq!(rows(file), rows(&files[0]));
    }
}
