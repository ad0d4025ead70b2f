//! `warren bench tps` as a whole, small: every table, every format.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::processes::{json, warren};

/// That others may enter: PostgreSQL runs as a user of its own where we are root.
fn folder() -> TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap()
}

fn tps(folder: &Path, more: &[&str]) -> Value {
    let folder = folder.to_str().unwrap();
    let common = ["bench", "tps", "--rows", "2000", "--rounds", "2", "--seconds", "0.05"];
    let folders = ["--folder", folder, "--report", folder];
    json(&[&common[..], &folders, more].concat())
}

fn names(report: &Value) -> BTreeSet<&str> {
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
        "checkpoint",
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
        assert_eq!(row["of_baseline"]["samples"].as_array().unwrap().len(), 2, "{row}");
    }
    let published = report["tables"][0]["rows"].as_array().unwrap();
    assert!(published.iter().any(|row| row["published"] == 121_922.0), "{published:?}");

    let saved = fs::read_to_string(folder.path().join("warren-tps.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&saved).unwrap(), report);
    let page = fs::read_to_string(folder.path().join("warren-tps.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("bare loop, 1,000 a commit"));
}

#[test]
fn tps_keeps_a_loaded_table_and_uses_it_again() {
    let folder = folder();
    let arguments = ["--only", "isolation", "--keep", "--cipher", "chacha20"];
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
    let refused = warren(&["bench", "tps", "--rows", &rows, "--folder", path]);
    assert!(!refused.status.success() && refused.stderr.contains("of disk"), "{}", refused.stderr);
    assert!(fs::read_dir(path).unwrap().next().is_none(), "nothing was begun");
}
