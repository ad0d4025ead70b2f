//! Tests of storing and paging messages.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use sync_store::{
    Error, MessageBatch, Quota, StoreOutcome, TIMESTAMPS_NAMED_MAX, Vault, VaultSummary,
};

use crate::fixture::VaultsFixture;
use crate::{fingerprint, message, store, timestamp};

pub(crate) async fn storing_twice_stores_once(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    let messages = vec![message(2, "b"), message(1, "a")];
    let after = VaultSummary { cursor: 2, bytes: 2, fingerprint: fingerprint(&messages) };
    let first = store(&vault, messages.clone()).await.unwrap();
    assert_eq!(first, StoreOutcome { stored: 2, known: 0, after });
    let second = store(&vault, messages).await.unwrap();
    assert_eq!(second, StoreOutcome { stored: 0, known: 2, after });
    assert_eq!(vault.summary().await.unwrap(), after);
}

pub(crate) async fn one_message_twice_in_a_request_is_one_message(fixture: &VaultsFixture) {
    let stored = store(&fixture.vault(), vec![message(1, "a"), message(1, "a")]).await.unwrap();
    assert_eq!((stored.stored, stored.known, stored.after.cursor), (1, 1, 1));
}

pub(crate) async fn another_content_refuses_the_whole_request(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    let before = store(&vault, vec![message(5, "first")]).await.unwrap().after;
    for request in [
        vec![message(4, "new"), message(5, "second"), message(6, "new")],
        vec![message(6, "one"), message(6, "other")],
    ] {
        let expected = request[1].timestamp;
        let error = store(&vault, request).await.unwrap_err();
        let Error::TimestampConflict { timestamps } = error else { panic!("{error}") };
        assert_eq!(timestamps, [expected]);
        assert_eq!(vault.summary().await.unwrap(), before);
    }
    let page = vault.page(0, 10, 1 << 30, None).await.unwrap();
    assert_eq!(page.messages, [message(5, "first")]);
}

pub(crate) async fn an_error_names_only_so_many_conflicts(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    let all = |content| (0..150).map(|millis| message(millis, content)).collect::<Vec<_>>();
    store(&vault, all("a")).await.unwrap();
    let error = store(&vault, all("b")).await.unwrap_err();
    let Error::TimestampConflict { timestamps } = error else { panic!("{error}") };
    assert_eq!(timestamps.len(), TIMESTAMPS_NAMED_MAX);
    assert_eq!(timestamps[99], timestamp(99));
}

pub(crate) async fn an_empty_request_changes_nothing(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    let stored = store(&vault, Vec::new()).await.unwrap();
    assert_eq!(stored, StoreOutcome { stored: 0, known: 0, after: VaultSummary::default() });
}

pub(crate) async fn pages_end_at_their_count_or_bytes_and_follow_each_other(
    fixture: &VaultsFixture,
) {
    let vault = fixture.vault();
    // The order of arrival counts, not the time: the older message comes second.
    store(&vault, vec![message(9, "nine")]).await.unwrap();
    store(&vault, vec![message(1, "one!"), message(2, "two!")]).await.unwrap();
    let fingerprint = vault.summary().await.unwrap().fingerprint;
    for (cursor, count_max, bytes_max, millis, last, more) in [
        (0, 10, 1_000, &[9, 1, 2][..], 3, false),
        (0, 2, 1_000, &[9, 1], 2, true),
        (2, 2, 1_000, &[2], 3, false),
        (0, 10, 1, &[9], 1, true),
        (0, 10, 5, &[9, 1], 2, true),
        (3, 10, 1_000, &[], 3, false),
        (99, 10, 1_000, &[], 3, false),
        (u64::MAX, 10, 1_000, &[], 3, false),
    ] {
        let page = vault.page(cursor, count_max, bytes_max, None).await.unwrap();
        let found: Vec<_> = page.messages.iter().map(|m| m.timestamp.millis()).collect();
        assert_eq!((&found[..], page.cursor, page.more), (millis, last, more));
        assert_eq!(page.fingerprint, fingerprint);
    }
}

pub(crate) async fn empty_and_large_contents_come_back(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    let large = "x".repeat(3 << 20);
    let messages = vec![message(1, ""), message(2, &large), message(3, "")];
    store(&vault, messages.clone()).await.unwrap();
    assert_eq!(vault.page(0, 10, 1 << 30, None).await.unwrap().messages, messages);
}

