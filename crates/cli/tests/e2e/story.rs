//! Tests of a new user's steps, on a real database, with the programs that people have.

use std::process::Command;

use serde_json::{Value, json};

use crate::fixture::{
    CHINOOK_ROWS, CHINOOK_TABLES, SyncFixture, check_all_sent, check_equal, rows, sync, track_all,
};
use crate::processes::{ServeProcess, json, python, sql, warren, with_input};

/// The number of messages: one for each of Chinook's rows, and a declaration of each table.
const CHINOOK_MESSAGES: usize = CHINOOK_ROWS + CHINOOK_TABLES;

/// Two devices with Chinook, in sync.
struct ChinookPair {
    place: SyncFixture,
    server: ServeProcess,
    a: String,
    b: String,
}

impl ChinookPair {
    fn new() -> Self {
        let place = SyncFixture::new();
        let server = place.serve();
        let (a, b) = (place.chinook("a.db"), place.at("b.db"));
        track_all(&a);
        place.sign_in("sync", &a, &server.address);
        place.sign_in("clone", &b, &server.address);
        Self { place, server, a, b }
    }

    /// Brings both to the same rows, whichever of them was written to; asserts that they are
    /// equal.
    #[track_caller]
    fn sync(&self) -> Vec<String> {
        for file in [&self.a, &self.b, &self.a] {
            sync(file);
        }
        check_equal(&self.a, &self.b)
    }
}

#[test]
fn eleven_tables_are_equal_row_for_row_on_a_second_device() {
    let place = SyncFixture::new();
    let server = place.serve();
    let (a, b) = (place.chinook("a.db"), place.at("b.db"));
    let original = rows(&a);
    assert_eq!(original.len(), CHINOOK_ROWS);

    let tracked = track_all(&a);
    assert_eq!(tracked["tables"].as_array().unwrap().len(), CHINOOK_TABLES, "{tracked}");
    let sent = place.sign_in("sync", &a, &server.address);
    assert_eq!(
        (&sent["sent_count"], &sent["in_sync"]),
        (&json!(CHINOOK_MESSAGES), &json!(true)),
        "{sent}"
    );
    let cloned = place.sign_in("clone", &b, &server.address);
    assert_eq!(cloned["received_count"], CHINOOK_MESSAGES, "{cloned}");
    assert_eq!(cloned["created_tables"].as_array().unwrap().len(), CHINOOK_TABLES, "{cloned}");
    assert_eq!(check_equal(&a, &b), original, "tracking and syncing changed no row");

    // The file remembers the server, the login and the token.
    sql(&a, "UPDATE Track SET Name = 'Für immer' WHERE TrackId = 1");
    assert_eq!(json(&["status", &a])["pending_count"], 1);
    assert_eq!(sync(&a)["sent_count"], 1);
    let received = sync(&b);
    assert_eq!(
        (&received["received_count"], &received["sent_count"]),
        (&json!(1), &json!(0)),
        "{received}"
    );
    assert_eq!(sql(&b, "SELECT Name FROM Track WHERE TrackId = 1"), "Für immer");
    let changed = check_equal(&a, &b);
    assert_eq!(changed.iter().filter(|row| !original.contains(row)).count(), 1);

    let (a, b) = (check_all_sent(&a), check_all_sent(&b));
    assert_eq!((&a["messages_count"], &a["digest"]), (&b["messages_count"], &b["digest"]));
    place.check_vault(CHINOOK_MESSAGES as u64 + 1);
}

