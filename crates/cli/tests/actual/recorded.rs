//! Tests that play the recorded cases on both servers, and on one with prepared answers.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::thread;

use serde_json::{Value, json};

use crate::actual_server::ActualServerKind;
use crate::cases::{CaseFile, RecordedScenario};
use crate::report::report;
use crate::scenario_player::{PlayPurpose, ScenarioPlayer, play_all};

#[track_caller]
fn check(kind: ActualServerKind, options: &[&str]) {
    let files = &mut CaseFile::read_all();
    let failures = report(&play_all(files, kind, options, PlayPurpose::Compare));
    assert!(failures.is_empty(), "{kind:?}:\n{failures}");
}

#[test]
fn published() {
    if std::env::var_os("WARREN_RECORD").is_some() {
        let mut files = CaseFile::read_all();
        let failures =
            report(&play_all(&mut files, ActualServerKind::Published, &[], PlayPurpose::Record));
        assert!(failures.is_empty(), "{failures}");
        files.iter().for_each(CaseFile::write);
    }
    check(ActualServerKind::Published, &[]);
}

#[test]
fn warren() {
    check(ActualServerKind::Warren, &[]);
}

/// All servers use one database: their vaults have names of their own.
#[test]
fn warren_on_postgres() {
    let lab = postgres_lab::PostgresServer::start_temporary(&["fsync=off"]).unwrap();
    check(ActualServerKind::Warren, &["--postgres", &lab.url("postgres")]);
}

/// Answers each connection's request with the next of these texts; returns the server's address.
fn answering(answers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        }
    });
    address
}

fn http(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n\r\n{body}")
}

/// Plays a scenario of two steps on such a server; returns the report, and the scenario.
fn play_on(answers: [&str; 2], kind: ActualServerKind, purpose: PlayPurpose) -> (String, Value) {
    let mut scenario: RecordedScenario = serde_json::from_value(json!({"name": "s", "steps": [
        {
            "name": "login", "request": "GET /login", "names": {"token": "/token"},
            "expected": {"status": 200, "headers": {"content-type": "application/json"},
                         "json": {"token": "{{token}}"}},
        },
        {
            "name": "use", "request": "GET /use", "headers": {"X": "{{token}}"},
            "expected": {"status": 200, "headers": {"content-type": "text/plain"}, "text": "yes"},
            "warren": {"why": "it does not", "status": 400},
        },
    ]}))
    .unwrap();
    let address = answering(answers.map(str::to_owned).to_vec());
    let mut player = ScenarioPlayer::new(&address, kind, purpose);
    player.play(&mut scenario, "f.json: s");
    (report(&player.failures), serde_json::to_value(&scenario).unwrap())
}

#[test]
fn altered_answers_are_reported() {
    let json = "content-type: application/json\r\ndate: now";
    let token = r#"{"token":"11111111-2222-4333-8444-555555555555"}"#;
    let login = http("200 OK", json, token);
    let used = http("200 OK", "content-type: text/plain", "yes");
    let refused = http("400 Bad Request", "server: another", "");
    let on = |answers, kind| play_on(answers, kind, PlayPurpose::Compare).0;
    assert_eq!(on([&login, &used], ActualServerKind::Published), "");
    assert_eq!(on([&login, &refused], ActualServerKind::Warren), "");

    // An expected deviation is missing.
    let report = on([&login, &used], ActualServerKind::Warren);
    assert!(report.contains("f.json: s: use\n  GET /use X: \"{{token}}\"\n"), "{report}");
    assert!(!report.contains("login"), "{report}");
    // Here, a deviation is not expected.
    let report = on([&login, &refused], ActualServerKind::Published);
    for line in ["| –", "| 400"] {
        assert!(report.lines().any(|found| found.ends_with(line)), "{report}");
    }
    // A value that is not a UUID gets no name, and all differences are listed.
    let no_uuid = http("200 OK", json, r#"{"token":"a"}"#);
    let report = on([&no_uuid, &refused], ActualServerKind::Published);
    assert!(report.contains("json/token") && report.contains("| \"a\""), "{report}");
    assert!(report.contains("2 requests were answered otherwise"), "{report}");
    // The answer is not HTTP.
    assert!(on([&login, ""], ActualServerKind::Published).contains("| none: "));
}

#[test]
fn recording_takes_the_answers() {
    let other = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";
    let login =
        http("200 OK", "content-type: application/json", &format!(r#"{{"token":"{other}"}}"#));
    let page = "<!DOCTYPE html><pre>no</pre>";
    let refused = http("404 Not Found", "content-type: text/html\r\nallow: GET", page);
    let (report, scenario) =
        play_on([&login, &refused], ActualServerKind::Published, PlayPurpose::Record);
    assert_eq!(report, "");
    assert_eq!(scenario["steps"][0]["expected"]["json"], json!({"token": "{{token}}"}));
    let expected = json!({"status": 404, "error_page": true});
    assert_eq!(scenario["steps"][1]["expected"], expected);
    assert_eq!(scenario["steps"][1]["warren"]["status"], 400);
}
