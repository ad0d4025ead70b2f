//! Tests of a small `warren bench browser`: every table, every row.
//!
//! A stand-in that runs the plans with Python's SQLite replaces Chromium: the benchmark is tested
//! here, and the libraries that it measures would need npm and a browser.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::bench::{bench, check_rows, folder, names};
use crate::processes::warren;

/// A driver of Format 12 that passes its plans to the lab's driver for Python.
const STAND_IN: &str = r#"
import { spawnSync } from "node:child_process";
const [library, client, ...about] = process.argv.slice(2);
if (!client.endsWith("web/client/dist")) throw new Error(client);
const options = { stdio: ["inherit", "pipe", "inherit"], encoding: "utf8" };
const python = spawnSync("python3", ["COMPETITORS/python-sqlite3/lab.py", ...about], options);
const answer = JSON.parse(python.stdout);
const steps = answer.steps?.map((step) => ({ ...step, cpu_seconds: null }));
console.log(JSON.stringify({ ...answer, steps, driver: library }));
"#;
const SMALL: [&str; 8] =
    ["--rows", "50", "--seconds", "0.01", "--rounds-min", "2", "--minutes", "0.001"];

fn competitors(folder: &Path, files: &[(&str, &str)]) -> String {
    let competitors = folder.join("bench/competitors");
    let of_the_repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/competitors");
    for (name, content) in files {
        let path = competitors.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.replace("COMPETITORS", of_the_repository)).unwrap();
    }
    fs::create_dir_all(competitors.join("node")).unwrap();
    competitors.to_str().unwrap().to_owned()
}

const PACKAGE: (&str, &str) = ("chromium/package.json", r#"{"type":"module"}"#);
const LOCK: (&str, &str) = ("chromium/package-lock.json", r#"{"lockfileVersion":3,"packages":{}}"#);

#[test]
fn browser_measures_every_way_on_the_same_items() {
    let folder = folder();
    let competitors =
        competitors(folder.path(), &[PACKAGE, LOCK, ("chromium/browser.js", STAND_IN)]);
    let setup = warren(&["bench", "browser", "--setup", "--competitors", &competitors]);
    assert!(
        setup.status.success() && setup.stdout.contains("present: warren-tab "),
        "{}",
        setup.stdout
    );
    let report =
        bench("browser", folder.path(), &[&SMALL[..], &["--competitors", &competitors]].concat());
    let steps = ["page", "search", "count", "update", "insert", "load"];
    let mut expected = BTreeSet::new();
    for part in ["wal", "rollback", "tab"] {
        let steps = if part == "tab" { &steps[..5] } else { &steps[..] };
        expected.extend(steps.iter().map(|step| format!("{part}-{step}")));
    }
    assert_eq!(names(&report), expected.iter().map(String::as_str).collect());
    check_rows(&report, 2, &["slowest ms"], false);
    for table in report["tables"].as_array().unwrap() {
        let rows = table["rows"].as_array().unwrap().iter();
        let rows: Vec<&str> = rows.map(|row| row["name"].as_str().unwrap()).collect();
        let here = ["sqlite-wasm", "Warren", "Warren, tracked", "native", "native, tracked"];
        match table["name"].as_str().unwrap().split_once('-').unwrap().0 {
            "wal" => assert_eq!(rows, here),
            "rollback" => assert_eq!(rows, [&here[..], &["Warren, tracked, as it comes"]].concat()),
            _ => assert_eq!(rows.first(), Some(&"sqlite-wasm in a worker")),
        }
    }
    let configurations = report["configurations"].as_array().unwrap();
    let found = |at: usize, pragma: &str| {
        let mut settings = configurations[at]["settings"].as_array().unwrap().iter();
        settings.find(|one| one["name"] == pragma).unwrap()["actual"].clone()
    };
    assert_eq!(
        (found(0, "journal_mode"), found(0, "synchronous")),
        ("wal".into(), "NORMAL".into())
    );
    let rollback = (found(1, "journal_mode"), found(1, "synchronous"));
    assert_eq!(rollback, ("delete".into(), "FULL".into()));
    assert_eq!(found(1, "page_size"), "8192");
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 4, "two reports, the competitors, and what was built of them");
}

#[test]
fn browser_says_what_is_missing() {
    let folder = folder();
    let browser = "console.log(JSON.stringify({ error: 'run `cargo xtask web`' }))";
    let competitors =
        competitors(folder.path(), &[PACKAGE, LOCK, ("chromium/browser.js", browser)]);
    let path = folder.path().to_str().unwrap();
    let run = |more: &[&str]| {
        let common = [
            "bench",
            "browser",
            "--competitors",
            &competitors,
            "--work-dir",
            path,
            "--report-dir",
            path,
        ];
        warren(&[&common[..], &SMALL, more].concat())
    };
    let refused = run(&[]);
    assert!(!refused.status.success(), "{}", refused.stdout);
    assert!(refused.stderr.contains("run `warren bench browser --setup`"), "{}", refused.stderr);
    assert!(run(&["--setup"]).stdout.contains("absent: warren (`about`: run `cargo xtask web`)"));
    let refused = run(&[]);
    assert!(refused.stderr.contains("absent: warren (`about`: run `cargo xtask web`)"));
    assert_eq!(fs::read_dir(path).unwrap().count(), 2, "no report");
}
