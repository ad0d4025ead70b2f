//! Copies of a file that is being written to: each is whole, and has what was answered before.
//!
//! Another process copies, as `warren backup` does: this one must not close a descriptor of the
//! file.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use engine::{Database, Databases, Durability, Error, Limits, copy_file};

use crate::bank::{self, SMALL_WAL, Transfer};
use crate::seed::{random, within_time};
use crate::{encryption, options};

/// Set in the child: what it copies, and where to.
const DATABASE: &str = "ENGINE_TEST_BACKUP_DATABASE";
const TARGET: &str = "ENGINE_TEST_BACKUP_TARGET";

const COPIES: usize = 10;

fn copy_by_another_process(database: &Path, to: &Path) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["backup::child", "--exact", "--nocapture"])
        // What it says about its tests would get between the lines of this process.
        .stdout(Stdio::null())
        .env(DATABASE, database)
        .env(TARGET, to)
        .status()
        .unwrap();
    assert!(status.success());
}

/// Without its variables, as in an ordinary run, it has nothing to do.
#[test]
fn child() {
    let path = |name| std::env::var_os(name).map(PathBuf::from);
    let (Some(database), Some(to)) = (path(DATABASE), path(TARGET)) else { return };
    copy_file(&database, &to).unwrap();
}

/// What is in a copy, which must be balanced and sound.
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
        let databases = Databases::start(Limits::default()).unwrap();
        let bank_options = || {
            options(|options| {
                options.migrations = bank::SCHEMA;
                options.profile = SMALL_WAL;
            })
        };
        let database = databases.open(&path, bank_options).unwrap();
        let (answered, is_over) = (Mutex::new(BTreeSet::new()), AtomicBool::new(false));
        // Its salts are others in each new WAL.
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
                    // While a copy is made the WAL stays, and on a slow machine one always is.
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
        // Closed, it is a file without a WAL.
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
            let mut transfer = Transfer::random(id, &mut random);
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
    let databases = Databases::start(Limits::default()).unwrap();
    let database =
        databases.open(&path, || options(|options| options.profile = SMALL_WAL)).unwrap();
    crate::insert(&database, 1).wait().unwrap();
    // As the process that copies does.
    let wal = File::open(directory.path().join("a.db-wal")).unwrap();
    wal.lock().unwrap();
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
    wal.unlock().unwrap();
    drop(database);
    let database =
        databases.open(&path, || options(|options| options.profile = SMALL_WAL)).unwrap();
    let sum =
        database.read::<_, Error>(|db| Ok(crate::number(db, "SELECT sum(x) FROM t"))).unwrap();
    assert_eq!(sum, 499_500);
}
