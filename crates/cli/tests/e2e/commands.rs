//! Tests of properties that every command has: help with an example, one JSON value, codes, exit
//! statuses.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::fixture::{SyncFixture, devices, sync, track_all};
use crate::processes::{json, sql, warren, warren_asking};

/// Returns every command that `--help` lists.
pub(crate) fn commands(above: &[String]) -> Vec<Vec<String>> {
    let mut arguments: Vec<&str> = above.iter().map(String::as_str).collect();
    arguments.push("--help");
    let help = warren(&arguments).succeeded().stdout;
    // The top level has groups of commands under headings of their own, up to the options.
    let list = match help.split_once("Commands:\n") {
        Some((_, list)) => list,
        None if above.is_empty() => &help[..help.find("Options:\n").unwrap()],
        None => return vec![above.to_vec()],
    };
    let list = list.split_once("Options:\n").map_or(list, |(list, _)| list);
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let below =
        names.filter(|name| *name != "help").map(|name| [above, &[name.to_owned()]].concat());
    below.flat_map(|command| commands(&command)).collect()
}

#[test]
fn the_help_of_every_command_has_an_example_of_it() {
    let commands = commands(&[]);
    let names: BTreeSet<String> = commands.iter().map(|command| command.join(" ")).collect();
    for known in ["serve", "account add", "device revoke", "track", "sync", "clone", "inspect"] {
        assert!(names.contains(known), "{known} in {names:?}");
    }
    assert!(names.len() >= 30, "{names:?}");
    for name in names {
        let arguments: Vec<&str> = name.split(' ').chain(["--help"]).collect();
        let help = warren(&arguments).succeeded().stdout;
        let example = ["Example:\n", "Examples:\n"].iter().find_map(|head| help.split_once(head));
        let example = example.map(|(_, example)| example);
        let example = example.unwrap_or_else(|| panic!("no example for {name}:\n{help}"));
        assert!(example.contains(&format!("warren {name}")), "{name}:\n{help}");
    }
}

/// Checks that a command prints one JSON value on one line with `--json`, and a text for people
/// without.
#[track_caller]
fn check_json(arguments: &[&str]) -> Value {
    let ran = warren(&[arguments, &["--json"]].concat()).succeeded();
    assert_eq!(ran.stdout.trim_end().lines().count(), 1, "{}", ran.stdout);
    assert_eq!(ran.stderr, "", "{arguments:?}");
    let people = warren(arguments).succeeded().stdout;
    assert!(!people.is_empty() && !people.starts_with(['{', '[']), "{arguments:?}: {people}");
    ran.value()
}

#[test]
fn every_command_prints_one_json_value_when_asked() {
    let place = SyncFixture::new();
    let server = place.serve();
    let a = place.at("a.db");
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, 'one')");
    let (data, password) = (place.data.as_str(), place.password.as_str());
    let on_data = ["--data", data, "--password-file", password];

    assert_eq!(check_json(&["track", &a, "--all"])["tables"][0]["table"], "t");
    let first = place.first_time(&server.address);
    assert_eq!(check_json(&[&["sync", &a], &first[..]].concat())["in_sync"], true);
    let clone = json(&[&["clone", &place.at("b.db")], &first[..]].concat());
    assert_eq!(clone["created_tables"][0], "created table t");
    assert_eq!(check_json(&["status", &a])["tables"][0]["rows_count"], 1);
    assert_eq!(check_json(&["inspect", &a])["kind"], "replica");
    assert_eq!(
        check_json(&[&["inspect", "--login", "ada", "--verify"], &on_data[..]].concat())["verified"],
        true
    );
    assert_eq!(check_json(&["device", "list", &a])["devices"].as_array().unwrap().len(), 2);
    let listed = check_json(&[&["device", "list", "--login", "ada"], &on_data[..]].concat());
    assert_eq!(listed["devices"][0]["device_id"], devices(&a)[0]["device_id"]);
    assert_eq!(check_json(&["account", "list", "--data", data])[0]["devices_count"], 2);
    check_json(
        &[&["account", "password", "ada", "--new-password-file", password], &on_data[..]].concat(),
    );

    let id = devices(&a)[1]["device_id"].as_str().unwrap().to_owned();
    let revoked = json(&["device", "revoke", &id, &a]);
    assert_eq!(revoked, serde_json::json!({"revoked_device_ids": [id]}));
    warren(&["device", "revoke", &id, &a, "--json"]).refused("not_found");
    assert_eq!(json(&["untrack", &a])["untracked_tables"], serde_json::json!(["t"]));
    assert_eq!(json(&["account", "remove", "ada", "--yes", "--data", data])["login"], "ada");
    assert_eq!(json(&["account", "list", "--data", data]), serde_json::json!([]));
}

