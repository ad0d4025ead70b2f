use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crdt::NodeId as Device;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::since;
use crate::test_vectors::{section, text, texts};

fn json(trie: &MerkleTrie) -> String {
    let mut json = String::new();
    trie.write_json(&mut json);
    json
}

fn bytes(trie: &MerkleTrie) -> Vec<u8> {
    let mut bytes = Vec::new();
    trie.encode(&mut bytes);
    bytes
}

fn insert<'a>(trie: &mut MerkleTrie, timestamps: impl IntoIterator<Item = &'a Timestamp>) {
    for timestamp in timestamps {
        trie.insert(*timestamp);
    }
}

fn trie_of<'a>(timestamps: impl IntoIterator<Item = &'a Timestamp>) -> MerkleTrie {
    let mut trie = MerkleTrie::new();
    insert(&mut trie, timestamps);
    trie
}

fn pruned(trie: &MerkleTrie) -> MerkleTrie {
    let mut pruned = trie.clone();
    pruned.prune();
    pruned
}

/// Compares two tries like an app: returns the minute from which it requests messages, or `None` if
/// they agree.
///
/// This is the published `diff`, which a server does not need.
fn diff(a: &MerkleTrie, b: &MerkleTrie) -> Option<u64> {
    if a.root() == b.root() {
        return None;
    }
    let node =
        |trie: &MerkleTrie, index| trie.nodes.get(index as usize).copied().unwrap_or_default();
    let (mut places, mut digits) = ((0, 0), Vec::new());
    while let Some((digit, next)) = different_child(a, b, (node(a, places.0), node(b, places.1))) {
        digits.push(digit);
        places = next;
    }
    digits.resize(16, 0);
    Some(digits.into_iter().fold(0, |minute, digit| minute * 3 + digit))
}

fn different_child(
    a: &MerkleTrie,
    b: &MerkleTrie,
    pair: (TrieNode, TrieNode),
) -> Option<(u64, (u32, u32))> {
    for (digit, (i, j)) in (0..).zip(pair.0.children.into_iter().zip(pair.1.children)) {
        match (i, j) {
            (NONE, NONE) => {}
            (NONE, _) | (_, NONE) => return None,
            (i, j) if a.nodes[i as usize].hash == b.nodes[j as usize].hash => {}
            (i, j) => return Some((digit, (i, j))),
        }
    }
    None
}

#[test]
fn published_timestamps() {
    let mut known = 0;
    for case in section("timestamps") {
        let input = text(&case, "input");
        let canonical = case["normalized"].as_str().filter(|text| *text == input);
        // The published packages keep the case of a node id; a canonical one is lower case, like
        // those of all apps.
        let canonical = canonical.filter(|text| text[30..] == text[30..].to_lowercase());
        let timestamp = input.parse::<Timestamp>().ok();
        assert_eq!(timestamp.is_some(), canonical.is_some(), "{input}");
        let Some(timestamp) = timestamp else { continue };
        assert_eq!(murmur::hash(&timestamp.to_text()), case["hash"], "{input}");
        let (digits, first) = key(timestamp);
        let key: String = digits[first..].iter().map(|digit| char::from(b'0' + digit)).collect();
        assert_eq!(key, text(&case, "minuteKey"), "{input}");
        known += 1;
    }
    assert_eq!(known, 37);
}

#[test]
fn published_hashes_of_texts_that_are_not_canonical() {
    for case in section("timestamps").iter().filter(|case| !case["normalized"].is_null()) {
        assert_eq!(murmur::hash(text(case, "normalized").as_bytes()), case["hash"], "{case}");
    }
}

#[test]
fn published_tries() {
    let mut built = 0;
    for case in section("tries") {
        let name = text(&case, "name");
        let published = MerkleTrie::from_json(text(&case, "trie")).unwrap();
        let timestamps = texts(&case["timestamps"]);
        let timestamps: Result<Vec<Timestamp>, _> =
            timestamps.into_iter().map(str::parse).collect();
        // One case has a timestamp that is not canonical.
        if let Ok(timestamps) = timestamps {
            let mut trie = MerkleTrie::from_json(text(&case, "start")).unwrap();
            insert(&mut trie, &timestamps);
            assert_eq!(json(&trie), text(&case, "trie"), "{name}");
            assert_eq!(trie, published, "{name}");
            built += 1;
        }
        assert_eq!(json(&published), text(&case, "trie"), "{name}");
        assert_eq!(json(&pruned(&published)), text(&case, "pruned"), "{name}");
        assert_eq!(published.root().map(i64::from), case["rootHash"].as_i64(), "{name}");
    }
    assert_eq!(built, 10);
}

#[test]
fn published_diffs() {
    for case in section("diffs") {
        let [a, b] = ["a", "b"].map(|member| MerkleTrie::from_json(text(&case, member)).unwrap());
        let expected = case["diff"].as_u64();
        assert_eq!(diff(&a, &b).map(|minute| minute * 60_000), expected, "{}", case["name"]);
        for (trie, member) in [(a, "a"), (b, "b")] {
            assert_eq!(json(&trie), text(&case, member));
        }
    }
}

