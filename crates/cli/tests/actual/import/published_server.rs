//! A published server that was used for a while, and the requests to it and to Warren after it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use ureq::http::Response;
use ureq::{Agent, Body};

use crate::actual_server::ActualServer;
use crate::hex::hex;
use crate::messages::{SyncRequestCase, SyncResponseCase};
use crate::placeholders::Placeholders;

pub(crate) const PASSWORD: &str = "correct horse ☂";
/// All budgets of the server, in the order of their creation.
pub(super) const BUDGETS: [&str; 5] = [MAIN, SECRET, RESET, DELETED, FRESH];
/// A budget whose trie depends on the order in which its messages arrived.
pub(super) const MAIN: &str = "My-Finances-1";
/// A budget that the app encrypted.
pub(super) const SECRET: &str = "Secret-2";
/// A budget that was reset, and not uploaded since.
pub(super) const RESET: &str = "Reset-3";
pub(super) const DELETED: &str = "Deleted-4";
/// A budget that was uploaded, but never synced.
pub(crate) const FRESH: &str = "Fresh-5";
/// The name of [`SECRET`]'s key.
const KEY: &str = "key-1";
/// Timestamps in three minutes that share a parent node. The hashes of the first and the last are
/// equal, and so are those of the other two: once all are inserted, the parent's hash is 0, and it
/// is no longer pruned. Nodes that were pruned before stay lost, and a trie that is rebuilt from
/// the messages has more.
const CANCELLING: [&str; 4] = [
    "2026-11-03T00:00:04.000Z-935F-bbbbbbbbbbbbbbbb",
    "2026-11-03T00:01:02.000Z-2138-bbbbbbbbbbbbbbbb",
    "2026-11-03T00:02:00.000Z-3C47-bbbbbbbbbbbbbbbb",
    "2026-11-03T00:02:00.000Z-680D-bbbbbbbbbbbbbbbb",
];
/// A timestamp before all messages.
const ALWAYS: &str = "1970-01-01T00:00:00.000Z-0000-0000000000000000";

/// An app that uses one server or the other.
pub(crate) struct MigratedApp {
    agent: Agent,
    pub(super) address: String,
    pub(super) token: String,
    /// The groups by budget.
    pub(super) groups: BTreeMap<&'static str, String>,
}

/// A status and an answer, which is JSON or a text.
type StatusAndBody = (u16, Value);

impl MigratedApp {
    pub(super) fn post(&self, path: &str, mut body: Value) -> StatusAndBody {
        body["token"] = self.token.clone().into();
        let request = self.agent.post(format!("{}{path}", self.address));
        let request = request.content_type("application/json").send(body.to_string());
        read(request.unwrap())
    }

    fn get(&self, path: &str, file: &str) -> Response<Body> {
        let request = self.agent.get(format!("{}{path}", self.address));
        request
            .header("X-ACTUAL-TOKEN", &self.token)
            .header("X-ACTUAL-FILE-ID", file)
            .call()
            .unwrap()
    }

    /// Sends messages, and fetches all.
    pub(super) fn sync(
        &self,
        file: &str,
        messages: &Value,
    ) -> Result<SyncResponseCase, StatusAndBody> {
        let key = if file == SECRET { KEY } else { "" };
        let group = &self.groups[file];
        let (since, group) = (ALWAYS, group.as_str());
        let asked = json!({
            "fileId": file, "groupId": group, "keyId": key, "since": since, "messages": messages,
        });
        let asked: SyncRequestCase = serde_json::from_value(asked).unwrap();
        let request = self.agent.post(format!("{}/sync/sync", self.address));
        let request = request.header("X-ACTUAL-TOKEN", &self.token);
        let request = request.content_type("application/actual-sync");
        let mut answer = request.send(asked.encode(&Placeholders::default())).unwrap();
        if answer.status() != 200 {
            return Err(read(answer));
        }
        let body = answer.body_mut().with_config().limit(u64::MAX).read_to_vec().unwrap();
        Ok(SyncResponseCase::decode(&body).unwrap())
    }

