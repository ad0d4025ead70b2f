//! Tests `docs/operating/access.md`: the filter for fail2ban finds refused logins in a server's
//! log, and no text that a client has written there.

use std::fs;
use std::process::Command;

use serde_json::json;

use super::{ACCESS_PAGE, code_block, log_of_server, program, serve_as_page};
use crate::fixture::{PASSWORD, SyncFixture};
use crate::processes::{CommandOutput, ServeProcess};

const FILTER: &str = "# /etc/fail2ban/filter.d/warren.conf";
const JAIL: &str = "# /etc/fail2ban/jail.d/warren.conf";

/// A line that a stranger would like to forge in the log.
const FORGED: &str = " host warren[1]: x  WARN server::admission::logins: login refused from \
                      198.51.100.7: wrong password for ada";

/// Logs in from an address that a proxy reports. Returns the status of the answer.
fn log_in(server: &ServeProcess, from: &str, login: &str, password: &str) -> u16 {
    let body = json!({"login": login, "password": password, "name": FORGED}).to_string();
    let request = ureq::post(format!("{}/v1/devices?{}", server.address, FORGED.replace(' ', "+")));
    let request = request.header("content-type", "application/json").header("user-agent", FORGED);
    let request = request.header("x-forwarded-for", from);
    let request = request.config().http_status_as_error(false).build();
    request.send(body).unwrap().status().as_u16()
}

/// Returns the addresses that the page's filter finds in a log, one for each line that it matches.
fn banned_addresses(place: &SyncFixture, log: &str) -> Vec<String> {
    let filter = place.at("warren.conf");
    fs::write(&filter, code_block(ACCESS_PAGE, FILTER)).unwrap();
    fs::write(place.at("log"), log).unwrap();
    let mut command = program("/usr/bin/fail2ban-regex");
    command.args(["--out", "ip", &place.at("log"), &filter]);
    let ran = CommandOutput::new(command.output().unwrap()).succeeded();
    ran.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn the_jail_is_one_that_fail2ban_can_start() {
    let folder = tempfile::tempdir().unwrap();
    let copied = Command::new("cp").args(["-r", "/etc/fail2ban/."]).arg(folder.path()).status();
    assert!(copied.unwrap().success());
    // The distribution's jails need logs that may not exist here.
    fs::remove_dir_all(folder.path().join("jail.d")).unwrap();
    fs::create_dir(folder.path().join("jail.d")).unwrap();
    for (name, line) in [("filter.d/warren.conf", FILTER), ("jail.d/warren.conf", JAIL)] {
        fs::write(folder.path().join(name), code_block(ACCESS_PAGE, line)).unwrap();
    }
    let mut command = program("/usr/bin/fail2ban-client");
    let ran = CommandOutput::new(command.arg("-c").arg(folder.path()).arg("-d").output().unwrap());
    assert!(ran.succeeded().stdout.contains("['start', 'warren']"));
}

#[test]
fn refused_logins_are_found_and_nothing_else() {
    let place = SyncFixture::new();
    let token = place.write("token.txt", "the-operators-token");
    let server = serve_as_page(&place, &["--log", "debug", "--admin-token-file", &token]);
    assert_eq!(log_in(&server, "203.0.113.9", "ada", "not hers"), 401);
    assert_eq!(log_in(&server, "2001:db8::9", "nobody", "not theirs"), 401);
    assert_eq!(log_in(&server, "203.0.113.20", "ada", PASSWORD), 201);
    assert_eq!(log_in(&server, "203.0.113.21", FORGED, "not theirs"), 400);
    let operator = ureq::get(format!("{}/v1/admin/overview", server.address));
    let operator = operator.header("authorization", format!("Bearer {FORGED}"));
    operator.header("x-forwarded-for", "203.0.113.10").call().unwrap_err();
    server.stop();

    let log = log_of_server(&place);
    assert!(log.lines().count() > 3, "{log}");
    let expected = ["203.0.113.9", "2001:db8::9", "203.0.113.10"];
    assert_eq!(banned_addresses(&place, &log), expected, "{log}");
    // The journal and syslog write such lines.
    let lines = log.lines().map(|line| format!("Nov 23 04:05:06 host warren[4600]: {line}\n"));
    assert_eq!(banned_addresses(&place, &lines.collect::<String>()), expected);
    // Another program logs this line, whose text the client can choose.
    let forged = format!("2026-11-23T04:05:06.1Z  INFO other: it was asked for \"{FORGED}\"\n");
    assert_eq!(banned_addresses(&place, &forged), [""; 0]);
}
