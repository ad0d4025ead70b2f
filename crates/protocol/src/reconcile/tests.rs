use std::collections::BTreeMap;

use bytes::Bytes;
use crdt::NodeId;
use proptest::prelude::*;

use super::*;
use crate::wire::WireRangeBucket;

/// The simplest correct server: it answers with whole ranges as buckets, and examines ids of
/// `looked_max` messages at a time.
struct ModelReconcileServer {
    messages: BTreeMap<Timestamp, Bytes>,
    looked_max: usize,
}

#[derive(Debug, Default, PartialEq)]
struct RoundTripCost {
    rounds: usize,
    up: usize,
    down: usize,
}

impl ModelReconcileServer {
    fn items(&self, time_range: &Range<u64>) -> Vec<ReconcileEntry> {
        let all =
            self.messages.iter().map(|(t, content)| ReconcileEntry::from_message(*t, content));
        all.filter(|item| time_range.contains(&item.hybrid_time())).collect()
    }

    fn find(&self, claim: &WireRangeClaim, time_range: &Range<u64>) -> WireRangeDiff {
        let mut items = self.items(time_range);
        if claim.ids.is_empty() && claim.count > 0 {
            let (count, digest) = sum(&items);
            let equal = (count, digest) == (claim.count, claim.digest);
            // A differing range is divided into two halves.
            let middle =
                items.get(items.len() / 2).map_or(time_range.end, ReconcileEntry::hybrid_time);
            let cuts = [time_range.start, middle, time_range.end];
            let parts = cuts.windows(2).filter(|_| !equal && count > 0).map(|cut| {
                let (count, digest) = sum(&self.items(&(cut[0]..cut[1])));
                WireRangeBucket { length: cut[1] - cut[0], count, digest }
            });
            return WireRangeDiff { equal, buckets: parts.collect(), ..WireRangeDiff::default() };
        }
        let mut length = 0;
        if items.len() > self.looked_max {
            let end = items[self.looked_max].hybrid_time();
            items.truncate(self.looked_max);
            length = end - time_range.start;
        }
        let here: HashSet<_> = items.iter().map(|item| item.id).collect();
        let missing = items.iter().filter(|item| !claim.ids.contains(&item.id));
        let message = |item: &ReconcileEntry| {
            let content = self.messages[&item.timestamp].clone();
            crdt::Message { timestamp: item.timestamp, content }.into()
        };
        WireRangeDiff {
            messages: missing.map(message).collect(),
            wanted: claim.ids.iter().copied().filter(|id| !here.contains(id)).collect(),
            examined_length: length,
            ..WireRangeDiff::default()
        }
    }
}

/// Compares both sets. Returns what the device received, what it must send, and the cost.
fn compare(
    device: &BTreeMap<Timestamp, Bytes>,
    server: &ModelReconcileServer,
) -> (Vec<Timestamp>, Vec<Timestamp>, RoundTripCost) {
    let mut reconcile = SetReconciler::new(
        device.iter().map(|(t, c)| ReconcileEntry::from_message(*t, c)).collect(),
    );
    let (mut missing, mut wanted, mut cost) = (Vec::new(), Vec::new(), RoundTripCost::default());
    while let Some(request) = reconcile.request() {
        let (mut end, mut findings) = (0, Vec::new());
        for claim in &request.claims {
            let start = end + claim.gap;
            end = start + claim.length;
            findings.push(server.find(claim, &(start..end)));
        }
        cost.rounds += 1;
        cost.up += prost::Message::encoded_len(&request);
        cost.down += findings.iter().map(prost::Message::encoded_len).sum::<usize>();
        let found = reconcile.handle_response(findings).unwrap();
        let messages = found.missing.into_iter();
        missing.extend(messages.map(|m| crdt::Message::try_from(m).unwrap().timestamp));
        wanted.extend(found.wanted);
    }
    missing.sort();
    missing.dedup();
    wanted.sort();
    (missing, wanted, cost)
}

fn set(timestamps: impl IntoIterator<Item = (u64, u16, u64)>) -> BTreeMap<Timestamp, Bytes> {
    let one = |(millis, counter, node)| {
        let timestamp = Timestamp::new(millis, counter, NodeId(node)).unwrap();
        (timestamp, Bytes::from(timestamp.to_string()))
    };
    timestamps.into_iter().map(one).collect()
}

fn check(device: &BTreeMap<Timestamp, Bytes>, server: &ModelReconcileServer) -> RoundTripCost {
    let only = |a: &BTreeMap<Timestamp, Bytes>, b: &BTreeMap<Timestamp, Bytes>| {
        a.keys().filter(|t| !b.contains_key(t)).copied().collect::<Vec<_>>()
    };
    let (missing, wanted, cost) = compare(device, server);
    assert_eq!(missing, only(&server.messages, device));
    assert_eq!(wanted, only(device, &server.messages));
    cost
}

const DAY_MS: u64 = 86_400_000;

#[test]
fn equal_sets_take_one_request_of_a_few_hundred_bytes() {
    // One message an hour for a year.
    let messages = set((0..8_760).map(|hour| (hour * 3_600_000, 0, 1)));
    let server = ModelReconcileServer { messages: messages.clone(), looked_max: 1_000 };
    let cost = check(&messages, &server);
    assert_eq!(cost.rounds, 1);
    assert!(cost.up < 1_500 && cost.down < 200, "{cost:?}");
}

