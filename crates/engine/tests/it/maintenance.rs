//! Tests of the maintenance of an idle database: its steps, its timing, and the work that goes
//! first.

mod compaction;
mod killed;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use engine::{
    Database, DatabaseOptions, Durability, EngineLimits, Error, MaintenanceRun, PragmaScope,
    PragmaSetting, Profile, open_connection, side_file_path,
};
use rusqlite::Connection;

use crate::disk_full::MountedTmpfs;
use crate::seed::within_time;
use crate::{EngineFixture, encryption, fixture, fixture_with, hold, insert, number};

/// Size of a row: each fills about one page.
const ROW_BYTES: i64 = 3_900;
/// Number of rows: if 20 % are deleted, the free pages exceed the minimum of a vacuum (256).
const ROWS: i64 = 2_000;

/// Profile in which `auto_vacuum` is NONE.
const WHOLE_ONLY: &Profile = &Profile {
    name: "whole-only",
    about: "",
    base: Profile::SERVER.changes,
    changes: &[PragmaSetting {
        name: "auto_vacuum",
        value: "NONE",
        read_back: "0",
        scope: PragmaScope::Creation,
    }],
};

const NOTHING: MaintenanceRun = MaintenanceRun {
    is_optimized: true,
    pages_returned: 0,
    is_compacted: false,
    is_truncated: true,
    pages_scrubbed: 0,
};

/// Opens a database with rows, of which each with `id % 100 < percent` was deleted.
fn fragmented(
    fixture: &EngineFixture,
    percent: i64,
    change: impl FnOnce(&mut DatabaseOptions),
) -> Arc<Database> {
    let database = fixture.open_with("a.db", change);
    fragment(&database, percent);
    database
}

fn fragment(database: &Database, percent: i64) {
    fragment_rows(database, ROWS, percent);
}

fn fragment_rows(database: &Database, rows: i64, percent: i64) {
    let fill = database.write::<_, Error, _>(Durability::Os, move |db| {
        let sql = "INSERT INTO t (id, x) WITH RECURSIVE n(i) AS
                       (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
                   SELECT i, CAST(printf('%08d', i) || zeroblob(?2) AS BLOB) FROM n";
        db.execute(sql, (rows, ROW_BYTES))?;
        db.execute("DELETE FROM t WHERE id > 0 AND id % 100 < ?1", [percent])?;
        Ok(())
    });
    fill.wait().unwrap();
}

/// Returns all rows, and the result of `integrity_check`.
fn content(database: &Database) -> (Vec<(i64, String)>, String) {
    let read = database.read::<_, Error>(|db| {
        let mut select = db.prepare_cached("SELECT id, hex(x) FROM t ORDER BY id")?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let rows = rows.collect::<rusqlite::Result<_>>()?;
        Ok((rows, db.query_row("PRAGMA integrity_check", [], |row| row.get(0))?))
    });
    read.unwrap()
}

fn bytes(path: &Path) -> u64 {
    path.metadata().unwrap().len()
}

/// Maintains the database, as often as necessary: the worker that has answered the last write may
/// still have the database, and maintenance waits only some milliseconds for it before it skips the
/// steps that write.
fn maintain_in_turn(database: &Database) -> Result<MaintenanceRun, Error> {
    const TRIES_COUNT_MAX: usize = 1_000;
    let has_no_turn = |result: &_| matches!(result, Ok(MaintenanceRun { is_optimized: false, .. }));
    let mut results = (0..TRIES_COUNT_MAX).map(|_| database.maintain());
    results.find(|result| !has_no_turn(result)).unwrap_or(Err(Error::Busy))
}

/// Maintains the database and checks that its content stays. Returns the report.
fn maintain(database: &Database) -> MaintenanceRun {
    let before = content(database);
    assert_eq!(before.1, "ok");
    let done = maintain_in_turn(database).unwrap();
    assert!(before == content(database));
    assert_eq!(bytes(&side_file_path(database.path(), "-wal")), 0);
    done
}

#[test]
fn up_to_fifteen_percent_free_it_is_left_as_it_is() {
    let fixture = fixture();
    let database = fragmented(&fixture, 10, |_| {});
    let before = database.health();
    assert!(before.wal_bytes > 0);
    assert_eq!(maintain(&database), NOTHING);
    let after = database.health();
    assert!((0.08..0.15).contains(&after.fragmentation()), "{after:?}");
    assert_eq!(after.wal_bytes, 0);
    assert_eq!(bytes(database.path()), after.pages * after.page_bytes);
    // The second time there is no WAL to truncate.
    assert_eq!(maintain(&database), MaintenanceRun { is_truncated: false, ..NOTHING });
    let counted = database.health().maintenance;
    assert_eq!((counted.runs, counted.optimized, counted.truncated), (2, 2, 1));
    assert_eq!(counted, fixture.databases.maintenance());
}

#[test]
fn up_to_twenty_five_percent_it_is_shortened_in_place() {
    let fixture = fixture();
    let database = fragmented(&fixture, 20, |_| {});
    let file = inode(database.path());
    let before = database.health();
    let done = maintain(&database);
    assert!(!done.is_compacted && done.pages_returned >= 700, "{done:?}");
    let after = database.health();
    assert_eq!((after.free_pages, inode(database.path())), (0, file));
    assert_eq!(before.maintenance.runs, 0);
    assert_eq!(after.maintenance.pages_returned, done.pages_returned);
    assert_eq!(bytes(database.path()), after.pages * after.page_bytes);
}

#[test]
fn above_twenty_five_percent_it_is_written_anew() {
    let fixture = fixture();
    let database = fragmented(&fixture, 40, |_| {});
    let before = number_of(&database, "PRAGMA page_count");
    let durable = |x: &'static str| {
        let write = database.write::<_, Error, _>(Durability::Disk, move |db| {
            Ok(db.execute("INSERT INTO t (x) VALUES (?1)", [x]).map(drop)?)
        });
        write.wait().unwrap();
    };
    durable("before");
    let done = maintain(&database);
    assert!(done.is_compacted && done.pages_returned >= 1_500, "{done:?}");
    let after = database.health();
    assert_eq!((after.free_pages, after.maintenance.compacted), (0, 1));
    assert!(after.pages < u64::try_from(before).unwrap() * 7 / 10);
    assert_eq!(bytes(database.path()), after.pages * after.page_bytes);
    // The database works as before, and a flush applies to the new WAL.
    durable("after");
    assert_eq!(open_without_a_name(fixture.directory.path()), [] as [PathBuf; 0]);
    let rows = content(&database);
    fixture.databases.close(database.path()).unwrap();
    drop(database);
    let reopened = fixture.open("a.db");
    assert!(rows == content(&reopened));
    assert!(!side_file_path(reopened.path(), ".compacting").exists());
}

