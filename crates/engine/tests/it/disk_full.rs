//! Tests of a disk that fills up under load: every caller gets an error, and no acknowledged write
//! is lost.
//!
//! There are two kinds: a small tmpfs, which only root can mount (ENOSPC, and space can be freed),
//! and a process's limit on the size of a file (EFBIG), which always runs, in a child process.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use engine::{Database, Databases, Durability, EngineLimits, Error};
use rand::RngExt;

use crate::bank::{self, BankTransfer, SMALL_WAL};
use crate::seed::{ReplayableRng, random, within_time};
use crate::{encryption, options};

/// Environment variable of the child: the database's path.
const DATABASE: &str = "ENGINE_TEST_DISK_FULL_DATABASE";

const TMPFS_KB: u64 = 8_000;

/// Tmpfs that is mounted until this value is dropped.
pub(crate) struct MountedTmpfs(tempfile::TempDir);

impl MountedTmpfs {
    /// Mounts the tmpfs. Returns `None` if mounting is not permitted.
    pub(crate) fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let size = format!("size={TMPFS_KB}k");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(directory.path());
        mount.output().is_ok_and(|output| output.status.success()).then_some(Self(directory))
    }

    /// Fills the tmpfs until only `free_kb` are free.
    fn fill(&self, free_kb: u64) {
        let ballast = File::create(self.ballast()).unwrap();
        let kilobyte = [0; 1_024];
        (0..TMPFS_KB - free_kb).for_each(|at| ballast.write_all_at(&kilobyte, at * 1_024).unwrap());
    }

    fn free(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    fn ballast(&self) -> PathBuf {
        self.0.path().join("ballast")
    }
}

impl Drop for MountedTmpfs {
    fn drop(&mut self) {
        // The unmount is lazy: a child that another test has just forked may still hold our
        // descriptors.
        let status = Command::new("umount").arg("-l").arg(self.0.path()).status().unwrap();
        assert!(status.success() || thread::panicking(), "{status}");
    }
}

/// Ids of the transfers, by the results that their callers got.
#[derive(Debug, Default)]
struct WriteResults {
    stored: BTreeSet<i64>,
    /// Transfers that failed with `Poisoned`: they may be stored or not.
    uncertain: BTreeSet<i64>,
    /// Transfers that failed with any other error: they are not stored.
    failed: BTreeSet<i64>,
}

impl WriteResults {
    fn note(&mut self, id: i64, answer: Result<i64, Error>) {
        let set = match answer {
            Ok(answer) => {
                assert_eq!(answer, id);
                &mut self.stored
            }
            Err(Error::Poisoned { .. }) => &mut self.uncertain,
            Err(Error::RolledBack { .. } | Error::DiskFull { .. }) => &mut self.failed,
            Err(error) => unreachable!("{error}"),
        };
        assert!(set.insert(id));
    }

    fn append(&mut self, mut other: Self) {
        self.stored.append(&mut other.stored);
        self.uncertain.append(&mut other.uncertain);
        self.failed.append(&mut other.failed);
    }

    fn check(&self, stored: &BTreeSet<i64>) {
        let lost: Vec<_> = self.stored.difference(stored).collect();
        assert!(lost.is_empty(), "{lost:?} of {}", self.stored.len());
        assert!(self.failed.is_disjoint(stored), "what failed is not there");
    }
}

/// Lets producers write until each has got some errors.
fn write_until_it_fails(
    database: &Database,
    next_id: &AtomicI64,
    random: &mut ReplayableRng,
) -> WriteResults {
    const ERRORS: usize = 20;
    let padding_max = [100, 3_000, 30_000][random.random_range(0..3)];
    let produce = &|seed| {
        let mut random = crate::seed::seeded(seed);
        let mut heard = WriteResults::default();
        while heard.failed.len() + heard.uncertain.len() < ERRORS {
            let writes: Vec<_> = (0..random.random_range(1..10))
                .map(|_| {
                    let id = next_id.fetch_add(1, Ordering::SeqCst);
                    let mut transfer = BankTransfer::random(id, &mut random);
                    transfer.padding = random.random_range(0..padding_max);
                    let durability = [Durability::Os, Durability::Disk][random.random_range(0..2)];
                    (id, transfer.submit(database, durability))
                })
                .collect();
            for (id, answer) in writes {
                heard.note(id, answer.wait());
            }
        }
        heard
    };
    let mut all = WriteResults::default();
    thread::scope(|scope| {
        let seeds: [u64; 4] = random.random();
        let producers = seeds.map(|seed| scope.spawn(move || produce(seed)));
        for producer in producers {
            all.append(producer.join().unwrap());
        }
    });
    // The database may have recovered by now.
    let stats = database.stats();
    assert!(!stats.is_poisoned || !all.uncertain.is_empty(), "{stats:?}");
    let is_balanced = database.read(|db| Ok::<_, Error>(bank::is_balanced(db)));
    assert!(is_balanced.unwrap(), "reads go on");
    all
}