/// A model of the published server with one budget: it first returns the messages that the app
/// lacks, then stores the new ones.
#[derive(Default)]
struct ModelActualServer {
    contents: BTreeMap<Timestamp, String>,
    trie: MerkleTrie,
}

impl ModelActualServer {
    fn sync(&mut self, since: &str, messages: &Value) -> Vec<[String; 2]> {
        let first = since::after(since).unwrap();
        let answer = self.contents.range(first..);
        let answer = answer.map(|(timestamp, content)| [timestamp.to_string(), content.clone()]);
        let answer = answer.collect();
        for message in messages.as_array().unwrap() {
            let message = texts(message);
            let timestamp: Timestamp = message[0].parse().unwrap();
            if let Entry::Vacant(entry) = self.contents.entry(timestamp) {
                entry.insert(message[1].to_owned());
                self.trie.insert(timestamp);
            }
        }
        self.trie.prune();
        answer
    }
}

#[test]
fn published_sessions() {
    for session in section("sessions") {
        let mut server = ModelActualServer::default();
        for step in session["steps"].as_array().unwrap() {
            let answer = server.sync(text(step, "since"), &step["messages"]);
            let response = &step["response"];
            assert_eq!(serde_json::to_value(&answer).unwrap(), response["messages"]);
            assert_eq!(json(&server.trie), text(response, "merkle"), "{}", session["name"]);
            // Between two requests the trie is stored in the gateway state.
            server.trie = MerkleTrie::decode(&bytes(&server.trie)).unwrap();
        }
    }
}

