//! Tests of the server over real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in a test, also in its helpers, a panic is the report"
)]

mod accounts;
mod admin;
mod bad_input;
mod document;
mod encryption;
mod events;
mod limits;
mod openapi;
mod operation;
mod origins;
mod reconcile;
mod site;
mod sync;

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use ::accounts::KdfCost;
use crdt::{NodeId, Timestamp};
use serde_json::{Value, json};
use server::{AdminToken, Config, SyncServer};
use tempfile::TempDir;
use tokio::sync::oneshot;
use ureq::http::{HeaderMap, Request};
use ureq::{Agent, AsSendBody};

const PASSWORD: &str = "correct horse battery";
const ADMIN: &str = "the operator's secret";

/// A server in this process, with its own data directory.
struct RunningServer {
    address: SocketAddr,
    agent: Agent,
    openapi: Value,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
    data: TempDir,
}

impl RunningServer {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(configure: impl FnOnce(&mut Config)) -> Self {
        Self::on(tempfile::tempdir().unwrap(), configure)
    }

    fn on(data: TempDir, configure: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            data: data.path().to_owned(),
            registration_open: true,
            admin_token: Some(AdminToken::parse(ADMIN).unwrap()),
            kdf: KdfCost::insecure_for_tests(1),
            ..Config::default()
        };
        configure(&mut config);
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let server = SyncServer::bind(config).await.unwrap();
                tell.send(server.address()).unwrap();
                server.run(async { stopped.await.unwrap() }).await.unwrap();
            });
        });
        let address = told.recv().unwrap();
        // Without a timeout, the test could hang instead of failing.
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            // This is less than the shortest `request_timeout` here, after which the server closes
            // idle connections.
            .max_idle_age(Duration::from_millis(100))
            .timeout_global(Some(Duration::from_mins(1)));
        let agent = Agent::new_with_config(agent.build());
        let mut server = Self { address, agent, openapi: Value::Null, stop, thread, data };
        server.openapi = server.get("/v1/openapi.json", "").json();
        server
    }

    /// Stops the server and returns the data directory.
    fn stop(self) -> TempDir {
        drop(self.agent);
        self.stop.send(()).unwrap();
        self.thread.join().unwrap();
        self.data
    }

    fn get(&self, path: &str, token: &str) -> TestResponse {
        self.send("GET", path, &[("authorization", &bearer(token))], ())
    }

    fn delete(&self, path: &str, token: &str) -> TestResponse {
        self.send("DELETE", path, &[("authorization", &bearer(token))], ())
    }

    fn post(&self, path: &str, token: &str, body: &Value) -> TestResponse {
        self.json("POST", path, token, body.to_string().as_bytes())
    }

    fn json(&self, method: &str, path: &str, token: &str, body: &[u8]) -> TestResponse {
        let headers = [("authorization", &*bearer(token)), ("content-type", protocol::JSON)];
        self.send(method, path, &headers, body)
    }

    fn protobuf(&self, path: &str, token: &str, body: &[u8]) -> TestResponse {
        let headers = [
            ("authorization", &*bearer(token)),
            ("content-type", protocol::PROTOBUF),
            ("accept", protocol::PROTOBUF),
        ];
        self.send("POST", path, &headers, body)
    }

    /// Sends a request and asserts that the document has the status of the response.
    fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsSendBody,
    ) -> TestResponse {
        let answer = self.ask(method, path, headers, body);
        openapi::check_documented(&self.openapi, method, path, answer.status);
        answer
    }

    /// Sends a request, possibly to a path that is not a call of the API.
    fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsSendBody,
    ) -> TestResponse {
        let mut request =
            Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        let response = self.agent.run(request.body(body).unwrap()).unwrap();
        let (parts, mut body) = response.into_parts();
        let body = body.with_config().limit(u64::MAX).read_to_vec().unwrap();
        TestResponse { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// Creates an account and returns the token of its first device.
    fn account(&self, login: &str) -> String {
        let account = json!({ "login": login, "password": PASSWORD });
        assert_eq!(self.post("/v1/accounts", "", &account).status, 201);
        self.register_device(login).1
    }

    /// Registers a device and returns its id and token.
    fn register_device(&self, login: &str) -> (String, String) {
        let client = json!({ "login": login, "password": PASSWORD, "name": "a device" });
        let answer = self.post("/v1/devices", "", &client);
        assert_eq!(answer.status, 201);
        answer.device_credentials()
    }

    /// Pushes one message and expects that it is stored, so the server works for this user.
    fn check_works(&self, token: &str) {
        let cursor =
            self.get("/v1/sync/delta?limit=1&cursor=9999999", token).json()["cursor"].clone();
        let millis = 1_000_000 + cursor.as_u64().unwrap();
        let answer = self.post("/v1/sync/delta", token, &push(&[(millis, "works")]));
        assert_eq!((answer.status, &answer.json()["stored_count"]), (200, &json!(1)));
    }
}

struct TestResponse {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl TestResponse {
    #[track_caller]
    fn json(&self) -> Value {
        let value = serde_json::from_slice(&self.body);
        value.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    fn protobuf<T: prost::Message + Default>(&self) -> T {
        assert_eq!(self.header("content-type"), protocol::PROTOBUF);
        T::decode(&self.body[..]).unwrap()
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Asserts that the request succeeded with an empty response.
    #[track_caller]
    fn done(&self) {
        let body = String::from_utf8_lossy(&self.body);
        assert_eq!((self.status, &*body), (204, ""));
    }

    /// Asserts a refusal with this code, and the code's own status.
    #[track_caller]
    fn refused(&self, code: &str) {
        let body = self.json();
        assert_eq!(body["error"]["code"], code, "{} {body}", self.status);
        assert_eq!(
            self.status,
            code.parse::<protocol::ErrorCode>().unwrap().http_status().unwrap()
        );
        assert_eq!(self.header("content-type"), protocol::JSON);
        assert!(!body["error"]["message"].as_str().unwrap().is_empty());
    }

    fn device_credentials(&self) -> (String, String) {
        let body = self.json();
        (body["device_id"].as_str().unwrap().to_owned(), body["token"].as_str().unwrap().to_owned())
    }
}

/// Returns the responses to requests that are sent at the same time.
fn at_once(count: usize, ask: impl Fn(usize) -> TestResponse + Sync) -> Vec<TestResponse> {
    let ask = &ask;
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..count).map(|number| scope.spawn(move || ask(number))).collect();
        asking.into_iter().map(|answer| answer.join().unwrap()).collect()
    })
}

fn bearer(token: &str) -> String {
    if token.is_empty() { String::new() } else { format!("Bearer {token}") }
}

fn timestamp(millis: u64) -> Timestamp {
    Timestamp::new(millis, 0, NodeId(7)).unwrap()
}

/// Creates a push request in JSON from times and contents.
fn push(messages: &[(u64, &str)]) -> Value {
    json!({ "messages": messages.iter().map(|(millis, content)| message(*millis, content)).collect::<Vec<_>>() })
}

fn message(millis: u64, content: &str) -> Value {
    serde_json::to_value(wire_message(millis, content)).unwrap()
}

fn wire_message(millis: u64, content: &str) -> protocol::WireMessage {
    crdt::Message { timestamp: timestamp(millis), content: content.to_owned().into() }.into()
}
