//! Tests of encrypted tracked files: every command accepts their key, and none works without it.

use std::path::Path;

use replica::FileKey;
use rusqlite::Connection;
use zeroize::Zeroizing;

use crate::fixture::SyncFixture;
use crate::processes::{json, sql, warren};

const PASSPHRASE: &str = "three small words";
const MARKER: &str = "a title that nobody may read";

#[test]
fn an_encrypted_file_syncs_with_a_plain_one_and_stays_encrypted() {
    let place = SyncFixture::new();
    let server = place.serve();
    let passphrase = place.write("passphrase.txt", PASSPHRASE);
    let (file, plain) = (place.at("a.db"), place.at("b.db"));
    let key = ["--passphrase-file", &passphrase];
    make(&file);
    json(&[&["track", &file, "todo"], &key[..]].concat());
    let first_time = place.first_time(&server.address);
    json(&[&["sync", &file], &key[..], &first_time].concat());
    json(&[&["clone", &plain], &first_time[..]].concat());
    assert_eq!(sql(&plain, "SELECT title FROM todo").trim(), MARKER);

    sql(&plain, "UPDATE todo SET title = 'another title'");
    json(&["sync", &plain]);
    json(&[&["sync", &file], &key[..]].concat());
    let history = json(&[&["history", &file, "todo", "1"], &key[..]].concat());
    assert_eq!(history["changes"].as_array().unwrap().len(), 2, "{history}");
    let inspected = json(&[&["inspect", &file], &key[..]].concat());
    assert_eq!(inspected["cipher"], "chacha20", "{inspected}");
    for word in [MARKER, "another title", "todo", "SQLite format 3"] {
        let bytes = std::fs::read(&file).unwrap();
        let found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
        assert!(!found, "{word} is in the file");
    }
}

#[test]
fn without_its_key_or_with_another_a_file_is_refused() {
    let place = SyncFixture::new();
    let file = place.at("a.db");
    make(&file);
    let other = place.write("other.txt", "three other words");
    let keys = [(&[][..], "not_a_database"), (&["--passphrase-file", other.as_str()], "wrong_key")];
    for (key, code) in keys {
        for command in
            [&["status", file.as_str()][..], &["track", &file, "todo"], &["inspect", &file]]
        {
            warren(&[command, key, &["--json"]].concat()).refused(code);
        }
    }
}

fn make(file: &str) {
    let db = Connection::open(Path::new(file)).unwrap();
    FileKey::Passphrase(Zeroizing::new(PASSPHRASE.into())).apply_to(&db).unwrap();
    db.execute_batch("CREATE TABLE todo (id INTEGER PRIMARY KEY, title TEXT)").unwrap();
    db.execute("INSERT INTO todo VALUES (1, ?1)", [MARKER]).unwrap();
}
