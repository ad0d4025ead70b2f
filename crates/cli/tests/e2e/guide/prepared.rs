//! Prepares what a page assumes its readers have: files to examine, to tune and to recover,
//! and devices whose edits conflict.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::walkthrough::Walkthrough;
use crate::doctor::encrypted;
use crate::processes::{python, sql};

/// Messages of 1,000 people, in WAL mode.
const MESSAGES: &str = "
PRAGMA journal_mode = WAL;
CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE message (
    id INTEGER PRIMARY KEY, sender INTEGER REFERENCES person, date INTEGER, subject TEXT);
CREATE INDEX message_sender ON message (sender);
INSERT INTO person SELECT value, 'Person ' || value FROM generate_series(1, 1000);
INSERT INTO message SELECT value, value % 997 + 1, 1700000000 + value * 60, 'About ' || value
    FROM generate_series(1, 50000);
";

/// Another index on the same column, and statistics of all.
const COPY_OF_AN_INDEX: &str = "
CREATE INDEX message_sender_again ON message (sender);
ANALYZE;
";

/// A table that is larger than the others.
const PARCELS: &str = "
CREATE TABLE parcel (id INTEGER PRIMARY KEY, content);
INSERT INTO parcel SELECT value, randomblob(900) FROM generate_series(1, 20000);
";

/// A transaction that never ends, in the file of the first argument: the process disappears.
const UNFINISHED_TRANSACTION: &str = "
import apsw, os, sys
db = apsw.Connection(sys.argv[1])
db.execute('PRAGMA cipher = chacha20')
db.execute(\"PRAGMA key = 'raw:\" + sys.argv[2] + \"'\")
db.execute('PRAGMA cache_size = 5')
db.execute('BEGIN')
db.execute('UPDATE t SET b = hex(randomblob(300))')
os._exit(0)
";

/// A log line of each framework that the guide names, by the file that has it.
const LOGS: [(&str, &str); 3] = [
    (
        "log/development.log",
        "  Message Load (0.2ms)  SELECT * FROM message WHERE sender = ? ORDER BY date  [[\"sender\", 7]]\n",
    ),
    (
        "debug.log",
        "(0.001) SELECT * FROM message WHERE sender = 7 ORDER BY date; args=(7,); alias=default\n",
    ),
    (
        "echo.log",
        "2026-11-28 10:00:00,000 INFO sqlalchemy.engine.Engine SELECT * FROM message WHERE sender = ?\n\
         2026-11-28 10:00:00,000 INFO sqlalchemy.engine.Engine [generated in 0.00010s] (7,)\n",
    ),
];

/// Makes the files that the guides to `warren doctor` and to the tools name.
pub(super) fn files_to_examine(place: &Walkthrough) {
    for folder in ["log", "db", "bin", "/srv/mail", "/srv/app"] {
        fs::create_dir_all(place.at(folder)).unwrap();
    }
    sql(&text(place, "app.db"), &[MESSAGES, COPY_OF_AN_INDEX].concat());
    for copy in ["backup.db", "db.sqlite3", "db/development.sqlite3", "/srv/app/app.db"] {
        fs::copy(place.at("app.db"), place.at(copy)).unwrap();
    }
    sql(&text(place, "shop.db"), &[MESSAGES, PARCELS].concat());
    for (name, lines) in LOGS {
        fs::write(place.at(name), lines).unwrap();
    }
    let key = "07".repeat(32);
    fs::write(place.at("mail.key"), &key).unwrap();
    let rows = "CREATE TABLE t (a INTEGER PRIMARY KEY, b);
        WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 300)
        INSERT INTO t SELECT i, hex(randomblob(300)) FROM n";
    for name in ["mail.db", "/srv/mail/ada.db", "/srv/mail/bob.sqlite"] {
        encrypted(&text(place, name), &format!("PRAGMA key = 'raw:{key}'"), rows);
    }
    let mut killed = Command::new(python());
    killed.args(["-c", UNFINISHED_TRANSACTION, &text(place, "mail.db"), &key]);
    assert!(killed.status().unwrap().success());
    script(&place.at("bin/pass"), "#!/bin/sh\ncat mail.key\n");
    script(&place.at("bin/python"), &format!("#!/bin/sh\nexec {} \"$@\"\n", python().display()));
}

