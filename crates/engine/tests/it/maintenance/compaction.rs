//! Tests of replacing a file with a compact copy while others read, write and open it.

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use engine::{DatabaseKey, Error, FileEncryption, Profile, open_connection, side_file_path};

use super::{
    content, fragment, fragment_rows, fragmented, inode, maintain, maintain_in_turn, number_of,
    other,
};
use crate::seed::within_time;
use crate::{fixture, insert, number, starts_plain, sum};

const MARKER: &str = "a-marker-that-must-not-reach-the-disk";

#[test]
fn an_encrypted_file_stays_encrypted_with_the_same_key_and_cipher() {
    for cipher in [None, Some(engine::Cipher::Aes256Cbc), Some(engine::Cipher::Aegis)] {
        let fixture = fixture();
        let key = || FileEncryption::Key { key: crate::key(), cipher };
        let database = fragmented(&fixture, 40, |options| options.encryption = key());
        let write = database.write::<_, Error, _>(engine::Durability::Os, |db| {
            Ok(db.execute("INSERT INTO t (x) VALUES (?1)", [MARKER.repeat(100)]).map(drop)?)
        });
        write.wait().unwrap();
        assert!(maintain(&database).is_compacted);
        let path = database.path().to_owned();
        fixture.databases.shutdown();
        let raw = std::fs::read(&path).unwrap();
        assert!(!raw.windows(MARKER.len()).any(|bytes| bytes == MARKER.as_bytes()));
        assert!(!starts_plain(&path));
        let (db, found) = open_connection(&path, &key(), Profile::SERVER, false, false).unwrap();
        assert_eq!(found, Some(cipher.unwrap_or(engine::Cipher::ChaCha20)));
        drop(db);
        let wrong = FileEncryption::Key { key: DatabaseKey::from_bytes([8; 32]), cipher };
        let refused = open_connection(&path, &wrong, Profile::SERVER, false, false);
        assert!(matches!(refused, Err(Error::WrongKey { .. })));
    }
}

#[test]
fn what_lives_in_the_file_stays() {
    let fixture = fixture();
    let database = fragmented(&fixture, 40, |_| {});
    let write = database.write::<_, Error, _>(engine::Durability::Os, |db| {
        db.execute_batch(
            "PRAGMA application_id = 4711;
             CREATE TABLE \"a \"\"quoted\"\" name\" (x TEXT COLLATE NOCASE) STRICT;
             CREATE VIEW v AS SELECT count(*) FROM t;
             CREATE TRIGGER g AFTER INSERT ON t WHEN new.x = 'never' BEGIN SELECT 1; END;
             CREATE VIRTUAL TABLE words USING fts5(word);
             INSERT INTO words VALUES ('compact'), ('copy')",
        )?;
        Ok(())
    });
    write.wait().unwrap();
    std::os::unix::fs::chown(database.path(), None, None).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o640);
    std::fs::set_permissions(database.path(), mode).unwrap();
    let figures = |name: &str| number_of(&database, &format!("PRAGMA {name}"));
    let names = ["application_id", "user_version", "auto_vacuum", "page_size", "foreign_keys"];
    let before = names.map(figures);
    let schema = || number_of(&database, "SELECT sum(length(sql)) FROM sqlite_schema");
    let schema_before = schema();
    // Maintenance also adds the missing table of statistics, so the schema may grow.
    assert!(maintain(&database).is_compacted);
    assert_eq!(names.map(figures), before);
    assert!(schema() >= schema_before);
    assert_eq!(number_of(&database, "SELECT count(*) FROM words WHERE word MATCH 'copy'"), 1);
    let mode = std::os::unix::fs::MetadataExt::mode(&database.path().metadata().unwrap());
    assert_eq!(mode & 0o777, 0o640);
    let journal = database.read::<_, Error>(|db| {
        Ok(db.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0))?)
    });
    assert_eq!(journal.unwrap(), "wal");
}

#[test]
fn a_write_during_the_copy_wins() {
    within_time(|| {
        let fixture = fixture();
        let database = fragmented(&fixture, 40, |_| {});
        let copy = side_file_path(database.path(), ".compacting");
        let mut given_way = 0;
        // On a busy machine, the copy may be finished before the write arrives.
        for x in 1..50 {
            fragment_again(&database);
            let (file, before) = (inode(database.path()), number_of(&database, COUNT));
            let done = thread::scope(|scope| {
                let maintaining = scope.spawn(|| database.maintain().unwrap());
                while !copy.exists() && !maintaining.is_finished() {
                    thread::yield_now();
                }
                insert(&database, -x).wait().unwrap();
                maintaining.join().unwrap()
            });
            assert_eq!(number_of(&database, COUNT), before + 1);
            assert_eq!(inode(database.path()) != file, done.is_compacted);
            assert!(!copy.exists());
            given_way += i32::from(!done.is_compacted);
            if given_way > 3 {
                break;
            }
        }
        assert!(given_way > 0);
        assert_eq!(content(&database).1, "ok");
    });
}