fn open(databases: &Databases, path: &Path) -> Result<Arc<Database>, Error> {
    databases.open(path, || {
        options(|options| {
            options.migrations = bank::SCHEMA;
            options.profile = SMALL_WAL;
        })
    })
}

#[test]
fn a_disk_that_fills_up_loses_nothing_that_was_acknowledged() {
    within_time(|| {
        for free_kb in [600, 700, 900, 1_200, 2_000, 4_000] {
            let Some(tmpfs) = MountedTmpfs::mount() else { return };
            fill_up(&tmpfs, free_kb);
        }
    });
}

fn fill_up(tmpfs: &MountedTmpfs, free_kb: u64) {
    let mut random = random();
    let path = tmpfs.0.path().join("a.db");
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let database = open(&databases, &path).unwrap();
    tmpfs.fill(free_kb);
    let next_id = AtomicI64::new(1);
    let mut heard = write_until_it_fails(&database, &next_id, &mut random);
    let database = if random.random() {
        // Closing and opening may fail while the disk is full, and must damage nothing.
        drop(database);
        drop(databases.close(&path));
        drop(open(&databases, &path).map(drop));
        tmpfs.free();
        open(&databases, &path).unwrap()
    } else {
        tmpfs.free();
        database
    };
    // The database recovers without help, whatever has failed.
    while database.poison_cause().is_some() {
        thread::park_timeout(Duration::from_millis(10));
    }
    for _ in 0..100 {
        let id = next_id.fetch_add(1, Ordering::SeqCst);
        let answer =
            BankTransfer::random(id, &mut random).submit(&database, Durability::Disk).wait();
        heard.note(id, Ok(answer.unwrap()));
    }
    heard.check(&database.read(|db| Ok::<_, Error>(bank::check(db))).unwrap());
    databases.shutdown();
    let (db, _) = engine::open_connection(&path, &encryption(), SMALL_WAL, true, false).unwrap();
    heard.check(&bank::check(&db));
}

#[test]
fn a_file_that_may_not_grow_loses_nothing_that_was_acknowledged() {
    for limit_kb in [200, 1_000, 3_000] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let databases = Databases::start(EngineLimits::default()).unwrap();
        drop(open(&databases, &path).unwrap());
        databases.shutdown();
        // `ulimit` counts blocks of 512 bytes; if the signal is ignored, `write` fails with EFBIG.
        let script = format!("ulimit -f {} && trap '' XFSZ && exec \"$0\" \"$@\"", limit_kb * 2);
        let output = Command::new("sh")
            .args(["-c", &script])
            .arg(std::env::current_exe().unwrap())
            .args(["disk_full::child", "--exact", "--quiet"])
            .env(DATABASE, &path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let read = |name: &str| -> BTreeSet<i64> {
            let ids = fs::read_to_string(directory.path().join(name)).unwrap();
            ids.lines().map(|id| id.parse().unwrap()).collect()
        };
        let (stored, uncertain, failed) = (read("stored"), read("uncertain"), read("failed"));
        assert!(!failed.is_empty() || !uncertain.is_empty());
        let heard = WriteResults { stored, uncertain, failed };
        let databases = Databases::start(EngineLimits::default()).unwrap();
        let database = open(&databases, &path).unwrap();
        heard.check(&database.read(|db| Ok::<_, Error>(bank::check(db))).unwrap());
        let transfer = BankTransfer::random(i64::MAX, &mut random());
        transfer.submit(&database, Durability::Disk).wait().unwrap();
    }
}

/// The process whose files may not grow. Without its variable, as in an ordinary test run, it does
/// nothing.
#[test]
fn child() {
    let Some(path) = std::env::var_os(DATABASE).map(PathBuf::from) else { return };
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let database = open(&databases, &path).unwrap();
    let heard = write_until_it_fails(&database, &AtomicI64::new(1), &mut random());
    drop(databases.close(&path));
    for (name, ids) in
        [("stored", heard.stored), ("uncertain", heard.uncertain), ("failed", heard.failed)]
    {
        let lines: Vec<_> = ids.into_iter().map(|id| id.to_string()).collect();
        fs::write(path.with_file_name(name), lines.join("\n")).unwrap();
    }
}
