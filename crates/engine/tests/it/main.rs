//! Integration tests of the engine on real files, with real ciphers.
#![expect(clippy::unwrap_used, reason = "in a test, also in its helpers, a panic is the report")]

mod backup;
mod bank;
mod cancel;
mod closing;
mod damage;
mod databases;
mod disk_full;
mod isolation;
mod kill;
mod load;
mod maintenance;
mod migrations;
mod open;
mod overlay;
mod plaintext;
mod seed;
mod snapshots;
mod write;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};

use engine::{
    Database, DatabaseKey, DatabaseOptions, Databases, Durability, EngineLimits, Error,
    FileEncryption,
};
use rusqlite::Connection;

/// Registry with two workers and a directory of its own.
struct EngineFixture {
    databases: Databases,
    directory: tempfile::TempDir,
}

fn fixture() -> EngineFixture {
    fixture_with(EngineLimits { workers_count: 2, ..EngineLimits::default() })
}

fn fixture_with(limits: EngineLimits) -> EngineFixture {
    let databases = Databases::start(limits).unwrap();
    EngineFixture { databases, directory: tempfile::tempdir().unwrap() }
}

impl EngineFixture {
    /// Opens an encrypted database with one table, `t (id INTEGER PRIMARY KEY, x UNIQUE)`.
    fn open(&self, name: &str) -> Arc<Database> {
        self.open_with(name, |_| {})
    }

    fn open_with(&self, name: &str, change: impl FnOnce(&mut DatabaseOptions)) -> Arc<Database> {
        let path = self.directory.path().join(name);
        self.databases.open(&path, || options(change)).unwrap()
    }
}

fn options(change: impl FnOnce(&mut DatabaseOptions)) -> DatabaseOptions {
    let mut options = DatabaseOptions::new(FileEncryption::Key { key: key(), cipher: None });
    options.create = true;
    options.is_sole_writer = true;
    options.migrations = &[engine::Migration {
        version: 1,
        sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, x UNIQUE)",
    }];
    change(&mut options);
    options
}

fn key() -> DatabaseKey {
    DatabaseKey::from_bytes([7; 32])
}

fn encryption() -> FileEncryption {
    FileEncryption::Key { key: key(), cipher: None }
}

fn insert(database: &Database, x: i64) -> engine::WriteFuture<(), Error> {
    database.write(Durability::Os, move |db| {
        db.prepare_cached("INSERT INTO t (x) VALUES (?1)")?.execute([x])?;
        Ok(())
    })
}

/// Blocks the writer in a batch of its own until the sender is dropped, so that the writes queued
/// until then form one batch. Returns when the blocking batch is running.
fn hold(database: &Database) -> Sender<()> {
    let (release, released) = mpsc::channel();
    let (started_sender, started) = mpsc::channel();
    drop(database.write::<_, Error, _>(Durability::Os, move |_| {
        started_sender.send(()).unwrap();
        released.recv().unwrap_err();
        Ok(())
    }));
    started.recv().unwrap();
    release
}

/// Waits for all of `writes`; each must succeed.
fn wait_for_all(writes: impl IntoIterator<Item = engine::WriteFuture<(), Error>>) {
    for write in writes {
        write.wait().unwrap();
    }
}

fn sum(database: &Database) -> i64 {
    database.read::<_, Error>(|db| Ok(number(db, "SELECT coalesce(sum(x), 0) FROM t"))).unwrap()
}

fn number(db: &Connection, sql: &str) -> i64 {
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn starts_plain(path: &Path) -> bool {
    std::fs::read(path).unwrap().starts_with(b"SQLite format 3\0")
}
