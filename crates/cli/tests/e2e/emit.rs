//! Tests of `warren tune --emit`: each framework runs its own snippet, and every PRAGMA is read
//! back from connections that the framework opened.
//!
//! The output of these connections about themselves → `check.rs`.
//!
//! `make test` installs the frameworks (`.ci/setup.sh tools`). `rusqlite_all.rs` and
//! `rusqlite_server.rs` are emitted code that is compiled in.

#[path = "emit/rusqlite_all.rs"]
#[expect(unreachable_pub, reason = "it is a snippet for a program of one's own")]
pub(crate) mod rusqlite_all;
#[path = "emit/rusqlite_server.rs"]
#[expect(unreachable_pub, reason = "it is a snippet for a program of one's own")]
mod rusqlite_server;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use engine::{PragmaScope, Profile};
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use crate::processes::{json, python, warren, with_input};

/// Profiles that together set every PRAGMA.
const PROFILES: [&str; 2] = ["all", "server"];

/// Returns the path of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize().unwrap()
}

/// Returns the path of something below `target` that `make test` installed.
pub(crate) fn installed(what: &str) -> PathBuf {
    let path = root().join("target").join(what);
    assert!(path.exists(), "no {}: `make test` installs it", path.display());
    path
}

/// Writes the emitted snippet to a folder of its own.
pub(crate) fn emit(profile: &str, framework: &str, name: &str) -> TempDir {
    let emitted = json(&["tune", "--profile", profile, "--emit", framework]);
    let code = emitted["code"].as_str().unwrap();
    let plain = warren(&["tune", "--profile", profile, "--emit", framework]).succeeded().stdout;
    assert_eq!(plain, code, "without --json it is the code and nothing else");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), code).unwrap();
    folder
}

/// Returns the values that each connection must have.
fn expected(profile: &str) -> BTreeMap<String, String> {
    let pragmas = Profile::by_name(profile).unwrap().pragmas();
    let of_connection = pragmas.filter(|one| one.scope != PragmaScope::Creation);
    of_connection.map(|one| (one.name.to_owned(), one.read_back.to_owned())).collect()
}

/// Runs a program that prints the values of its connections, and checks them.
#[track_caller]
fn check(profile: &str, command: &mut Command, folder: &TempDir, connections: usize) {
    let expected = expected(profile);
    command.args(expected.keys()).current_dir(folder.path());
    let found = with_input(command, "").succeeded();
    let found: Vec<BTreeMap<String, String>> = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(found.len(), connections);
    for found in found {
        assert_eq!(found, expected, "{profile}");
    }
    assert!(folder.path().join("app.db").exists());
}

fn check_python(framework: &str) {
    for profile in PROFILES {
        let folder = emit(profile, framework, "snippet.py");
        let mut command = Command::new(python());
        command.arg(root().join("tests/emit/read_back.py")).args([framework, "snippet.py"]);
        check(profile, &mut command, &folder, 2);
    }
}

#[test]
fn python_runs_its_snippet() {
    check_python("python");
}

#[test]
fn sqlalchemy_runs_its_snippet() {
    check_python("sqlalchemy");
}

#[test]
fn django_runs_its_snippet() {
    check_python("django");
}

#[test]
fn better_sqlite3_runs_its_snippet() {
    for profile in PROFILES {
        let folder = emit(profile, "better-sqlite3", "snippet.js");
        let snippet = fs::read_to_string(folder.path().join("snippet.js")).unwrap();
        let read_back = fs::read_to_string(root().join("tests/emit/read_back.js")).unwrap();
        fs::write(folder.path().join("snippet.js"), snippet + &read_back).unwrap();
        let packages = installed("actual/node_modules");
        let mut command = Command::new(packages.join(".bin/node"));
        command.arg("snippet.js").env("NODE_PATH", packages);
        check(profile, &mut command, &folder, 1);
    }
}

