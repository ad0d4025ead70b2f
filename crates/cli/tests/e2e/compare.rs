//! Tests of `warren bench compare` on reports that the binary saved.

use std::fs;
use std::path::Path;

use crate::processes::{json, warren};

fn report(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    fs::create_dir(&path).unwrap();
    let folder = path.to_str().unwrap();
    let few = ["--rows", "20", "--seconds", "0.002", "--rounds-min", "2", "--rounds-max", "2"];
    let places = ["--work-dir", folder, "--report-dir", folder];
    json(&[&["bench", "pragma"], &few[..], &places].concat());
    path.join("warren-pragma.json").to_str().unwrap().to_owned()
}

#[test]
fn two_reports_are_compared_row_by_row() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (report(folder.path(), "a"), report(folder.path(), "b"));
    let comparison = json(&["bench", "compare", &a, &b]);
    assert_eq!(comparison["same_machine"], true);
    assert_eq!(comparison["only_in_a"].as_array().unwrap().len(), 0, "{comparison}");
    let rows = comparison["tables"][0]["rows"].as_array().unwrap();
    assert!(rows.len() > 12, "{rows:?}");
    assert_eq!(rows[1]["rate"]["verdict"], "too_few_rounds");
    assert!(rows[0]["relative"].is_null() && !rows[1]["relative"].is_null());
    let text = warren(&["bench", "compare", &a, &b]).succeeded();
    assert!(text.stdout.contains("new vs. old"), "{}", text.stdout);
}

#[test]
fn what_is_no_report_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.json");
    fs::write(&other, "{}").unwrap();
    let other = other.to_str().unwrap();
    let refused = warren(&["bench", "compare", other, other]);
    assert!(refused.stderr.contains("is not a benchmark report"), "{}", refused.stderr);
    let missing = warren(&["bench", "compare", other, "nowhere.json"]);
    assert!(!missing.stderr.is_empty());
    for (number, expected) in
        [("", "it has no format number"), ("\"format\":10,", "it has format 10")]
    {
        let old = folder.path().join("old.json");
        fs::write(&old, format!("{{{number}\"benchmark\":\"pragma\"}}")).unwrap();
        let old = old.to_str().unwrap();
        let refused = warren(&["bench", "compare", old, old]);
        assert!(!refused.status.success() && refused.stderr.contains(expected));
        assert!(refused.stderr.contains("reads only format 11"), "{}", refused.stderr);
    }
}
