//! Tests of the limits of all inputs: beyond each, the server responds with a code.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use accounts::{AccountLimits, Accounts, KdfCost, Login};
use engine::{Databases, EngineLimits};
use prost::Message as _;
use protocol::PushRequest;
use serde_json::json;
use ureq::SendBody;

use crate::{RunningServer, bearer, push, wire_message};

#[test]
fn one_message_more_than_the_limit_is_too_many() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let messages: Vec<_> = (1..=40_001).map(|millis| wire_message(millis, "x")).collect();
    let request = PushRequest { messages: messages.clone(), ..PushRequest::default() };
    let headers = [("authorization", &*bearer(&token)), ("content-type", protocol::PROTOBUF)];
    let answer = server.send("POST", "/v1/sync/delta", &headers, &request.encode_to_vec());
    answer.refused("too_large");
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains("40000"));
    let body = serde_json::to_vec(&request).unwrap();
    server.json("POST", "/v1/sync/delta", &token, &body).refused("too_large");
    let request = PushRequest { messages: messages[1..].to_vec(), ..PushRequest::default() };
    let answer = server.send("POST", "/v1/sync/delta", &headers, &request.encode_to_vec());
    assert_eq!((answer.status, &answer.json()["stored_count"]), (200, &json!(40_000)));
}

/// The messages have two bytes each in protobuf; decoded, they would need half a gigabyte.
#[test]
fn millions_of_empty_messages_are_counted_before_they_are_decoded() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let body = [10, 0].repeat(8 << 20);
    let headers = [("authorization", &*bearer(&token)), ("content-type", protocol::PROTOBUF)];
    server.send("POST", "/v1/sync/delta", &headers, &body).refused("too_large");
    server.check_works(&token);
}

#[test]
fn seventeen_megabytes_are_too_large_with_and_without_their_length() {
    let server = RunningServer::new();
    let (ada, bob) = (server.account("ada"), server.account("bob"));
    let body = vec![b' '; 17 << 20];
    let headers = [("authorization", &*bearer(&ada)), ("content-type", protocol::JSON)];
    let answer = server.send("POST", "/v1/sync/delta", &headers, &body);
    answer.refused("too_large");
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains("16777216"));
    assert_eq!(answer.header("connection"), "close");
    let chunked = SendBody::from_owned_reader(std::io::Cursor::new(body));
    server.send("POST", "/v1/sync/delta", &headers, chunked).refused("too_large");
    server.check_works(&ada);
    server.check_works(&bob);
}

#[test]
fn calls_without_messages_take_small_bodies_only() {
    let server = RunningServer::new();
    let body = vec![b' '; 65_537];
    server.json("POST", "/v1/accounts", "", &body).refused("too_large");
    server.json("POST", "/v1/devices", "", &body).refused("too_large");
    server.json("PUT", "/v1/accounts/password", "", &body).refused("too_large");
}

#[test]
fn the_limit_of_an_answer_is_the_server_s() {
    let server = RunningServer::with(|config| config.messages_count_max = 3);
    let token = server.account("ada");
    let request = push(&[(1, "a"), (2, "b"), (3, "c"), (4, "d")]);
    server.post("/v1/sync/delta", &token, &request).refused("too_large");
    server.get("/v1/sync/delta?limit=4", &token).refused("too_large");
    assert_eq!(server.get("/v1/sync/delta?limit=3", &token).status, 200);
    let nodes = ["node=1", "node=00000000000000AB", "node=+00000000000000a", "unsent=-1"];
    let queries = ["limit=0", "limit=-1", "limit=x", "cursor=-1", "cursor=1.5", "curser=1"];
    for query in queries.into_iter().chain(nodes) {
        server.get(&format!("/v1/sync/delta?{query}"), &token).refused("malformed");
    }
    server.get("/v1/sync/full?cursor=x", &token).refused("malformed");
}

#[test]
fn an_account_has_only_so_many_devices() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let refused = (0..accounts::DEVICES_COUNT_DEFAULT)
        .map(|_| server.post("/v1/devices", &token, &json!({})))
        .find(|answer| answer.status != 201);
    let refused = refused.expect("there is a limit");
    refused.refused("quota_exceeded");
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("device limit (500)"));
}

