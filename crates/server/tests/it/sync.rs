//! Tests of pushing, pulling and streaming, in JSON and protobuf.

use std::io::{Read, Write};
use std::net::TcpStream;

use prost::Message as _;
use protocol::{PullResponse, PushRequest, PushResponse};
use serde_json::{Value, json};

use crate::{RunningServer, TestResponse, bearer, message, push, wire_message};

#[test]
fn pushing_twice_stores_once() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let request = push(&[(2, "b"), (1, "a")]);
    let first = server.post("/v1/sync/delta", &token, &request).json();
    assert_eq!(
        (&first["stored_count"], &first["known_count"], &first["cursor"]),
        (&json!(2), &json!(0), &json!(2))
    );
    assert!(first["server_time_ms"].as_u64().unwrap() > 1_700_000_000_000);
    let second = server.post("/v1/sync/delta", &token, &request).json();
    assert_eq!(
        (&second["stored_count"], &second["known_count"], &second["cursor"]),
        (&json!(0), &json!(2), &json!(2))
    );
    assert_eq!(second["fingerprint"], first["fingerprint"]);
    assert_eq!(first["fingerprint"]["count"], 2);
    let empty = server.post("/v1/sync/delta", &token, &push(&[])).json();
    assert_eq!((&empty["cursor"], &empty["fingerprint"]), (&json!(2), &first["fingerprint"]));
}

#[test]
fn another_content_for_a_known_timestamp_is_refused_as_a_whole() {
    let server = RunningServer::new();
    let token = server.account("ada");
    server.post("/v1/sync/delta", &token, &push(&[(1, "first")]));
    let answer = server.post("/v1/sync/delta", &token, &push(&[(2, "new"), (1, "second")]));
    answer.refused("timestamp_conflict");
    let page = server.get("/v1/sync/delta", &token).json();
    assert_eq!(page["messages"], json!([message(1, "first")]));
}

#[test]
fn a_cursor_leads_through_the_pages() {
    let server = RunningServer::new();
    let token = server.account("ada");
    server.post("/v1/sync/delta", &token, &push(&[(1, "a"), (2, "b"), (3, "c")]));
    let page = |query: &str| {
        let page = server.get(&format!("/v1/sync/delta{query}"), &token).json();
        (
            page["messages"].clone(),
            page["cursor"].as_u64().unwrap(),
            page["more"].as_bool().unwrap(),
        )
    };
    assert_eq!(page("?limit=2"), (json!([message(1, "a"), message(2, "b")]), 2, true));
    assert_eq!(page("?cursor=2&limit=2"), (json!([message(3, "c")]), 3, false));
    assert_eq!(page("?cursor=3"), (json!([]), 3, false));
    // The device's cursor is past the end: it receives the current one.
    assert_eq!(page("?cursor=18446744073709551615"), (json!([]), 3, false));
}

#[test]
fn json_and_protobuf_say_the_same() {
    let server = RunningServer::new();
    let (ada, bob) = (server.account("ada"), server.account("bob"));
    let contents = [(1, ""), (2, "text"), (3, "\u{0}\u{7f}ü☂")];
    let messages = contents.map(|(millis, content)| wire_message(millis, content)).to_vec();
    let request =
        PushRequest { messages: messages.clone(), ..PushRequest::default() }.encode_to_vec();
    let answer: PushResponse = server.protobuf("/v1/sync/delta", &ada, &request).protobuf();
    let json_answer = server.post("/v1/sync/delta", &bob, &push(&contents));
    let json_answer: PushResponse = serde_json::from_slice(&json_answer.body).unwrap();
    let of_any = |answer| PushResponse { server_time_ms: 0, set_id: 0, ..answer };
    assert_eq!(of_any(answer), of_any(json_answer));

    let as_json = server.get("/v1/sync/delta", &ada);
    let as_json: PullResponse = serde_json::from_slice(&as_json.body).unwrap();
    let as_protobuf: PullResponse =
        get(&server, "/v1/sync/delta", &ada, protocol::PROTOBUF).protobuf();
    assert_eq!(as_json.messages, messages);
    assert_eq!(
        PullResponse { server_time_ms: 0, ..as_json },
        PullResponse { server_time_ms: 0, ..as_protobuf }
    );
}

#[test]
fn a_refusal_comes_in_the_accepted_encoding() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let answer = server.protobuf("/v1/sync/delta", &token, b"\xff\xff");
    assert_eq!(answer.status, 400);
    let error: protocol::ErrorResponse = answer.protobuf();
    assert_eq!(error.code(), Some(protocol::ErrorCode::Malformed));
}

