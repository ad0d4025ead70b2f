//! Tests of `warren tune --emit … --check`: each framework runs it on a connection that its other
//! snippet opened, and `warren doctor --settings` judges the output. Drift's snippet is not run,
//! because Dart is missing.

#[expect(unreachable_pub, reason = "it is a snippet for a program of one's own")]
#[expect(clippy::print_stdout, reason = "printing is what it is for")]
#[expect(clippy::disallowed_methods, reason = "a program of one's own reads its environment")]
mod rusqlite_check;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::emit::{emit, installed, root, rusqlite_all};
use crate::fixture::SyncFixture;
use crate::processes::{json, python, sql, warren, with_input};

/// The code around a framework's snippet that calls it.
struct SnippetCaller {
    framework: &'static str,
    before: &'static str,
    after: &'static str,
}

/// Returns the snippet with the code that calls it.
fn called(caller: &SnippetCaller) -> String {
    let emitted = json(&["tune", "--emit", caller.framework, "--check"]);
    let code = emitted["code"].as_str().unwrap();
    let plain = warren(&["tune", "--emit", caller.framework, "--check"]).succeeded().stdout;
    assert_eq!(plain, code, "without --json it is the code and nothing else");
    format!("{}{code}{}", caller.before, caller.after)
}

/// Checks the output of a connection under the profile `all`, and the doctor's judgment of it.
#[track_caller]
fn check(framework: &str, folder: &TempDir, printed: &str) {
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (file, settings) = (at("app.db"), at("settings.txt"));
    fs::write(&settings, printed).unwrap();
    let pairs = printed.lines().map(|line| line.split_once('=').expect("NAME=VALUE"));
    let pairs: BTreeMap<&str, &str> = pairs.collect();
    let file_there = fs::canonicalize(pairs["file"]).unwrap();
    assert_eq!(file_there, fs::canonicalize(&file).unwrap());
    for (name, value) in [
        ("framework", framework),
        ("journal_mode", "wal"),
        ("synchronous", "1"),
        ("busy_timeout", "60000"),
        ("cache_size", "-64000"),
        ("temp_store", "2"),
        ("mmap_size", "268435456"),
        ("SQLITE_TMPDIR", ""),
    ] {
        assert_eq!(pairs[name], value, "{framework}: {name}");
    }
    assert!(pairs["sqlite_version"].starts_with("3."), "{pairs:?}");
    let compiled = printed.lines().filter(|line| line.starts_with("compile_options="));
    assert!(compiled.count() > 5, "{printed}");

    // These findings concern the library, not the settings; and not every program closes its file.
    let of_library = ["sqlite_faulty", "double_quoted_strings", "wal_left_behind"];
    let codes = |settings: &str| {
        let ran = warren(&["doctor", &file, "--settings", settings, "--json"]);
        let report = ran.value();
        let findings = report["findings"].as_array().unwrap().clone();
        let is_of_library = |one: &Value| of_library.iter().any(|code| one["code"] == *code);
        assert_eq!(report["skipped"], serde_json::json!([]), "{framework}: {report}");
        findings.into_iter().filter(|one| !is_of_library(one)).collect::<Vec<Value>>()
    };
    assert_eq!(codes(&settings), [] as [Value; 0], "{framework}");

    // The fix is the framework's own line.
    fs::write(&settings, printed.replace("busy_timeout=60000", "busy_timeout=0")).unwrap();
    let found = codes(&settings);
    assert_eq!((found.len(), &found[0]["code"]), (1, &Value::from("busy_timeout_absent")));
    let written = json(&["tune", "--profile", "server", "--emit", framework]);
    let line = written["code"].as_str().unwrap().lines().find(|line| line.contains("5000"));
    let line =
        line.or_else(|| written["code"].as_str().unwrap().lines().find(|it| it.contains("5_000")));
    let fix = found[0]["fix"]["text"].as_str().unwrap();
    let line = line.unwrap().trim().trim_end_matches(',');
    assert!(fix.contains(&format!("({framework}): ")) && fix.contains(line), "{fix}: {line}");
}

fn run(command: &mut Command, folder: &TempDir) -> String {
    command.current_dir(folder.path()).env_remove("SQLITE_TMPDIR");
    with_input(command, "").succeeded().stdout
}

/// Creates a folder with a file that contains both snippets.
fn appended(caller: &SnippetCaller, name: &str) -> TempDir {
    let folder = emit("all", caller.framework, name);
    let path = folder.path().join(name);
    let snippet = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{snippet}\n{}", called(caller))).unwrap();
    folder
}

fn check_python(framework: &'static str, after: &'static str) {
    let folder = appended(&SnippetCaller { framework, before: "", after }, "snippet.py");
    let printed = run(Command::new(python()).arg("snippet.py"), &folder);
    check(framework, &folder, &printed);
}

#[test]
fn python_prints_its_settings() {
    check_python("python", "print_settings(connect())\n");
}

#[test]
fn sqlalchemy_prints_its_settings() {
    check_python("sqlalchemy", "print_settings(engine)\n");
}

#[test]
fn django_prints_its_settings() {
    let after = "import django
from django.conf import settings
settings.configure(DATABASES=DATABASES)
django.setup()
from django.db import connection
print_settings(connection)
";
    check_python("django", after);
}

