//! Tests of Warren's intended deviations from the published server: long answers come page by
//! page, compressed if the client accepts it, and without the request's own messages; each login
//! has a token of its own.

use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::HeaderMap;

use crate::actual_server::{ActualServer, ActualServerKind};
use crate::messages::{SyncRequestCase, SyncResponseCase};
use crate::placeholders::Placeholders;

const ALWAYS: &str = "1970-01-01T00:00:00.000Z-0000-0000000000000000";
const FIRST: &str = "2026-11-03T00:00:00.000Z-0000-aaaaaaaaaaaaaaaa";
/// The number of messages: more than two pages of an answer.
const COUNT: usize = 25_000;

struct DeviatingApp {
    agent: Agent,
    address: String,
    token: String,
    group: String,
}

impl DeviatingApp {
    fn new(target: &ActualServer) -> Self {
        let config = Agent::config_builder().http_status_as_error(false).build();
        let (address, token, group) = (target.address().to_owned(), String::new(), String::new());
        let mut app = Self { agent: Agent::new_with_config(config), address, token, group };
        app.token = app.post("/account/bootstrap", &json!({"password": "a"})).1;
        app
    }

    /// Sends a request; returns the status, and the token or an empty text.
    fn post(&self, path: &str, body: &Value) -> (u16, String) {
        let request = self.agent.post(format!("{}{path}", self.address));
        let mut answer = request.content_type("application/json").send(body.to_string()).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        let json: Value = serde_json::from_str(&text).unwrap_or_default();
        let token = json["data"]["token"].as_str().unwrap_or_default();
        (answer.status().as_u16(), token.to_owned())
    }

    fn is_valid(&self, token: &str) -> bool {
        let request = self.agent.get(format!("{}/account/validate", self.address));
        request.header("X-ACTUAL-TOKEN", token).call().unwrap().status() == 200
    }

    fn upload(&mut self) {
        let request = self.agent.post(format!("{}/sync/upload-user-file", self.address));
        let request = request.header("X-ACTUAL-TOKEN", &self.token).header("X-ACTUAL-NAME", "n");
        let request = request.header("X-ACTUAL-FILE-ID", "f").header("X-ACTUAL-FORMAT", "2");
        let mut answer = request.content_type("application/encrypted-file").send("x").unwrap();
        let answer: Value =
            serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
        answer["groupId"].as_str().unwrap().clone_into(&mut self.group);
    }

    fn sync(&self, since: &str, messages: &Value, encoding: &str) -> (HeaderMap, SyncResponseCase) {
        let asked = json!({
            "fileId": "f", "groupId": self.group, "keyId": "", "since": since,
            "messages": messages,
        });
        let asked: SyncRequestCase = serde_json::from_value(asked).unwrap();
        let request = self.agent.post(format!("{}/sync/sync", self.address));
        let request = request.header("X-ACTUAL-TOKEN", &self.token);
        let request = request.header("Accept-Encoding", encoding);
        let request = request.content_type("application/actual-sync");
        let mut answer = request.send(asked.encode(&Placeholders::default())).unwrap();
        assert_eq!(answer.status(), 200);
        let headers = answer.headers().clone();
        let body = answer.body_mut().with_config().limit(u64::MAX).read_to_vec().unwrap();
        (headers, SyncResponseCase::decode(&body).unwrap())
    }
}

fn series(count: usize) -> Value {
    json!([{"from": FIRST, "count": count, "step_ms": 1_000, "content": "of the app "}])
}

#[test]
fn answers_come_in_pages_without_what_the_request_brought() {
    let target = ActualServer::warren();
    let mut app = DeviatingApp::new(&target);
    app.upload();
    let (headers, answer) = app.sync(ALWAYS, &series(COUNT), "identity");
    assert_eq!(answer.messages().len(), 0);
    assert!(headers.contains_key("content-length"), "{headers:?}");

    let (headers, all) = app.sync(ALWAYS, &json!([]), "identity");
    assert!(!headers.contains_key("content-length"), "{headers:?}");
    assert_eq!(all.messages().len(), COUNT);
    assert!(all.messages().is_sorted_by_key(|message| &message.timestamp));
    assert_eq!(all.merkle, answer.merkle);

    // The request repeats the first three messages.
    let (_, rest) = app.sync(ALWAYS, &series(3), "identity");
    assert!(rest.messages() == all.messages()[3..]);
    // The last 5,001 are one page. The length of a compressed one is not known in advance.
    let since = "2026-11-03T05:33:18.000Z-ffff";
    let (plain, last) = app.sync(since, &json!([]), "identity");
    assert!(plain.contains_key("content-length"), "{plain:?}");
    assert!(last.messages() == all.messages()[19_999..]);
    let (compressed, same) = app.sync(since, &json!([]), "gzip");
    assert!(!compressed.contains_key("content-length"), "{compressed:?}");
    assert!(same.messages() == last.messages());
}

#[test]
fn no_bank_is_set_up() {
    let target = ActualServer::warren();
    let app = DeviatingApp::new(&target);
    for service in ["akahu", "enablebanking", "gocardless", "pluggyai", "simplefin"] {
        let request = app.agent.post(format!("{}/{service}/status", app.address));
        let request = request.content_type("application/json");
        let mut answer = request.send(json!({"token": app.token}).to_string()).unwrap();
        let answer = answer.body_mut().read_to_string().unwrap();
        let expected = r#"{"data":{"configured":false},"status":"ok"}"#;
        assert_eq!(answer, expected, "{service}");
        assert_eq!(app.post(&format!("/{service}/status"), &json!({})).0, 401);
    }
}

#[test]
fn a_login_too_many_ends_the_one_that_was_used_longest_ago() {
    let target = ActualServer::start(ActualServerKind::Warren, &["--account-devices-max", "3"]);
    let app = DeviatingApp::new(&target);
    let mut tokens = vec![app.token.clone()];
    for _ in 0..3 {
        let (status, token) = app.post("/account/login", &json!({"password": "a"}));
        assert_eq!(status, 200);
        tokens.push(token);
    }
    let valid: Vec<_> = tokens.iter().map(|token| app.is_valid(token)).collect();
    assert_eq!(valid, [false, true, true, true]);
    tokens.dedup();
    assert_eq!(tokens.len(), 4);
}