/// Pushes nine contents of half a megabyte, which are several pages of a stream.
fn fill(server: &RunningServer, token: &str) -> Vec<PullResponse> {
    let messages = (1..=9).map(|millis| wire_message(millis, &"x".repeat(512 << 10))).collect();
    let request = PushRequest { messages, ..PushRequest::default() }.encode_to_vec();
    let answer: PushResponse = server.protobuf("/v1/sync/delta", token, &request).protobuf();
    assert_eq!(answer.stored_count, 9);
    let mut pages: Vec<PullResponse> = Vec::new();
    while pages.last().is_none_or(|page| page.more) {
        let cursor = pages.last().map_or(0, |page| page.cursor);
        let path = format!("/v1/sync/delta?cursor={cursor}&limit=4");
        pages.push(get(server, &path, token, protocol::PROTOBUF).protobuf());
    }
    pages
}

fn get(server: &RunningServer, path: &str, token: &str, accept: &str) -> TestResponse {
    server.send("GET", path, &[("authorization", &bearer(token)), ("accept", accept)], ())
}

fn messages_of(pages: &[PullResponse]) -> Vec<&protocol::WireMessage> {
    pages.iter().flat_map(|page| &page.messages).collect()
}

fn check_stream(stream: &[PullResponse], pages: &[PullResponse]) {
    assert!(stream.len() > 1, "a stream has pages too");
    assert!(messages_of(stream) == messages_of(pages));
    let (last, expected) = (stream.last().unwrap(), pages.last().unwrap());
    assert_eq!((last.cursor, last.more), (9, false));
    assert_eq!(last.fingerprint, expected.fingerprint);
}

#[test]
fn a_stream_is_what_the_pages_are() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let pages = fill(&server, &token);

    let answer = get(&server, "/v1/sync/full", &token, protocol::PROTOBUF_SEQUENCE);
    assert_eq!(answer.header("content-type"), protocol::PROTOBUF_SEQUENCE);
    let mut rest = &answer.body[..];
    let mut stream = Vec::new();
    while !rest.is_empty() {
        stream.push(PullResponse::decode_length_delimited(&mut rest).unwrap());
    }
    check_stream(&stream, &pages);

    let answer = get(&server, "/v1/sync/full", &token, "");
    assert_eq!(answer.header("content-type"), protocol::NDJSON);
    let lines = std::str::from_utf8(&answer.body).unwrap().lines();
    let stream: Vec<_> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    check_stream(&stream, &pages);

    let rest = get(&server, "/v1/sync/full?cursor=8", &token, "");
    let rest: PullResponse = serde_json::from_slice(&rest.body).unwrap();
    assert_eq!((rest.messages.len(), rest.cursor), (1, 9));
}

#[test]
fn a_stream_of_nothing_still_says_how_things_stand() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let answer = get(&server, "/v1/sync/full", &token, "").json();
    assert_eq!((&answer["messages"], &answer["more"]), (&json!([]), &json!(false)));
    assert_eq!(answer["fingerprint"]["count"], 0);
}

#[test]
fn a_stream_is_compressed_for_those_who_take_it() {
    let server = RunningServer::new();
    let token = server.account("ada");
    fill(&server, &token);
    // A plain socket, because ureq would decompress the stream silently.
    let mut stream = TcpStream::connect(server.address).unwrap();
    write!(
        stream,
        "GET /v1/sync/full HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         accept-encoding: gzip\r\n\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head = String::from_utf8_lossy(&answer);
    assert!(head.contains("content-encoding: gzip\r\n"), "{head}");
    assert!(answer.len() < 256 << 10, "{} bytes for 4.5 MB", answer.len());
    let headers = [("authorization", &*bearer(&token)), ("accept-encoding", "identity")];
    let plain = server.send("GET", "/v1/sync/full", &headers, ());
    assert_eq!(plain.header("content-encoding"), "");
}

#[test]
fn timestamps_are_read_and_written_in_their_canonical_text() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let text = "2026-11-21T06:30:00.123Z-00AB-a1b2c3d4e5f60718";
    let check = |text: &str| -> Value {
        let request = json!({ "messages": [{ "timestamp": text, "content": "aGVsbG8=" }] });
        let answer = server.post("/v1/sync/delta", &token, &request);
        if answer.status == 200 { json!("stored") } else { answer.json()["error"]["code"].clone() }
    };
    assert_eq!(check(text), "stored");
    assert_eq!(server.get("/v1/sync/delta", &token).json()["messages"][0]["timestamp"], text);
    for other in [
        &text.to_lowercase()[..],
        "2026-11-21T06:30:00.123Z-00ab-a1b2c3d4e5f60718",
        "2026-02-30T06:30:00.123Z-0000-a1b2c3d4e5f60718",
        "sixteen bytes ok",
        "",
    ] {
        assert_eq!(check(other), "invalid_timestamp", "{other}");
    }
    assert_eq!(server.get("/v1/sync/delta", &token).json()["cursor"], 1);
}
