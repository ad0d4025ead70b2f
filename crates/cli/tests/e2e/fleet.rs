//! Tests of `warren doctor` on many files: folders, shares of the time, baselines, formats for
//! other programs.

use std::fs;

use serde_json::Value;

use crate::doctor::encrypted;
use crate::fixture::SyncFixture;
use crate::processes::{json, sql, warren};

/// Creates a folder with a healthy file, one with a warning, one with an error, and a file that is
/// not a database.
fn folder(place: &SyncFixture) -> String {
    let folder = place.at("files");
    fs::create_dir_all(format!("{folder}/deep")).unwrap();
    let at = |name: &str| format!("{folder}/{name}");
    sql(&at("well.db"), "CREATE TABLE t (x)");
    sql(&at("warned.sqlite"), "CREATE TABLE t (x UNIQUE); CREATE INDEX again ON t (x)");
    sql(
        &at("deep/broken & \"odd\".db"),
        "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT);
         INSERT INTO t VALUES (9223372036854775807)",
    );
    fs::write(at("notes.txt"), "no database").unwrap();
    folder
}

fn fleet(arguments: &[&str]) -> (i32, Value) {
    let ran = warren(&[&["doctor"], arguments, &["--json"]].concat());
    (ran.status.code().unwrap(), ran.value())
}

#[test]
fn a_folder_is_examined_and_summed_up() {
    let place = SyncFixture::new();
    let folder = folder(&place);
    let (status, said) = fleet(&[&folder]);
    let summary = &said["summary"];
    assert_eq!((status, &summary["files_count"]), (4, &Value::from(3)), "{said}");
    assert_eq!((&summary["errors_count"], &summary["warnings_count"]), (&1.into(), &1.into()));
    assert_eq!(summary["finding_counts"]["sequence_exhausted"], 1, "{said}");
    // A healthy file is not listed.
    assert_eq!(said["files"].as_array().unwrap().len(), 2, "{said}");
    let text = warren(&["doctor", &folder]).stdout;
    assert!(text.contains("warned.sqlite: warning index_duplicate: again on t"), "{text}");
    assert!(text.contains("3 files in "), "{text}");

    let (status, said) = fleet(&[&folder, "--glob", "*.sqlite"]);
    assert_eq!((status, &said["summary"]["files_count"]), (3, &Value::from(1)), "{said}");
    assert_eq!(fleet(&[&folder, "--glob", "*.sqlite", "--fail-on", "error"]).0, 0);
    assert_eq!(fleet(&[&folder, "--fail-on", "never"]).0, 0);
    let none = warren(&["doctor", &folder, "--glob", "*.mail"]);
    assert!(none.stderr.contains("no SQLite files found"), "{}", none.stderr);

    // A file that cannot be examined does not stop the run.
    let (text, well) = (format!("{folder}/notes.txt"), format!("{folder}/well.db"));
    let (status, said) = fleet(&[&text, &well, &place.at("missing.db")]);
    assert_eq!((status, &said["summary"]["unexamined_count"]), (1, &Value::from(2)), "{said}");
    assert_eq!(said["files"][0]["error"]["code"], "not_a_database", "{said}");
}

#[test]
fn many_files_share_the_time() {
    let place = SyncFixture::new();
    let folder = place.at("many");
    fs::create_dir(&folder).unwrap();
    let first = format!("{folder}/0.db");
    sql(&first, "CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    for index in 1..200 {
        fs::copy(&first, format!("{folder}/{index}.db")).unwrap();
    }
    // The first file has more to compare than its first share of the time allows: it gets the time
    // that the others leave.
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)";
    sql(&first, &format!("CREATE INDEX by_x ON t (x); {many} INSERT INTO t SELECT i FROM n"));
    let (status, said) = fleet(&[&folder, "--time-limit", "100", "--total-time-limit", "100"]);
    assert_eq!((status, &said["summary"]["files_count"]), (0, &Value::from(200)), "{said}");
    let usage = warren(&["doctor", &folder, "--total-time-limit", "0"]);
    assert!(usage.stderr.contains("above 0"), "{}", usage.stderr);
}