const COUNT: &str = "SELECT count(*) FROM t";

/// Fills the file with many free pages again.
fn fragment_again(database: &engine::Database) {
    empty(database);
    fragment(database, 40);
}

/// Deletes the rows except those with negative ids.
fn empty(database: &engine::Database) {
    let empty = database.write::<_, Error, _>(engine::Durability::Os, |db| {
        Ok(db.execute("DELETE FROM t WHERE id > 0", []).map(drop)?)
    });
    empty.wait().unwrap();
}

#[test]
fn a_reader_with_a_snapshot_keeps_the_old_file_until_it_ends() {
    within_time(|| {
        let fixture = fixture();
        let database = fragmented(&fixture, 40, |_| {});
        let before = number_of(&database, COUNT);
        let read = database.read::<_, Error>(|db| {
            assert_eq!(number(db, COUNT), before);
            let done = database.maintain()?;
            assert!(!done.is_compacted);
            insert(&database, -1).wait()?;
            assert_eq!(number(db, COUNT), before, "its snapshot stays");
            Ok(())
        });
        read.unwrap();
        assert_eq!(number_of(&database, COUNT), before + 1);
        assert!(maintain(&database).is_compacted);
        assert_eq!(number_of(&database, COUNT), before + 1);
    });
}

#[test]
fn reads_during_the_swap_wait_for_it_and_see_every_row() {
    within_time(|| {
        let fixture = fixture();
        let database = fragmented(&fixture, 40, |_| {});
        let before = number_of(&database, COUNT);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        assert_eq!(number_of(&database, COUNT), before);
                    }
                });
            }
            // A read that lasts longer than the swap's waiting time postpones the swap.
            while !database.maintain().unwrap().is_compacted {}
            is_over.store(true, Ordering::SeqCst);
        });
        assert_eq!(content(&database).1, "ok");
    });
}

#[test]
fn a_file_that_another_connection_has_open_is_not_replaced() {
    let fixture = fixture();
    let database = fragmented(&fixture, 40, |_| {});
    let other_connection = other(database.path());
    assert_eq!(number(&other_connection, "SELECT count(*) FROM t WHERE id < 0"), 0);
    let file = inode(database.path());
    assert!(!database.maintain().unwrap().is_compacted);
    assert_eq!(inode(database.path()), file);
    assert!(!side_file_path(database.path(), ".compacting").exists());
    // Neither connection has lost any of its writes.
    insert(&database, -1).wait().unwrap();
    other_connection.execute("INSERT INTO t (x) VALUES (-2)", []).unwrap();
    assert_eq!(number_of(&database, "SELECT sum(x) FROM t WHERE x < 0"), -3);
    drop(other_connection);
    assert!(maintain(&database).is_compacted);
    assert_eq!(number_of(&database, "SELECT sum(x) FROM t WHERE x < 0"), -3);
}

/// A published system lost files because connections that were opened during a swap continued with
/// the old file and the new WAL.
#[test]
fn connections_that_are_opened_in_the_moment_of_a_swap_have_the_right_file() {
    const SWAPS: i64 = 10;
    const OPENERS: usize = 2;
    within_time(|| {
        let fixture = fixture();
        let database = fixture.open("a.db");
        // Minimum number of rows that must exist: each swap asks the openers for one more.
        let (wanted, written) = (AtomicI64::new(0), AtomicI64::new(0));
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..OPENERS {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        let db = other(database.path());
                        let has = number(&db, "SELECT count(*) FROM t WHERE id < 0");
                        if has < wanted.load(Ordering::SeqCst) {
                            let sql = "INSERT INTO t (id)
                                       SELECT coalesce(min(id), 0) - 1 FROM t WHERE id < 0";
                            db.execute(sql, []).unwrap();
                            written.fetch_add(1, Ordering::SeqCst);
                        }
                        drop(db);
                        (0..300).for_each(|_| thread::yield_now());
                    }
                });
            }
            for swap in 1..=SWAPS {
                empty(&database);
                fragment_rows(&database, 400, 70);
                while !database.maintain().unwrap().is_compacted {}
                wanted.store(swap, Ordering::SeqCst);
                while number_of(&database, ROWS_OF_OPENERS) < swap {
                    thread::yield_now();
                }
            }
            is_over.store(true, Ordering::SeqCst);
        });
        let written = written.load(Ordering::SeqCst);
        assert!(written >= SWAPS);
        // The database's own readers may see other connections' writes a few milliseconds later.
        assert_eq!(number(&other(database.path()), ROWS_OF_OPENERS), written);
        assert_eq!(content(&database).1, "ok");
    });
}

