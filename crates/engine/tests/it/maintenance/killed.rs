//! Tests `kill -9` at each system call of a compaction: the file is the old one or the new one,
//! whole.
//!
//! The test runs itself again under `strace`, which kills the process as it enters the n-th call of
//! a kind.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::{Databases, EngineLimits, open_connection, side_file_path};

use super::{fragment_rows, inode};
use crate::{encryption, fixture, number, options};

/// Environment variable of the child: the database's path.
const DATABASE: &str = "ENGINE_TEST_COMPACTION_DATABASE";

/// System calls that change file names on the disk, or wait for it. Writes are many and alike.
const CALLS: &[&str] =
    &["rename,renameat,renameat2", "unlink,unlinkat", "fsync,fdatasync", "ftruncate", "pwrite64"];
/// Number of calls of one kind that are tried; the process makes fewer and ends by then.
const TRIES_MAX: usize = 400;

#[test]
fn at_any_moment_the_file_is_the_old_one_or_the_new_one() {
    let fixture = fixture();
    let (mut old_count, mut new_count, mut left_count) = (0, 0, 0);
    let original = fixture.directory.path().join("original.db");
    let rows = make(&original);
    for calls in CALLS {
        // Thousands of pages are written; a few moments among them are enough.
        let step = if *calls == "pwrite64" { 101 } else { 1 };
        for at in (1..).step_by(step).take(TRIES_MAX) {
            let path = fixture.directory.path().join("a.db");
            std::fs::copy(&original, &path).unwrap();
            let before = inode(&path);
            let is_killed = run(&path, calls, at);
            left_count += usize::from(side_file_path(&path, ".compacting").exists());
            let is_old = inode(&path) == before;
            assert!(is_killed || !is_old, "it ends when it has compacted the file");
            old_count += usize::from(is_old);
            new_count += usize::from(!is_old);
            // The engine opens the file, as the next program would.
            let databases = Databases::start(EngineLimits::default()).unwrap();
            drop(databases.open(&path, || options(|_| {})).unwrap());
            databases.shutdown();
            let (db, _) =
                open_connection(&path, &encryption(), engine::Profile::SERVER, false, false)
                    .unwrap();
            assert_eq!(number(&db, "SELECT count(*) FROM t"), rows, "{calls} {at}");
            let sound: String =
                db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
            assert_eq!(sound, "ok", "{calls} {at}");
            drop(db);
            for suffix in ["-wal", "-shm", ".compacting", ".compacting-journal"] {
                assert!(!side_file_path(&path, suffix).exists(), "{suffix} after {calls} {at}");
            }
            if !is_killed {
                break;
            }
        }
    }
    assert!(
        old_count > 5 && new_count > 5 && left_count > 5,
        "{old_count} {new_count} {left_count}"
    );
}

fn make(path: &Path) -> i64 {
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let database = databases.open(path, || options(|_| {})).unwrap();
    fragment_rows(&database, 400, 70);
    let rows = super::number_of(&database, "SELECT count(*) FROM t");
    databases.shutdown();
    rows
}

/// Runs the child. Returns `true` if it was killed, and `false` if it made fewer such calls.
fn run(path: &Path, calls: &str, at: usize) -> bool {
    let output = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e"])
        .arg(format!("trace={calls}"))
        .arg("-e")
        .arg(format!("inject={calls}:signal=SIGKILL:when={at}"))
        .arg(std::env::current_exe().unwrap())
        .args(["maintenance::killed::child", "--exact", "--quiet"])
        .env(DATABASE, path)
        .output()
        .expect("this test needs the program strace: apt-get install strace");
    let is_killed = output.status.signal() == Some(9) || output.status.code() == Some(128 + 9);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(is_killed || output.status.success(), "{}: {stderr}", output.status);
    is_killed
}

/// The process that is killed. Without its variable, as in an ordinary test run, it does nothing.
#[test]
fn child() {
    let Some(path) = std::env::var_os(DATABASE).map(PathBuf::from) else { return };
    let databases =
        Databases::start(EngineLimits { workers_count: 1, ..EngineLimits::default() }).unwrap();
    let database = databases.open(&path, || options(|_| {})).unwrap();
    assert!(database.maintain().unwrap().is_compacted);
}