#[test]
fn failures_have_codes_and_usage_errors_another_exit_status() {
    let place = SyncFixture::new();
    let server = place.serve();
    let a = place.chinook("a.db");
    let wrong = place.write("wrong.txt", "a pass-phrase of eve's");
    let at_server = ["--server", &server.address, "--login", "ada", "--password-file", &wrong];
    let refuse = |arguments: &[&str], code: &str| {
        warren(&[arguments, &["--json"]].concat()).refused(code);
    };
    refuse(&["sync", &a], "not_tracked");
    track_all(&a);
    refuse(&["sync", &a], "server_not_configured");
    refuse(&[&["sync", &a], &at_server[..]].concat(), "wrong_password");
    let b = place.at("b.db");
    refuse(&[&["clone", &b], &at_server[..]].concat(), "wrong_password");
    assert!(!std::fs::exists(&b).unwrap(), "a clone that never signed in leaves no file");
    let nobody = [&["sync", &a], &at_server[..2], &["--login", "eve", "--password-file", &wrong]];
    refuse(&nobody.concat(), "wrong_password");

    let data = ["--data", &place.data, "--password-file", &wrong];
    refuse(&[&["account", "add", "ada"], &data[..]].concat(), "account_exists");
    refuse(&[&["account", "add", "../ada"], &data[..]].concat(), "invalid_login");
    let short = place.write("short.txt", "seven!!");
    let short = ["--data", &place.data, "--password-file", &short];
    refuse(&[&["account", "add", "eve"], &short[..]].concat(), "invalid_password");
    refuse(&[&["account", "remove", "eve", "--yes"], &data[..2]].concat(), "not_found");
    refuse(&[&["account", "remove", "ada"], &data[..2]].concat(), "confirmation_required");
    let new = ["--new-password-file", &wrong];
    refuse(&[&["account", "password", "ada"], &new[..], &data[..]].concat(), "wrong_password");
    refuse(&["track", &place.at("none.db"), "--all"], "file_not_found");
    refuse(&["track", &a, "NoSuchTable"], "untrackable");

    for usage in [
        &["sync"][..],
        &["synk", &a],
        &["track", &a],
        &["serve", "--listen", "here"],
        &["serve", "--log", "loud=very"],
        &[],
    ] {
        let ran = warren(usage);
        assert_eq!((ran.status.code(), ran.stdout.as_str()), (Some(2), ""), "{usage:?}");
        assert!(ran.stderr.contains("--help") || ran.stderr.contains("Usage:"), "{}", ran.stderr);
    }
    for (usage, expected) in [
        (&["sync"][..], "<FILE>"),
        (&["track", &a, "--none"], "--none"),
        (&["serve", "--listen", "here"], "here"),
    ] {
        let message = refused(usage, "invalid_argument");
        assert!(message.contains(expected) && !message.contains("Usage"), "{message}");
    }
}

#[test]
fn the_password_is_read_from_a_pipe_too() {
    let place = SyncFixture::new();
    let server = place.serve();
    let add = ["account", "add", "eve", "--data", &place.data, "--json"];
    warren_asking(&add, "a pass-phrase of eve's\n").succeeded();
    let a = place.at("a.db");
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY)");
    track_all(&a);
    let sign_in = ["sync", &a, "--server", &server.address, "--login", "eve", "--json"];
    warren_asking(&sign_in, "another one\n").refused("wrong_password");
    warren_asking(&sign_in, "a pass-phrase of eve's\n").succeeded();
    // From here on the commands do not ask for the password.
    sync(&a);
}

