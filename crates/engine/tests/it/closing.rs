//! Tests of closing a database under load. A file that is deleted afterwards stays deleted.

use std::fs;
use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use engine::{Database, Databases, EngineLimits, Error};

use crate::bank::SMALL_WAL;
use crate::seed::within_time;
use crate::{insert, options, sum};

const ROUNDS: usize = 60;
const WRITERS: usize = 2;
const READERS: usize = 3;

/// Opens a database, lets `WRITERS` write and `readers` read until it is closed under them, and
/// deletes the directory's files. Returns the files that exist when all threads have ended.
fn close_and_delete(round: usize, readers: usize) -> Vec<std::path::PathBuf> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let small = || options(|options| options.profile = SMALL_WAL);
    let database = databases.open(&path, small).unwrap();
    let next = AtomicI64::new(0);
    let barrier = Barrier::new(WRITERS + readers + 1);
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                barrier.wait();
                while write(&database, &next) {}
            });
        }
        for _ in 0..readers {
            scope.spawn(|| {
                barrier.wait();
                while read(&database) {}
            });
        }
        barrier.wait();
        // A checkpoint is running most of the time; the moment differs from round to round.
        for _ in 0..round * 5 {
            insert(&database, next.fetch_add(1, Ordering::SeqCst)).wait().unwrap();
        }
        databases.close(&path).unwrap();
        let files = fs::read_dir(directory.path()).unwrap();
        files.for_each(|file| fs::remove_file(file.unwrap().path()).unwrap());
    });
    databases.shutdown();
    let files = fs::read_dir(directory.path()).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

/// Writes a row. Returns `false` if the database is closed.
fn write(database: &Database, next: &AtomicI64) -> bool {
    match insert(database, next.fetch_add(1, Ordering::SeqCst)).wait() {
        Ok(()) => true,
        Err(Error::Closed) => false,
        Err(error) => unreachable!("{error}"),
    }
}

/// Reads the rows. Returns `false` if the database is closed.
fn read(database: &Database) -> bool {
    let count = database
        .read::<i64, Error>(|db| Ok(db.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?));
    match count {
        Ok(_) => true,
        // A read that was running fails because the files were deleted under it.
        Err(Error::Closed | Error::Sqlite { .. }) => false,
        Err(error) => unreachable!("{error}"),
    }
}

#[test]
fn a_file_that_is_deleted_after_closing_stays_deleted() {
    within_time(|| {
        for round in 0..ROUNDS {
            let files = close_and_delete(round, 0);
            assert!(files.is_empty(), "{files:?} after {round} rounds");
        }
    });
}

#[test]
fn so_it_does_when_readers_are_being_opened() {
    within_time(|| {
        for round in 0..ROUNDS {
            let files = close_and_delete(round % 10, READERS);
            assert!(files.is_empty(), "{files:?} after {round} rounds");
        }
    });
}

#[test]
fn a_database_that_is_closed_under_load_has_all_that_was_answered() {
    within_time(|| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let databases = Databases::start(EngineLimits::default()).unwrap();
        let next = AtomicI64::new(0);
        let stored = AtomicI64::new(0);
        for round in 0..30 {
            let database =
                databases.open(&path, || options(|options| options.profile = SMALL_WAL)).unwrap();
            thread::scope(|scope| {
                for _ in 0..WRITERS {
                    scope.spawn(|| {
                        loop {
                            let x = next.fetch_add(1, Ordering::SeqCst);
                            match insert(&database, x).wait() {
                                Ok(()) => stored.fetch_add(x, Ordering::SeqCst),
                                Err(Error::Closed) => break,
                                Err(error) => unreachable!("{error}"),
                            };
                        }
                    });
                }
                for _ in 0..round * 5 {
                    assert!(read(&database));
                }
                databases.close(&path).unwrap();
            });
        }
        let database = databases.open(&path, || options(|_| {})).unwrap();
        assert_eq!(sum(&database), stored.into_inner());
    });
}
