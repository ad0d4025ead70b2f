//! Tests the whole benchmark with drivers of Python's own SQLite, which needs no installation.

use std::fs;
use std::time::Duration;

use crate::sqlite_bench::runtime::*;

const SHARED: &str = include_str!("../../../../../../bench/competitors/python/plan.py");

/// Returns a driver whose library is called `name`, run by `runtime`, and which changes each
/// statement with the expression `sql`.
fn driver(name: &str, runtime: &str, sql: &str) -> String {
    format!(
        "import platform, sqlite3, sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'python'))
from plan import drive
platform.python_implementation = lambda: {runtime:?}

class Connection(sqlite3.Connection):
    def execute(self, sql, *values):
        return super().execute({sql}, *values)

def connect(path):
    return sqlite3.connect(path, isolation_level=None, factory=Connection)

drive({name:?}, '1.0', connect)
"
    )
}

fn write(folder: &Path, name: &str, files: &[(&str, &str)]) {
    fs::create_dir_all(folder.join(name)).unwrap();
    for (file, text) in files {
        fs::write(folder.join(name).join(file), text).unwrap();
    }
}

fn plan(folder: &Path) -> RuntimeBenchPlan {
    let method = MeasureOptions {
        rounds_min: 2,
        rounds_max: 2,
        precision: 0.01,
        time: Duration::ZERO,
        duration: Duration::from_millis(2),
        folder: folder.to_owned(),
        command: "warren bench runtime".to_owned(),
    };
    RuntimeBenchPlan {
        method,
        rows: vec![20],
        body_bytes: 10,
        configurations: vec![Profile::by_name("production").unwrap()],
        ciphers: vec![None, Some(Cipher::ChaCha20)],
        place: DriverFolders::in_repository(folder.join("bench/competitors")),
    }
}

#[test]
fn a_report_has_who_can_work_as_planned_and_says_why_others_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let competitors = folder.path().join("bench/competitors");
    write(&competitors, "python", &[("plan.py", SHARED)]);
    write(&competitors, "one", &[("lab.py", &driver("same", "one", "sql"))]);
    write(&competitors, "two", &[("lab.py", &driver("same", "two", "sql"))]);
    let weak = "sql.replace('synchronous = NORMAL', 'synchronous = OFF')";
    write(&competitors, "weak", &[("lab.py", &driver("weak", "one", weak))]);
    write(&competitors, "unbuilt", &[("lab.py", ""), ("requirements.txt", "")]);
    let report = run(&plan(folder.path()), &ProgressBar::hidden()).unwrap();

    let names: Vec<&str> = report.tables.iter().map(|table| table.name.as_str()).collect();
    let operations = |cipher: &str| {
        ["insert", "list", "read", "update", "mixed", "delete"].map(|operation| {
            let name = format!("production-{cipher}-20-{operation}");
            let is_compared = cipher == "none" && PUBLISHED.contains(&operation);
            let versions = is_compared.then(|| format!("{name}-versions"));
            [Some(name), versions]
        })
    };
    let expected = [operations("none"), operations("chacha20")];
    let expected: Vec<String> = expected.into_iter().flatten().flatten().flatten().collect();
    assert_eq!(names, expected);

    let rows = |name: &str| -> Vec<String> {
        let table = report.tables.iter().find(|table| table.name == name).unwrap();
        for row in &table.rows {
            assert!(row.rate.samples.iter().all(|rate| *rate > 0.0), "{row:?}");
            let has_metrics = row.metrics.contains_key("CPU µs each");
            assert_eq!(has_metrics, !name.ends_with("-versions"), "{row:?}");
        }
        table.rows.iter().map(|row| row.name.split(" 3.").next().unwrap().to_owned()).collect()
    };
    let ours = ["rusqlite, this build", "rusqlite, again"];
    let theirs = ["same 1.0 on one", "same 1.0 on two"];
    assert_eq!(rows("production-none-20-insert"), [ours, theirs].concat());
    assert_eq!(rows("production-none-20-list-versions"), theirs);
    assert_eq!(rows("production-chacha20-20-mixed"), ours);

    let notes = report.notes.join("\n");
    for expected in [
        "absent: unbuilt (not built yet: run `warren bench runtime --setup`)",
        "from production-none (PRAGMA synchronous is OFF in the measurement instead of NORMAL)",
        "from production-chacha20 (ValueError: it has no chacha20)",
        "same 1.0 on two",
    ] {
        assert!(notes.contains(expected), "{expected}: {notes}");
    }
    let names: Vec<&str> = report.configurations.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["production-none", "production-chacha20"]);
}

#[test]
fn without_any_driver_there_is_nothing_to_compare() {
    let folder = tempfile::tempdir().unwrap();
    let error = run(&plan(folder.path()), &ProgressBar::hidden()).unwrap_err();
    assert!(error.to_string().contains("no drivers are installed"), "{error:#}");
}

#[test]
fn setting_up_says_who_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let competitors = folder.path().join("bench/competitors");
    write(&competitors, "python", &[("plan.py", SHARED)]);
    write(&competitors, "one", &[("lab.py", &driver("same", "one", "sql"))]);
    write(&competitors, "broken", &[("lab.py", "import nothing_like_it")]);
    let drivers = DriverFolders::in_repository(competitors)
        .set_up(&ProgressBar::hidden())
        .unwrap()
        .to_string();
    let lines: Vec<&str> = drivers.lines().collect();
    let [present, absent, ..] = lines[..] else { panic!("{drivers}") };
    assert!(present.starts_with("present: same 1.0 on one 3."), "{present}");
    assert!(present.ends_with(", no encryption)"), "{present}");
    assert!(absent.starts_with("absent: broken (`about`: "), "{absent}");
    assert!(absent.contains("nothing_like_it"), "{absent}");
}

#[test]
fn what_was_never_set_up_is_told_until_it_was_tried() {
    let folder = tempfile::tempdir().unwrap();
    let competitors = folder.path().join("bench/competitors");
    write(&competitors, "python", &[("plan.py", SHARED)]);
    write(&competitors, "one", &[("lab.py", &driver("same", "one", "sql"))]);
    let place = DriverFolders::in_repository(competitors.clone());
    let bar = ProgressBar::hidden();
    assert!(place.not_set_up(&bar).unwrap().is_none(), "nothing has to be built");
    // The requirement does not exist, so the set-up fails without any network access.
    let requirements = ("requirements.txt", "./there-is-no-such-folder\n");
    write(&competitors, "unbuilt", &[("lab.py", ""), requirements]);
    let told = place.not_set_up(&bar).unwrap().expect("one is not built").to_string();
    let command =
        format!("`warren bench runtime --setup --competitors {}` installs", competitors.display());
    for expected in ["not installed: unbuilt;", &command] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    assert!(!told.contains("1 GB"), "what these take is not known: {told}");
    let drivers = place.set_up(&bar).unwrap().to_string();
    assert!(drivers.contains("absent: unbuilt ("), "{drivers}");
    assert!(place.not_set_up(&bar).unwrap().is_none(), "it was tried");
}