#[test]
fn both_devices_edit_offline_and_meet() {
    let pair = ChinookPair::new();
    sql(
        &pair.a,
        "PRAGMA foreign_keys = ON;
         INSERT INTO Artist VALUES (1000, NULL);
         INSERT INTO Album VALUES (1000, 'an album of one''s own', 1000);
         UPDATE Customer SET Company = NULL, Phone = '' WHERE CustomerId = 1;
         UPDATE Track SET Bytes = 9223372036854775807, UnitPrice = 0.1 WHERE TrackId = 2;
         DELETE FROM PlaylistTrack WHERE PlaylistId = 1;
         DELETE FROM InvoiceLine WHERE InvoiceId = 1; DELETE FROM Invoice WHERE InvoiceId = 1",
    );
    sql(
        &pair.b,
        "UPDATE Customer SET City = 'Porto', Fax = x'00ff00' WHERE CustomerId = 1;
         UPDATE Track SET Composer = 1.5e300 WHERE TrackId = 2;
         INSERT INTO PlaylistTrack VALUES (1, 3500), (18, 3500) ON CONFLICT DO NOTHING;
         UPDATE Genre SET GenreId = 77 WHERE GenreId = 25",
    );
    let both = pair.sync();
    assert_eq!(check_equal(&pair.a, &pair.b), pair.sync(), "nothing moves any more");
    for row in [
        "Album|1000|'an album of one''s own'|1000",
        "Artist|1000|NULL",
        "Genre|77|'Opera'",
        "PlaylistTrack|18|3500",
    ] {
        assert!(both.iter().any(|found| found == row), "{row}");
    }
    let edited = "SELECT quote(Company), quote(Phone), City, quote(Fax) FROM Customer WHERE CustomerId = 1;
                  SELECT typeof(Bytes), Bytes, typeof(UnitPrice), typeof(Composer) FROM Track WHERE TrackId = 2";
    let expected = "NULL|''|Porto|X'00FF00'\ninteger|9223372036854775807|real|text";
    assert_eq!(sql(&pair.a, edited), expected);
}

#[test]
fn rows_that_another_program_replaces_are_gone_on_both_devices() {
    let place = SyncFixture::new();
    let server = place.serve();
    let (a, b) = (place.at("a.db"), place.at("b.db"));
    let schema = "CREATE TABLE tag (name TEXT NOT NULL PRIMARY KEY COLLATE NOCASE, n);
                  CREATE TABLE person (id INTEGER PRIMARY KEY, mail TEXT);
                  CREATE UNIQUE INDEX one_mail ON person (lower(mail));";
    for file in [&a, &b] {
        sql(file, schema);
        track_all(file);
        place.sign_in("sync", file, &server.address);
    }
    let pair = ChinookPair { place, server, a, b };
    sql(&pair.a, "INSERT INTO tag VALUES ('Red', 1); INSERT INTO person VALUES (1, 'Ada@a.org')");
    pair.sync();
    let replace = "INSERT OR REPLACE INTO tag VALUES ('red', 2);
                   INSERT OR REPLACE INTO person (mail) VALUES ('ada@A.org')";
    sql(&pair.b, replace);
    assert_eq!(pair.sync(), ["person|2|'ada@A.org'", "tag|'red'|2"]);
    sql(&pair.a, "DELETE FROM tag; DELETE FROM person");
    assert_eq!(pair.sync(), Vec::<String>::new(), "nothing was hidden behind them");
}

/// A program as people write them, for the `sqlite3` that their system's Python has.
const PYTHON: &str = r"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30)
db.execute('PRAGMA foreign_keys = ON')
with db:
    db.execute('UPDATE Track SET Name = ?, Composer = NULL WHERE TrackId = 5', ('Füße \U0001f98a',))
    db.executemany('INSERT INTO Artist VALUES (?, ?)', [(2000 + i, f'artist {i}') for i in range(500)])
    db.execute('UPDATE Employee SET Fax = ? WHERE EmployeeId = 1', (bytes(range(256)),))
    db.execute('INSERT OR REPLACE INTO Genre VALUES (1, ?)', ('Rock, replaced',))
    db.execute('INSERT INTO Genre VALUES (2, 0) ON CONFLICT (GenreId) DO UPDATE SET Name = ?', ('Jazz, upserted',))
    db.execute('UPDATE InvoiceLine SET UnitPrice = ? WHERE InvoiceLineId = 1', (0.1 + 0.2,))
