//! Tests that the output of every command with `--json` conforms to the JSON Schema that
//! `warren json-schema` prints. (All other tests check their commands, too: `output_schema.rs`.)

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::fixture::{SyncFixture, devices};
use crate::mail::mbox_message;
use crate::output_schema::{command, fault};
use crate::processes::{json, sql, warren};

/// The commands that need more than a file and a server, and the tests that run them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("actual-budget export", "tests/actual/export.rs"),
    ("actual-budget import", "tests/actual/import.rs"),
    ("actual-budget restore", "tests/actual/restore.rs"),
    ("bench actual", "bench_actual.rs"),
    ("bench browser", "bench_browser.rs"),
    ("bench bulk", "bench.rs"),
    ("bench checkpoint", "bench.rs"),
    ("bench cipher", "bench.rs"),
    ("bench compare", "compare.rs"),
    ("bench mail", "bench_mail.rs"),
    ("bench pragma", "bench.rs"),
    ("bench reconcile", "bench.rs"),
    ("bench runtime", "bench_runtime.rs"),
    ("bench sync", "bench.rs"),
    ("bench tps", "bench.rs"),
    ("bench vacuum", "bench.rs"),
    ("mail spool remove", "mail_delivery.rs"),
    ("storage migrate", "postgres.rs"),
];

/// Runs commands, and records their names.
#[derive(Default)]
struct CommandRecorder {
    names: RefCell<BTreeSet<String>>,
}

impl CommandRecorder {
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Value {
        self.names.borrow_mut().insert(command(arguments));
        json(arguments)
    }
}

#[test]
fn every_command_prints_what_its_schema_says() {
    let (recorder, place) = (CommandRecorder::default(), SyncFixture::new());
    let run = |arguments: &[&str]| recorder.run(arguments);
    let server = place.serve();
    let (a, b, c) = (place.at("a.db"), place.at("b.db"), place.at("c.db"));
    let (data, password) = (place.data.as_str(), place.password.as_str());
    let with_data = |arguments: &[&str]| {
        run(&[arguments, &["--data", data, "--password-file", password]].concat())
    };
    let first_time = place.first_time(&server.address);
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY, x UNIQUE); CREATE TABLE keyless (x)");
    sql(&a, "INSERT INTO t VALUES (1, 'one')");
    sql(&b, "CREATE TABLE t (id INTEGER PRIMARY KEY, x UNIQUE)");

    run(&["track", &a, "--all", "--e2ee"]);
    run(&[&["sync", &a], &first_time[..]].concat());
    let phrase = run(&["recovery-phrase", &a])["recovery_phrase"].as_str().unwrap().to_owned();
    let phrase = place.write("phrase.txt", &phrase);
    run(&["track", &b, "t", "--recovery-phrase-file", &phrase]);
    run(&[&["clone", &c, "--recovery-phrase-file", &phrase], &first_time[..]].concat());
    // Two rows that cannot be shown together, and a cell that two devices wrote.
    sql(&c, "UPDATE t SET x = 'of c' WHERE id = 1; INSERT INTO t VALUES (7, 'both')");
    sql(&a, "UPDATE t SET x = 'of a' WHERE id = 1; INSERT INTO t VALUES (8, 'both')");
    for file in [&c, &a, &c] {
        run(&["sync", file]);
    }
    assert_ne!(run(&["conflicts", &a])["conflicts"], json!([]));
    run(&["history", &a, "t", "1"]);
    run(&["status", &a, "--verify"]);
    run(&["inspect", &a]);
    with_data(&["inspect", "--login", "ada", "--verify"]);
    run(&["erase", &a]);
    let id = devices(&a).iter().find(|device| device["current"] == false).unwrap()["device_id"]
        .as_str()
        .unwrap()
        .to_owned();
    run(&["device", "list", &a]);
    run(&["device", "revoke", &id, &a]);
    run(&["untrack", &c]);

    let eves = place.write("eve.txt", "a pass-phrase of eve's");
    run(&["account", "add", "eve", "--data", data, "--password-file", &eves]);
    run(&["account", "list", "--data", data]);
    with_data(&["account", "show", "ada"]);
    run(&["account", "quota", "ada", "--messages", "1000", "--data", data]);
    with_data(&["account", "recovery-phrase", "ada"]);
    with_data(&["account", "password", "ada", "--new-password-file", &eves]);
    run(&["account", "remove", "eve", "--yes", "--data", data]);
    run(&["backup", &place.at("backup"), "--data", data]);
    run(&["restore", &place.at("backup"), "--data", &place.at("restored")]);
    server.stop();
    with_budgets(&recorder, &place, &eves);
    with_mail(&recorder, &place, &eves);
    run(&["storage", "schema"]);
    run(&["serve", "--print-config"]);
    run(&["settings"]);

    for options in [&[&*b][..], &[&b, &c], &["--list"], &["--explain", "auto_vacuum_off"]] {
        recorder.names.borrow_mut().insert("doctor".to_owned());
        let ran = warren(&[&["doctor"], options, &["--json"]].concat());
        assert_ne!(ran.status.code(), Some(2), "{}", ran.stderr);
    }
    run(&["recover", &b, &place.at("recovered.db")]);
    run(&["vacuum", &c]);
    run(&["tune", "--profile", "server", "--emit", "rusqlite"]);
    run(&["completions", "bash"]);
    run(&["command-reference"]);
    run(&["man"]);
    let all = run(&["json-schema"]);

    let described = all["properties"].as_object().unwrap().keys().cloned().collect();
    let mut checked = recorder.names.into_inner();
    checked.extend(ELSEWHERE.iter().map(|(command, _)| (*command).to_owned()));
    assert_eq!(checked, described);
}

