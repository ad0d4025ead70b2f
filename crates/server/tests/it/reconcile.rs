//! Compares sets over HTTP: a device's own state machine against the real server.

use std::collections::BTreeMap;

use bytes::Bytes;
use crdt::{Message, NodeId, Timestamp};
use prost::Message as _;
use protocol::{PushRequest, ReconcileEntry, ReconcileResponse, SetReconciler};
use serde_json::json;

use crate::RunningServer;

const DAY_MS: u64 = 86_400_000;
/// The start is 2024-11-21, well before any server's clock.
const START_MS: u64 = 1_732_147_200_000;

type ContentsByTimestamp = BTreeMap<Timestamp, Bytes>;

/// The cost of a comparison.
#[derive(Debug, Default)]
struct ReconcileCost {
    rounds: usize,
    bytes: usize,
}

fn set(times: impl IntoIterator<Item = (u64, u16)>) -> ContentsByTimestamp {
    let one = |(millis, counter)| {
        let timestamp = Timestamp::new(START_MS + millis, counter, NodeId(millis % 3)).unwrap();
        (timestamp, Bytes::from(format!("the change of {timestamp}")))
    };
    times.into_iter().map(one).collect()
}

fn push(server: &RunningServer, token: &str, set: &ContentsByTimestamp) {
    let all: Vec<protocol::WireMessage> = set
        .iter()
        .map(|(timestamp, content)| {
            Message { timestamp: *timestamp, content: content.clone() }.into()
        })
        .collect();
    for page in all.chunks(40_000) {
        let body =
            PushRequest { messages: page.to_vec(), ..PushRequest::default() }.encode_to_vec();
        assert_eq!(server.protobuf("/v1/sync/delta", token, &body).status, 200);
    }
}

/// Compares the sets, pulls the missing messages and pushes the wanted ones; then both are equal.
fn heal(server: &RunningServer, token: &str, device: &mut ContentsByTimestamp) -> ReconcileCost {
    let mut reconcile = SetReconciler::new(
        device.iter().map(|(t, c)| ReconcileEntry::from_message(*t, c)).collect(),
    );
    let (mut cost, mut wanted) = (ReconcileCost::default(), ContentsByTimestamp::new());
    while let Some(request) = reconcile.request() {
        let body = request.encode_to_vec();
        let answer = server.protobuf("/v1/sync/reconcile", token, &body);
        cost.rounds += 1;
        cost.bytes += body.len() + answer.body.len();
        let found =
            reconcile.handle_response(answer.protobuf::<ReconcileResponse>().diffs).unwrap();
        for message in found.missing {
            let message = Message::try_from(message).unwrap();
            assert!(device.insert(message.timestamp, message.content).is_none(), "known");
        }
        wanted.extend(found.wanted.into_iter().map(|t| (t, device[&t].clone())));
    }
    push(server, token, &wanted);
    let there = server.get("/v1/sync/delta?cursor=9999999", token).json();
    let here = device.iter().fold(crdt::Fingerprint::default(), |mut sum, (timestamp, content)| {
        sum += crdt::Fingerprint::from_message(*timestamp, content);
        sum
    });
    let fingerprint = json!({ "count": here.count, "digest": format!("{:032x}", here.digest) });
    assert_eq!(there["fingerprint"], fingerprint);
    cost
}

/// Removes every `every`-th message from the server's set, and the one after each from the
/// device's.
fn check(all: &ContentsByTimestamp, every: usize, rounds_max: usize) {
    let server = RunningServer::new();
    let token = server.account("ada");
    let without = |rest: usize| {
        let kept = all.iter().enumerate().filter(|(place, _)| place % every != rest);
        kept.map(|(_, (timestamp, content))| (*timestamp, content.clone()))
            .collect::<ContentsByTimestamp>()
    };
    let (mut device, there) = (without(1), without(0));
    push(&server, &token, &there);
    let cost = heal(&server, &token, &mut device);
    assert_eq!(&device, all);
    assert!(cost.rounds <= rounds_max, "one in {every}: {cost:?}");
    let again = heal(&server, &token, &mut device);
    assert_eq!(again.rounds, 1, "equal sets");
}

#[test]
fn differences_spread_over_ten_years_are_found() {
    let all = set((0..20_000).map(|n| (n * DAY_MS * 365 / 20_000, 0)));
    check(&all, 10_000, 3);
    check(&all, 100, 4);
    check(&all, 2, 4);
}

#[test]
fn differences_within_one_minute_are_found() {
    let all = set((0..20_000).map(|n| (n * 3, 0)));
    check(&all, 10_000, 3);
    check(&all, 100, 4);
}

#[test]
fn differences_within_one_millisecond_are_found() {
    let all = set((0..20_000).map(|n| (0, n)));
    check(&all, 7_000, 3);
}

#[test]
fn a_device_without_anything_gets_everything_and_a_server_too() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let all = set((0..3_000).map(|n| (n * DAY_MS, 0)).take(700));
    push(&server, &token, &all);
    let mut device = ContentsByTimestamp::new();
    heal(&server, &token, &mut device);
    assert_eq!(device, all);
    let token = server.account("bob");
    heal(&server, &token, &mut device);
}

#[test]
fn another_user_s_messages_are_not_compared() {
    let server = RunningServer::new();
    let (ada, bob) = (server.account("ada"), server.account("bob"));
    push(&server, &ada, &set([(1, 0), (2, 0)]));
    let request = json!({ "claims": [{ "length": "ffffffffffffffff" }] });
    let answer = server.post("/v1/sync/reconcile", &bob, &request);
    assert_eq!(answer.json()["diffs"][0]["equal"], true);
    let answer = server.post("/v1/sync/reconcile", &ada, &request).json();
    assert_eq!(answer["diffs"][0]["messages"].as_array().unwrap().len(), 2);
    assert_eq!(answer["cursor"], 2);
}

#[test]
fn claims_that_make_no_sense_are_refused() {
    let server = RunningServer::new();
    let token = server.account("ada");
    let claim = |gap: &str, length: &str| json!({ "gap": gap, "length": length, "count": 1 });
    let post = |claims: serde_json::Value| {
        server.post("/v1/sync/reconcile", &token, &json!({ "claims": claims }))
    };
    post(json!([claim("1", "ffffffffffffffff")])).refused("malformed");
    post(json!([claim("0", "f000000000000000"), claim("0", "f000000000000000")]))
        .refused("malformed");
    post(json!([claim("x", "1")])).refused("malformed");
    let many =
        protocol::ReconcileRequest { claims: vec![protocol::WireRangeClaim::default(); 100_001] };
    let answer = server.protobuf("/v1/sync/reconcile", &token, &many.encode_to_vec());
    assert_eq!(answer.status, 413);
    assert_eq!(post(json!([])).json()["diffs"], json!([]));
    server.check_works(&token);
}