try:
    with db:
        db.execute('DELETE FROM PlaylistTrack')
        raise KeyError('the program changes its mind')
except KeyError:
    pass
db.close()
";

#[test]
fn a_python_program_writes_and_the_other_device_has_it() {
    let pair = ChinookPair::new();
    let ran = with_input(Command::new(python()).args(["-", &pair.b]), PYTHON);
    ran.succeeded();
    assert_eq!(sync(&pair.b)["sent_count"], 1 + 500 + 1 + 2 + 1, "one message for each row");
    pair.sync();
    let written = "SELECT Name, quote(Composer) FROM Track WHERE TrackId = 5;
                   SELECT count(*), max(Name) FROM Artist WHERE ArtistId >= 2000;
                   SELECT length(Fax), typeof(Fax), substr(hex(Fax), -4) FROM Employee WHERE EmployeeId = 1;
                   SELECT Name FROM Genre WHERE GenreId <= 2;
                   SELECT UnitPrice = 0.1 + 0.2, UnitPrice = 0.3 FROM InvoiceLine WHERE InvoiceLineId = 1;
                   SELECT count(*) FROM PlaylistTrack";
    let expected = "Füße 🦊|NULL\n500|artist 99\n256|blob|FEFF\nRock, replaced\nJazz, upserted\n\
                    1|0\n8715";
    assert_eq!(sql(&pair.a, written), expected);
}

#[test]
fn untrack_leaves_the_schema_and_the_rows_as_they_were() {
    let place = SyncFixture::new();
    let server = place.serve();
    let file = place.chinook("a.db");
    let (schema, before) = (sql(&file, ".schema"), rows(&file));
    let objects = "SELECT count(*) FROM sqlite_schema";
    let count = sql(&file, objects);
    track_all(&file);
    assert_ne!(sql(&file, objects), count);
    place.sign_in("sync", &file, &server.address);
    json(&["untrack", &file, "Genre"]);
    sql(
        &file,
        "UPDATE Genre SET Name = 'not noted' WHERE GenreId = 1; UPDATE Artist SET Name = 'noted' WHERE ArtistId = 1",
    );
    warren(&["untrack", &file, "--json"]).refused("unsent_changes");
    assert_eq!(sync(&file)["sent_count"], 1, "the change of the table that is still tracked");
    json(&["untrack", &file]);

    assert_eq!(sql(&file, ".schema"), schema);
    assert_eq!(sql(&file, objects), count);
    let names =
        "SELECT count(*) FROM sqlite_schema WHERE sql LIKE '%warren%' OR name LIKE '%warren%'";
    assert_eq!(sql(&file, names), "0");
    sql(
        &file,
        "UPDATE Genre SET Name = 'Rock' WHERE GenreId = 1; UPDATE Artist SET Name = 'AC/DC' WHERE ArtistId = 1",
    );
    assert_eq!(rows(&file), before);
    warren(&["status", &file, "--json"]).refused("not_tracked");
}

#[test]
fn an_added_column_is_noticed_at_the_next_sync() {
    let pair = ChinookPair::new();
    let c = pair.place.at("c.db");
    sql(&c, "CREATE TABLE Genre (GenreId INTEGER PRIMARY KEY NOT NULL, Name NVARCHAR(120))");
    track_all(&c);
    pair.place.sign_in("sync", &c, &pair.server.address);
    sql(
        &pair.a,
        "ALTER TABLE Genre ADD COLUMN Rating INTEGER DEFAULT 3;
         UPDATE Genre SET Rating = 5 WHERE GenreId <= 10",
    );
    sync(&pair.a);
    // A clone creates the column; a file whose tables its owner created ignores an unknown one.
    assert_eq!(sync(&pair.b)["created_tables"], json!(["added column Genre.Rating"]));
    assert_eq!(sync(&c)["created_tables"], json!([]));
    let unknown = json(&["status", &c])["missing_tables"].clone();
    assert!(unknown.as_array().unwrap().contains(&json!("Genre.Rating")), "{unknown}");
    sql(&c, "ALTER TABLE Genre ADD COLUMN Rating INTEGER DEFAULT 3");
    sync(&c);
    sql(&c, "UPDATE Genre SET Rating = 1 WHERE GenreId = 10");
    sync(&c);
    pair.sync();
    let ratings = "SELECT Rating, count(*) FROM Genre GROUP BY 1 ORDER BY 1";
    for file in [&pair.a, &pair.b, &c] {
        assert_eq!(sql(file, ratings), "1|1\n3|15\n5|9");
    }
}