const ROWS_OF_OPENERS: &str = "SELECT count(*) FROM t WHERE id < 0";

#[test]
fn closing_does_not_wait_for_a_copy() {
    within_time(|| {
        let fixture = fixture();
        let database = fragmented(&fixture, 40, |_| {});
        let copy = side_file_path(database.path(), ".compacting");
        thread::scope(|scope| {
            let maintaining = scope.spawn(|| database.maintain());
            while !copy.exists() && !maintaining.is_finished() {
                thread::yield_now();
            }
            fixture.databases.close(database.path()).unwrap();
            assert!(maintaining.join().unwrap().is_ok());
        });
        assert!(!copy.exists());
        assert!(!side_file_path(database.path(), "-wal").exists(), "the last connection is gone");
    });
}

#[test]
fn what_a_killed_process_has_left_is_removed_when_the_file_is_opened() {
    let fixture = fixture();
    drop(fixture.open("a.db"));
    let path = fixture.directory.path().join("a.db");
    fixture.databases.close(&path).unwrap();
    let copy = side_file_path(&path, ".compacting");
    std::fs::write(&copy, "half of it").unwrap();
    // A copy that is being created is locked.
    let being_made = File::open(&copy).unwrap();
    being_made.lock().unwrap();
    drop(fixture.open("a.db"));
    assert!(copy.exists());
    fixture.databases.close(&path).unwrap();
    drop(being_made);
    assert_eq!(sum(&fixture.open("a.db")), 0);
    assert!(!copy.exists());
}

#[test]
fn a_fifo_under_the_name_of_the_copy_keeps_nobody_from_opening_the_database() {
    within_time(|| {
        let fixture = fixture();
        let database = fragmented(&fixture, 40, |_| {});
        let (path, copy) =
            (database.path().to_owned(), side_file_path(database.path(), ".compacting"));
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, &copy, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let refused = maintain_in_turn(&database).unwrap_err();
        assert!(matches!(&refused, Error::Io { path, .. } if *path == copy), "{refused}");
        fixture.databases.close(&path).unwrap();
        drop(database);
        let database = fixture.open("a.db");
        assert!(number_of(&database, COUNT) > 0);
        std::fs::remove_file(&copy).unwrap();
        assert!(maintain(&database).is_compacted);
    });
}

#[test]
fn a_rewritten_file_holds_nothing_of_what_was_replaced() {
    let fixture = fixture();
    let database = fixture.open_with("a.db", |options| options.encryption = FileEncryption::None);
    fragment(&database, 0);
    let run = |sql: &'static str, value: &'static str| {
        let write = database.write::<_, Error, _>(engine::Durability::Disk, move |db| {
            Ok(db.execute(sql, [value]).map(drop)?)
        });
        write.wait().unwrap();
    };
    run("INSERT INTO t (id, x) VALUES (-1, ?1)", MARKER);
    run("UPDATE t SET x = ?1 WHERE id = -1", "replaced");
    let holds_marker = || {
        ["", "-wal"].iter().any(|suffix| {
            let raw = std::fs::read(side_file_path(database.path(), suffix)).unwrap_or_default();
            raw.windows(MARKER.len()).any(|bytes| bytes == MARKER.as_bytes())
        })
    };
    assert!(holds_marker(), "it would not be looked for in vain");
    let before = content(&database);
    database.rewrite().unwrap();
    assert!(!holds_marker());
    assert!(before == content(&database));
    // A reader that holds a snapshot of the old file keeps that file, and `rewrite` reports it.
    let (reading, read) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let shared = std::sync::Arc::clone(&database);
    thread::scope(|scope| {
        scope.spawn(move || {
            let read = shared.read::<_, Error>(|db| {
                let sum = number(db, "SELECT count(*) FROM t");
                reading.send(()).unwrap();
                released.recv().unwrap_err();
                Ok(sum)
            });
            read.unwrap()
        });
        read.recv().unwrap();
        let refused = database.rewrite();
        drop(release);
        assert!(matches!(refused, Err(Error::Busy)), "{refused:?}");
    });
    database.rewrite().unwrap();
}
