//! Tests that foreign text cannot control the terminal: names, cells, arguments and servers'
//! messages are printed with their control characters visible.

use prost::Message;
use protocol::{ErrorCode, ErrorResponse};

use crate::fixture::{SyncFixture, sync, track_all};
use crate::http_proxy::{HttpProxy, ProxyRule};
use crate::processes::{CommandOutput, json, sql, warren};

/// A text that clears the screen, turns red in 8-bit form, reverses the direction of writing,
/// rings, and begins a line that Warren has not written.
const HOSTILE: &str = "x\r\u{1b}[2J\u{9b}31m\u{202e}\u{7}\nwarren: y";
/// The hostile text as Warren prints it.
const SHOWN: &str = "x\\r\\u{1b}[2J\\u{9b}31m\\u{202e}\\u{7}\\nwarren: y";

/// Asserts that the output neither controls a terminal nor contains a forged line.
#[track_caller]
fn check(ran: &CommandOutput) {
    for text in [&ran.stdout, &ran.stderr] {
        let commands =
            |c: char| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
        assert_eq!(text.find(commands), None, "{text:?}");
        assert!(!text.contains("\nwarren: y"), "{text}");
    }
}

/// Runs a command as people do, and then with `--json`; returns the output for people.
#[track_caller]
fn run_in_terminal(arguments: &[&str]) -> String {
    let (people, programs) = (warren(arguments), warren(&[arguments, &["--json"]].concat()));
    for ran in [&people, &programs] {
        check(ran);
    }
    people.stdout + &people.stderr
}

/// Checks that a command shows the hostile text in its harmless form.
#[track_caller]
fn check_shown(arguments: &[&str]) {
    let text = run_in_terminal(arguments);
    assert!(text.contains(SHOWN), "{arguments:?}: {text}");
}

/// Prepares two devices with hostile names, tables and cells, which have written to the same row.
fn hostile_pair(place: &SyncFixture, address: &str) -> (String, String) {
    let (a, b) = (place.at(&format!("a{HOSTILE}.db")), place.at("b.db"));
    sql(
        &a,
        &format!(
            "CREATE TABLE \"{HOSTILE}\" (id INTEGER PRIMARY KEY, \"c{HOSTILE}\" TEXT);
             INSERT INTO \"{HOSTILE}\" VALUES (1, 'v{HOSTILE}')"
        ),
    );
    check_shown(&["track", &a, "--all"]);
    let first = place.first_time(address);
    for (command, file) in [("sync", &a), ("clone", &b)] {
        json(&[&[command, file.as_str(), "--device-name", HOSTILE], &first[..]].concat());
    }
    for (file, value) in [(&a, "of a"), (&b, "of b")] {
        sql(file, &format!("UPDATE \"{HOSTILE}\" SET \"c{HOSTILE}\" = '{value} {HOSTILE}'"));
    }
    sync(&a);
    sync(&b);
    sync(&a);
    (a, b)
}

#[test]
fn names_and_cells_of_others_are_shown_and_not_obeyed() {
    let place = SyncFixture::new();
    let server = place.serve();
    let (a, b) = hostile_pair(&place, &server.address);
    for file in [&a, &b] {
        for command in ["status", "conflicts", "inspect"] {
            check_shown(&[command, file]);
        }
        // The doctor names only what is wrong, in words that it wraps.
        run_in_terminal(&["doctor", file]);
        check_shown(&["device", "list", file]);
        check_shown(&["history", file, HOSTILE, "1"]);
    }
    let on_data = ["--login", "ada", "--data", &place.data, "--password-file", &place.password];
    check_shown(&[&["device", "list"], &on_data[..]].concat());
    check_shown(&[&["account", "show", "ada", "--with-vault"], &on_data[2..]].concat());
    check_shown(&["sync", &a]);
    check_shown(&["untrack", &a, HOSTILE]);
    check_shown(&["vacuum", &a]);
}

#[test]
fn arguments_and_paths_in_errors_are_shown_and_not_obeyed() {
    let place = SyncFixture::new();
    let a = place.at("a.db");
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY)");
    track_all(&a);
    for refused in [
        &["track", &a, HOSTILE][..],
        &["status", HOSTILE],
        &["doctor", HOSTILE],
        &["account", "list", "--data", HOSTILE],
        &["doctor", "--explain", HOSTILE],
    ] {
        check_shown(refused);
    }
    // Clap prints these messages, and shows newlines in its own form.
    let escape = "\u{1b}]0;title\u{7}";
    for usage in [
        &[escape][..],
        &["sync", &a, &format!("--{escape}")],
        &["serve", "--listen", escape],
        &["serve", "--log", &format!("{escape}=very")],
        &["doctor", &a, "--format", escape],
        &["bench", escape],
        &["serve", &format!("--listn{escape}")],
    ] {
        let ran = warren(usage);
        check(&ran);
        assert_eq!((ran.status.code(), &*ran.stdout), (Some(2), ""), "{usage:?}");
        assert!(ran.stderr.contains("\\u{1b}]0;title\\u{7}"), "{usage:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("Usage:") || ran.stderr.contains("--help"), "{}", ran.stderr);
    }
}

#[test]
fn a_server_s_message_is_shown_and_not_obeyed() {
    let place = SyncFixture::new();
    let server = place.serve();
    let proxy = HttpProxy::to(&server.address, ProxyRule::Pass);
    let a = place.at("a.db");
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY)");
    track_all(&a);
    place.sign_in("sync", &a, &proxy.address);
    let refusal = ErrorResponse::new(ErrorCode::RegistrationClosed, HOSTILE).encode_to_vec();
    proxy.set(ProxyRule::Answer(403, "application/x-protobuf", refusal));
    for command in [&["sync", &a][..], &["status", &a], &["device", "list", &a]] {
        check_shown(command);
    }
}
