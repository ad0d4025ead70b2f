//! Tests of the lab's benchmarks with small workloads: what they measure, what they read back,
//! which files they leave.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::bench::{bench, check_rows, folder, names};
use crate::processes::{json, warren};

const TIMING: [&str; 6] = ["--seconds", "0.01", "--rounds-min", "2", "--minutes", "0.001"];

fn table<'r>(report: &'r Value, name: &str) -> &'r Value {
    let mut tables = report["tables"].as_array().unwrap().iter();
    tables.find(|table| table["name"] == name).unwrap()
}

fn row_names(table: &Value) -> Vec<&str> {
    let rows = table["rows"].as_array().unwrap().iter();
    rows.map(|row| row["name"].as_str().unwrap()).collect()
}

fn notes(report: &Value) -> Vec<&str> {
    report["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

/// Checks that only the reports are left.
fn check_left(folder: &Path, name: &str) {
    let left = fs::read_dir(folder).unwrap();
    let left: BTreeSet<String> =
        left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let expected = ["html", "json"].map(|ending| format!("warren-{name}.{ending}"));
    assert_eq!(left, BTreeSet::from(expected));
}

#[test]
fn pragma_measures_what_is_picked_and_reads_it_back() {
    let folder = folder();
    let only = ["synchronous-full", "page-8192", "mmap-256mb", "insert", "list", "delete-100"];
    let only = only.join(",");
    let small = ["--rows", "30,60", "--body-bytes", "500", "--only", &only];
    let report = bench("pragma", folder.path(), &[&small[..], &TIMING].concat());
    let operations = ["insert", "list", "insert-100", "delete-100"];
    let expected = [30, 60].map(|rows| operations.map(|name| format!("{rows}-{name}")));
    let expected: Vec<&str> = expected.as_flattened().iter().map(String::as_str).collect();
    assert_eq!(names(&report), expected.into_iter().collect());
    check_rows(&report, 2, &["CPU µs each", "slowest ms"], false);
    let rows = ["production", "mmap-256mb", "synchronous-full", "page-8192"];
    assert_eq!(row_names(table(&report, "30-list")), rows);

    let configurations = report["configurations"].as_array().unwrap();
    let found = |configuration: &str, pragma: &str| {
        let mut all = configurations.iter();
        let one = all.find(|one| one["name"] == configuration).unwrap();
        let mut settings = one["settings"].as_array().unwrap().iter();
        settings.find(|one| one["name"] == pragma).unwrap().clone()
    };
    let page = found("page-8192", "page_size");
    assert_eq!((&page["actual"], &page["default"]), (&"8192".into(), &false.into()));
    let synchronous = found("synchronous-full", "synchronous");
    assert_eq!((&synchronous["actual"], &synchronous["default"]), (&"FULL".into(), &true.into()));
    assert_eq!(found("production", "auto_vacuum")["actual"], "FULL");
    assert!(notes(&report).is_empty(), "{report}");
    check_left(folder.path(), "pragma");
}

#[test]
fn pragma_says_what_is_without_effect_on_encrypted_files() {
    let folder = folder();
    let only = "mmap-256mb,cache-64mb-mmap-256mb,update";
    let small = ["--rows", "30", "--body-bytes", "500", "--cipher", "aegis", "--only", only];
    let report = bench("pragma", folder.path(), &[&small[..], &TIMING].concat());
    let rows = ["production", "cache-64mb-mmap-256mb"];
    assert_eq!(row_names(table(&report, "30-update")), rows);
    let matrix = report["matrices"][0]["rows"].as_array().unwrap();
    let idle: Vec<&str> = matrix
        .iter()
        .filter(|row| row["file_bytes"].is_null())
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!((matrix.len(), idle), (3, vec!["mmap-256mb"]));
    let expected = [
        "mmap-256mb: mmap_size 268435456: no effect on an encrypted file",
        "mmap-256mb is not measured: it has no effect here",
        "cache-64mb-mmap-256mb: mmap_size 268435456: no effect on an encrypted file",
    ];
    assert_eq!(notes(&report), expected);
}

#[test]
fn pragma_is_seen_in_one_look() {
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    let small = ["--rows", "30", "--body-bytes", "500", "--only", "insert,list,update,setup"];
    let places = ["--work-dir", path, "--report-dir", path];
    let run = |more: &[&str]| {
        let arguments = [&["bench", "pragma"][..], &small, &TIMING, &places, more].concat();
        warren(&arguments).succeeded().stdout
    };
    let look = run(&[]);
    let report = fs::read_to_string(folder.path().join("warren-pragma.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let matrix = &report["matrices"][0];
    let columns = matrix["columns"].as_array().unwrap().iter();
    let columns: Vec<&str> = columns.map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(columns, ["insert", "select", "update", "set-up"]);
    let rows = matrix["rows"].as_array().unwrap();
    assert!(rows.len() > 20, "{matrix}");
    for row in rows {
        let name = row["name"].as_str().unwrap();
        let begin = format!("{name}  ");
        assert_eq!(look.lines().filter(|line| line.starts_with(&begin)).count(), 1, "{look}");
        assert!(row["file_bytes"].as_u64().unwrap() >= 4_096, "{row}");
    }
    assert_eq!(rows[0]["name"], "production");
    // The other lines are the machine, two lines of headings, the legend, and a reference to the
    // rest.
    assert!(look.lines().count() <= rows.len() + 7, "{look}");
    assert!(
        look.contains("insert") && look.contains("file size") && look.contains("; --all prints")
    );
    check_rows(&report, 2, &[], false);
    for row in table(&report, "30-setup")["rows"].as_array().unwrap() {
        assert!(row["metrics"]["ms each"]["median"].as_f64().unwrap() > 0.0, "{row}");
    }
    let page = fs::read_to_string(folder.path().join("warren-pragma.html")).unwrap();
    assert!(page.find("class=\"matrix\"").unwrap() < page.find("<figure").unwrap());
    assert!(page.contains("fill=\"url(#hatch)\""), "two rounds are too few");

    let all = run(&["--all"]);
    for operation in ["insert", "list", "update", "setup"] {
        assert!(all.contains(&format!("\n30-{operation}: ")), "{all}");
    }
    assert!(all.contains("file size") && all.lines().count() > 2 * look.lines().count());
}

#[test]
fn pragma_compares_layouts() {
    let folder = folder();
    let small = ["--rows", "30", "--only", "layouts"];
    let report = bench("pragma", folder.path(), &[&small[..], &TIMING].concat());
    let expected = ["list", "read", "update", "mixed"];
    let expected = ["3500", "60000"].map(|body| expected.map(|s| format!("layout-{body}-{s}")));
    let expected: BTreeSet<&str> = expected.as_flattened().iter().map(String::as_str).collect();
    assert_eq!(names(&report), expected);
    check_rows(&report, 2, &["slowest ms"], false);
    let rows =
        ["body in the last column", "body in the first column", "body in a table of its own"];
    assert_eq!(row_names(table(&report, "layout-60000-list")), rows);
}

#[test]
fn pragma_lists_what_can_be_picked_and_refuses_the_rest() {
    let folder = folder();
    let list = json(&["bench", "pragma", "--list"]);
    let kinds = |kind: &str| {
        list.as_array().unwrap().iter().filter(|choice| choice["kind"] == kind).count()
    };
    assert_eq!((kinds("part"), kinds("operation")), (2, 11));
    assert!(kinds("configuration") > 20, "{list}");
    let text = warren(&["bench", "pragma", "--list"]).stdout;
    assert!(text.contains("\n  journal-off             unsafe: "), "{text}");

    let path = folder.path().to_str().unwrap();
    assert!(
        text.contains(
            "\n  update-100              updates of the flags of a random message; 100 per"
        ),
        "{text}"
    );

    let nowhere = folder.path().join("nowhere");
    let nowhere =
        ["bench", "pragma", "--work-dir", path, "--report-dir", nowhere.to_str().unwrap()];
    let refused = warren(&nowhere);
    assert!(
        !refused.status.success() && refused.stderr.contains("--report-dir "),
        "{}",
        refused.stderr
    );
    let refused = warren(&["bench", "pragma", "--work-dir", path, "--only", "turbo"]);
    assert!(!refused.status.success() && refused.stderr.contains("see --list"));
    let rows = (i64::MAX / 128).to_string();
    let refused = warren(&["bench", "pragma", "--work-dir", path, "--rows", &rows]);
    assert!(
        !refused.status.success() && refused.stderr.contains("not enough disk space"),
        "{}",
        refused.stderr
    );
    assert!(fs::read_dir(path).unwrap().next().is_none(), "nothing was begun");
}

#[test]
fn cipher_measures_every_cipher_warm_cold_and_at_opening() {
    let folder = folder();
    let small = ["--rows", "30", "--body-bytes", "500"];
    let report = bench("cipher", folder.path(), &[&small[..], &TIMING].concat());
    let is_cold = names(&report).contains("cold-read");
    assert_ne!(is_cold, notes(&report).iter().any(|note| note.starts_with("no cold reads")));
    let ciphers =
        ["none", "chacha20", "aes256cbc", "aes128cbc", "aegis", "ascon128", "sqlcipher", "rc4"];
    for name in ["warm-insert", "warm-mixed-100"] {
        assert_eq!(row_names(table(&report, name)), ciphers);
    }
    if is_cold {
        assert_eq!(row_names(table(&report, "cold-list")), ciphers);
    }
    let open = row_names(table(&report, "open"));
    assert_eq!((open[0], open[1], open.len()), ("none", "chacha20, raw key", 12));
    check_rows(&report, 2, &[], false);
    check_left(folder.path(), "cipher");

    let small = ["--ciphers", "aegis", "--only", "open"];
    let report = bench("cipher", folder.path(), &[&small[..], &TIMING].concat());
    assert_eq!(names(&report), BTreeSet::from(["open"]));
    let expected = ["none", "aegis, raw key", "aegis, passphrase"];
    assert_eq!(row_names(table(&report, "open")), expected);
}

#[test]
fn checkpoint_measures_intervals_and_ours_with_and_without_a_reader() {
    let folder = folder();
    let small = ["--rows", "2000", "--batch", "10"];
    let timing = ["--seconds", "0.05", "--rounds-min", "2", "--minutes", "0.001"];
    let report = bench("checkpoint", folder.path(), &[&small[..], &timing].concat());
    assert_eq!(names(&report), BTreeSet::from(["checkpoint", "checkpoint-long-reader"]));
    check_rows(&report, 2, &["slowest commit, ms", "largest WAL, MB"], false);
    let rows = row_names(table(&report, "checkpoint"));
    assert_eq!((rows[0], rows[1]), ("autocheckpoint 1000 (the default)", "autocheckpoint 0"));
    assert!(rows.contains(&"Warren"), "{rows:?}");
    check_left(folder.path(), "checkpoint");
}

#[test]
fn vacuum_measures_auto_vacuum_under_churn() {
    let folder = folder();
    let small = ["--churn-rows", "200", "--only", "churn"];
    let report = bench("vacuum", folder.path(), &[&small[..], &TIMING].concat());
    assert_eq!(names(&report), BTreeSet::from(["auto-vacuum"]));
    check_rows(&report, 2, &["file, MB", "free pages, %", "pages out of order, %"], false);
    let rows = ["auto_vacuum NONE", "auto_vacuum INCREMENTAL", "auto_vacuum FULL"];
    assert_eq!(row_names(table(&report, "auto-vacuum")), rows);
    check_left(folder.path(), "vacuum");
}

#[test]
fn vacuum_writes_files_anew_each_in_a_process_of_its_own() {
    let folder = folder();
    let small = ["--megabytes", "2", "--cipher", "aegis", "--only", "vacuum"];
    let report = bench("vacuum", folder.path(), &[&small[..], &TIMING].concat());
    assert_eq!(names(&report), BTreeSet::from(["vacuum-none", "vacuum-aegis"]));
    check_rows(&report, 2, &["seconds", "memory peak, MB", "file after, MB"], false);
    let absent = notes(&report).len();
    for name in ["vacuum-none", "vacuum-aegis"] {
        let rows = row_names(table(&report, name));
        assert_eq!(rows.len() + absent, 4, "{rows:?}");
        assert_eq!(rows[0], "VACUUM, temporary files on this disk");
    }
    check_left(folder.path(), "vacuum");
}
