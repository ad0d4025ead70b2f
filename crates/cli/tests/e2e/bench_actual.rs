//! Tests of a small `warren bench actual`: every table, both servers.
//!
//! A stand-in that starts another Warren replaces the published server, which takes a minute to
//! install: the benchmark is tested here, not that server.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::bench::{bench, folder, names};

/// A server of Format 7 whose service is the gateway of the binary at `WARREN`.
const STAND_IN: &str = r#"
import json, subprocess, sys
if sys.argv[1:] == ["about"]:
    print(json.dumps({"server": "Actual", "version": "none", "runtime": "Python", "does": "stands in"}))
    sys.exit()
plan = json.loads(sys.stdin.readline())
command = ["WARREN", "serve", "--listen", "127.0.0.1:0", "--actual-budget", "127.0.0.1:0",
           "--actual-budget-open-registration", "--json"]
server = subprocess.Popen([*command, "--data", plan["folder"]], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
try:
    address = json.loads(server.stdout.readline())["actual_budget_address"]
    print(json.dumps({"address": address, "settings": {}}), flush=True)
    sys.stdin.read()
finally:
    server.terminate()
    server.wait()
"#;

const SMALL: [&str; 10] = [
    "--messages",
    "50,120",
    "--page-messages",
    "60",
    "--users",
    "1,2",
    "--seconds",
    "0.2",
    "--rounds",
    "2",
];

fn competitors(folder: &Path) -> String {
    let competitors = folder.join("bench/competitors");
    let server = competitors.join("actual-sync");
    fs::create_dir_all(&server).unwrap();
    let stand_in = STAND_IN.replace("WARREN", env!("CARGO_BIN_EXE_warren"));
    fs::write(server.join("server.py"), stand_in).unwrap();
    competitors.to_str().unwrap().to_owned()
}

#[test]
fn actual_asks_both_servers_in_every_table() {
    let folder = folder();
    let competitors = competitors(folder.path());
    let report =
        bench("actual", folder.path(), &[&SMALL[..], &["--competitors", &competitors]].concat());
    let expected = [
        "bulk-50",
        "bulk-120",
        "pages-120",
        "small-10-1",
        "small-10-2",
        "small-100-1",
        "small-100-2",
        "empty-small",
        "empty-years",
        "download-50",
        "download-120",
        "memory",
    ];
    assert_eq!(names(&report), BTreeSet::from(expected));
    for table in report["tables"].as_array().unwrap() {
        let rows = table["rows"].as_array().unwrap();
        assert_eq!([&rows[0]["name"], &rows[1]["name"]], ["Actual", "Warren"]);
        for row in rows {
            assert!(row["rate"]["min"].as_f64().unwrap() > 0.0, "{row}");
            assert_eq!(row["relative"]["samples"].as_array().unwrap().len(), 2, "{row}");
            assert!(row["metrics"]["failures"]["max"].as_f64().is_none_or(|n| n == 0.0), "{row}");
            for metric in ["server memory idle, MB", "server memory peak, MB"] {
                assert!(row["metrics"][metric]["min"].as_f64().unwrap() > 1.0, "{metric}: {row}");
            }
            assert!(row["metrics"]["CPU µs each"]["samples"].is_array(), "{row}");
        }
        assert_eq!(rows[1]["difference"]["verdict"], "too_few_rounds");
    }
    let kilobytes = |name: &str| {
        let tables = report["tables"].as_array().unwrap();
        let table = tables.iter().find(|table| table["name"] == name).unwrap();
        let rows = table["rows"].as_array().unwrap().iter();
        let of = |row: &Value| row["metrics"]["kB an answer"]["median"].as_f64().unwrap();
        rows.map(of).collect::<Vec<f64>>()
    };
    let (small, years, whole) =
        (kilobytes("empty-small"), kilobytes("empty-years"), kilobytes("download-120"));
    assert!(years[1] > 10.0 * small[1], "years make a large trie: {small:?} {years:?}");
    assert!((14.0..20.0).contains(&whole[1]), "120 messages of some 131 bytes: {whole:?}");

    let goals: Vec<(&str, &str)> = report["goals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|goal| (goal["name"].as_str().unwrap(), goal["verdict"].as_str().unwrap()))
        .collect();
    assert_eq!(goals.len(), 3 + 4 + 2, "{goals:?}");
    assert!(
        goals.iter().all(|(_, verdict)| *verdict == "open"),
        "two rounds say nothing: {goals:?}"
    );
    let page = fs::read_to_string(folder.path().join("warren-actual.html")).unwrap();
    assert!(page.contains("messages a second, at least 10 times the baseline"));
    let notes = report["notes"].as_array().unwrap().iter().filter_map(Value::as_str);
    assert!(notes.clone().any(|note| note.starts_with("durability: ")), "{:?}", report["notes"]);
}

#[test]
fn actual_says_how_to_install_the_published_server() {
    let folder = folder();
    let competitors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/competitors/actual-sync");
    let own = folder.path().join("bench/competitors/actual-sync");
    fs::create_dir_all(&own).unwrap();
    for file in ["package.json", "package-lock.json", "server.js"] {
        fs::copy(Path::new(competitors).join(file), own.join(file)).unwrap();
    }
    let competitors = own.parent().unwrap().to_str().unwrap();
    let more = ["--only", "small", "--users", "1", "--competitors", competitors];
    let report = bench("actual", folder.path(), &[&SMALL[..4], &SMALL[6..], &more].concat());
    let notes: Vec<&str> =
        report["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let absent = "absent: actual-sync (not built yet: run `warren bench actual --setup`)";
    assert!(notes.contains(&absent), "{notes:?}");
    let rows = report["tables"][0]["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["name"]), (1, &Value::from("Warren")));
    assert_eq!(report["goals"], Value::Array(Vec::new()), "there is nothing to compare with");
}
