//! Tests of event streams: which events a subscriber receives, and when its stream ends.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use accounts::{Accounts, DeviceId, KdfCost};
use engine::{Databases, EngineLimits};
use serde_json::{Value, json};

use crate::{RunningServer, bearer, push};

/// A device with an open event stream.
struct EventClient {
    head: String,
    /// Whether the server has ended the stream, rather than the connection under it.
    is_ended: bool,
    reader: BufReader<TcpStream>,
}

impl EventClient {
    /// Sends a request and reads the head of the response.
    fn ask(server: &RunningServer, token: &str) -> Self {
        let mut stream = TcpStream::connect(server.address).unwrap();
        // Without a timeout, the test could hang instead of failing.
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        write!(
            stream,
            "GET /v1/sync/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             authorization: {}\r\n\r\n",
            bearer(token)
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        }
        Self { head, is_ended: false, reader }
    }

    /// Subscribes and checks the first event's cursor.
    fn start(server: &RunningServer, token: &str, cursor: u64) -> Self {
        let mut listener = Self::ask(server, token);
        assert!(listener.head.starts_with("HTTP/1.1 200 OK\r\n"), "{}", listener.head);
        assert!(listener.head.contains("content-type: text/event-stream\r\n"), "{}", listener.head);
        assert_eq!(listener.next().expect("the present state")["cursor"], cursor);
        listener
    }

    /// Reads the next event. Returns `None` at the end of the stream.
    fn next(&mut self) -> Option<Value> {
        let (mut id, mut comments_count) = (None, 0);
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // After this many keep-alives without an event, none will come any more.
            comments_count += u32::from(line == ":\n");
            assert!(comments_count < 3, "neither an event nor the end");
            // The last chunk of the body has no bytes (RFC 9112 §7.1).
            self.is_ended |= line == "0\r\n";
            if let Some(text) = line.strip_prefix("id: ") {
                id = Some(text.trim().to_owned());
            }
            if let Some(data) = line.strip_prefix("data: ") {
                let data: Value = serde_json::from_str(data).unwrap();
                assert_eq!(id.unwrap(), data["cursor"].to_string());
                return Some(data);
            }
        }
    }
}

#[test]
fn what_is_pushed_is_heard_by_the_account_s_devices_and_by_nobody_else() {
    let server = RunningServer::new();
    let (ada, bob) = (server.account("ada"), server.account("bob"));
    let (_, phone) = server.register_device("ada");
    let mut listeners =
        [EventClient::start(&server, &ada, 0), EventClient::start(&server, &phone, 0)];
    let mut bobs = EventClient::start(&server, &bob, 0);

    let stored = server.post("/v1/sync/delta", &phone, &push(&[(1, "a"), (2, "b")])).json();
    // Known messages cause no event.
    server.post("/v1/sync/delta", &phone, &push(&[(2, "b")]));
    for listener in &mut listeners {
        let heard = listener.next().unwrap();
        assert_eq!((&heard["cursor"], &heard["count"]), (&json!(2), &json!(2)));
        assert_eq!(heard["digest"], stored["fingerprint"]["digest"]);
    }
    server.post("/v1/sync/delta", &ada, &push(&[(3, "c")]));
    for listener in &mut listeners {
        assert_eq!(listener.next().unwrap()["cursor"], 3);
    }
    // The first event that bob receives is of his own push.
    server.post("/v1/sync/delta", &bob, &push(&[(9, "bob's")]));
    assert_eq!(bobs.next().unwrap()["cursor"], 1);
    EventClient::start(&server, &phone, 3);
}

#[test]
fn without_a_token_nobody_listens() {
    let server = RunningServer::new();
    server.get("/v1/sync/events", "").refused("invalid_token");
    assert_eq!(EventClient::ask(&server, "x").head.split(' ').nth(1), Some("401"));
    let answer = server.send("POST", "/v1/sync/events", &[], ());
    answer.refused("method_not_allowed");
    let token = bearer(&server.account("ada"));
    let answer = server.agent.head(format!("http://{}/v1/sync/events", server.address));
    let answer = answer.header("authorization", &token).call().unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.headers()["content-type"].as_bytes()),
        (200, &b"text/event-stream"[..])
    );
}

