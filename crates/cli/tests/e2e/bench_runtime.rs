//! Tests of `warren bench runtime` with only the binary, in a folder of its own: its message if no
//! competitor is set up, the competitors that it sets up without npm, and the measurements of
//! these.
//!
//! These tests download nothing: the path contains only a Python that cannot create environments.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::bench::{check_rows, folder};
use crate::processes::{CommandOutput, python, warren_in};

const SMALL: [&str; 12] = [
    "--rows",
    "20",
    "--only",
    "production",
    "--ciphers",
    "none",
    "--seconds",
    "0.01",
    "--rounds-min",
    "2",
    "--minutes",
    "0.001",
];

/// A machine with nothing else installed.
struct LimitedMachine<'a> {
    folder: &'a Path,
    path: String,
}

impl<'a> LimitedMachine<'a> {
    fn new(folder: &'a Path) -> Self {
        let bin = folder.join("bin");
        fs::create_dir(&bin).unwrap();
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in *venv*|*ensurepip*) echo 'error: it has no venv' >&2; exit 1;; \
             esac\nexec '{}' \"$@\"\n",
            python().display()
        );
        fs::write(bin.join("python3"), script).unwrap();
        fs::set_permissions(bin.join("python3"), Permissions::from_mode(0o755)).unwrap();
        Self { folder, path: bin.display().to_string() }
    }

    fn run(&self, variables: &[(&str, &str)], more: &[&str]) -> CommandOutput {
        let folder = self.folder.to_str().unwrap();
        let variables = [&[("PATH", self.path.as_str())], variables].concat();
        let common = ["bench", "runtime", "--work-dir", folder, "--report-dir", folder];
        warren_in(folder, &variables, &[&common[..], &SMALL, more].concat())
    }
}

#[test]
fn runtime_says_what_it_would_set_up_and_what_is_missing_for_it() {
    let folder = folder();
    let machine = LimitedMachine::new(folder.path());
    let cache = folder.path().join("cache");
    let variables = [("WARREN_CACHE", ""), ("XDG_CACHE_HOME", cache.to_str().unwrap())];
    machine.run(&variables, &["--json"]).refused("not_installed");
    let told = machine.run(&variables, &[]).stderr;
    for expected in [
        "better-sqlite3-multiple-ciphers on node ",
        "apsw-sqlite3mc",
        "`warren bench runtime --setup`",
        "1 GB of disk",
        "minutes",
        cache.join("warren/competitors/built").to_str().unwrap(),
        "missing tools: npm, a C++ compiler, make, Python's ensurepip",
        "[not_installed]",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    assert!(!folder.path().join("warren-runtime.json").exists());
}

#[test]
fn runtime_measures_with_the_binary_alone_what_could_be_set_up() {
    let folder = folder();
    let machine = LimitedMachine::new(folder.path());
    let cache = folder.path().join("cache");
    let variables = [("WARREN_CACHE", cache.to_str().unwrap())];
    let setup = machine.run(&variables, &["--setup"]).succeeded().stdout;
    for expected in ["present: sqlite3 3.", "absent: apsw-sqlite3mc (", "missing tools: npm, "] {
        assert!(setup.contains(expected), "{expected}: {setup}");
    }
    let report: Value = machine.run(&variables, &["--json"]).succeeded().value();
    check_rows(&report, 2, &["slowest ms"], false);
    for table in report["tables"].as_array().unwrap() {
        let rows = table["rows"].as_array().unwrap().iter();
        let rows: Vec<&str> = rows.map(|row| row["name"].as_str().unwrap()).collect();
        let [ours, again, python] = rows[..] else { panic!("{rows:?}") };
        assert_eq!((ours, again), ("rusqlite, this build", "rusqlite, again"));
        assert!(python.starts_with("sqlite3 3."), "{python}");
    }
    let notes = report["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().contains("absent: apsw-sqlite3mc")));
}