#[test]
fn accounts_do_not_see_each_other() {
    let place = SyncFixture::new();
    let server = place.serve();
    let eves = place.add_account("eve");
    let (a, b) = (place.at("a.db"), place.at("b.db"));
    for (file, login, password) in [(&a, "ada", &place.password), (&b, "eve", &eves)] {
        sql(
            file,
            &format!(
                "CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, '{login}')"
            ),
        );
        track_all(file);
        let account = ["--server", &server.address, "--login", login, "--password-file", password];
        let sent = json(&[&["sync", file], &account[..]].concat());
        assert_eq!(
            (&sent["sent_count"], &sent["server_messages_count"]),
            (&2.into(), &2.into()),
            "{sent}"
        );
    }
    for (file, login) in [(&a, "ada"), (&b, "eve")] {
        assert_eq!(sync(file)["received_count"], 0);
        assert_eq!(sql(file, "SELECT x FROM t"), login);
        assert_eq!(devices(file).len(), 1);
    }
    json(&["account", "remove", "ada", "--yes", "--data", &place.data]);
    warren(&["sync", &a, "--json"]).refused("invalid_token");
    assert_eq!(sync(&b)["server_messages_count"], 2);
}

#[test]
fn what_a_file_refuses_is_told_once_and_with_its_name() {
    let place = SyncFixture::new();
    let a = place.at("a.db");
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY); CREATE TABLE warren_meta (a, b)");
    let message = refused(&["track", &a, "--all"], "untrackable");
    assert!(message.contains("warren_meta"), "{message}");
    sql(&a, "DROP TABLE warren_meta; CREATE TABLE warren_chunk (a)");
    let message = refused(&["track", &a, "--all"], "sqlite_error");
    assert!(message.starts_with(&a) && message.matches("already exists").count() == 1, "{message}");
    sql(&a, "DROP TABLE warren_chunk");
    track_all(&a);
    let message = refused(&["history", &a, "nope", "1"], "table_not_found");
    assert!(message.contains("nope"), "{message}");
    assert_eq!(json(&["history", &a, "T", "1"])["changes"].as_array().unwrap().len(), 0);
    sql(&a, "DROP TABLE t");
    let message = refused(&["status", &a], "schema_changed");
    assert!(message.contains("table t: the table was dropped"), "{message}");
    let other = place.write("other.db", &"no database ".repeat(100));
    let message = refused(&["status", &other], "not_a_database");
    assert!(message.starts_with(&other), "{message}");
}

#[test]
fn a_file_of_an_older_format_is_refused_by_its_format() {
    let place = SyncFixture::new();
    let a = place.at("a.db");
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY)");
    track_all(&a);
    sql(&a, "UPDATE warren_meta SET value = 1 WHERE key = 'format'; DROP TABLE warren_outbox");
    for arguments in [
        &["untrack", &a][..],
        &["untrack", &a, "t"],
        &["track", &a, "--all"],
        &["status", &a],
        &["sync", &a],
    ] {
        warren(&[arguments, &["--json"]].concat()).refused("format_too_old");
    }
    fs::create_dir(place.at("older")).unwrap();
    sql(&place.at("older/accounts.sqlite"), "CREATE TABLE client (id); PRAGMA user_version = 6");
    let list = ["account", "list", "--data", &place.at("older"), "--json"];
    warren(&list).refused("format_too_old");
}

#[test]
fn an_account_in_a_directory_that_was_none_says_so() {
    let place = SyncFixture::new();
    let add = |login: &str| {
        let files = ["--data", &place.at("second"), "--password-file", &place.password];
        warren(&[&["account", "add", login][..], &files].concat()).succeeded().stdout
    };
    let said = add("ada");
    assert!(said.contains("second (to use another one, pass --data)"), "{said}");
    assert_eq!(add("berta").trim_end(), "created account berta");
}

/// Returns the message of a command that fails with this code.
#[track_caller]
fn refused(arguments: &[&str], code: &str) -> String {
    let ran = warren(&[arguments, &["--json"]].concat());
    ran.refused(code);
    ran.value()["error"]["message"].as_str().unwrap().to_owned()
}