    fn upload(&mut self, file: &'static str, group: Option<&str>, meta: Option<&str>) {
        let body: Vec<u8> = (0..600_000_u32).map(|n| n.wrapping_mul(n).to_be_bytes()[2]).collect();
        let mut request = self.agent.post(format!("{}/sync/upload-user-file", self.address));
        for (name, value) in [("X-ACTUAL-GROUP-ID", group), ("X-ACTUAL-ENCRYPT-META", meta)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let request = request
            .header("X-ACTUAL-TOKEN", &self.token)
            .header("X-ACTUAL-FILE-ID", file)
            .header("X-ACTUAL-NAME", format!("{file}%20%E2%98%82"))
            .header("X-ACTUAL-FORMAT", "2")
            .content_type("application/encrypted-file");
        let (status, answer) = read(request.send(body).unwrap());
        assert_eq!(status, 200, "{answer}");
        self.groups.insert(file, answer["groupId"].as_str().unwrap().to_owned());
    }

    fn ok(&self, path: &str, body: Value) {
        let (status, answer) = self.post(path, body);
        assert_eq!(status, 200, "{path}: {answer}");
    }

    /// Returns everything that an app can see, except [`FRESH`]'s messages: a request for no
    /// messages is not the same as no request.
    pub(super) fn sees(&self) -> BTreeMap<String, Value> {
        let mut seen = BTreeMap::new();
        for path in ["/account/validate", "/sync/list-user-files"] {
            seen.insert(path.to_owned(), json!(read(self.get(path, ""))));
        }
        for file in BUDGETS {
            let info = read(self.get("/sync/get-user-file-info", file));
            let key = self.post("/sync/user-get-key", json!({"fileId": file}));
            let mut download = self.get("/sync/download-user-file", file);
            let status = download.status().as_u16();
            let is_there = status == 200;
            let header = |name: &str| {
                let value = download.headers().get(name).filter(|_| is_there);
                value.map(|value| value.to_str().unwrap().to_owned())
            };
            let headers = ["etag", "last-modified", "content-disposition"].map(header);
            let body = download.body_mut().read_to_vec().unwrap();
            seen.insert(format!("{file}: info, key"), json!([info, key]));
            seen.insert(format!("{file}: file"), json!([status, headers, hex(&body)]));
        }
        for file in [MAIN, SECRET, RESET, DELETED] {
            seen.insert(format!("{file}: messages"), json!(self.sync(file, &json!([]))));
        }
        seen
    }

    pub(super) fn login(&self, password: &str) -> StatusAndBody {
        self.post("/account/login", json!({"password": password}))
    }
}

fn read(mut answer: Response<Body>) -> StatusAndBody {
    let text = answer.body_mut().read_to_string().unwrap();
    let json = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (answer.status().as_u16(), json)
}

/// Returns a series of messages at a fixed interval.
pub(super) fn series(from: &str, count: u64, step_ms: u64) -> Value {
    let from = format!("{from}-0000-aaaaaaaaaaaaaaaa");
    json!({"from": from, "count": count, "step_ms": step_ms, "content": "of the app "})
}

/// Starts a published server with budgets in all states, and an app that has them.
pub(crate) fn used() -> (ActualServer, MigratedApp) {
    let target = ActualServer::published();
    let config = Agent::config_builder().http_status_as_error(false).build();
    let agent = Agent::new_with_config(config);
    let (address, token) = (target.address().to_owned(), String::new());
    let mut app = MigratedApp { agent, address, token, groups: BTreeMap::new() };
    let (_, answer) = app.post("/account/bootstrap", json!({"password": PASSWORD}));
    answer["data"]["token"].as_str().unwrap().clone_into(&mut app.token);
    app.ok("/account/server-prefs", json!({"prefs": {"flags.goals": "true", "name": "ours"}}));
    for file in BUDGETS {
        app.upload(file, None, None);
    }
    let [first, second, third, fourth] =
        CANCELLING.map(|timestamp| json!([timestamp, "of the app"]));
    for batch in [
        json!([series("2026-01-05T08:00:00.000Z", 2_000, 23 * 60_000)]),
        json!([series("2023-06-01T08:00:00.000Z", 300, 7 * 3_600_000)]),
        json!([series("2026-11-01T08:00:00.000Z", 5, 10), first, second, third]),
        json!([fourth]),
    ] {
        app.sync(MAIN, &batch).unwrap();
    }
    for file in [RESET, DELETED] {
        app.sync(file, &json!([series("2026-05-05T08:00:00.000Z", 3, 1)])).unwrap();
    }
    let meta = json!({"keyId": KEY, "algorithm": "aes-256-gcm", "iv": "aXY=", "authTag": "dGFn"});
    let test = json!({"value": "dGVzdA==", "meta": meta}).to_string();
    app.ok("/sync/reset-user-file", json!({"fileId": SECRET}));
    let key = json!({"fileId": SECRET, "keyId": KEY, "keySalt": "c2FsdA==", "testContent": test});
    app.ok("/sync/user-create-key", key);
    app.upload(SECRET, None, Some(&meta.to_string()));
    let sealed = |at: &str, hex: &str| {
        let timestamp = format!("{at}-00AB-0123456789abcdef");
        json!({"timestamp": timestamp, "encrypted": true, "hex": hex})
    };
    let sealed =
        [sealed("2026-02-03T04:05:06.789Z", "00ff10"), sealed("2025-01-01T00:00:00.000Z", "")];
    app.sync(SECRET, &json!(sealed)).unwrap();
    app.ok("/sync/reset-user-file", json!({"fileId": RESET}));
    app.ok("/sync/delete-user-file", json!({"fileId": DELETED}));
    (target, app)
}

/// Returns all files below a folder, by path.
pub(super) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
    files
}