#[test]
fn a_revoked_device_s_stream_ends_and_the_others_go_on() {
    let server = RunningServer::new();
    let ada = server.account("ada");
    let (phone, phone_token) = server.register_device("ada");
    let copy = server.post("/v1/devices", &phone_token, &json!({})).device_credentials().1;
    let mut revoked = [&phone_token, &copy].map(|token| EventClient::start(&server, token, 0));
    let mut stays = EventClient::start(&server, &ada, 0);
    assert_eq!(server.delete(&format!("/v1/devices/{phone}"), &ada).status, 204);
    for listener in &mut revoked {
        // The stream ends before the next keep-alive, which would look the device up anyway.
        let soon = Some(Duration::from_secs(15));
        listener.reader.get_ref().set_read_timeout(soon).unwrap();
        assert_eq!(listener.next(), None);
    }
    server.check_works(&ada);
    assert_eq!(stays.next().unwrap()["cursor"], 1);
}

#[test]
fn a_device_that_another_process_revoked_hears_nothing_more() {
    let server = RunningServer::new();
    let ada = server.account("ada");
    let (phone, phone_token) = server.register_device("ada");
    let mut revoked = EventClient::start(&server, &phone_token, 0);
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let cost = KdfCost::insecure_for_tests(1);
    let accounts = Accounts::open(&databases, server.data.path(), cost).unwrap();
    let account = accounts.list().unwrap()[0].account;
    accounts.revoke(account, &phone.parse::<DeviceId>().unwrap()).unwrap();
    server.check_works(&ada);
    assert_eq!(revoked.next(), None);
}

#[test]
fn a_stopping_server_does_not_wait_for_listeners() {
    let server = RunningServer::new();
    let ada = server.account("ada");
    let mut listeners: Vec<_> = (0..3).map(|_| EventClient::start(&server, &ada, 0)).collect();
    server.stop();
    for listener in &mut listeners {
        assert_eq!(listener.next(), None);
        assert!(listener.is_ended, "it was cut off when the server would wait no longer");
    }
}

#[test]
fn listeners_are_counted_and_limited_by_account_and_in_all() {
    let server = RunningServer::with(|config| {
        config.account_subscribers_max = 2;
        config.connections_max = 30;
    });
    let (ada, bob) = (server.account("ada"), server.account("bob"));
    let held = [&ada, &ada].map(|token| EventClient::start(&server, token, 0));
    assert!(EventClient::ask(&server, &ada).head.starts_with("HTTP/1.1 503 "));
    EventClient::start(&server, &bob, 0);
    let metrics = String::from_utf8(server.get("/metrics", crate::ADMIN).body).unwrap();
    assert!(metrics.lines().any(|line| line.starts_with("warren_subscribers ")), "{metrics}");
    drop(held);
    // The server learns from the system that the client has gone.
    while !EventClient::ask(&server, &ada).head.starts_with("HTTP/1.1 200 ") {
        std::thread::yield_now();
    }
    server.check_works(&ada);

    let server = RunningServer::with(|config| config.connections_max = 4);
    let token = server.account("ada");
    let _held = [0; 3].map(|_| EventClient::start(&server, &token, 0));
    assert_eq!(server.get("/v1/sync/delta", &token).status, 200, "a place for what ends");
    server.get("/v1/sync/events", &token).refused("busy");
}

/// Only the accounts and two vaults can be open: a subscriber that kept its vault open would block
/// the third.
#[test]
fn a_listener_keeps_no_vault_open() {
    let server = RunningServer::with(|config| config.databases.open_count_max = 3);
    let tokens = ["ada", "bob", "eve"].map(|login| server.account(login));
    let mut listeners = tokens.each_ref().map(|token| EventClient::start(&server, token, 0));
    for (token, listener) in tokens.iter().zip(&mut listeners) {
        server.check_works(token);
        assert_eq!(listener.next().unwrap()["cursor"], 1);
    }
}