#[test]
fn without_incremental_vacuum_it_is_written_anew_above_fifteen() {
    let fixture = fixture();
    let database = fragmented(&fixture, 20, |options| options.profile = WHOLE_ONLY);
    assert!(maintain(&database).is_compacted);
    let read = database.read::<_, Error>(|db| Ok(number(db, "PRAGMA auto_vacuum")));
    assert_eq!(read.unwrap(), 0, "and stays without");
}

#[test]
fn a_file_that_others_may_write_to_is_never_replaced() {
    let fixture = fixture();
    let database = fragmented(&fixture, 40, |options| options.is_sole_writer = false);
    let file = inode(database.path());
    let done = maintain(&database);
    assert!(!done.is_compacted && done.pages_returned >= 1_500, "{done:?}");
    assert_eq!(inode(database.path()), file);
}

#[test]
fn nor_is_one_that_others_may_write_to_and_that_cannot_be_shortened() {
    let fixture = fixture();
    let database = fragmented(&fixture, 40, |options| {
        options.is_sole_writer = false;
        options.profile = WHOLE_ONLY;
    });
    assert_eq!(maintain(&database), NOTHING);
}

#[test]
fn without_room_on_the_disk_it_is_shortened_in_place_or_not_at_all() {
    let Some(disk) = MountedTmpfs::mount() else { return };
    for (profile, returns_pages) in [(WHOLE_ONLY, false), (Profile::SERVER, true)] {
        let fixture = fixture();
        let path = disk.path().join(format!("{returns_pages}.db"));
        let options = || crate::options(|options| options.profile = profile);
        let database = fixture.databases.open(&path, options).unwrap();
        let fill = database.write::<_, Error, _>(Durability::Os, |db| {
            let sql = "INSERT INTO t (x) WITH RECURSIVE n(i) AS
                           (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                       SELECT randomblob(3900) FROM n";
            db.execute(sql, [])?;
            Ok(db.execute("DELETE FROM t WHERE id <= 180", []).map(drop)?)
        });
        fill.wait().unwrap();
        let done = maintain(&database);
        assert!(!done.is_compacted, "{done:?}");
        assert_eq!(done.pages_returned > 300, returns_pages, "{done:?}");
        fixture.databases.shutdown();
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn statistics_are_made_and_kept_fresh() {
    let fixture = fixture();
    let database = fragmented(&fixture, 10, |_| {});
    let statistics = || {
        let read = database.read::<_, Error>(|db| {
            Ok(number(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'"))
        });
        read.unwrap()
    };
    assert_eq!(statistics(), 0);
    maintain(&database);
    assert_eq!(statistics(), 1);
}

#[test]
fn writes_go_first() {
    within_time(|| {
        let fixture = fixture();
        let database = fragmented(&fixture, 40, |_| {});
        let release = hold(&database);
        // The writer is busy, so maintenance skips every step that writes, and does not wait for
        // it.
        let done = database.maintain().unwrap();
        assert_eq!(done, MaintenanceRun::default());
        drop(release);
        insert(&database, 7).wait().unwrap();
        assert!(maintain(&database).is_compacted);
    });
}

#[test]
fn nothing_is_lost_between_writers_and_maintenance() {
    const WRITERS: i64 = 3;
    const ROUNDS: i64 = 40;
    within_time(|| {
        let fixture = fixture();
        let database = fragmented(&fixture, 40, |_| {});
        let kept = number_of(&database, "SELECT count(*) FROM t");
        thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let database = &database;
                    scope.spawn(move || {
                        for round in 0..ROUNDS {
                            let x = -1 - writer * ROUNDS - round;
                            insert(database, x).wait().unwrap();
                            // The reads leave time between two writes for a step, or for a swap of
                            // the files.
                            for _ in 0..200 {
                                number_of(database, "SELECT max(id) FROM t");
                            }
                        }
                    })
                })
                .collect();
            while writers.iter().any(|writer| !writer.is_finished()) {
                database.maintain().unwrap();
            }
        });
        maintain(&database);
        let written = number_of(&database, "SELECT count(DISTINCT x) FROM t WHERE x < 0");
        assert_eq!(written, WRITERS * ROUNDS);
        assert_eq!(number_of(&database, "SELECT count(*) FROM t"), kept + written);
    });
}

#[test]
fn an_idle_database_is_maintained_once_after_each_time_that_it_was_written_to() {
    within_time(|| {
        let limits = EngineLimits {
            idle_time: std::time::Duration::from_millis(1),
            ..EngineLimits::default()
        };
        let fixture = fixture_with(limits);
        let (a, b) = (fixture.open("a.db"), fixture.open("b.db"));
        let runs = |database: &Database| database.health().maintenance.runs;
        for round in 1..=3 {
            let before = runs(&a);
            insert(&a, round).wait().unwrap();
            while runs(&a) == before || a.health().wal_bytes > 0 {
                thread::yield_now();
            }
        }
        let seen = runs(&a);
        insert(&b, 1).wait().unwrap();
        while runs(&b) == 0 {
            thread::yield_now();
        }
        assert_eq!(runs(&a), seen, "it has been idle all the time");
        assert_eq!(fixture.databases.maintenance().runs, seen + runs(&b));
        assert!(a.health().maintenance_age.is_some());
    });
}

#[test]
fn a_database_that_was_never_idle_is_not_maintained() {
    let limits = EngineLimits { idle_time: std::time::Duration::MAX, ..EngineLimits::default() };
    let fixture = fixture_with(limits);
    let database = fixture.open("a.db");
    insert(&database, 1).wait().unwrap();
    fixture.databases.close(database.path()).unwrap();
    assert!(matches!(database.maintain(), Err(Error::Closed)));
    assert_eq!(fixture.databases.maintenance().runs, 0);
}

#[test]
fn the_longest_read_is_known_while_it_runs() {
    let fixture = fixture();
    let database = fixture.open("a.db");
    assert!(database.health().longest_read.is_zero());
    let read = database.read::<_, Error>(|_| {
        let first = database.health().longest_read;
        let inner = database.read::<_, Error>(|_| Ok(database.health().longest_read));
        let inner = inner?;
        // The outer read began first and still runs.
        assert!(inner > first && database.health().longest_read > inner);
        Ok(())
    });
    read.unwrap();
    assert!(database.health().longest_read.is_zero());
}

/// Returns the files that this process holds open and that were deleted from this directory.
fn open_without_a_name(directory: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir("/proc/self/fd").unwrap();
    let files = files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
    let is_one = |file: &PathBuf| {
        file.starts_with(directory) && file.as_os_str().as_encoded_bytes().ends_with(b" (deleted)")
    };
    files.filter(is_one).collect()
}

fn number_of(database: &Database, sql: &str) -> i64 {
    database.read::<_, Error>(|db| Ok(number(db, sql))).unwrap()
}

fn inode(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&path.metadata().unwrap())
}

/// Opens another connection, as another program would.
fn other(path: &Path) -> Connection {
    open_connection(path, &encryption(), Profile::SERVER, false, false).unwrap().0
}