#[test]
fn sqlite_jdbc_runs_its_snippet() {
    let jar = installed("jdbc/sqlite-jdbc.jar");
    let path = format!("{}:.", jar.display());
    for profile in PROFILES {
        let folder = emit(profile, "jdbc", "Database.java");
        let read_back = root().join("tests/emit/ReadBack.java");
        let mut compile = Command::new("javac");
        compile.args(["-d", ".", "Database.java"]).arg(read_back).current_dir(folder.path());
        with_input(&mut compile, "").succeeded();
        let mut command = Command::new("java");
        command.args(["-cp", &path, "ReadBack"]);
        check(profile, &mut command, &folder, 2);
    }
}

#[test]
fn go_runs_its_snippet() {
    for profile in PROFILES {
        let folder = emit(profile, "go", "snippet.go");
        for name in ["go.mod", "go.sum", "read_back.go"] {
            fs::copy(root().join("tests/emit/go").join(name), folder.path().join(name)).unwrap();
        }
        let mut command = Command::new("go");
        command.args(["run", "."]).env("GOFLAGS", "-mod=readonly");
        check(profile, &mut command, &folder, 2);
    }
}

#[test]
fn rusqlite_runs_its_snippet() {
    type OpenFn = fn(&Path) -> rusqlite::Result<Connection>;
    let opens: [(&str, OpenFn); 2] =
        [("all", rusqlite_all::open), ("server", rusqlite_server::open)];
    for (profile, open) in opens {
        let folder = emit(profile, "rusqlite", "snippet.rs");
        let name = format!("crates/cli/tests/e2e/emit/rusqlite_{profile}.rs");
        let emitted = fs::read_to_string(folder.path().join("snippet.rs")).unwrap();
        assert_eq!(fs::read_to_string(root().join(&name)).unwrap(), emitted, "write it to {name}");
        let db = open(&folder.path().join("app.db")).unwrap();
        for (pragma, expected) in expected(profile) {
            let found = db.query_row(&format!("PRAGMA {pragma}"), [], |row| {
                let value: rusqlite::types::Value = row.get(0)?;
                Ok(match value {
                    rusqlite::types::Value::Integer(number) => number.to_string(),
                    rusqlite::types::Value::Text(text) => text,
                    other => panic!("{pragma}: {other:?}"),
                })
            });
            assert_eq!(found.unwrap(), expected, "{pragma}");
        }
    }
}

/// None of the package registries that this project's tests use has Dart, so the snippet is only
/// parsed, and only if Dart is installed.
#[test]
fn drift_parses_its_snippet_where_dart_is() {
    let version = Command::new("dart").arg("--version").stdin(Stdio::null()).output();
    if version.is_err() {
        // This bypasses libtest's capture, which hides the output of a test that passes.
        writeln!(std::io::stderr(), "SKIPPED: drift's snippet was not run: there is no `dart`")
            .unwrap();
    }
    for profile in PROFILES {
        let folder = emit(profile, "drift", "snippet.dart");
        let code = fs::read_to_string(folder.path().join("snippet.dart")).unwrap();
        let lines = code.lines().filter(|line| line.contains("execute('PRAGMA "));
        assert_eq!(lines.count(), expected(profile).len(), "{code}");
        if version.is_ok() {
            let mut parse = Command::new("dart");
            parse.args(["format", "--output", "none", "snippet.dart"]);
            with_input(parse.current_dir(folder.path()), "").succeeded();
        }
    }
}

#[test]
fn a_profile_is_not_mixed_with_measuring() {
    for wrong in [
        &["tune", "--profile", "server"][..],
        &["tune", "a.db", "--profile", "server", "--emit", "go"],
        &["tune", "--profile", "fastest", "--emit", "go"],
        &["tune", "--profile", "server", "--emit", "cobol"],
    ] {
        assert_eq!(warren(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let emitted: Value = json(&["tune", "--profile", "baseline", "--emit", "django"]);
    let expected = serde_json::json!([{"pragma": "journal_mode", "value": "WAL"}]);
    assert_eq!(emitted["connection_settings"], expected);
}
