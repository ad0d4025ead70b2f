use std::sync::Arc;

use crate::system::clock;
use crate::system::side_files::side_file_path;
use crate::{
    Database, DatabaseOptions, Databases, Durability, EngineLimits, Error, FileEncryption,
    Migration, WriteFuture,
};

fn options() -> DatabaseOptions {
    let mut options = DatabaseOptions::new(FileEncryption::None);
    options.create = true;
    options.migrations = &[Migration { version: 1, sql: "CREATE TABLE t (x)" }];
    options
}

fn insert(database: &Database, x: i64) -> WriteFuture<(), Error> {
    database.write(Durability::Disk, move |db| {
        Ok(db.execute("INSERT INTO t VALUES (?1)", [x]).map(drop)?)
    })
}

fn sum(database: &Database) -> i64 {
    let read = database
        .read(|db| Ok::<_, Error>(db.query_row("SELECT sum(x) FROM t", [], |row| row.get(0))?));
    read.unwrap()
}

#[test]
fn a_failed_commit_poisons_until_the_database_has_recovered() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let database = databases.open(&path, options).unwrap();
    insert(&database, 1).wait().unwrap();
    database.writer().as_mut().unwrap().fail_commits();

    for x in [2, 4] {
        let error = insert(&database, x).wait().unwrap_err();
        assert!(matches!(error, Error::Poisoned { .. }), "{error}");
    }
    let stats = database.stats();
    assert!(stats.is_poisoned);
    assert_eq!((stats.transactions, stats.failed), (1, 2));
    assert_eq!(sum(&database), 1, "reads go on");

    wait_for_recovery(&database);
    insert(&database, 8).wait().unwrap();
    assert_eq!(sum(&database), 9);
}

#[test]
fn a_poisoned_database_that_is_closed_and_opened_takes_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let database = databases.open(&path, options).unwrap();
    insert(&database, 1).wait().unwrap();
    database.poison("a flush failed");
    databases.close(&path).unwrap();
    let error = insert(&database, 8).wait().unwrap_err();
    assert!(matches!(error, Error::Closed), "{error}");
    let reopened = databases.open(&path, options).unwrap();
    assert!(!Arc::ptr_eq(&database, &reopened));
    insert(&reopened, 16).wait().unwrap();
    assert_eq!(sum(&reopened), 17);
}

#[test]
fn a_database_recovers_when_the_long_read_that_has_it_open_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let database = databases.open(&path, options).unwrap();
    insert(&database, 1).wait().unwrap();
    let recovered = database.read::<_, Error>(|db| {
        db.query_row("SELECT sum(x) FROM t", [], |_| Ok(()))?;
        database.poison("a flush failed");
        Ok(database.try_recover())
    });
    assert!(matches!(recovered.unwrap(), Err(Error::Busy)));
    assert!(database.poison_cause().is_some());
    insert(&database, 2).wait().unwrap_err();
    database.try_recover().unwrap();
    insert(&database, 4).wait().unwrap();
    assert_eq!(sum(&database), 5);
}

#[test]
fn what_recovers_has_nothing_left_in_its_wal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let database = databases.open(&path, options).unwrap();
    (0..100).for_each(|x| insert(&database, x).wait().unwrap());
    database.poison("a flush failed");
    database.try_recover().unwrap();
    let wal = directory.path().join("a.db-wal");
    assert_eq!(wal.metadata().unwrap().len(), 0);
    assert_eq!(sum(&database), 4_950);
}

#[test]
fn a_wal_that_was_left_is_moved_into_the_file_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let database = databases.open(&path, options).unwrap();
    (0..100).for_each(|x| insert(&database, x).wait().unwrap());
    // The files are what a killed process leaves.
    let killed = directory.path().join("killed.db");
    for suffix in ["", "-wal"] {
        let file = |path: &std::path::Path| side_file_path(path, suffix);
        std::fs::copy(file(&path), file(&killed)).unwrap();
    }
    let wal = directory.path().join("killed.db-wal");
    assert!(wal.metadata().unwrap().len() > 0);
    let reopened = databases.open(&killed, options).unwrap();
    assert_eq!(wal.metadata().unwrap().len(), 0);
    assert_eq!(sum(&reopened), 4_950);
}

#[test]
fn a_batch_that_is_not_handed_over_to_be_flushed_is_not_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let database = databases.open(&path, options).unwrap();
    database.flushes.close();
    let error = insert(&database, 1).wait().unwrap_err();
    assert!(matches!(error, Error::Closed), "{error}");
}

fn wait_for_recovery(database: &Database) {
    let until = clock::now() + std::time::Duration::from_mins(1);
    while database.poison_cause().is_some() {
        assert!(clock::now() < until, "it recovers by itself");
        std::thread::yield_now();
    }
}

