//! Tests the doctor on files of another program: those of a browser's profile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use doctor::Severity;
use rusqlite::Connection;

use crate::fixture::{DoctorFixture, report};

/// Collects the SQLite files in a directory and its subdirectories.
fn databases(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            databases(&path, found);
        } else if fs::read(&path).is_ok_and(|bytes| bytes.starts_with(b"SQLite format 3\0")) {
            found.push(path);
        }
    }
}

/// Checks whether SQLite finds a copy of the file intact.
fn is_ok(path: &Path, copy: &Path) -> bool {
    for suffix in ["", "-wal", "-journal"] {
        let with = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        drop(fs::remove_file(with(copy)));
        drop(fs::copy(with(path), with(copy)));
    }
    let db = Connection::open(copy).unwrap();
    let said = db.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    said.is_ok_and(|said| said == "ok")
}

#[test]
fn of_a_browsers_profile_nothing_false_is_said() {
    let fixture = DoctorFixture::new();
    let profile = fixture.at("profile");
    let page = fixture.at("page.html");
    fs::write(
        &page,
        "<title>a page</title><script>localStorage.a = 1; document.cookie = 'a=1'</script>",
    )
    .unwrap();
    let mut browser = Command::new("chromium");
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]);
    browser.arg(format!("--user-data-dir={}", profile.display())).arg(&page);
    let status = browser.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(status.success());

    let mut found = Vec::new();
    databases(&profile, &mut found);
    assert!(found.len() >= 10, "{found:?}");
    for path in found {
        let before = fs::read(&path).unwrap();
        let report = report(&path);
        assert!(is_ok(&path, &fixture.at("copy")), "{}", path.display());
        assert!(report.severity() < Some(Severity::Error), "{report:#?}");
        assert!(report.integrity.complete, "{report:#?}");
        assert!(fs::read(&path).unwrap() == before, "{}", path.display());
    }
}
