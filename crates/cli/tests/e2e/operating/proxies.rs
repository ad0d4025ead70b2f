//! Tests `docs/operating/proxies.md`: devices work through each proxy, and the server sees their
//! addresses.

use std::cell::Cell;
use std::net::TcpListener;

use serde_json::{Value, json};

use super::reverse_proxy::{CLIENT, ProxyKind, ReverseProxy, nginx_around};
use super::{log_of_server, serve_as_page};
use crate::certificates::TestCertificates;
use crate::file_modes::wait_until;
use crate::fixture::{SyncFixture, sync, token, track_all};
use crate::live::{WatchProcess, is_synced};
use crate::processes::{CommandOutput, json, sql, warren, warren_in};

/// The size of one change that cannot be split into smaller pages: the server's limit, less some
/// framing.
const CHANGE_BYTES: usize = protocol::BODY_BYTES_MAX - (4 << 10);
/// The false address that a client claims to come from.
const PRETENDED: &str = "203.0.113.9";

#[test]
fn devices_work_through_nginx() {
    check(ProxyKind::Nginx);
}

#[test]
fn devices_work_through_caddy() {
    check(ProxyKind::Caddy);
}

#[test]
fn devices_work_through_haproxy() {
    check(ProxyKind::HaProxy);
}

fn check(kind: ProxyKind) {
    let place = SyncFixture::new();
    let certificates = TestCertificates::new(&place);
    certificates.issue("0x0A");
    let server = serve_as_page(&place, &[]);
    let proxy = ReverseProxy::as_page(kind, &certificates, server.host_and_port(), &[]);
    check_sync(&certificates, &proxy);
    check_host(&certificates, &proxy);
    check_client_address(&certificates, &proxy);
    if let ProxyKind::Nginx = kind {
        // nginx would log bodies that it has written to its disk.
        assert_eq!(proxy.log(), "");
    }
}

/// Checks that two devices receive each other's changes, one of which is large.
fn check_sync(certificates: &TestCertificates, proxy: &ReverseProxy) {
    let place = certificates.place;
    let trusting = [("SSL_CERT_FILE", &*certificates.authority)];
    let run = |arguments: &[&str]| {
        let ran = warren_in(&place.at(""), &trusting, &[arguments, &["--json"]].concat());
        ran.succeeded().value()
    };
    let (a, b) = (place.at("a.db"), place.at("b.db"));
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY, x)");
    track_all(&a);
    let address = format!("https://{}", proxy.address());
    let first_time = place.first_time(&address);
    run(&[&["sync", &a], &first_time[..]].concat());
    run(&[&["clone", &b], &first_time[..]].concat());

    let watch = WatchProcess::start_with(&trusting, &b);
    watch.until(is_synced);
    // A delayed event would be reported as `waiting`. Changes in several pages may arrive in
    // several syncs.
    let until = |member: &str, count: usize| {
        let total = Cell::new(0);
        let is_it = |value: &Value| {
            assert_eq!(value["event"], "synced", "{value}");
            total.set(total.get() + value[member].as_u64().unwrap());
            total.get() == count as u64
        };
        watch.until(is_it)
    };
    sql(&a, &format!("INSERT INTO t VALUES (1, randomblob({CHANGE_BYTES}))"));
    let changes = 1 + CHANGE_BYTES.div_ceil(crdt::CHUNK_BYTES);
    assert_eq!(run(&["sync", &a])["sent_count"], changes);
    until("received_count", changes);
    assert_eq!(sql(&b, "SELECT length(x) FROM t"), CHANGE_BYTES.to_string());
    sql(&b, "INSERT INTO t VALUES (2, 'of b')");
    until("sent_count", 1);
    assert_eq!(run(&["sync", &a])["received_count"], 1);
}

/// Runs the first `warren sync` of a file through a proxy.
fn sync_as_new(certificates: &TestCertificates, proxy: &ReverseProxy, file: &str) -> CommandOutput {
    let (place, address) = (certificates.place, format!("https://{}", proxy.address()));
    let arguments = [&["sync", file, "--json"], &place.first_time(&address)[..]].concat();
    warren_in(&place.at(""), &[("SSL_CERT_FILE", &certificates.authority)], &arguments)
}

/// Checks that the proxy passes the requested host name to the server.
fn check_host(certificates: &TestCertificates, proxy: &ReverseProxy) {
    let asked_as = |host| proxy.ask(certificates, &request("GET /v1/openapi.json", host, "", ""));
    let answer = asked_as("warren.example");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let answer = asked_as("other.example");
    assert!(answer.contains("\"host_not_allowed\""), "{answer}");
}

/// Checks that the server gets the client's address, whatever the client claims.
fn check_client_address(certificates: &TestCertificates, proxy: &ReverseProxy) {
    let login = json!({"login": "ada", "password": "not hers", "name": "a device"}).to_string();
    let answer =
        proxy.ask(certificates, &request("POST /v1/devices", "warren.example", "", &login));
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    let log = log_of_server(certificates.place);
    let refused: Vec<&str> = log.lines().filter(|line| line.contains("login refused")).collect();
    let [line] = refused[..] else { panic!("{log}") };
    let expected = format!(": login refused from {CLIENT}: wrong password for ada");
    assert!(line.ends_with(&expected), "{log}");
}