/// The commands that the readers of these guides have run before: they have an account, a report of the settings
/// of a program, and a file whose state was recorded before a table was dropped.
pub(super) const EXAMINED: &str = "PATH=$PWD/bin:$PATH
warren account add ada
warren tune --emit python --check > check.py
python -c \"import sqlite3; from check import *; print_settings(sqlite3.connect('app.db'))\" > settings.txt
warren doctor shop.db --history figures
sqlite3 shop.db 'DROP TABLE parcel'
";

/// Makes the file of the guide to `warren tune`.
pub(super) fn file_to_tune(place: &Walkthrough) {
    let rollback_journal = MESSAGES.replace("PRAGMA journal_mode = WAL;", "");
    sql(&text(place, "app.db"), &rollback_journal);
    fs::create_dir(place.at("/mnt/disk")).unwrap();
}

/// Makes the files of the guide to `warren recover`, one of which is damaged.
pub(super) fn files_to_recover(place: &Walkthrough) {
    let file = text(place, "app.db");
    sql(&file, &[MESSAGES, COPY_OF_AN_INDEX].concat());
    let page: usize =
        sql(&file, "SELECT max(pageno) - 9 FROM dbstat WHERE name = 'message'").parse().unwrap();
    let mut content = fs::read(&file).unwrap();
    content[(page - 1) * 4096..page * 4096].fill(0xa5);
    fs::write(&file, content).unwrap();
    let key = "07".repeat(32);
    fs::write(place.at("mail.key"), &key).unwrap();
    fs::write(place.at("words"), "hasen\n").unwrap();
    let rows = "CREATE TABLE t (a); INSERT INTO t VALUES (1)";
    encrypted(&text(place, "mail.db"), &format!("PRAGMA key = 'raw:{key}'"), rows);
    let sqlcipher = "PRAGMA cipher = sqlcipher; PRAGMA key = 'hasen'";
    encrypted(&text(place, "notes.db"), sqlcipher, rows);
}

/// The ids of entries in the guide to conflicts, and the variables that have them here.
pub(super) const CONFLICT_IDS: [(&str, &str); 5] = [
    ("3f9c01ab", "${lost[0]}"),
    ("5d20e7c4", "${lost[1]}"),
    ("81d0a2f7", "${hidden[0]}"),
    ("2b6f90d1", "${hidden[1]}"),
    ("c94e13a8", "${hidden[2]}"),
];

/// Two devices that edited the same two notes and added people with the same three addresses.
pub(super) const CONFLICTS: &str = r#"warren account add ada
sqlite3 a.db "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO note VALUES (1, 'Buy milk'), (2, 'Call Sam')"
sqlite3 a.db "CREATE TABLE person (id TEXT PRIMARY KEY, email TEXT UNIQUE)"
warren track a.db --all
warren sync a.db --server http://127.0.0.1:4600 --login ada
warren clone b.db --server http://127.0.0.1:4600 --login ada
sqlite3 a.db "UPDATE note SET text = 'of a'; INSERT INTO person VALUES ('a1', '1'), ('a2', '2'), ('a3', '3')"
sqlite3 b.db "UPDATE note SET text = 'of b'; INSERT INTO person VALUES ('b1', '1'), ('b2', '2'), ('b3', '3')"
warren sync a.db
warren sync b.db
warren sync a.db
ids() { warren conflicts a.db --json | python3 -c "import json, sys; print(*[entry['id'] for entry in json.load(sys.stdin)['$1']])"; }
lost=($(ids conflicts))
hidden=($(ids hidden_rows))
"#;

fn text(place: &Walkthrough, name: &str) -> String {
    place.at(name).to_str().unwrap().to_owned()
}

/// Makes a program.
fn script(path: &Path, lines: &str) {
    fs::write(path, lines).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
