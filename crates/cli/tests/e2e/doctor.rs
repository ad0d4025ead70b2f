//! Tests of `warren doctor`: exit status, text and JSON, keys, vaults, the catalog, and that
//! programs that use the file are not disturbed.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::fixture::SyncFixture;
use crate::processes::{self, CommandOutput, OpenTransaction, json, python, sql, warren};

/// Runs `warren doctor … --json`. Returns its exit status and its report.
#[track_caller]
fn doctor(arguments: &[&str]) -> (i32, Value) {
    let ran = warren(&[&["doctor"], arguments, &["--json"]].concat());
    (ran.status.code().unwrap(), ran.value())
}

fn codes(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|finding| finding["code"].as_str().unwrap()).collect()
}

#[test]
fn the_exit_status_tells_the_gravest_finding() {
    let place = SyncFixture::new();
    let chinook = place.chinook("a.db");
    let (status, report) = doctor(&[&chinook]);
    assert_eq!((status, codes(&report)), (0, Vec::new()), "{report}");
    assert_eq!(report["file"]["tables_count"], 11, "{report}");
    assert!(report["duration_ms"].as_u64().unwrap() < 10_000);

    sql(&chinook, "CREATE TABLE schema_migrations (version)");
    let (status, report) = doctor(&[&chinook]);
    assert_eq!((status, codes(&report)), (0, vec!["identity_unset"]), "{report}");

    sql(&chinook, "CREATE INDEX again ON Track (AlbumId)");
    let (status, report) = doctor(&[&chinook]);
    assert_eq!((status, codes(&report)), (3, vec!["index_duplicate", "identity_unset"]));

    sql(&chinook, "CREATE TABLE a (x); CREATE TABLE b (x);
                   CREATE TRIGGER t AFTER INSERT ON a BEGIN INSERT INTO b VALUES (1); END; DROP TABLE b");
    let (status, report) = doctor(&[&chinook]);
    assert_eq!((status, codes(&report)[0]), (4, "trigger_broken"), "{report}");

    warren(&["doctor", &place.at("none.db"), "--json"]).refused("file_not_found");
    let junk = place.write("junk.db", &"junk ".repeat(1000));
    warren(&["doctor", &junk, "--json"]).refused("not_a_database");
    let usage = warren(&["doctor", &chinook, "--time-limit", "x"]);
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn a_locked_file_is_reported_as_not_checked() {
    let place = SyncFixture::new();
    let path = place.at("a.db");
    sql(&path, "CREATE TABLE t (x)");
    let held = OpenTransaction::begin(&path, "BEGIN EXCLUSIVE; SELECT 1");
    let ran = warren(&["doctor", &path]);
    drop(held);
    assert_eq!(ran.status.code(), Some(5), "{}", ran.stdout);
    let reports = |line: &str| ran.stdout.lines().any(|other| other == line);
    assert!(reports("skipped  content: another process kept the file locked"), "{}", ran.stdout);
    let note = "note     the content was not checked: see \"skipped\" above";
    assert!(reports(note) && !ran.stdout.contains("no problems found\n"), "{}", ran.stdout);
}

#[test]
fn what_was_not_compared_is_in_the_exit_status() {
    let place = SyncFixture::new();
    let path = place.at("a.db");
    sql(&path, "CREATE TABLE t (x)");
    let required = [path.as_str(), "--require", "integrity", "--time-limit", "60"];
    let (status, report) = doctor(&required);
    assert_eq!((status, &report["integrity"]["complete"]), (0, &Value::Bool(true)), "{report}");

    // This table can be examined only by the file's own program.
    let module = "CREATE VIRTUAL TABLE w USING nobodys (x)";
    let row = format!("INSERT INTO sqlite_schema VALUES ('table', 'w', 'w', 0, '{module}')");
    sql(&path, &format!("PRAGMA writable_schema = ON; {row}"));
    let (status, report) = doctor(&[&path]);
    assert_eq!((status, codes(&report)), (5, Vec::new()), "{report}");
    assert_eq!(report["integrity"]["complete"], false, "{report}");
    let text = warren(&["doctor", &path]).stdout;
    let note = "note     not fully checked: w: this SQLite has no module nobodys";
    assert!(text.contains(note), "{text}");

    sql(&path, "CREATE TABLE u (x UNIQUE); CREATE INDEX again ON u (x)");
    assert_eq!((doctor(&[&path]).0, doctor(&required).0), (3, 5));
}

#[test]
fn the_text_has_what_the_json_has() {
    let place = SyncFixture::new();
    let chinook = place.chinook("a.db");
    sql(&chinook, "CREATE INDEX again ON Track (AlbumId)");
    let query = "SELECT Name FROM Track WHERE Composer = ?1";
    let ran = warren(&["doctor", &chinook, "--query", query]);
    assert_eq!(ran.status.code(), Some(3));
    for expected in [
        "warning  index_duplicate: again on Track is a copy of ",
        " fix DROP INDEX again;",
        "warning  query_index_missing: ",
        " fix CREATE INDEX Track_Composer ON Track (Composer);",
        "checked  ",
    ] {
        assert!(ran.stdout.contains(expected), "{expected:?} is not in:\n{}", ran.stdout);
    }
    // Lines that people copy are not folded.
    let mut lines = ran.stdout.lines().filter(|line| !line.contains(" fix "));
    assert!(lines.all(|line| line.chars().count() <= 100), "{}", ran.stdout);
}

#[test]
fn a_fix_that_was_pasted_fixes() {
    let place = SyncFixture::new();
    let chinook = place.chinook("a.db");
    sql(&chinook, "CREATE INDEX again ON Track (AlbumId); DELETE FROM InvoiceLine;
                   CREATE TABLE big (x); INSERT INTO big VALUES (zeroblob(4000000)); DROP TABLE big");
    let (_, report) = doctor(&[&chinook]);
    assert_eq!(codes(&report), ["fragmented", "index_duplicate", "auto_vacuum_off"], "{report}");
    for finding in report["findings"].as_array().unwrap() {
        assert_eq!(finding["fix"]["language"], "sql", "{finding}");
        sql(&chinook, finding["fix"]["text"].as_str().unwrap());
    }
    let (status, report) = doctor(&[&chinook]);
    assert_eq!((status, codes(&report)), (0, Vec::new()), "{report}");
}

#[test]
fn a_fix_is_shown_done_and_undone() {
    let place = SyncFixture::new();
    let chinook = place.chinook("a.db");
    sql(&chinook, "CREATE INDEX again ON Track (AlbumId)");
    let before = fs::read(&chinook).unwrap();
    let fix = |more: &[&str]| warren(&[&["doctor", &chinook, "--fix"], more].concat());
    let dry = fix(&["all", "--dry-run"]);
    assert_eq!(dry.status.code(), Some(3));
    for expected in ["DROP INDEX again;", "tried in memory: ", "nothing was changed"] {
        assert!(dry.stdout.contains(expected), "{}", dry.stdout);
    }
    assert!(fs::read(&chinook).unwrap() == before);

    let done = json(&["doctor", &chinook, "--fix", "index_duplicate"]);
    assert_eq!((&done["done"], &done["rehearsed"]), (&Value::Bool(true), &Value::Bool(true)));
    assert_eq!(done["fixes"][0]["sql"], "DROP INDEX again;", "{done}");
    assert_eq!(done["undo_path"], format!("{chinook}.undo-1"));
    assert_eq!(doctor(&[&chinook]).0, 0);
    let undone = warren(&["doctor", &chinook, "--undo"]).succeeded();
    assert!(undone.stdout.contains("restored "), "{}", undone.stdout);
    assert!(fs::read(&chinook).unwrap() == before);

    warren(&["doctor", &chinook, "--undo", "--json"]).refused("undo_not_found");
    assert!(fix(&["nonsense"]).stderr.contains("--list"));
    let nothing = fix(&["fragmented"]);
    assert!(nothing.stdout.starts_with("nothing to fix"), "{}", nothing.stdout);
}

/// Creates an encrypted file, as another program does.
pub(crate) fn encrypted(path: &str, pragma: &str, sql: &str) {
    let make = "
import apsw, sys
path, pragma, sql = sys.argv[1:]
db = apsw.Connection(path)
db.execute('PRAGMA cipher = chacha20')
db.execute(pragma).fetchall()
db.execute(sql).fetchall()
";
    let made = Command::new(python()).args(["-c", make, path, pragma, sql]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn encrypted_files_open_with_the_key_of_a_file() {
    let place = SyncFixture::new();
    let hex = "07".repeat(32);
    let ways = [
        ("key", "--key-file", hex.clone(), format!("PRAGMA key = 'raw:{hex}'")),
        ("phrase", "--passphrase-file", "hasen".to_owned(), "PRAGMA key = 'hasen'".to_owned()),
    ];
    for (name, flag, secret, pragma) in ways {
        let path = place.at(&format!("{name}.db"));
        encrypted(
            &path,
            &pragma,
            "CREATE TABLE t (a INTEGER PRIMARY KEY, b); CREATE INDEX t_a ON t (a)",
        );
        let secret = place.write(&format!("{name}.txt"), &secret);
        let (status, report) = doctor(&[&path, flag, &secret]);
        assert_eq!((status, codes(&report)), (3, vec!["index_duplicate"]), "{report}");
        assert_eq!(report["file"]["cipher"], "chacha20");

        let other = place.write("other.txt", &"08".repeat(32));
        warren(&["doctor", &path, flag, &other, "--json"]).refused("wrong_key");
        warren(&["doctor", &path, "--json"]).refused("not_a_database");
    }
    // The raw bytes themselves are a key, too.
    fs::write(place.at("bytes"), [7; 32]).unwrap();
    let (status, _) = doctor(&[&place.at("key.db"), "--key-file", &place.at("bytes")]);
    assert_eq!(status, 3);
}

#[test]
fn a_vault_is_examined_beside_its_server() {
    let place = SyncFixture::new();
    let server = place.serve();
    let chinook = place.chinook("a.db");
    processes::json(&["track", &chinook, "--all"]);
    place.sign_in("sync", &chinook, &server.address);
    let (data, password) = (&place.data, &place.password);
    let login = ["--login", "ada", "--data", data, "--password-file", password];
    let (status, report) = doctor(&login);
    assert_ne!(status, 4, "{report}");
    assert_eq!(report["file"]["cipher"], "chacha20", "{report}");
    assert_eq!(report["file"]["journal"], "wal", "{report}");
    server.stop();
    doctor(&login);
}

#[test]
fn a_file_in_use_is_watched() {
    let place = SyncFixture::new();
    let path = place.at("a.db");
    sql(&path, "PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    let hold = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute('BEGIN IMMEDIATE'); print('now', flush=True); sys.stdin.read()";
    let mut holder = Command::new(python())
        .args(["-c", hold, &path])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    processes::first_line(&mut holder);
    let watch = ["doctor", &path, "--watch", "--interval", "0.1", "--count", "2"];
    let text = warren(&watch).succeeded().stdout;
    assert!(text.contains("writes 100 % of the time"), "{text}");
    assert_eq!(text.matches("commits/s").count(), 1, "{text}");
    let said = warren(&[&watch[..], &["--json"]].concat()).succeeded().stdout;
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[1]["commits_count"]), (2, &0.into()), "{said}");
    assert_eq!(lines[1]["users"][0]["pid"], holder.id(), "{said}");
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    warren(&["doctor", &place.at("none.db"), "--watch", "--json"]).refused("file_not_found");
    let none = warren(&["doctor", &path, "--watch", "--interval", "0"]);
    assert!(none.stderr.contains("above 0"), "{}", none.stderr);
}

#[test]
fn the_catalogue_is_listed_and_explained() {
    let list = json(&["doctor", "--list"]);
    let list = list.as_array().unwrap();
    assert!(list.len() > 30);
    for entry in list {
        let code = entry["code"].as_str().unwrap();
        let explained = json(&["doctor", "--explain", code]);
        assert_eq!(&explained, entry);
        let text = warren(&["doctor", "--explain", code]).succeeded().stdout;
        assert!(text.contains(entry["reference"].as_str().unwrap()), "{text}");
    }
    assert_eq!(warren(&["doctor", "--explain", "nonsense"]).status.code(), Some(2));
}

#[test]
fn the_page_for_people_holds_exactly_the_catalogue() {
    let page = include_str!("../../../../docs/guide/doctor.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let list = json(&["doctor", "--list"]);
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap().to_owned();
    let listed: Vec<String> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            let [code, severity, title] = ["code", "severity", "title"].map(|key| text(entry, key));
            format!("| `{code}` | {severity} | {title} |")
        })
        .collect();
    assert_eq!(rows, listed);
}

/// A program that updates rows as fast as it can until its input ends; then it prints the number
/// of updates and the sum of the column, which must be equal.
const WRITER: &str = "
import select, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=float(sys.argv[2]))
done = 0
print('ready', flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    db.execute('UPDATE t SET x = x + 1 WHERE id = ?', (done % 5000 + 1,))
    done += 1
print(done, db.execute('SELECT sum(x) FROM t').fetchone()[0], flush=True)
";

#[test]
fn nobody_who_works_on_the_file_notices() {
    let place = SyncFixture::new();
    // With a rollback journal a reader blocks a commit, but never as long as the writer's timeout.
    for (journal, timeout) in [("WAL", "0"), ("DELETE", "5")] {
        let path = place.at(journal);
        sql(
            &path,
            &format!(
                "PRAGMA journal_mode = {journal};
                 CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER NOT NULL);
                 CREATE INDEX t_x ON t (x);
                 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
                 INSERT INTO t SELECT i, 0 FROM n"
            ),
        );
        let mut writer = Command::new(python());
        writer.args(["-c", WRITER, &path, timeout]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut writer = writer.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = [0; 6];
        std::io::Read::read_exact(writer.stdout.as_mut().unwrap(), &mut line).unwrap();
        for _ in 0..10 {
            let (_, report) = doctor(&[&path]);
            assert!(!codes(&report).contains(&"page_broken"), "{journal}: {report}");
            assert_eq!(report["file"]["processes"][0]["pid"], writer.id(), "{journal}: {report}");
        }
        drop(writer.stdin.take());
        let ended = CommandOutput::new(writer.wait_with_output().unwrap()).succeeded();
        let (done, sum) = ended.stdout.trim().split_once(' ').unwrap();
        assert_eq!(done, sum, "{journal}");
        assert!(done.parse::<u64>().unwrap() > 10, "{journal}: {done}");
    }
}