/// Lists the budgets of a server that has none.
fn with_budgets(recorder: &CommandRecorder, place: &SyncFixture, password: &str) {
    let login = ["--login", "ada", "--data", &place.data, "--password-file", password];
    let listed = recorder.run(&[&["actual-budget", "list"], &login[..]].concat());
    assert_eq!(listed, json!([]));
}

/// Imports a message with an attachment and a message that is empty.
fn with_mail(recorder: &CommandRecorder, place: &SyncFixture, password: &str) {
    let mbox = place.write("a.mbox", &format!("{}From b\n", mbox_message(6)));
    let login = ["--login", "ada", "--data", &place.data, "--password-file", password];
    let run = |command: &[&str]| recorder.run(&[command, &login].concat());
    run(&["mail", "address", "add", "ada@example.org"]);
    recorder.run(&["mail", "address", "list", "--data", &place.data]);
    recorder.run(&["mail", "address", "remove", "ada@example.org", "--data", &place.data]);
    assert_eq!(run(&["mail", "import", "mbox", &mbox])["stored_count"], 2);
    run(&["mail", "mailboxes"]);
    assert_eq!(run(&["mail", "list"]).as_array().unwrap().len(), 2);
    run(&["mail", "show", "1"]);
    run(&["mail", "show", "2"]);
    assert_eq!(run(&["mail", "search", "secret 6"]).as_array().unwrap().len(), 1);
    run(&["mail", "export", "maildir", &place.at("maildir")]);
    let added = run(&["mail", "password", "add", "--name", "phone"]);
    run(&["mail", "password", "list"]);
    let id = added["password_id"].as_str().unwrap();
    recorder.run(&["mail", "password", "remove", id, "--login", "ada", "--data", &place.data]);
    recorder.run(&["mail", "spool", "list", "--data", &place.data]);
}

#[test]
fn a_value_with_a_key_more_or_less_does_not_fit() {
    let check = |arguments: &[&str], value: &Value, expected: &str| {
        let fault = fault(arguments, value).expect("it does not fit");
        assert!(fault.contains(expected), "{fault}");
    };
    let add = ["account", "add", "ada"];
    let added = json!({"login": "ada", "vault_id": "1c4a"});
    assert_eq!(fault(&add, &added), None);
    check(&add, &json!({"login": "ada"}), "vault_id");
    check(&add, &json!({"login": "ada", "vault_id": "1c4a", "vault": "1c4a"}), "vault");
    check(&add, &json!({"login": "ada", "vault_id": null}), "null");
    let error = json!({"error": {"code": "account_exists", "message": "…", "hint": null}});
    let unknown = json!({"error": {"code": "nonsense", "message": "…", "hint": null}});
    check(&add, &unknown, "nonsense");
    assert_eq!(fault(&add, &error), None);
    // Null is valid only where a value may be unknown.
    let revoked = json!({"revoked_device_ids": null});
    check(&["device", "revoke"], &revoked, "null");
}
