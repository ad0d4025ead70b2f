//! Tests of `warren vacuum`, and of a file's health in `warren inspect`.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{SyncFixture, track_all};
use crate::hex::hex;
use crate::processes::{OpenTransaction, json, sql, warren, with_input};

/// Creates a file of a few megabytes, half of it free, in this journal mode.
fn half_empty(folder: &TempDir, journal_mode: &str) -> String {
    let file = folder.path().join(format!("{journal_mode}.db")).to_str().unwrap().to_owned();
    sql(
        &file,
        &format!(
            "PRAGMA journal_mode = {journal_mode};
             PRAGMA user_version = 7;
             CREATE TABLE t (id INTEGER PRIMARY KEY, x);
             CREATE INDEX by_x ON t (x);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
             INSERT INTO t SELECT i, randomblob(900) FROM n;
             DELETE FROM t WHERE id % 2;"
        ),
    );
    file
}

fn content(file: &str) -> String {
    sql(
        file,
        "PRAGMA journal_mode; PRAGMA user_version; PRAGMA integrity_check;
         SELECT id, hex(x) FROM t ORDER BY id;",
    )
}

fn inode(file: &str) -> u64 {
    Path::new(file).metadata().unwrap().ino()
}

#[test]
fn a_file_is_shrunk_either_way_and_keeps_what_it_has() {
    const METHODS: [(&[&str], &str); 3] = [
        (&[], "copy"),
        (&["--in-place"], "in_place"),
        (&["--in-place", "--temp-store", "memory"], "in_place"),
    ];
    for journal_mode in ["wal", "delete"] {
        for (options, method) in METHODS {
            let folder = tempfile::tempdir().unwrap();
            let file = half_empty(&folder, journal_mode);
            let mode = PermissionsExt::from_mode(0o640);
            std::fs::set_permissions(&file, mode).unwrap();
            let (before, old) = (content(&file), inode(&file));
            let report = json(&[&["vacuum", &file], options].concat());
            assert_eq!(
                (&report["method"], &report["rows_count"]),
                (&json!(method), &json!(1_000)),
                "{report}"
            );
            let figure = |name: &str| report[name].as_u64().unwrap();
            assert!(figure("after_bytes") < figure("before_bytes") * 6 / 10, "{report}");
            assert_eq!(figure("after_bytes"), Path::new(&file).metadata().unwrap().len());
            assert!(figure("peak_memory_bytes") > 1_000_000, "{report}");
            assert!(report["duration_ms"].is_u64());
            assert_eq!(content(&file), before);
            assert_eq!(inode(&file) == old, method == "in_place");
            assert_eq!(Path::new(&file).metadata().unwrap().mode() & 0o777, 0o640);
            let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
            assert_eq!(left.len(), 1, "{left:?}");
        }
    }
}

#[test]
fn people_are_told_what_it_came_to() {
    let folder = tempfile::tempdir().unwrap();
    let file = half_empty(&folder, "wal");
    let told = warren(&["vacuum", &file]).succeeded().stdout;
    for part in [" MB before, ", " MB after (copy, ", ", peak memory ", "1,000 rows, as before"] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
}

/// The statements of a read transaction.
const READING: &str = "BEGIN; SELECT count(*) FROM t";

#[test]
fn a_file_that_is_open_elsewhere_is_left_alone_and_the_process_is_named() {
    for journal_mode in ["wal", "delete"] {
        let folder = tempfile::tempdir().unwrap();
        let file = half_empty(&folder, journal_mode);
        let shell = OpenTransaction::begin(&file, READING);
        let old = inode(&file);
        let refused = warren(&["vacuum", &file, "--json"]);
        refused.refused("busy");
        let message = refused.value()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!("sqlite3 (pid {})", shell.process())), "{message}");
        if journal_mode == "wal" {
            assert!(message.contains("which reads"), "{message}");
        }
        assert_eq!(inode(&file), old);
        drop(shell);
        json(&["vacuum", &file]);
        assert_ne!(inode(&file), old);
    }
}

#[test]
fn an_encrypted_file_needs_its_key_and_stays_encrypted() {
    let place = SyncFixture::new();
    let vault = place.operator(&["inspect", "--login", "ada"]);
    let vault = vault["storage"]["path"].as_str().unwrap().to_owned();
    let key = place.write("key.hex", &hex(place.unlock(crate::fixture::PASSWORD).key.as_bytes()));
    let wrong = place.write("wrong.hex", &"00".repeat(32));
    warren(&["vacuum", &vault, "--json"]).refused("not_a_database");
    warren(&["vacuum", &vault, "--key-file", &wrong, "--json"]).refused("wrong_key");
    let none = place.write("none.hex", "no key");
    warren(&["vacuum", &vault, "--key-file", &none, "--json"]).refused("invalid_key");
    assert_eq!(json(&["vacuum", &vault, "--key-file", &key])["method"], "copy");
    assert!(!std::fs::read(&vault).unwrap().starts_with(b"SQLite format 3"));
    place.check_vault(0);
    // The vault is open in a server.
    let server = place.serve();
    let file = place.at("a.db");
    sql(&file, "CREATE TABLE t (id INTEGER PRIMARY KEY, x)");
    track_all(&file);
    place.sign_in("sync", &file, &server.address);
    let refused = warren(&["vacuum", &vault, "--key-file", &key, "--json"]);
    refused.refused("busy");
    assert!(refused.stdout.contains("is open in warren (pid "), "{}", refused.stdout);
}