/// The content is a function of the time, so that batches overlap without conflict.
pub(crate) async fn any_batches_make_their_union_with_its_fingerprint(fixture: &VaultsFixture) {
    let mut runner = TestRunner::new(Config::with_cases(16));
    let batches = prop::collection::vec(prop::collection::vec(0u64..60, 0..30), 0..12);
    for _ in 0..runner.config().cases {
        let batches = batches.new_tree(&mut runner).unwrap().current();
        let vault = fixture.vault();
        let mut set = BTreeMap::new();
        for batch in batches {
            let messages: Vec<_> =
                batch.iter().map(|&t| message(t << 28, &format!("content {t}"))).collect();
            let before = set.len();
            set.extend(messages.iter().map(|m| (m.timestamp, m.clone())));
            let new = set.len() - before;
            let stored = store(&vault, messages).await.unwrap();
            assert_eq!(stored.stored, new as u64);
            assert_eq!(stored.known, (batch.len() - new) as u64);
            assert_eq!(stored.after.cursor, set.len() as u64);
            assert_eq!(stored.after.fingerprint, fingerprint(set.values()));
        }
        let verification = vault.verify().await.unwrap();
        assert!(verification.is_equal(), "{verification:?}");
        let mut stored = vault.page(0, 1_000, 1 << 30, None).await.unwrap().messages;
        stored.sort_unstable_by_key(|message| message.timestamp);
        assert_eq!(stored, set.into_values().collect::<Vec<_>>());
    }
}

pub(crate) async fn vaults_do_not_see_each_other(fixture: &VaultsFixture) {
    let (ada, bob) = (fixture.vault(), fixture.vault());
    store(&ada, vec![message(1, "ada's")]).await.unwrap();
    store(&bob, vec![message(1, "bob's"), message(2, "bob's")]).await.unwrap();
    assert_eq!(ada.page(0, 10, 1_000, None).await.unwrap().messages, [message(1, "ada's")]);
    assert_eq!(bob.summary().await.unwrap().cursor, 2);
    assert_eq!(ada.messages(vec![timestamp(2)], 1_000).await.unwrap(), []);
}

pub(crate) async fn a_full_account_takes_nothing_new(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    let quota = Quota { messages_max: 2, bytes_max: 10 };
    let offer =
        async |messages| vault.store(MessageBatch::new(messages).unwrap(), quota, None).await;
    let full = vec![message(1, "12345"), message(2, "1234")];
    let after = offer(full.clone()).await.unwrap().after;
    for (more, what, wanted) in [(message(3, ""), "messages", 3), (message(3, "ab"), "messages", 3)]
    {
        let error = offer(vec![message(1, "12345"), more]).await.unwrap_err();
        let Error::QuotaExceeded { what: found, wanted: would, .. } = error else {
            panic!("{error}")
        };
        assert_eq!((found, would), (what, wanted));
        assert_eq!(vault.summary().await.unwrap(), after);
    }
    // Known messages need no more of the quota.
    assert_eq!(offer(full).await.unwrap().known, 2);
    let small = Quota { messages_max: 9, bytes_max: 10 };
    let batch = MessageBatch::new(vec![message(3, "ab")]).unwrap();
    let error = vault.store(batch, small, None).await.unwrap_err();
    assert!(matches!(error, Error::QuotaExceeded { what: "bytes", wanted: 11, .. }), "{error}");
    assert!(vault.verify().await.unwrap().is_equal());
}