/// Checks a change that cannot be synced: the error suggests commands, which then help.
fn check_schema_change(change: &str) {
    let pair = ChinookPair::new();
    sql(
        &pair.a,
        "UPDATE Artist SET Name = 'made before' WHERE ArtistId = 1;
                  UPDATE Genre SET Name = 'lost with its column' WHERE GenreId = 1",
    );
    sql(&pair.a, change);
    let refused = warren(&["sync", &pair.a, "--json"]);
    refused.refused("schema_changed");
    let message = refused.value()["error"].to_string();
    for told in ["Genre", "Name", "warren untrack", "warren track"] {
        assert!(message.contains(told), "{told} in {message}");
    }
    let people = warren(&["sync", &pair.a]);
    assert_eq!((people.status.code(), people.stdout.as_str()), (Some(1), ""));
    assert!(people.stderr.contains("schema_changed"), "{}", people.stderr);
    assert_eq!(sync(&pair.b)["received_count"], 0, "nothing was sent");

    json(&["untrack", &pair.a, "Genre"]);
    json(&["track", &pair.a, "Genre"]);
    sync(&pair.a);
    sync(&pair.b);
    let made = "SELECT Name FROM Artist WHERE ArtistId = 1";
    assert_eq!(sql(&pair.b, made), "made before");
    sql(&pair.a, "INSERT INTO Genre (GenreId) VALUES (100)");
    sync(&pair.a);
    sync(&pair.b);
    assert_eq!(sql(&pair.b, "SELECT max(GenreId) FROM Genre"), "100");
}

#[test]
fn a_renamed_column_is_an_error_that_says_what_to_do() {
    check_schema_change("ALTER TABLE Genre RENAME COLUMN Name TO Title");
}

/// The column is dropped as by programs that rebuild the table. SQLite itself refuses
/// `ALTER TABLE … DROP COLUMN`, because our triggers name the column.
#[test]
fn a_dropped_column_is_an_error_that_says_what_to_do() {
    check_schema_change(
        "CREATE TABLE rebuilt (GenreId INTEGER PRIMARY KEY NOT NULL);
         INSERT INTO rebuilt SELECT GenreId FROM Genre;
         DROP TABLE Genre;
         ALTER TABLE rebuilt RENAME TO Genre",
    );
}

#[test]
fn writers_write_while_the_file_syncs() {
    let pair = ChinookPair::new();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for at in 0..40 {
                sql(&pair.a, &format!("INSERT INTO Artist VALUES ({}, 'added {at}')", 5_000 + at));
            }
        });
        while !writer.is_finished() {
            sync_beside(&pair.a);
        }
    });
    sync(&pair.a);
    pair.sync();
    let added = "SELECT count(*) FROM Artist WHERE Name = 'added ' || (ArtistId - 5000)";
    assert_eq!(sql(&pair.b, added), "40");
}

/// Syncs while another program writes; both sides are equal unless it wrote just then.
fn sync_beside(file: &str) {
    let report: Value = json(&["sync", file]);
    assert_eq!(report["rejected"]["by_reason"]["undecodable"], 0, "{report}");
}
