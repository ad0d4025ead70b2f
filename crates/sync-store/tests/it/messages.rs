//! Storing and paging.

use std::collections::BTreeMap;

use crdt::{Fingerprint, Message};
use proptest::prelude::*;
use sync_store::{Error, State, Stored, TIMESTAMPS_NAMED_MAX};

use crate::{Store, message, timestamp};

fn fingerprint<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Fingerprint {
    let mut sum = Fingerprint::default();
    for message in messages {
        sum += Fingerprint::of(message.timestamp, &message.content);
    }
    sum
}

#[test]
fn storing_twice_stores_once() {
    let store = Store::new();
    let vault = store.vault();
    let messages = vec![message(2, "b"), message(1, "a")];
    let after = State { cursor: 2, fingerprint: fingerprint(&messages) };
    let first = vault.store(messages.clone(), None).wait().unwrap();
    assert_eq!(first, Stored { stored: 2, known: 0, after });
    let second = vault.store(messages, None).wait().unwrap();
    assert_eq!(second, Stored { stored: 0, known: 2, after });
    assert_eq!(vault.state().unwrap(), after);
}

#[test]
fn one_message_twice_in_a_request_is_one_message() {
    let store = Store::new();
    let stored = store.vault().store(vec![message(1, "a"), message(1, "a")], None).wait().unwrap();
    assert_eq!((stored.stored, stored.known, stored.after.cursor), (1, 1, 1));
}

#[test]
fn another_content_refuses_the_whole_request() {
    let store = Store::new();
    let vault = store.vault();
    let before = vault.store(vec![message(5, "first")], None).wait().unwrap().after;
    for request in [
        vec![message(4, "new"), message(5, "second"), message(6, "new")],
        vec![message(6, "one"), message(6, "other")],
    ] {
        let expected = request[1].timestamp;
        let error = vault.store(request, None).wait().unwrap_err();
        let Error::TimestampConflict { timestamps } = error else { panic!("{error}") };
        assert_eq!(timestamps, [expected]);
        assert_eq!(vault.state().unwrap(), before);
    }
    let page = vault.page(0, 10, usize::MAX).unwrap();
    assert_eq!(page.messages, [message(5, "first")]);
}

#[test]
fn an_error_names_only_so_many_conflicts() {
    let store = Store::new();
    let vault = store.vault();
    let all = |content| (0..150).map(|millis| message(millis, content)).collect::<Vec<_>>();
    vault.store(all("a"), None).wait().unwrap();
    let error = vault.store(all("b"), None).wait().unwrap_err();
    let Error::TimestampConflict { timestamps } = error else { panic!("{error}") };
    assert_eq!(timestamps.len(), TIMESTAMPS_NAMED_MAX);
    assert_eq!(timestamps[99], timestamp(99));
}

#[test]
fn an_empty_request_changes_nothing() {
    let store = Store::new();
    let vault = store.vault();
    let stored = vault.store(Vec::new(), None).wait().unwrap();
    assert_eq!(stored, Stored { stored: 0, known: 0, after: State::default() });
}

#[test]
fn pages_end_at_their_count_or_bytes_and_follow_each_other() {
    let store = Store::new();
    let vault = store.vault();
    // Arrival counts, not time: the older message comes second.
    vault.store(vec![message(9, "nine")], None).wait().unwrap();
    vault.store(vec![message(1, "one!"), message(2, "two!")], None).wait().unwrap();
    let fingerprint = vault.state().unwrap().fingerprint;
    let check = |cursor, count_max, bytes_max, millis: &[u64], last, more| {
        let page = vault.page(cursor, count_max, bytes_max).unwrap();
        let found: Vec<_> = page.messages.iter().map(|m| m.timestamp.millis()).collect();
        assert_eq!((&found[..], page.cursor, page.more), (millis, last, more));
        assert_eq!(page.fingerprint, fingerprint);
    };
    check(0, 10, 1_000, &[9, 1, 2], 3, false);
    check(0, 2, 1_000, &[9, 1], 2, true);
    check(2, 2, 1_000, &[2], 3, false);
    check(0, 10, 1, &[9], 1, true);
    check(0, 10, 5, &[9, 1], 2, true);
    check(3, 10, 1_000, &[], 3, false);
    check(99, 10, 1_000, &[], 3, false);
    check(u64::MAX, 10, 1_000, &[], 3, false);
}

#[test]
fn empty_and_large_contents_come_back() {
    let store = Store::new();
    let vault = store.vault();
    let large = "x".repeat(3 << 20);
    let messages = vec![message(1, ""), message(2, &large), message(3, "")];
    vault.store(messages.clone(), None).wait().unwrap();
    assert_eq!(vault.page(0, 10, usize::MAX).unwrap().messages, messages);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The content is a function of the time, so that batches overlap without conflict.
    #[test]
    fn any_batches_make_their_union_with_its_fingerprint(
        batches in prop::collection::vec(prop::collection::vec(0u64..60, 0..30), 0..12),
    ) {
        let store = Store::new();
        let vault = store.vault();
        let mut set = BTreeMap::new();
        for batch in batches {
            let messages: Vec<_> = batch.iter().map(|&t| message(t, &format!("content {t}"))).collect();
            let before = set.len();
            set.extend(messages.iter().map(|m| (m.timestamp, m.clone())));
            let new = set.len() - before;
            let stored = vault.store(messages, None).wait().unwrap();
            prop_assert_eq!(stored.stored, new as u64);
            prop_assert_eq!(stored.known, (batch.len() - new) as u64);
            prop_assert_eq!(stored.after.cursor, set.len() as u64);
            prop_assert_eq!(stored.after.fingerprint, fingerprint(set.values()));
        }
        let verification = vault.verify().unwrap();
        prop_assert!(verification.is_equal(), "{:?}", verification);
        let mut stored = vault.page(0, 1_000, usize::MAX).unwrap().messages;
        stored.sort_unstable_by_key(|message| message.timestamp);
        prop_assert_eq!(stored, set.into_values().collect::<Vec<_>>());
    }
}