#[test]
fn what_was_known_before_does_not_count() {
    let place = SyncFixture::new();
    let folder = folder(&place);
    let (_, said) = fleet(&[&folder]);
    let baseline = place.write("baseline.json", &said.to_string());
    let (status, said) = fleet(&[&folder, "--baseline", &baseline]);
    assert_eq!((status, &said["summary"]["known_count"]), (0, &Value::from(2)), "{said}");

    let warned = format!("{folder}/warned.sqlite");
    sql(&warned, "DROP INDEX again; CREATE INDEX other ON t (x)");
    let (status, said) = fleet(&[&folder, "--baseline", &baseline]);
    assert_eq!(status, 3, "{said}");
    let gone = said["summary"]["gone"][0].as_str().unwrap();
    assert!(gone.contains("index_duplicate") && gone.contains("again"), "{gone}");

    // The report of one file is a baseline, too.
    let one = json(&["doctor", &warned, "--fail-on", "never"]);
    let one = place.write("one.json", &one.to_string());
    assert_eq!(fleet(&[&warned, "--baseline", &one]).0, 0);
    let text = place.write("text.json", "{}");
    let refused = warren(&["doctor", &warned, "--baseline", &text]);
    assert!(
        refused.stderr.contains("not the output of `warren doctor --json`"),
        "{}",
        refused.stderr
    );
}

#[test]
fn what_has_changed_since_a_week_ago_is_said() {
    let place = SyncFixture::new();
    let (file, history) = (place.at("a.db"), place.at("history"));
    sql(&file, "CREATE TABLE t (x UNIQUE); CREATE INDEX again ON t (x)");
    let arguments = ["doctor", &file, "--history", &history, "--fail-on", "never"];
    let run = || json(&arguments);
    assert_eq!(run()["trend"], Value::Null);

    // That run becomes six days old; an older one is too old to count.
    let kept = fs::read_dir(&history).unwrap().next().unwrap().unwrap().path();
    let line = fs::read_to_string(&kept).unwrap();
    assert!(line.starts_with("{\"format\":20,"), "{line}");
    let mut old: Value = serde_json::from_str(&line).unwrap();
    let at = old["ended_ms"].as_u64().unwrap();
    let mut ancient = old.clone();
    old["ended_ms"] = (at - 6 * 86_400_000).into();
    ancient["ended_ms"] = (at - 60 * 86_400_000).into();
    ancient["file_bytes"] = 1.into();
    let mut other_format = old.clone();
    other_format["format"] = 21.into();
    let lines = format!("{ancient}\nno json\n{other_format}\n{old}\n{{\"cut");
    fs::write(&kept, lines).unwrap();

    let insert = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
                  INSERT INTO t SELECT printf('%0500d', i) FROM n;";
    sql(&file, &format!("DROP INDEX again; {insert} DELETE FROM t"));
    let trend = &run()["trend"];
    assert_eq!(trend["since_ms"], old["ended_ms"], "{trend}");
    assert_eq!(trend["before"]["file_bytes"], old["file_bytes"], "{trend}");
    assert!(trend["now"]["free_ratio"].as_f64().unwrap() > 0.5, "{trend}");
    assert!(trend["gone"][0].as_str().unwrap().starts_with("index_duplicate"), "{trend}");
    assert!(trend["new"].to_string().contains("fragmented"), "{trend}");
    assert_eq!(trend["unread_lines_count"], 3, "{trend}");
    let text = warren(&arguments).stdout;
    assert!(text.contains("(6 days): ") && text.contains("free pages 0 % -> "), "{text}");

    let folder = place.at("");
    let (_, said) = fleet(&[&folder, "--history", &history]);
    let of_file = said["files"].as_array().unwrap().iter();
    let of_file: Vec<&Value> = of_file.filter(|it| it["path"] == file.as_str()).collect();
    assert_eq!(of_file[0]["report"]["trend"]["since_ms"], old["ended_ms"], "{said}");
    let text = warren(&["doctor", &folder, "--history", &history]).stdout;
    assert!(text.contains("a.db: since "), "{text}");
}

#[test]
fn what_is_ignored_has_a_reason() {
    let place = SyncFixture::new();
    let folder = folder(&place);
    let ignore = place.write(
        "ignore.txt",
        "# what we know\nindex_duplicate *.sqlite again  # the ORM makes it\n\
         sequence_exhausted  # we never insert\nnot_wal elsewhere.db  # long ago\n",
    );
    let (status, said) = fleet(&[&folder, "--ignore", &ignore]);
    let summary = &said["summary"];
    assert_eq!((status, &summary["ignored_count"]), (0, &Value::from(2)), "{said}");
    let needless = summary["unused_ignore_rules"].as_array().unwrap();
    assert_eq!(needless.len(), 1, "{said}");
    assert!(needless[0].as_str().unwrap().ends_with("line 4: not_wal"), "{said}");

    let warned = format!("{folder}/warned.sqlite");
    let one = json(&["doctor", &warned, "--ignore", &ignore]);
    assert_eq!(one["findings"], Value::Array(vec![]), "{one}");
    assert_eq!(one["ignored"][0]["reason"], "the ORM makes it", "{one}");
    let text = warren(&["doctor", &warned, "--ignore", &ignore]).stdout;
    assert!(text.contains("ignored  index_duplicate: again on t"), "{text}");
    // Another index is not ignored.
    sql(&warned, "CREATE INDEX third ON t (x)");
    assert_eq!(fleet(&[&warned, "--ignore", &ignore]).0, 3);

    let wrong = place.write("wrong.txt", "\nindex_duplicate a.db\n");
    let refused = warren(&["doctor", &warned, "--ignore", &wrong]);
    assert!(refused.stderr.contains("line 2"), "{}", refused.stderr);
    assert!(refused.stderr.contains("index_duplicate has no reason"), "{}", refused.stderr);
}