#[test]
fn better_sqlite3_prints_its_settings() {
    let framework = "better-sqlite3";
    let caller = SnippetCaller { framework, before: "", after: "printSettings(db);\n" };
    let folder = appended(&caller, "snippet.js");
    let packages = installed("actual/node_modules");
    let mut command = Command::new(packages.join(".bin/node"));
    let printed = run(command.arg("snippet.js").env("NODE_PATH", packages), &folder);
    check(framework, &folder, &printed);
}

#[test]
fn sqlite_jdbc_prints_its_settings() {
    let before = "final class Check {
    public static void main(String[] arguments) throws Exception {
        try (java.sql.Connection connection = Database.open()) { printSettings(connection); }
    }
";
    let caller = SnippetCaller { framework: "jdbc", before, after: "}\n" };
    let folder = emit("all", "jdbc", "Database.java");
    fs::write(folder.path().join("Check.java"), called(&caller)).unwrap();
    let path = format!("{}:.", installed("jdbc/sqlite-jdbc.jar").display());
    run(Command::new("javac").args(["-d", ".", "Database.java", "Check.java"]), &folder);
    let printed = run(Command::new("java").args(["-cp", &path, "Check"]), &folder);
    check("jdbc", &folder, &printed);
}

#[test]
fn go_prints_its_settings() {
    let before = "package main

import (
\t\"database/sql\"
\t\"errors\"
\t\"fmt\"
\t\"os\"
\t\"strings\"
)

func main() {
\tdb, err := Open()
\tif err = errors.Join(err, PrintSettings(db)); err != nil {
\t\tpanic(err)
\t}
}

";
    let caller = SnippetCaller { framework: "go", before, after: "" };
    let folder = emit("all", "go", "snippet.go");
    fs::write(folder.path().join("check.go"), called(&caller)).unwrap();
    for name in ["go.mod", "go.sum"] {
        fs::copy(root().join("tests/emit/go").join(name), folder.path().join(name)).unwrap();
    }
    let mut command = Command::new("go");
    let printed = run(command.args(["run", "."]).env("GOFLAGS", "-mod=readonly"), &folder);
    check("go", &folder, &printed);
}

/// The file into which this test prints the settings of its own connection, when it runs itself.
const HERE: &str = "WARREN_TEST_CHECK_FILE";

#[test]
fn rusqlite_prints_its_settings() {
    if let Some(path) = std::env::var_os(HERE) {
        let db = rusqlite_all::open(Path::new(&path)).unwrap();
        // This ends a line that libtest has begun.
        println!();
        rusqlite_check::print_settings(&db).unwrap();
        return;
    }
    let caller = SnippetCaller { framework: "rusqlite", before: "", after: "" };
    let name = "crates/cli/tests/e2e/check/rusqlite_check.rs";
    let written = fs::read_to_string(root().join(name)).unwrap();
    assert_eq!(written, called(&caller), "write it to {name}");
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "check::rusqlite_prints_its_settings", "--nocapture"]);
    let printed = run(command.env(HERE, folder.path().join("app.db")), &folder);
    let lines = printed.lines().filter(|line| line.contains('='));
    check("rusqlite", &folder, &lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_check_is_not_mixed_with_measuring() {
    for wrong in [
        &["tune", "--check"][..],
        &["tune", "a.db", "--emit", "go", "--check"],
        &["tune", "--emit", "go", "--check", "--profile", "server"],
    ] {
        assert_eq!(warren(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn settings_that_cannot_be_read_are_refused_with_their_line() {
    let place = SyncFixture::new();
    let file = place.chinook("a.db");
    let settings = place.write("settings.txt", "journal_mode=wal\nbusy_timeout=soon\n");
    let doctor = |more: &[&str]| warren(&[&["doctor", &file], more, &["--json"]].concat());
    let ran = doctor(&["--settings", &settings]);
    ran.refused("invalid_settings");
    assert!(ran.stderr.contains("line 2") || ran.stdout.contains("line 2"), "{}", ran.stdout);
    doctor(&["--settings", &place.write("long.txt", &"x=1\n".repeat(20_000))])
        .refused("invalid_settings");
    assert_eq!(doctor(&["--settings", &place.at("none.txt")]).status.code(), Some(1));
    // A connection has one file.
    assert_eq!(doctor(&[&place.chinook("b.db"), "--settings", &settings]).status.code(), Some(2));

    sql(&file, "PRAGMA journal_mode = WAL");
    let mut command = Command::new(env!("CARGO_BIN_EXE_warren"));
    command.args(["doctor", &file, "--settings", "-"]);
    let ran = with_input(&mut command, "journal_mode=wal\nsynchronous=0\nnew_mode=1\n");
    assert_eq!(ran.status.code(), Some(3), "{}", ran.stdout);
    for expected in [
        "warning  synchronous_off: nothing is flushed to the disk: synchronous is OFF",
        "the connection reports synchronous = 0",
        " fix In the program, on each connection: PRAGMA synchronous = NORMAL",
        "skipped  the settings new_mode: not recognized",
    ] {
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
    }
}
