//! Bad input gets a code of the closed list, and harms neither the server nor other users.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::{PASSWORD, RunningServer, bearer, push};

#[test]
fn tokens_that_are_none_are_refused() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let unknown = format!("warren_{}", "A".repeat(43));
    for other in ["", "x", &unknown, &token[1..], &format!("{token}A")] {
        server.get("/v1/sync/delta", other).refused("invalid_token");
        server.get("/v1/sync/full", other).refused("invalid_token");
        server.get("/v1/devices", other).refused("invalid_token");
        server.post("/v1/sync/delta", other, &push(&[(1, "a")])).refused("invalid_token");
        server.post("/v1/devices", other, &json!({})).refused("invalid_token");
        server.delete("/v1/devices/0123456789abcdef", other).refused("invalid_token");
    }
    for header in [&*format!("Basic {token}"), &token, "Bearer"] {
        let answer = server.send("GET", "/v1/devices", &[("authorization", header)], ());
        answer.refused("invalid_token");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    server.check_works(&token);
}

#[test]
fn logins_names_and_passwords_have_their_limits() {
    let server = RunningServer::new();
    let token = server.account("ada");
    for login in ["../../etc/passwd", "a/b", ".", "", "-a", "a b", "a\u{0}", &"a".repeat(65)] {
        let request = json!({ "login": login, "password": PASSWORD });
        server.post("/v1/accounts", "", &request).refused("invalid_login");
        server.post("/v1/devices", "", &request).refused("invalid_login");
    }
    for password in ["", "1234567", &"x".repeat(1_025)] {
        let request = json!({ "login": "bob", "password": password });
        server.post("/v1/accounts", "", &request).refused("invalid_password");
    }
    let named = |name: String| json!({ "login": "ada", "password": PASSWORD, "name": name });
    server.post("/v1/devices", "", &named("☂".repeat(201))).refused("invalid_device_name");
    assert_eq!(server.post("/v1/devices", "", &named("☂".repeat(200))).status, 201);
    server.check_works(&token);
}

#[test]
fn malformed_bodies_are_told_from_wrong_types() {
    let server = RunningServer::new();
    let (ada, bob) = (server.account("ada"), server.account("bob"));
    for body in [
        &b""[..],
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        br#"{"messages":[{}]}"#,
        br#"{"messages":[{"timestamp":1,"content":""}]}"#,
        br#"{"messages":[{"timestamp":"x","content":"not base64!"}]}"#,
        br#"{"messages":[],"more":1}"#,
        "[".repeat(100_000).as_bytes(),
    ] {
        server.json("POST", "/v1/sync/delta", &ada, body).refused("malformed");
    }
    let headers = |media_type| [("authorization", bearer(&ada)), ("content-type", media_type)];
    for body in
        [&b"\xff"[..], b"\x0a\xff", b"\x0a\x05ab", b"\x0b", "\x0b".repeat(100_000).as_bytes()]
    {
        let headers = headers(protocol::PROTOBUF.to_owned());
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        server.send("POST", "/v1/sync/delta", &headers, body).refused("malformed");
    }
    for media_type in ["", "text/plain", "application/xml", "application/jsonp"] {
        let headers = headers(media_type.to_owned());
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        let answer = server.send("POST", "/v1/sync/delta", &headers, b"{}");
        answer.refused("unsupported_media_type");
    }
    let charset = headers("application/json; charset=utf-8".to_owned());
    let charset = charset.each_ref().map(|(name, value)| (*name, value.as_str()));
    let body = push(&[(1, "a")]).to_string();
    assert_eq!(server.send("POST", "/v1/sync/delta", &charset, &body).status, 200);
    server.check_works(&ada);
    server.check_works(&bob);
}

#[test]
fn timestamps_in_protobuf_have_sixteen_bytes_before_the_year_10000() {
    let server = RunningServer::new();
    let token = server.account("ada");
    for timestamp in [vec![], vec![0; 15], vec![0; 17], vec![0xff; 16]] {
        let message = protocol::WireMessage { timestamp: timestamp.into(), content: "x".into() };
        let request = protocol::PushRequest { messages: vec![message], ..Default::default() };
        let headers = [("authorization", &*bearer(&token)), ("content-type", protocol::PROTOBUF)];
        let body = prost::Message::encode_to_vec(&request);
        server.send("POST", "/v1/sync/delta", &headers, &body).refused("invalid_timestamp");
    }
}

#[test]
fn a_clock_an_hour_ahead_stores_nothing() {
    let server = RunningServer::new();
    let token = server.account("ada");
    #[expect(clippy::disallowed_methods, reason = "the server reads the real clock")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now_ms = u64::try_from(now.as_millis()).unwrap();
    let request = push(&[(1, "past"), (now_ms + 3_600_000, "an hour ahead")]);
    server.post("/v1/sync/delta", &token, &request).refused("clock_drift");
    assert_eq!(server.get("/v1/sync/delta", &token).json()["cursor"], 0);
    let request = push(&[(1, "past"), (now_ms + 240_000, "four minutes ahead")]);
    assert_eq!(server.post("/v1/sync/delta", &token, &request).status, 200);
}

#[test]
fn unknown_addresses_and_methods_are_refused_with_a_body() {
    let server = RunningServer::new();
    let token = server.account("ada");
    for path in ["/v1", "/v2/devices", "/v1/sync", "/v1/devices/a/b", "/../data/accounts.sqlite"] {
        server.get(path, &token).refused("not_found");
    }
    let answer = server.delete("/v1/sync/delta", &token);
    answer.refused("method_not_allowed");
    assert!(answer.header("allow").contains("POST"), "{:?}", answer.headers);
    server.post("/healthz", "", &json!({})).refused("method_not_allowed");
    for id in ["x", "..", "%2e%2e%2f", "%ff", "0123456789ABCDEF", "0123456789abcdef"] {
        server.delete(&format!("/v1/devices/{id}"), &token).refused("not_found");
    }
}