#[test]
fn a_busy_commit_is_rolled_back_and_does_not_poison() {
    const ROLLBACK_JOURNAL: crate::Profile = crate::Profile {
        name: "rollback-journal",
        about: "",
        base: &[],
        changes: &[crate::PragmaSetting {
            name: "busy_timeout",
            value: "0",
            read_back: "0",
            scope: crate::PragmaScope::Always,
        }],
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let options = || DatabaseOptions { profile: &ROLLBACK_JOURNAL, ..options() };
    let database = databases.open(&path, options).unwrap();
    insert(&database, 1).wait().unwrap();

    database
        .read::<_, Error>(|db| {
            db.query_row("SELECT count(*) FROM t", [], |_| Ok(()))?;
            let error = insert(&database, 2).wait().unwrap_err();
            assert!(matches!(error, Error::RolledBack { .. }), "{error}");
            Ok(())
        })
        .unwrap();
    insert(&database, 4).wait().unwrap();
    assert_eq!(sum(&database), 5);
}

#[test]
fn a_poisoned_database_moves_no_wal_into_its_file() {
    const SMALL_WAL: crate::Profile = crate::Profile {
        name: "small-wal",
        about: "",
        base: crate::Profile::SERVER.changes,
        changes: &[crate::PragmaSetting {
            name: "wal_autocheckpoint",
            value: "10",
            read_back: "10",
            scope: crate::PragmaScope::Writing,
        }],
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let options = || DatabaseOptions { profile: &SMALL_WAL, ..options() };
    let database = databases.open(&path, options).unwrap();
    insert(&database, 1).wait().unwrap();
    database.maintain().unwrap();
    let before = database.read::<_, Error>(|db| {
        // With an empty WAL, this read keeps all new frames from being copied until the database is
        // poisoned.
        db.query_row("SELECT sum(x) FROM t", [], |_| Ok(()))?;
        for x in 1..200 {
            insert(&database, x).wait()?;
        }
        database.writer().as_mut().unwrap().fail_commits();
        insert(&database, 0).wait().unwrap_err();
        // A pass that began before may still have to find that it can copy nothing.
        drop(database.checkpoints.suspend());
        Ok(std::fs::read(&path).unwrap())
    });
    let before = before.unwrap();
    (0..200).for_each(|x| drop(insert(&database, x).wait().unwrap_err()));
    databases.shutdown();
    assert!(before == std::fs::read(&path).unwrap());
}

#[test]
fn a_poisoned_database_is_not_maintained() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let database = databases.open(&path, options).unwrap();
    insert(&database, 1).wait().unwrap();
    database.writer().as_mut().unwrap().fail_commits();
    insert(&database, 2).wait().unwrap_err();
    let wal = std::fs::read(directory.path().join("a.db-wal")).unwrap();
    let error = database.maintain().unwrap_err();
    assert!(matches!(error, Error::Poisoned { .. }), "{error}");
    assert!(wal == std::fs::read(directory.path().join("a.db-wal")).unwrap());
}

/// Copies the file, lets `write` write, and tries to put the copy in the file's place.
fn swap_after(write: impl FnOnce(&Database)) -> (Result<(), Error>, i64) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let options = || DatabaseOptions { is_sole_writer: true, ..options() };
    let database = databases.open(&path, options).unwrap();
    insert(&database, 1).wait().unwrap();
    let batches = database.batches();
    let db = database.connect_for_maintenance(batches).unwrap();
    let (copy, seen) = database.compact(&db, batches).unwrap();
    drop(db);
    write(&database);
    let swapped = database.replace_file(copy, seen).map(drop);
    assert!(!directory.path().join("a.db.compacting").exists());
    insert(&database, 100).wait().unwrap();
    let seen = sum(&database);
    databases.close(&path).unwrap();
    let stored = sum(&databases.open(&path, options).unwrap());
    assert_eq!(seen, stored, "the writer and the readers had the same file");
    (swapped, stored)
}

#[test]
fn a_copy_takes_the_files_place_only_if_nothing_was_written_since() {
    let (swapped, sum) = swap_after(|_| {});
    assert_eq!((swapped.unwrap(), sum), ((), 101));

    let (swapped, sum) = swap_after(|database| insert(database, 10).wait().unwrap());
    assert!(matches!(swapped, Err(Error::Busy)));
    assert_eq!(sum, 111);

    // The write comes from a connection outside the engine, which is closed again.
    let (swapped, sum) = swap_after(|database| {
        let other = rusqlite::Connection::open(database.path()).unwrap();
        other.execute("INSERT INTO t VALUES (10)", []).unwrap();
    });
    assert!(matches!(swapped, Err(Error::Busy)));
    assert_eq!(sum, 111);
}

#[test]
fn a_poisoned_database_is_not_swapped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let database = databases.open(&path, options).unwrap();
    insert(&database, 1).wait().unwrap();
    let batches = database.batches();
    let db = database.connect_for_maintenance(batches).unwrap();
    let (copy, seen) = database.compact(&db, batches).unwrap();
    drop(db);
    database.poison("a flush failed");
    let swapped = database.replace_file(copy, seen).map(drop);
    assert!(matches!(swapped, Err(Error::Poisoned { .. })));
    assert_eq!(sum(&database), 1);
}