#[test]
fn what_is_no_database_or_not_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    warren(&["vacuum", &at("nowhere.db"), "--json"]).refused("file_not_found");
    assert!(!Path::new(&at("nowhere.db")).exists());
    let text = at("notes.txt");
    std::fs::write(&text, "no database, and longer than a header of one would be: ".repeat(99))
        .unwrap();
    warren(&["vacuum", &text, "--json"]).refused("not_a_database");
    let file = half_empty(&folder, "wal");
    std::fs::hard_link(&file, at("second.db")).unwrap();
    let refused = warren(&["vacuum", &file, "--json"]);
    refused.refused("not_a_file");
    assert!(refused.stdout.contains("hard link"), "{}", refused.stdout);
}

#[test]
fn inspect_shows_fragmentation_the_wal_and_who_has_it_open() {
    let folder = tempfile::tempdir().unwrap();
    let file = half_empty(&folder, "wal");
    track_all(&file);
    // This adds nearly as many pages as the file has by then, and frees them.
    sql(
        &file,
        "CREATE TABLE gone AS SELECT randomblob(1900) FROM t;
         INSERT INTO gone SELECT randomblob(1900) FROM t;
         DROP TABLE gone",
    );
    let health = |arguments: &[&str]| -> Value { json(arguments)["health"].clone() };
    let fragmentation = health(&["inspect", &file])["fragmentation_ratio"].as_f64().unwrap();
    assert!((0.2..0.8).contains(&fragmentation), "{fragmentation}");
    let shell = OpenTransaction::begin(&file, READING);
    let seen = health(&["inspect", &file]);
    let [holder] = &seen["holders"].as_array().unwrap()[..] else { panic!("{seen}") };
    assert_eq!((&holder["pid"], &holder["name"]), (&json!(shell.process()), &json!("sqlite3")));
    assert_eq!((&holder["reading"], &holder["writing"]), (&json!(true), &json!(false)));
    let told = warren(&["inspect", &file]).succeeded().stdout;
    assert!(told.contains(&format!("open in sqlite3 (pid {}), which reads", shell.process())));
    drop(shell);

    let place = SyncFixture::new();
    let server = place.serve();
    let b = place.at("b.db");
    sql(&b, "CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, 2)");
    track_all(&b);
    place.sign_in("sync", &b, &server.address);
    let vault = place.operator(&["inspect", "--login", "ada"]);
    let health = &vault["storage"]["health"];
    assert!(health["wal_bytes"].as_u64().unwrap() > 0, "{vault}");
    assert_eq!(health["holders"][0]["name"], "warren", "{vault}");
    assert!(health["fragmentation_ratio"].as_f64().unwrap() < 0.5);
}

/// An entry with the copy's name that is not a regular file is reported; a shell command creates
/// it.
#[test]
fn something_else_under_the_name_of_the_copy_is_named() {
    for (make, suffix) in [
        ("mkfifo", ""),
        ("ln -s nowhere", ""),
        ("ln -s other", ""),
        ("mkdir", ""),
        ("mkfifo", "-journal"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = half_empty(&folder, "wal");
        std::fs::write(folder.path().join("other"), "other").unwrap();
        let name = format!("{file}.compacting{suffix}");
        let shell = format!("{make} {name}");
        assert!(Command::new("sh").args(["-c", &shell]).status().unwrap().success());
        let before = content(&file);
        // The command once waited for a writer to the FIFO.
        let mut command = Command::new("timeout");
        command.args(["60", env!("CARGO_BIN_EXE_warren"), "vacuum", &file, "--json"]);
        let refused = with_input(&mut command, "");
        refused.refused("file_exists");
        let message = refused.value()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(&name) && message.contains("regular file"), "{message}");
        assert_eq!(content(&file), before);
        assert_eq!(std::fs::read(folder.path().join("other")).unwrap(), b"other");
        assert!(Path::new(&name).symlink_metadata().is_ok(), "{make}: it stays");
        // In place, it creates no copy.
        json(&["vacuum", &file, "--in-place"]);
    }
}