pub(crate) async fn what_follows_a_cursor_is_stored_only_if_nothing_came_between(
    fixture: &VaultsFixture,
) {
    let vault = fixture.vault();
    let offer = async |millis: u64, after| {
        let batch = MessageBatch::new(vec![message(millis, "content")])
            .unwrap()
            .with_expected_cursor(Some(after));
        vault.store(batch, Quota::UNLIMITED, None).await
    };
    assert_eq!(offer(1, 0).await.unwrap().after.cursor, 1);
    let before = vault.summary().await.unwrap();
    // One message is new, and one is known.
    for millis in [2, 1] {
        assert!(matches!(offer(millis, 0).await, Err(Error::StaleCursor)));
        assert_eq!(vault.summary().await.unwrap(), before);
    }
    assert_eq!(offer(2, 1).await.unwrap().after.cursor, 2);
    // This device has a higher cursor than a restored vault.
    assert_eq!(offer(3, 9).await.unwrap().after.cursor, 3);
    assert!(vault.verify().await.unwrap().is_equal());
    // Of concurrent pushes, one is the first.
    let (one, two, three) = tokio::join!(offer(4, 3), offer(5, 3), offer(6, 3));
    assert_eq!([one, two, three].iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(vault.summary().await.unwrap().cursor, 4);
}

pub(crate) async fn messages_are_found_by_timestamp(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    store(&vault, (0..9).map(|millis| message(millis, "content")).collect()).await.unwrap();
    let found = vault.messages(vec![timestamp(4), timestamp(99), timestamp(2)], 1_000).await;
    assert_eq!(found.unwrap(), [message(4, "content"), message(2, "content")]);
    let all = (0..9).map(timestamp).collect();
    assert_eq!(vault.messages(all, 15).await.unwrap().len(), 3, "the third passes 15 bytes");
}

/// Eight sessions push overlapping batches of one set, each in its own order.
pub(crate) async fn sessions_at_once_count_every_timestamp_once(fixture: &VaultsFixture) {
    const MESSAGES: u64 = 2_000;
    let vault = fixture.vault();
    let of = |n: u64| message(n << 24, &format!("content {n}"));
    let session = |session: u64| {
        let vault = Vault::clone(&vault);
        async move {
            let mut stored = 0;
            for step in 0..12 {
                let first = (session * 7 + step * 5) * 40;
                let batch = (first..first + 200).map(|n| of(n * 31 % MESSAGES)).collect();
                stored += store(&vault, batch).await.unwrap().stored;
            }
            stored
        }
    };
    let sessions: Vec<_> = (0..8).map(|number| tokio::spawn(session(number))).collect();
    let mut stored = 0;
    for session in sessions {
        stored += session.await.unwrap();
    }
    let state = vault.summary().await.unwrap();
    assert_eq!((state.cursor, state.fingerprint.count), (stored, stored));
    let verification = vault.verify().await.unwrap();
    assert!(verification.is_equal(), "{verification:?}");
    // Every sequence number belongs to one message, so a reader by cursor misses none.
    let (mut cursor, mut seen) = (0, std::collections::BTreeSet::new());
    loop {
        let page = vault.page(cursor, 300, 1 << 20, None).await.unwrap();
        seen.extend(page.messages.iter().map(|message| message.timestamp));
        assert_eq!(page.cursor, seen.len() as u64);
        cursor = page.cursor;
        if !page.more {
            break;
        }
    }
    assert_eq!(seen.len() as u64, stored);
}

/// A reader that continues from the last cursor gets everything once while others store.
pub(crate) async fn a_reader_beside_writers_misses_nothing(fixture: &VaultsFixture) {
    const WRITERS: u64 = 6;
    const PUSHES: u64 = 40;
    let vault = fixture.vault();
    let writer = |writer: u64| {
        let vault = Vault::clone(&vault);
        async move {
            for push in 0..PUSHES {
                // One of them is rolled back: its sequence numbers must not leave a gap.
                let batch = (0..5).map(|n| message((writer * PUSHES + push) * 5 + n, "new"));
                let refused = message(0, "another content");
                if writer > 0 && push % 7 == 0 {
                    store(&vault, batch.clone().chain([refused]).collect()).await.unwrap_err();
                }
                store(&vault, batch.collect()).await.unwrap();
            }
        }
    };
    store(&vault, (0..5).map(|n| message(n, "new")).collect()).await.unwrap();
    let writers: Vec<_> = (0..WRITERS).map(|number| tokio::spawn(writer(number))).collect();
    let (mut cursor, mut found) = (0, Vec::new());
    while (found.len() as u64) < WRITERS * PUSHES * 5 {
        let page = vault.page(cursor, 100, 1 << 20, None).await.unwrap();
        found.extend(page.messages.iter().map(|message| message.timestamp));
        assert_eq!(page.cursor, found.len() as u64);
        assert!(page.fingerprint.count >= page.cursor);
        cursor = page.cursor;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    found.sort_unstable();
    assert!(found.is_sorted_by(|one, next| one < next), "each once");
}