#[test]
fn a_hash_of_0_keeps_what_is_under_it_from_being_pruned() {
    let three = r#""0":{"hash":1},"1":{"hash":2},"2":{"hash":3},"hash":0"#;
    let four = three.replace("\"hash\":0", "\"hash\":4");
    let trie =
        MerkleTrie::from_json(&format!(r#"{{"0":{{{three}}},"1":{{{four}}},"hash":4}}"#)).unwrap();
    let kept = r#""1":{"hash":2},"2":{"hash":3},"hash":4"#;
    let expected = format!(r#"{{"0":{{{three}}},"1":{{{kept}}},"hash":4}}"#);
    assert_eq!(json(&pruned(&trie)), expected);
}

#[test]
fn the_documented_bytes() {
    assert_eq!(bytes(&MerkleTrie::new()), [0x10]);
    // The first two minutes, and the fourth: keys 0, 1 and 10, which goes through 1.
    let [a, b, c] = [0, 60_000, 180_000].map(|millis| Timestamp::new(millis, 0, Device(0)));
    let timestamps = [a, b, c].map(Option::unwrap);
    let [a, b, c] = timestamps.map(|timestamp| murmur::hash(&timestamp.to_text()));
    let expected = [
        &[0x03, 0x08][..],
        &a.to_be_bytes(),
        &[0x09],
        &(b ^ c).to_be_bytes(),
        &[0x08],
        &c.to_be_bytes(),
    ];
    assert_eq!(bytes(&trie_of(&timestamps)), expected.concat());
}

#[test]
fn other_bytes_are_damage() {
    let chain = |digits: usize| [vec![0x01; digits], vec![0x00]].concat();
    assert!(MerkleTrie::decode(&chain(KEY_DIGITS_MAX)).is_ok());
    for damaged in [
        &b""[..],
        // Bytes after the end.
        b"\x10\x00",
        b"\x00\x00",
        // Bits that no tag has, also below the root.
        b"\x18\0\0\0\x01",
        b"\x01\x10",
        b"\x80",
        // A hash that is the children's XOR.
        b"\x08\0\0\0\0",
        b"\x09\0\0\0\x05\x08\0\0\0\x05",
        &chain(KEY_DIGITS_MAX + 1),
    ] {
        assert_eq!(MerkleTrie::decode(damaged), Err(DamagedTrie), "{damaged:x?}");
    }
}

#[test]
fn texts_that_are_no_tries() {
    for text in ["", "[]", "{\"hash\":2147483648}", "{\"hash\":1,\"3\":{\"hash\":1}}", "{} {}"] {
        assert!(matches!(MerkleTrie::from_json(text), Err(ParseTrieError::Json(_))), "{text}");
    }
    for text in ["{\"0\":{\"hash\":1}}", "{\"hash\":1,\"0\":{}}"] {
        assert!(matches!(MerkleTrie::from_json(text), Err(ParseTrieError::NoHash)), "{text}");
    }
    let chain = |digits| {
        format!("{}{{\"hash\":1{}", "{\"hash\":1,\"0\":".repeat(digits), "}".repeat(digits + 1))
    };
    assert!(MerkleTrie::from_json(&chain(KEY_DIGITS_MAX)).is_ok());
    let too_deep = chain(KEY_DIGITS_MAX + 1);
    assert!(matches!(MerkleTrie::from_json(&too_deep), Err(ParseTrieError::TooDeep)));
}

/// Generates timestamps that are close to each other, and some at any time.
fn timestamps() -> impl Strategy<Value = BTreeSet<Timestamp>> {
    let near = 28_000_000u64..28_003_000;
    let any_minute = 0..=Timestamp::MILLIS_MAX / 60_000;
    let minutes = prop_oneof![6 => near, 1 => 0u64..30, 1 => any_minute];
    let timestamp = (minutes, 0..60_000u64, any::<u16>(), 0..3u64);
    let timestamp = timestamp.prop_filter_map("past 9999", |(minute, millis, counter, node)| {
        Timestamp::new(minute * 60_000 + millis, counter, Device(node))
    });
    btree_set(timestamp, 0..60)
}

/// Generates timestamps whose keys use only two of the digits, so that pruning removes nothing.
fn timestamps_of_two_digits() -> impl Strategy<Value = BTreeSet<Timestamp>> {
    let minute = vec(any::<bool>(), 15)
        .prop_map(|bits| bits.into_iter().fold(1, |minute, bit| minute * 3 + u64::from(bit) * 2));
    let timestamp = (minute, any::<u16>())
        .prop_map(|(minute, counter)| Timestamp::new(minute * 60_000, counter, Device(1)).unwrap());
    btree_set(timestamp, 0..60)
}

/// Generates bytes that resemble a trie's, valid and invalid.
fn bytes_like_a_trie() -> impl Strategy<Value = Vec<u8>> {
    let tags = vec(prop_oneof![3 => 0u8..16, 1 => any::<u8>()], 0..100);
    let altered = (timestamps(), any::<prop::sample::Index>(), any::<u8>());
    let altered = altered.prop_map(|(timestamps, index, byte)| {
        let mut bytes = bytes(&pruned(&trie_of(&timestamps)));
        let index = index.index(bytes.len());
        bytes[index] = byte;
        bytes
    });
    prop_oneof![vec(any::<u8>(), 0..100), tags, altered]
}

proptest! {
    #[test]
    fn bytes_and_json_round_trip(timestamps in timestamps(), is_pruned: bool) {
        let whole = trie_of(&timestamps);
        let trie = if is_pruned { pruned(&whole) } else { whole };
        let bytes = bytes(&trie);
        prop_assert_eq!(&MerkleTrie::decode(&bytes).unwrap(), &trie);
        prop_assert_eq!(&MerkleTrie::from_json(&json(&trie)).unwrap(), &trie);
        prop_assert_eq!(MerkleTrie::root_of(&bytes), Ok(trie.root()));
        for length in 0..bytes.len() {
            prop_assert_eq!(MerkleTrie::decode(&bytes[..length]), Err(DamagedTrie));
        }
    }

    #[test]
    fn the_order_of_messages_is_of_no_account(
        shuffled in timestamps().prop_map(Vec::from_iter).prop_shuffle(),
    ) {
        let sorted: BTreeSet<Timestamp> = shuffled.iter().copied().collect();
        prop_assert_eq!(json(&trie_of(&shuffled)), json(&trie_of(&sorted)));
    }

    /// This property keeps apps and server in sync, though they prune at different times.
    #[test]
    fn the_root_does_not_depend_on_when_the_trie_is_pruned(
        shuffled in timestamps().prop_map(Vec::from_iter).prop_shuffle(),
        size in 1..10usize,
    ) {
        let mut trie = MerkleTrie::new();
        for batch in shuffled.chunks(size) {
            insert(&mut trie, batch);
            trie.prune();
        }
        prop_assert_eq!(trie.root(), trie_of(&shuffled).root());
        prop_assert_eq!(&pruned(&trie), &trie);
    }

    #[test]
    fn a_trie_that_loses_nothing_to_pruning_is_the_same_batch_by_batch(
        shuffled in timestamps_of_two_digits().prop_map(Vec::from_iter).prop_shuffle(),
        size in 1..10usize,
    ) {
        let mut trie = MerkleTrie::new();
        for batch in shuffled.chunks(size) {
            insert(&mut trie, batch);
            trie.prune();
        }
        prop_assert_eq!(json(&trie), json(&trie_of(&shuffled)));
    }

    #[test]
    fn decoders_agree_and_accept_only_what_is_encoded(found in bytes_like_a_trie()) {
        let mut written = String::new();
        let answer = MerkleTrie::write_json_of(&found, &mut written);
        if let Ok(trie) = MerkleTrie::decode(&found) {
            prop_assert_eq!(bytes(&trie), &found[..]);
            prop_assert_eq!(answer, Ok(()));
            prop_assert_eq!(written, json(&trie));
            prop_assert_eq!(MerkleTrie::root_of(&found), Ok(trie.root()));
        } else {
            prop_assert_eq!(answer, Err(DamagedTrie));
            prop_assert_eq!(MerkleTrie::root_of(&found), Err(DamagedTrie));
        }
    }

    #[test]
    fn any_text_is_refused_or_a_trie(found in r#"[{}"012has:,0-9 -]{0,60}|\PC*"#) {
        if let Ok(trie) = MerkleTrie::from_json(&found) {
            prop_assert_eq!(MerkleTrie::from_json(&json(&trie)).unwrap(), trie);
        }
    }
}
