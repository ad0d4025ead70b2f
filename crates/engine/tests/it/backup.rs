//! Tests of copying a file during writes: each copy is whole and has every write that was answered
//! before.
//!
//! Another process copies, as `warren backup` does, because this process must not close a
//! descriptor of the file.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use engine::{Database, Databases, Durability, EngineLimits, Error, copy_file};

use crate::bank::{self, BankTransfer, SMALL_WAL};
use crate::seed::{random, within_time};
use crate::{encryption, options};

/// Environment variable of the child: the path of the database that it copies.
const DATABASE: &str = "ENGINE_TEST_BACKUP_DATABASE";
const TARGET: &str = "ENGINE_TEST_BACKUP_TARGET";

const COPIES: usize = 10;

fn copy_by_another_process(database: &Path, to: &Path) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["backup::child", "--exact", "--nocapture"])
        // The harness's lines about its tests would appear between the lines of this process.
        .stdout(Stdio::null())
        .env(DATABASE, database)
        .env(TARGET, to)
        .status()
        .unwrap();
    assert!(status.success());
}

/// The process that copies. Without its variables, as in an ordinary test run, it does nothing.
#[test]
fn child() {
    let path = |name| std::env::var_os(name).map(PathBuf::from);
    let (Some(database), Some(to)) = (path(DATABASE), path(TARGET)) else { return };
    copy_file(&database, &to, "a test", |_| {}).unwrap();
}

/// Checks that a copy is balanced and undamaged, and returns the ids of its transfers.
fn check(copy: &Path) -> BTreeSet<i64> {
    assert!(!copy.with_extension("copy-wal").exists(), "it is one file");
    let (db, _) = engine::open_connection(copy, &encryption(), SMALL_WAL, false, false).unwrap();
    let found: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
    bank::check(&db)
}

#[test]
fn a_copy_beside_a_busy_writer_is_whole() {
    within_time(|| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let databases = Databases::start(EngineLimits::default()).unwrap();
        let bank_options = || {
            options(|options| {
                options.migrations = bank::SCHEMA;
                options.profile = SMALL_WAL;
            })
        };
        let database = databases.open(&path, bank_options).unwrap();
        let (answered, is_over) = (Mutex::new(BTreeSet::new()), AtomicBool::new(false));
        // The salts in the header change with each restart of the WAL.
        let wal = File::open(directory.path().join("a.db-wal")).unwrap();
        let header = || {
            let mut header = [0; 32];
            let length = wal.read_at(&mut header, 0).unwrap();
            (length == header.len()).then_some(header)
        };
        thread::scope(|scope| {
            scope.spawn(|| write_until(&database, &answered, &is_over));
            for number in 0..COPIES {
                if number == COPIES / 2 {
                    // The WAL cannot restart during a copy, and on a slow machine a copy is always
                    // running.
                    let before = header();
                    while header() == before {
                        thread::yield_now();
                    }
                }
                let before = answered.lock().unwrap().clone();
                let copy = directory.path().join(format!("{number}.copy"));
                copy_by_another_process(&path, &copy);
                let found = check(&copy);
                let lost = before.difference(&found).count();
                assert_eq!(lost, 0, "of {} that were answered before copy {number}", before.len());
            }
            is_over.store(true, Ordering::SeqCst);
        });
        // A closed database is a file without a WAL.
        drop(database);
        databases.close(&path).unwrap();
        let copy = directory.path().join("closed.copy");
        copy_by_another_process(&path, &copy);
        assert_eq!(check(&copy), *answered.lock().unwrap());
    });
}

fn write_until(database: &Database, answered: &Mutex<BTreeSet<i64>>, is_over: &AtomicBool) {
    let mut random = random();
    let mut ids = 1..;
    while !is_over.load(Ordering::SeqCst) {
        let submit = |id| {
            let mut transfer = BankTransfer::random(id, &mut random);
            transfer.padding = 200;
            transfer.submit(database, Durability::Os)
        };
        let writes: Vec<_> = ids.by_ref().take(10).map(submit).collect();
        for write in writes {
            let id = write.wait().unwrap();
            answered.lock().unwrap().insert(id);
        }
    }
}

#[test]
fn while_a_copy_is_made_the_wal_stays_and_writes_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let database =
        databases.open(&path, || options(|options| options.profile = SMALL_WAL)).unwrap();
    crate::insert(&database, 1).wait().unwrap();
    // The copying process takes the same lock.
    let wal = File::open(directory.path().join("a.db-wal")).unwrap();
    wal.lock_shared().unwrap();
    let length = || wal.metadata().unwrap().len();
    for x in 2..1_000 {
        let before = length();
        crate::insert(&database, x).wait().unwrap();
        assert!(length() >= before);
    }
    assert!(!database.maintain().unwrap().is_truncated);
    let pages_before = std::fs::read(&path).unwrap();
    databases.close(&path).unwrap();
    assert!(length() > 0 && pages_before == std::fs::read(&path).unwrap());
    drop(database);
    // A copying process that was killed leaves this file.
    let heartbeat = directory.path().join("a.db.copying");
    std::fs::write(&heartbeat, "a test, process 1\n").unwrap();
    // Opening the database does not wait for the copy, which starts again.
    let database =
        databases.open(&path, || options(|options| options.profile = SMALL_WAL)).unwrap();
    assert_ne!(pages_before, std::fs::read(&path).unwrap());
    assert!(!heartbeat.exists());
    crate::insert(&database, 1_000).wait().unwrap();
    let sum =
        database.read::<_, Error>(|db| Ok(crate::number(db, "SELECT sum(x) FROM t"))).unwrap();
    assert_eq!(sum, 500_500);
}