/// Returns one request of a connection that closes after it.
fn request(line: &str, host: &str, token: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{line} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\nx-forwarded-for: {PRETENDED}\r\n\
         authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

#[test]
fn a_stream_of_events_outlives_silence_and_ends_with_its_device() {
    let place = SyncFixture::new();
    let certificates = TestCertificates::new(&place);
    certificates.issue("0x0A");
    let server = serve_as_page(&place, &[]);
    let a = place.at("a.db");
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY, x)");
    track_all(&a);
    place.sign_in("sync", &a, &server.address);
    let events = request("GET /v1/sync/events", "warren.example", &token(&a), "");
    let streams = ProxyKind::ALL.map(|kind| {
        let proxy = ReverseProxy::as_page(kind, &certificates, server.host_and_port(), &[]);
        let stream = proxy.listen(&certificates, &events);
        stream.until("data: ");
        (proxy, stream)
    });
    for (_, stream) in &streams {
        stream.until(":");
    }
    sql(&a, "INSERT INTO t VALUES (1, 'one')");
    sync(&a);
    for (_, stream) in &streams {
        stream.until("data: ");
    }
    // A stream that ends frees its place: an account has a limited number of them.
    let (_proxies, mut streams): (Vec<_>, Vec<_>) = streams.into_iter().unzip();
    while streams.pop().is_some() {
        let listeners = format!("\nwarren_subscribers {}\n", streams.len());
        wait_until("a place that is free", || server.get("/metrics").contains(&listeners));
    }
}

/// The server refuses a body that is too large before it has read it.
#[test]
fn a_refusal_before_the_end_of_a_body_arrives() {
    let place = SyncFixture::new();
    let certificates = TestCertificates::new(&place);
    certificates.issue("0x0A");
    let server = serve_as_page(&place, &["--request-body-bytes-max", "65536"]);
    for kind in ProxyKind::ALL {
        let proxy = ReverseProxy::as_page(kind, &certificates, server.host_and_port(), &[]);
        let file = place.at(&format!("{kind:?}.db"));
        sql(&file, "CREATE TABLE t (id INTEGER PRIMARY KEY, x)");
        sql(&file, &format!("INSERT INTO t VALUES (1, randomblob({CHANGE_BYTES}))"));
        track_all(&file);
        sync_as_new(&certificates, &proxy, &file).refused("too_large");
    }
}

/// The page's time limit for a server applies; here it is shorter.
#[test]
fn a_server_that_stays_silent_is_given_up_after_the_page_s_time() {
    let place = SyncFixture::new();
    let certificates = TestCertificates::new(&place);
    certificates.issue("0x0A");
    let a = place.at("a.db");
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY, x)");
    track_all(&a);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = silent.local_addr().unwrap().to_string();
    for kind in [ProxyKind::Nginx, ProxyKind::HaProxy] {
        let proxy = ReverseProxy::as_page(kind, &certificates, &target, &[("120s", "1s")]);
        let refused = sync_as_new(&certificates, &proxy, &a);
        refused.refused("unexpected_response");
        let message = refused.value()["error"]["message"].to_string();
        assert!(message.contains("(HTTP 504)"), "{kind:?}: {message}");
    }
}

/// nginx limits bodies to one MiB, unless another limit is configured.
#[test]
fn what_nginx_finds_too_large_goes_in_smaller_pages() {
    let place = SyncFixture::new();
    let server = place.serve();
    let start = |limit: &str| {
        ReverseProxy::start(ProxyKind::Nginx, &place, |port| {
            let location = format!("location / {{ proxy_pass {}; }}", server.address);
            nginx_around(&format!("server {{ listen 127.0.0.1:{port}; {limit} {location} }}"))
        })
    };
    let a = place.at("a.db");
    sql(&a, "CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, 'one')");
    track_all(&a);
    let proxy = start("");
    place.sign_in("sync", &a, &format!("http://{}", proxy.address()));
    sql(
        &a,
        "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
         SELECT i, hex(randomblob(500)) FROM n",
    );
    assert_eq!(sync(&a)["sent_count"], 2_999);
    // The count includes the table itself.
    place.check_vault(3_001);

    // A large value is sent in chunks, each below nginx's limit, unless that is very low.
    sql(&a, "INSERT INTO t VALUES (7000, hex(randomblob(600000)))");
    let proxy_of_parts = proxy;
    let proxy = start("client_max_body_size 100k;");
    let address = format!("http://{}", proxy.address());
    let refused = warren(&["sync", &a, "--server", &address, "--json"]);
    refused.refused("proxy_body_limit");
    let message = refused.value()["error"].to_string();
    for part in ["413", "client_max_body_size", "part of a large value"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(json(&["status", &a])["unsent_count"], 6);
    let address = format!("http://{}", proxy_of_parts.address());
    assert_eq!(json(&["sync", &a, "--server", &address])["sent_count"], 6);
}