/// Each file of a fleet has a key of its own, which a command prints.
#[test]
fn a_command_knows_the_key_of_each_file() {
    let place = SyncFixture::new();
    let folder = place.at("mail");
    fs::create_dir(&folder).unwrap();
    for name in ["ada", "bob"] {
        let path = format!("{folder}/{name}.db");
        encrypted(&path, &format!("PRAGMA key = 'pass of {name}'"), "CREATE TABLE t (x)");
    }
    let command = "printf 'pass of %s\\n' \"$(basename \"$WARREN_FILE\" .db)\"";
    let all = [folder.as_str(), "--glob", "*.db", "--key-command"];
    let (status, said) = fleet(&[&all[..], &[command]].concat());
    assert_eq!((status, &said["summary"]["unexamined_count"]), (0, &Value::from(0)), "{said}");
    // A file whose key is unknown does not stop the run.
    let command = "case $WARREN_FILE in *ada.db) echo pass of ada;; *) exit 7;; esac";
    let (status, said) = fleet(&[&all[..], &[command]].concat());
    assert_eq!((status, &said["summary"]["unexamined_count"]), (1, &Value::from(1)), "{said}");
    let error = &said["files"][0]["error"];
    assert_eq!(error["code"], "key_command_failed", "{said}");
    assert!(error["message"].as_str().unwrap().contains("exit status: 7"), "{said}");
    for wrong in ["true", "yes | head -c 10000"] {
        let (status, said) = fleet(&[&all[..], &[wrong]].concat());
        assert_eq!(
            (status, &said["files"][1]["error"]["code"]),
            (1, &Value::from("key_command_failed"))
        );
    }
    let key = "echo 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    let (_, said) = fleet(&[&all[..], &[key]].concat());
    assert_eq!(said["files"][0]["error"]["code"], "wrong_key", "{said}");
}

#[test]
fn other_programs_read_what_was_found() {
    let place = SyncFixture::new();
    let folder = folder(&place);
    let print = |format: &str| {
        let ran = warren(&["doctor", &folder, "--format", format]);
        assert_eq!(ran.status.code(), Some(4), "{}", ran.stderr);
        ran.stdout
    };
    let github = print("github");
    assert_eq!(github.lines().count(), 2, "{github}");
    assert!(github.lines().all(|line| line.starts_with("::")), "{github}");
    assert!(github.contains("title=sequence_exhausted::the AUTOINCREMENT table t"), "{github}");

    let junit = print("junit");
    let parse = "import sys, xml.etree.ElementTree as e
suite = e.parse(sys.stdin).getroot()
print(suite.get('tests'), suite.get('failures'), len(suite.findall('testcase/failure')))";
    let parsed = python_on(parse, &junit);
    assert_eq!(parsed.trim(), "3 2 2", "{junit}");

    let prometheus = print("prometheus");
    let has = |text: &str| prometheus.lines().any(|line| line.ends_with(text));
    assert!(has("code=\"sequence_exhausted\",severity=\"error\"} 1"), "{prometheus}");
    assert_eq!(prometheus.matches("\nwarren_doctor_integrity_complete{").count(), 3);

    let sarif: Value = serde_json::from_str(&print("sarif")).unwrap();
    let run = &sarif["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert_eq!((sarif["version"].as_str(), results.len()), (Some("2.1.0"), 2), "{sarif}");
    for result in results {
        assert!(rules.iter().any(|rule| rule["id"] == result["ruleId"]), "{result}");
    }
}

/// Returns the output of a Python program that reads this input.
fn python_on(program: &str, input: &str) -> String {
    use std::io::Write;
    use std::process::{Command, Stdio};

    let mut python = Command::new(crate::processes::python());
    python.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut python = python.spawn().unwrap();
    python.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    String::from_utf8(python.wait_with_output().unwrap().stdout).unwrap()
}