/// Size of a file that takes more than one step of a copy between two progress reports.
const LARGE_BYTES: i64 = 12 << 20;

/// Copies a large file, calls `meanwhile` in the middle of the first attempt, and returns the
/// number of attempts. The copy must then have all rows.
fn copy_meanwhile(leave_wal: bool, meanwhile: impl FnOnce(&Path)) -> usize {
    let directory = tempfile::tempdir().unwrap();
    let (path, to) = (directory.path().join("a.db"), directory.path().join("a.copy"));
    write_large(&path, 0, leave_wal);
    let mut meanwhile = Some(meanwhile);
    let (mut attempts, mut last) = (1, 0);
    copy_file(&path, &to, "a test", |progress| {
        attempts += usize::from(progress.read_bytes < last);
        last = progress.read_bytes;
        if let Some(meanwhile) = meanwhile.take() {
            meanwhile(&path);
        }
    })
    .unwrap();
    let (copy, _) = engine::open_connection(&to, &encryption(), SMALL_WAL, false, false).unwrap();
    let found: String = copy.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
    let sum = |db| crate::number(db, "SELECT sum(x) FROM t");
    let (db, _) = engine::open_connection(&path, &encryption(), SMALL_WAL, false, false).unwrap();
    assert_eq!(sum(&copy), sum(&db));
    attempts
}

/// Replaces all rows, on as many pages, in one commit.
fn write_large(path: &Path, x: i64, leave_wal: bool) {
    let (db, _) = engine::open_connection(path, &encryption(), SMALL_WAL, false, true).unwrap();
    let no_checkpoint = rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    db.set_db_config(no_checkpoint, leave_wal).unwrap();
    let rows = LARGE_BYTES / 1_000;
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, x, padding);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
             INSERT OR REPLACE INTO t SELECT i, i + {x}, zeroblob(1000) FROM n;"
    );
    db.execute_batch(&sql).unwrap();
}

#[test]
fn a_file_that_is_written_and_closed_while_it_is_copied_is_copied_again() {
    let attempts = copy_meanwhile(false, |path| {
        write_large(path, 1, false);
        assert!(!path.with_extension("db-wal").exists());
    });
    assert_eq!(attempts, 2);
}

#[test]
fn a_wal_that_is_recovered_while_it_is_copied_is_copied_again() {
    for writes_again in [false, true] {
        let attempts = copy_meanwhile(true, |path| {
            // A server that starts after a crash does this.
            let databases = Databases::start(EngineLimits::default()).unwrap();
            drop(databases.open(path, || options(|options| options.migrations = &[])).unwrap());
            databases.close(path).unwrap();
            if writes_again {
                write_large(path, 1, true);
            }
        });
        assert_eq!(attempts, 2);
    }
}

#[test]
fn a_file_that_is_replaced_while_it_is_copied_is_copied_again() {
    let attempts = copy_meanwhile(false, |path| {
        let new = path.with_extension("new");
        write_large(&new, 1, false);
        std::fs::rename(new, path).unwrap();
    });
    assert_eq!(attempts, 2);
}

#[test]
fn a_file_that_is_left_alone_is_copied_once() {
    for leave_wal in [false, true] {
        assert_eq!(copy_meanwhile(leave_wal, |_| {}), 1);
        // Two copies at the same time do not disturb each other.
        let attempts = copy_meanwhile(leave_wal, |path| {
            copy_file(path, &path.with_extension("second"), "a test", |_| {}).unwrap();
        });
        assert_eq!(attempts, 1);
    }
}

#[test]
fn a_file_that_is_never_left_alone_is_not_copied() {
    let directory = tempfile::tempdir().unwrap();
    let (path, to) = (directory.path().join("a.db"), directory.path().join("a.copy"));
    write_large(&path, 0, false);
    let mut time = SystemTime::UNIX_EPOCH + Duration::from_nanos(1);
    let touch = |_| {
        time += Duration::from_secs(1);
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    };
    let refused = copy_file(&path, &to, "a test", touch).unwrap_err();
    assert!(matches!(refused, Error::CopyOvertaken { .. }), "{refused}");
    assert!(refused.to_string().contains("100 attempts"), "{refused}");
}
