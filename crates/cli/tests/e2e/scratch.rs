//! Tests of temporary copies: who may read them, and that they are removed when their command
//! ends, however it ends.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::file_modes::{
    OF_USER, RunningCommand, below, folder, mode, run, set_mode, start, wait_until, words,
};

/// Returns the folders of commands that keep temporary copies.
fn scratch(folder: &Path) -> Vec<PathBuf> {
    let is_it = |path: &PathBuf| {
        path.file_name().unwrap().to_str().unwrap().starts_with("warren-") && path.is_dir()
    };
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).filter(is_it).collect()
}

/// Starts a long `warren tune a.db`, and waits until its copy is in its folder.
fn tune(folder: &Path) -> (RunningCommand, PathBuf) {
    let before = scratch(folder);
    let process = start(folder, &["tune", "a.db", "--minutes", "5"]);
    let mut made = None;
    wait_until("the copy of tune", || {
        let has_copy = |folder: &PathBuf| {
            folder.join("copy.sqlite").metadata().is_ok_and(|copy| copy.len() > 0)
        };
        made = scratch(folder).into_iter().find(|one| !before.contains(one) && has_copy(one));
        made.is_some()
    });
    (process, made.unwrap())
}

#[test]
fn tune_has_a_folder_of_its_own_that_goes_with_it() {
    let folder = folder();
    let path = folder.path();
    for (original, name) in [(0o600, Signal::INT), (0o640, Signal::TERM)] {
        set_mode(&path.join("a.db"), original);
        let (mut process, scratch_folder) = tune(path);
        assert_eq!(mode(&scratch_folder), 0o700);
        assert_eq!(mode(&scratch_folder.join("copy.sqlite")), original);
        process.signal(name);
        assert_eq!(process.wait().signal(), Some(name.as_raw()), "as without a handler");
        assert_eq!(scratch(path), [] as [PathBuf; 0], "{name:?}");
    }
    let names: BTreeSet<PathBuf> = below(path).into_iter().collect();
    assert_eq!(names, OF_USER.map(|name| path.join(name)).into());
}

#[test]
fn what_a_killed_tune_has_left_the_next_one_removes() {
    let folder = folder();
    let path = folder.path();
    let (mut killed, left) = tune(path);
    killed.signal(Signal::KILL);
    killed.wait();
    assert!(left.join("copy.sqlite").is_file());
    assert_eq!(mode(&left), 0o700);
    // These must stay: a folder that only looks like one, and one whose process is alive.
    let of_user = path.join("warren-tune-results");
    fs::create_dir(&of_user).unwrap();
    let (mut living, used) = tune(path);
    assert!(!left.exists());
    run(path, &words("tune a.db --minutes 0.001")).succeeded();
    let there: BTreeSet<PathBuf> = scratch(path).into_iter().collect();
    assert_eq!(there, BTreeSet::from([of_user, used]));
    living.signal(Signal::TERM);
    living.wait();
}

#[test]
fn benchmarks_leave_their_reports_for_everybody_and_nothing_else() {
    let folder = folder();
    let path = folder.path();
    let measure = "bench pragma --work-dir . --report-dir . --rows 30 --body-bytes 500 --only \
                   synchronous-full,insert --rounds-min 2 --minutes";
    let mut process = start(path, &words(&format!("{measure} 5 --seconds 5")));
    wait_until("bench", || !scratch(path).is_empty());
    process.signal(Signal::TERM);
    assert_eq!(process.wait().signal(), Some(Signal::TERM.as_raw()));
    assert_eq!(scratch(path), [] as [PathBuf; 0]);
    run(path, &words(&format!("{measure} 0.001 --seconds 0.01"))).succeeded();
    for name in ["warren-pragma.html", "warren-pragma.json"] {
        assert_eq!(mode(&path.join(name)), 0o644);
    }
    assert_eq!(below(path).len(), OF_USER.len() + 2);
}