#[test]
fn what_was_written_last_is_settled_in_one_request() {
    let all = set((0..9_000).map(|n| (n * DAY_MS / 10, 0, 1)));
    let mut device = all.clone();
    device.retain(|t, _| t.millis() != 8_990 * DAY_MS / 10);
    let mut messages = all;
    messages.retain(|t, _| t.millis() != 8_997 * DAY_MS / 10);
    let cost = check(&device, &ModelReconcileServer { messages, looked_max: 1_000 });
    assert_eq!(cost.rounds, 1, "{cost:?}");
}

#[test]
fn one_side_may_be_empty() {
    let messages = set((0..3_000).map(|n| (n * DAY_MS, 0, 1)));
    check(&BTreeMap::new(), &ModelReconcileServer { messages: messages.clone(), looked_max: 700 });
    check(&messages, &ModelReconcileServer { messages: BTreeMap::new(), looked_max: 700 });
    check(&BTreeMap::new(), &ModelReconcileServer { messages: BTreeMap::new(), looked_max: 700 });
}

#[test]
fn all_messages_may_be_of_one_moment() {
    let device = set((0..500).map(|node| (7, 7, node)));
    let messages = set((3..503).map(|node| (7, 7, node)));
    check(&device, &ModelReconcileServer { messages, looked_max: 1_000 });
}

#[test]
fn a_content_that_differs_is_both_missing_and_wanted() {
    let device = set((0..300).map(|n| (n, 0, 1)));
    let mut messages = device.clone();
    let timestamp = *messages.keys().nth(100).unwrap();
    messages.insert(timestamp, Bytes::from_static(b"other"));
    let (missing, wanted, _) =
        compare(&device, &ModelReconcileServer { messages, looked_max: 1_000 });
    assert_eq!((missing, wanted), (vec![timestamp], vec![timestamp]));
}

#[test]
fn nonsense_is_refused() {
    let items = || vec![ReconcileEntry { timestamp: Timestamp::ZERO, id: 1 }];
    let asked = || {
        let mut reconcile = SetReconciler::new(items());
        let request = reconcile.request().unwrap();
        (reconcile, request.claims.len())
    };
    assert_eq!(asked().0.handle_response(Vec::new()), Err(InvalidRangeDiffs));
    let (mut reconcile, count) = asked();
    assert_eq!(
        reconcile.handle_response(vec![WireRangeDiff::default(); count + 1]),
        Err(InvalidRangeDiffs)
    );
    let short = WireRangeDiff {
        messages: vec![WireMessage {
            timestamp: Bytes::from_static(b"short"),
            content: Bytes::new(),
        }],
        ..WireRangeDiff::default()
    };
    assert_eq!(asked().0.handle_response(vec![short]), Err(InvalidRangeDiffs));
}

#[test]
fn it_ends_whatever_the_server_says() {
    let message = WireMessage {
        timestamp: Timestamp::new(1, 0, NodeId(1)).unwrap().to_bytes().to_vec().into(),
        content: Bytes::from_static(b"again and again"),
    };
    for (messages, expected) in [(vec![], IDLE_ROUNDS_COUNT_MAX), (vec![message], ROUNDS_COUNT_MAX)]
    {
        let mut reconcile = SetReconciler::new(Vec::new());
        let mut rounds = 0;
        while let Some(request) = reconcile.request() {
            rounds += 1;
            let stuck = WireRangeDiff {
                examined_length: 1,
                messages: messages.clone(),
                ..WireRangeDiff::default()
            };
            reconcile.handle_response(vec![stuck; request.claims.len()]).unwrap();
        }
        assert_eq!(rounds, expected);
    }
}

#[test]
fn a_server_may_take_less() {
    let device = set((0..9_000).map(|n| (n * DAY_MS / 10, 0, 1)));
    let server = ModelReconcileServer { messages: BTreeMap::new(), looked_max: 9 };
    let mut reconcile = SetReconciler::new(
        device.iter().map(|(t, c)| ReconcileEntry::from_message(*t, c)).collect(),
    );
    let whole = reconcile.request().unwrap();
    let mut rest = whole.clone();
    while reconcile.shrink_requests() {
        rest = reconcile.request().unwrap();
    }
    assert_eq!(rest.claims, whole.claims[..1]);
    assert!(server.messages.is_empty() && reconcile.request().is_some());
}

fn any_set() -> impl Strategy<Value = Vec<(u64, u16, u64)>> {
    let spread = (0u64..400).prop_map(|n| (n * 40_000_000, 0, 1));
    let dense = (0u64..3, 0u16..300, 1u64..4);
    let bulk = (90_000_000_000u64..90_000_000_900).prop_map(|millis| (millis, 0, 2));
    prop::collection::vec(prop_oneof![spread, dense, bulk], 0..1_500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_difference_is_found_and_no_other(
        both in any_set(), device in any_set(), server in any_set(),
        kept in 0usize..30, looked_max in 300usize..2_000,
    ) {
        let some = |all: Vec<_>| all.into_iter().take(kept);
        let device = set(both.iter().copied().chain(some(device)));
        let messages = set(both.into_iter().chain(some(server)));
        check(&device, &ModelReconcileServer { messages, looked_max });
    }
}
