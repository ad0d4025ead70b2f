//! Tests that acknowledged writes survive `kill -9` under load, a hundred times: whole and exactly
//! once.
//!
//! The test runs itself again as a child process, which writes each id to its standard output after
//! the write was answered. The kill follows at a random moment. The WAL limit is small, so it often
//! hits a checkpoint.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;

use engine::{Database, Databases, Durability, EngineLimits, Error, open_connection};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::bank::{self, BankTransfer, SMALL_WAL};
use crate::seed::{random, seeded, within_time};
use crate::{encryption, options};

/// Environment variable of the child: the database's path.
const DATABASE: &str = "ENGINE_TEST_KILL_DATABASE";
/// Environment variable of the child: the first id, which is also its seed.
const FIRST_ID: &str = "ENGINE_TEST_KILL_FIRST_ID";

const ACKNOWLEDGED: &str = "acknowledged ";
const WRONG: &str = "wrong: ";

/// Number of files; the process that writes to one is killed `KILLS` times in a row.
const FILES: usize = 10;
const KILLS: usize = 10;
const PRODUCERS: usize = 64;
const READERS: usize = 2;
/// One transaction in this many fails after it wrote.
const FAILING: u32 = 50;

#[test]
fn what_was_acknowledged_outlives_a_hundred_kills() {
    within_time(|| {
        let mut random = random();
        for _ in 0..FILES {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("a.db");
            let databases = Databases::start(EngineLimits::default()).unwrap();
            drop(databases.open(&path, bank_options).unwrap());
            databases.shutdown();
            let mut acknowledged = BTreeSet::new();
            let mut first_id = 1;
            for kill in 0..KILLS {
                let heard = run_and_kill(&path, first_id, &mut random);
                assert!(heard.iter().all(|id| acknowledged.insert(*id)), "each is answered once");
                let stored = check(&path, kill);
                let lost: Vec<_> = acknowledged.difference(&stored).collect();
                assert!(lost.is_empty(), "kill {kill}: {lost:?} of {}", acknowledged.len());
                assert!(stored.iter().all(|id| !fails(*id)), "what failed is not there");
                first_id = stored.last().map_or(1, |id| id + 1_000_000);
            }
        }
    });
}

/// Opens the file after a kill, with a tool's connection or a registry by turns.
fn check(path: &Path, kill: usize) -> BTreeSet<i64> {
    if kill.is_multiple_of(2) {
        let (db, _) = open_connection(path, &encryption(), SMALL_WAL, false, false).unwrap();
        return bank::check(&db);
    }
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let database = databases.open(path, bank_options).unwrap();
    database.write(Durability::Disk, |db| Ok::<_, Error>(bank::check(db))).wait().unwrap()
}

fn bank_options() -> engine::DatabaseOptions {
    options(|options| {
        options.migrations = bank::SCHEMA;
        options.profile = SMALL_WAL;
    })
}

fn fails(id: i64) -> bool {
    id % i64::from(FAILING) == 0
}

/// Starts the child, kills it, and returns the ids that were acknowledged before the kill.
fn run_and_kill(path: &Path, first_id: i64, random: &mut StdRng) -> Vec<i64> {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["kill::child", "--exact", "--quiet"])
        .env(DATABASE, path)
        .env(FIRST_ID, first_id.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = KillOnDrop(child);
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let count_before = random.random_range(0..1_500);
    let mut heard: Vec<i64> = acknowledgements(&mut lines).take(count_before).collect();
    // The delay keeps the kill from always being the next event after an answer.
    for _ in 0..random.random_range(0..20_000) {
        std::hint::spin_loop();
    }
    drop(child);
    heard.extend(acknowledgements(&mut lines));
    assert!(heard.len() >= count_before, "the child ended by itself");
    heard
}

/// Child process that is killed when dropped, also if the test has failed.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        let status = self.0.wait().unwrap();
        assert!(thread::panicking() || status.signal() == Some(9), "{status}");
    }
}

/// Iterates over the acknowledged ids until the child ends.
fn acknowledgements(
    lines: &mut std::io::Lines<BufReader<ChildStdout>>,
) -> impl Iterator<Item = i64> {
    lines.map(Result::unwrap).filter_map(|line| {
        assert!(!line.starts_with(WRONG), "{line}");
        // The harness writes lines of its own, and the last line may be cut off.
        Some(line.strip_prefix(ACKNOWLEDGED)?.strip_suffix('.')?.parse().unwrap())
    })
}

/// The process that is killed. Without its variables, as in an ordinary test run, it does nothing.
#[test]
fn child() {
    let Some(path) = std::env::var_os(DATABASE).map(PathBuf::from) else { return };
    let first_id = std::env::var_os(FIRST_ID).unwrap().to_str().unwrap().parse().unwrap();
    let mut random = seeded(u64::try_from(first_id).unwrap());
    say(String::new());
    let databases =
        Databases::start(EngineLimits { workers_count: 2, ..EngineLimits::default() }).unwrap();
    let database = databases.open(&path, bank_options).unwrap();
    let next_id = AtomicI64::new(first_id);
    let producing = Arc::new(());
    thread::scope(|scope| {
        for _ in 0..PRODUCERS {
            let (database, next_id, random) = (&database, &next_id, random.fork());
            let producing = Arc::clone(&producing);
            scope.spawn(move || {
                produce(database, next_id, random);
                drop(producing);
            });
        }
        let producing = Arc::downgrade(&producing);
        for _ in 0..READERS {
            let (database, producing) = (&database, Weak::clone(&producing));
            scope.spawn(move || {
                while producing.strong_count() > 1 {
                    let is_balanced = database.read(|db| Ok::<_, Error>(bank::is_balanced(db)));
                    if !is_balanced.unwrap() {
                        say(format!("{WRONG}a read saw half a transfer"));
                    }
                }
            });
        }
    });
}

fn produce(database: &Database, next_id: &AtomicI64, mut random: StdRng) {
    loop {
        let id = next_id.fetch_add(1, Ordering::SeqCst);
        let durability = if random.random() { Durability::Os } else { Durability::Disk };
        let mut transfer = BankTransfer::random(id, &mut random);
        transfer.fails = fails(id);
        match transfer.submit(database, durability).wait() {
            Ok(answer) => say(format!("{ACKNOWLEDGED}{answer}.")),
            Err(Error::NotEncrypted { .. }) if fails(id) => {}
            Err(error) => return say(format!("{WRONG}{error}")),
        }
    }
}

/// Writes a line immediately. Short lines reach a pipe whole or not at all.
fn say(line: String) {
    std::io::stdout().lock().write_all((line + "\n").as_bytes()).unwrap();
}
