//! Tests that an examination changes nothing about a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use doctor::{FileOpenMode, FindingCode};

use crate::findings::healthy;
use crate::fixture::{DoctorFixture, SqliteShell, codes, report};

/// Returns the content and times of all files in a directory, and the time of the directory.
fn state(folder: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let mut state = BTreeMap::new();
    let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    state.insert(".".to_owned(), (Vec::new(), modified(folder)));
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        state.insert(name, (fs::read(&path).unwrap(), modified(&path)));
    }
    state
}

#[track_caller]
fn check_untouched(path: &Path) -> doctor::DoctorReport {
    let before = state(path.parent().unwrap());
    let report = report(path);
    let after = state(path.parent().unwrap());
    let names = |state: &BTreeMap<String, _>| state.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after));
    assert!(before == after, "something of {:?} changed", names(&before));
    report
}

#[test]
fn files_that_nobody_uses_stay_as_they_are() {
    for journal in ["DELETE", "WAL"] {
        let fixture = DoctorFixture::new();
        let path = fixture.at("a.db");
        healthy(&path);
        let sql = format!("PRAGMA journal_mode = {journal}; DELETE FROM book WHERE id % 3 = 0");
        crate::fixture::sql_on(&path, &sql);
        check_untouched(&path);
    }
}

#[test]
fn files_in_use_stay_as_they_are() {
    for journal in ["DELETE", "TRUNCATE", "PERSIST", "WAL"] {
        let fixture = DoctorFixture::new();
        let path = fixture.at("a.db");
        healthy(&path);
        let sql = format!("PRAGMA journal_mode = {journal}; DELETE FROM book WHERE id % 3 = 0;");
        let _shell = SqliteShell::start(&path, &sql);
        let report = check_untouched(&path);
        assert_eq!(report.file.open_mode, Some(FileOpenMode::Shared), "{report:#?}");
        assert_eq!(report.file.processes.len(), 1, "{report:#?}");
        assert!(!codes(&report).contains(&FindingCode::PageBroken), "{report:#?}");
    }
}

#[test]
fn what_a_killed_process_left_stays_for_the_next_to_recover() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    healthy(&path);
    drop(SqliteShell::start(
        &path,
        "PRAGMA wal_autocheckpoint = 0; DELETE FROM book WHERE id > 10;",
    ));
    assert!(fixture.at("a.db-wal").exists() && fixture.at("a.db-shm").exists());
    let report = check_untouched(&path);
    assert_eq!(report.file.open_mode, Some(FileOpenMode::Overlay));
    fs::remove_file(fixture.at("a.db-shm")).unwrap();
    let report = check_untouched(&path);
    assert!(report.skipped.is_empty() && report.integrity.complete, "{report:#?}");
}