#[test]
fn an_account_holds_only_so_much_and_can_be_given_more() {
    let server = RunningServer::with(|config| config.limits.messages_max = 2);
    let (ada, bob) = (server.account("ada"), server.account("bob"));
    let messages = push(&[(1, "a"), (2, "b"), (3, "c")]);
    let refused = server.post("/v1/sync/delta", &ada, &messages);
    refused.refused("quota_exceeded");
    assert!(
        refused.json()["error"]["message"].as_str().unwrap().contains("limit for messages is 2")
    );
    assert_eq!(server.get("/v1/sync/delta", &ada).json()["messages"], json!([]));
    server.post("/v1/sync/delta", &bob, &push(&[(1, "a"), (2, "b")]));

    // Changes by another process apply from the next request on.
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let cost = KdfCost::insecure_for_tests(1);
    let accounts = Accounts::open(&databases, server.data.path(), cost).unwrap();
    let login = Login::parse("ada").unwrap();
    let own = AccountLimits {
        messages_max: Some(3),
        bytes_max: Some(2),
        devices_max: Some(1),
        mail_bytes_max: None,
    };
    accounts.change_limits(&login, move |limits| *limits = own).unwrap();
    let refused = server.post("/v1/sync/delta", &ada, &messages);
    refused.refused("quota_exceeded");
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("limit for bytes is 2"));
    server.post("/v1/devices", &ada, &json!({})).refused("quota_exceeded");
    accounts.change_limits(&login, |limits| limits.bytes_max = None).unwrap();
    assert_eq!(server.post("/v1/sync/delta", &ada, &messages).json()["stored_count"], 3);
    // Known messages use no quota, and full vaults can still be read.
    assert_eq!(server.post("/v1/sync/delta", &ada, &messages).json()["known_count"], 3);
    assert_eq!(server.get("/v1/sync/delta", &ada).json()["messages"], messages["messages"]);
    server.post("/v1/sync/delta", &bob, &push(&[(3, "c")])).refused("quota_exceeded");
}

/// The time that requests within their limit may take on a busy disk.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);

/// Opens a connection for sending byte by byte.
fn connect(server: &RunningServer) -> TcpStream {
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    stream
}

fn read_all(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_slow_body_is_given_up_and_others_are_served_meanwhile() {
    let server = RunningServer::with(|config| config.request_timeout = REQUEST_TIME_MAX);
    let token = server.account("ada");
    let mut slow: Vec<_> = (0..20).map(|_| connect(&server)).collect();
    for stream in &mut slow {
        write!(
            stream,
            "POST /v1/sync/delta HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: 100\r\n\r\n{{"
        )
        .unwrap();
    }
    server.check_works(&token);
    for stream in slow {
        let answer = read_all(stream);
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(answer.contains(r#""code":"timeout""#), "{answer}");
    }
    server.check_works(&token);
}

#[test]
fn a_slow_head_is_given_up() {
    let server = RunningServer::with(|config| config.request_timeout = REQUEST_TIME_MAX);
    let mut stream = connect(&server);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost:").unwrap();
    let answer = read_all(stream);
    assert!(!answer.contains("200 OK"), "{answer}");
    assert_eq!(server.get("/healthz", "").status, 200);
}

/// Checks whether the server has a permit for a new connection.
fn has_place(server: &RunningServer) -> bool {
    let mut stream = connect(server);
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut answer = String::new();
    let answered = stream.write_all(request).and_then(|()| stream.read_to_string(&mut answer));
    answered.is_ok() && answer.starts_with("HTTP/1.1 200 ")
}

#[test]
fn a_connection_past_the_limit_takes_the_place_of_one_that_waits_for_its_client() {
    let server = RunningServer::with(|config| config.connections_max = 2);
    let [mut oldest, mut second] = [(); 2].map(|()| {
        let mut stream = connect(&server);
        stream.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
        stream
    });
    assert!(has_place(&server));
    assert!(matches!(oldest.read(&mut [0]), Ok(0) | Err(_)), "it was closed");
    second.write_all(b"host: localhost\r\nconnection: close\r\n\r\n").unwrap();
    assert!(read_all(second).starts_with("HTTP/1.1 200 "));
    let metrics = String::from_utf8(server.get("/metrics", crate::ADMIN).body).unwrap();
    let mut counts = metrics.lines().filter_map(|line| {
        line.strip_prefix("warren_displaced_connections_total ")?.parse::<u64>().ok()
    });
    assert!(counts.next().is_some_and(|count| count >= 1), "{metrics}");
}

#[test]
fn a_slow_body_that_comes_through_a_proxy_gives_way_to_others() {
    let server = RunningServer::with(|config| {
        config.connections_max = 2;
        config.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    });
    let _slow = [(); 2].map(|()| {
        let mut stream = connect(&server);
        let head = "POST /v1/devices HTTP/1.1\r\nhost: localhost\r\n\
                    x-forwarded-for: 198.51.100.7\r\ncontent-length: 9\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        stream
    });
    // The server knows the clients of these connections only after reading their heads.
    while !has_place(&server) {
        std::thread::yield_now();
    }
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let server = RunningServer::new();
    let mut stream = connect(&server);
    let head = format!("GET /healthz HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(20 << 10));
    stream.write_all(head.as_bytes()).unwrap();
    let answer = read_all(stream);
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}
