//! Tests of `warren bench` as a whole, with small workloads: every table, every format.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::fixture::DISK;
use crate::processes::{json, warren};

/// Creates a folder that others may enter: under root, PostgreSQL runs as a user of its own.
pub(crate) fn folder() -> TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir_in(DISK).unwrap()
}

fn tps(folder: &Path, more: &[&str]) -> Value {
    let folder = folder.to_str().unwrap();
    let common = ["bench", "tps", "--rows", "2000", "--rounds", "2", "--seconds", "0.05"];
    let folders = ["--work-dir", folder, "--report-dir", folder];
    json(&[&common[..], &folders, more].concat())
}

pub(crate) fn names(report: &Value) -> BTreeSet<&str> {
    let tables = report["tables"].as_array().unwrap().iter();
    tables.map(|table| table["name"].as_str().unwrap()).collect()
}

#[test]
fn tps_makes_every_table_beside_a_baseline_and_saves_them() {
    let folder = folder();
    let report = tps(folder.path(), &["--vaults", "20", "--against", "postgres"]);
    let expected = [
        "published",
        "durability",
        "isolation",
        "mixed",
        "pauses",
        "cipher-1",
        "cipher-100",
        "cipher-1000",
        "cipher-10000",
        "cipher-engine",
        "vaults",
        "postgres",
    ];
    assert_eq!(names(&report), BTreeSet::from(expected));
    for row in report["tables"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|table| table["rows"].as_array().unwrap())
    {
        assert!(row["rate"]["median"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(row["relative"]["samples"].as_array().unwrap().len(), 2, "{row}");
    }
    let published = report["tables"][0]["rows"].as_array().unwrap();
    assert!(published.iter().any(|row| row["published"] == 121_922.0), "{published:?}");

    let saved = fs::read_to_string(folder.path().join("warren-tps.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&saved).unwrap(), report);
    let page = fs::read_to_string(folder.path().join("warren-tps.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("bare loop, 1,000 per commit"));
    for table in ["durability", "isolation"] {
        let (_, section) = page.split_once(&format!("<section id=\"{table}\"")).unwrap();
        let (before, _) = section.split_once("<figcaption>").unwrap();
        assert!(
            before.contains("<figure class=\"lines\">"),
            "{table} is drawn as curves: {before}"
        );
    }
}

#[test]
fn tps_keeps_a_loaded_table_and_uses_it_again() {
    let folder = folder();
    let arguments = ["--only", "isolation", "--keep-table", "--cipher", "chacha20"];
    assert_eq!(names(&tps(folder.path(), &arguments)), BTreeSet::from(["isolation"]));
    let table = folder.path().join("accounts-2000-chacha20.db");
    let loaded = fs::metadata(&table).unwrap().created().unwrap();
    tps(folder.path(), &arguments);
    assert_eq!(fs::metadata(&table).unwrap().created().unwrap(), loaded);
}

#[test]
fn tps_refuses_a_table_that_does_not_fit_on_the_disk() {
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    let rows = (i64::MAX / 128).to_string();
    let refused = warren(&["bench", "tps", "--rows", &rows, "--work-dir", path]);
    assert!(
        !refused.status.success() && refused.stderr.contains("not enough disk space"),
        "{}",
        refused.stderr
    );
    assert!(fs::read_dir(path).unwrap().next().is_none(), "nothing was begun");
}

/// Runs a small `warren bench`, with its files and results in the folder.
pub(crate) fn bench(name: &str, folder: &Path, more: &[&str]) -> Value {
    let path = folder.to_str().unwrap();
    let common = ["bench", name, "--work-dir", path, "--report-dir", path];
    let report = json(&[&common[..], more].concat());
    let saved = fs::read_to_string(folder.join(format!("warren-{name}.json"))).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&saved).unwrap(), report);
    let page = fs::read_to_string(folder.join(format!("warren-{name}.html"))).unwrap();
    assert!(page.contains("<svg"));
    report
}

/// Checks that every row was measured in every round and has these metrics, and latencies exactly
/// if they are requests.
pub(crate) fn check_rows(report: &Value, rounds: usize, metrics: &[&str], is_request: bool) {
    for table in report["tables"].as_array().unwrap() {
        for row in table["rows"].as_array().unwrap() {
            assert!(row["rate"]["min"].as_f64().unwrap() > 0.0, "{row}");
            assert_eq!(row["relative"]["samples"].as_array().unwrap().len(), rounds, "{row}");
            assert!(row["metrics"]["failures"]["max"].as_f64().is_none_or(|n| n == 0.0), "{row}");
            for metric in metrics {
                assert!(row["metrics"][metric]["median"].as_f64().is_some(), "{metric}: {row}");
            }
            for name in ["mean_us", "p50_us", "p95_us", "p99_us", "max_us"] {
                assert_eq!(row["latency"][name].is_f64(), is_request, "{name}: {row}");
            }
        }
    }
}

#[test]
fn sync_measures_every_table_of_ours() {
    let folder = folder();
    let small =
        ["--users", "2", "--seed-messages", "20", "--pull-limit", "10", "--many-users", "3"];
    let timing = ["--seconds", "0.3", "--rounds", "2"];
    let report = bench("sync", folder.path(), &[&small[..], &timing].concat());
    let expected = ["upload", "download", "cross", "users", "memory", "live"];
    assert_eq!(names(&report), BTreeSet::from(expected));
    check_rows(&report, 2, &["server memory, MB", "server memory peak, MB"], true);
    let cross = report["tables"].as_array().unwrap().iter().find(|table| table["name"] == "cross");
    let metrics = &cross.unwrap()["rows"][0]["metrics"];
    for metric in
        ["pushes/s", "push P99, ms", "pull max, ms", "messages/s", "CPU µs each", "kB an answer"]
    {
        assert!(metrics[metric]["median"].is_f64(), "{metric}: {metrics}");
    }
    let download = &report["tables"][1]["rows"][0]["metrics"];
    let messages = download["messages/s"]["samples"][0].as_f64().unwrap();
    let per_request =
        messages / report["tables"][1]["rows"][0]["rate"]["samples"][0].as_f64().unwrap();
    assert!((per_request - 10.0).abs() < 1e-6, "a pull gets its limit: {per_request}");
}

#[test]
fn sync_keeps_a_rate_and_measures_the_plan_service() {
    let folder = folder();
    let competitors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/competitors");
    let small = [
        "--users",
        "2",
        "--seed-messages",
        "5",
        "--only",
        "wal",
        "--seconds",
        "0.5",
        "--rounds",
        "1",
    ];
    let more = ["--against", "plan-service", "--competitors", competitors, "--rate", "20"];
    let report = bench("sync", folder.path(), &[&small[..], &more].concat());
    let expected = ["wal-upload", "wal-download", "wal-cross"];
    assert_eq!(names(&report), BTreeSet::from(expected));
    check_rows(&report, 1, &["messages/s", "requests", "not begun"], true);
    let rows = report["tables"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "ours and three of the plan service: {:?}", report["notes"]);
    assert_eq!(rows[3]["name"], "Warren");
    let requests = rows[3]["metrics"]["requests"]["max"].as_f64().unwrap();
    assert!(requests <= 10.0, "{requests} requests at 20 a second in half a second");
    let notes = report["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().starts_with("plan-service (")));
}

#[test]
fn sync_says_who_is_absent() {
    let folder = folder();
    let competitors = folder.path().to_str().unwrap();
    let small = [
        "--users",
        "1",
        "--seed-messages",
        "5",
        "--only",
        "upload",
        "--seconds",
        "0.1",
        "--rounds",
        "1",
    ];
    let more = ["--against", "actual,plan-service", "--competitors", competitors];
    let report = bench("sync", folder.path(), &[&small[..], &more].concat());
    let notes: Vec<&str> =
        report["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for name in ["actual-sync", "plan-service"] {
        let absent = format!("absent: {name} (");
        assert!(notes.iter().any(|note| note.starts_with(&absent)), "{notes:?}");
    }
    assert_eq!(report["tables"][0]["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn reconcile_finds_every_difference_and_says_what_it_took() {
    let folder = folder();
    let small = ["--messages", "3000", "--differences", "0,1,500", "--rounds", "2"];
    let report = bench("reconcile", folder.path(), &small);
    assert_eq!(names(&report), BTreeSet::from(["years", "minute"]));
    check_rows(&report, 2, &["requests", "kB sent", "kB received"], false);
    for table in report["tables"].as_array().unwrap() {
        let rows = table["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 4, "{table}");
        let requests = |row: usize| rows[row]["metrics"]["requests"]["max"].as_f64().unwrap();
        assert!((requests(1) - 1.0).abs() < 1e-9 && requests(3) <= 4.0, "{table}");
    }
}

#[test]
fn bulk_measures_both_parts_and_says_what_it_skips() {
    let folder = folder();
    let small =
        ["--messages", "500", "--page-messages", "200", "--rounds", "2", "--latency-ms", "0,1"];
    let report = bench("bulk", folder.path(), &[&small[..], &["--case-time-limit", "0"]].concat());
    let expected = ["local-500", "postgres-500-0ms", "postgres-500-1ms"];
    assert_eq!(names(&report), BTreeSet::from(expected));
    check_rows(&report, 2, &["seconds"], false);
    let skipped = report["notes"].as_array().unwrap().iter().filter_map(Value::as_str);
    let skipped: Vec<&str> = skipped.filter(|note| note.starts_with("skipped: 500 ")).collect();
    assert_eq!(skipped.len(), 2, "{:?}", report["notes"]);

    let only = ["--only", "postgres", "--latency-ms", "0"];
    let report = bench("bulk", folder.path(), &[&small[..6], &only].concat());
    let rows = report["tables"][0]["rows"].as_array().unwrap();
    let one = rows.iter().find(|row| row["name"] == "a prepared statement per message");
    assert!(one.is_some() && rows.len() == 5, "{rows:?}");
}
