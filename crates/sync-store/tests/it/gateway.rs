//! Tests of a vault's operations for gateways.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use crdt::{Message, Timestamp};
use sync_store::{
    BlobChunkId, BlobId, CompleteBlob, Error, ExchangeOutcome, MessageBatch, UpdateStateFn, Vault,
    VaultSummary,
};

use crate::fixture::VaultsFixture;
use crate::{fingerprint, message, store, timestamp};

/// Returns an update that counts: the state is the number of messages that it was given, as text.
pub(crate) fn counting() -> UpdateStateFn {
    Arc::new(|record, timestamps| Ok((count(record) + timestamps.len()).to_string().into_bytes()))
}

/// Returns the number that [`counting`] wrote.
pub(crate) fn count(record: &[u8]) -> usize {
    match record {
        [] => 0,
        record => str::from_utf8(record).unwrap().parse().unwrap(),
    }
}

fn writing(record: &[u8]) -> UpdateStateFn {
    let record = record.to_vec();
    Arc::new(move |_, _| Ok(record.clone()))
}

pub(crate) async fn exchange(vault: &Vault, messages: Vec<Message>) -> ExchangeOutcome {
    vault.exchange(MessageBatch::new_keeping_first(messages), counting()).await.unwrap()
}

async fn check_sound(vault: &Vault) {
    let verification = vault.verify().await.unwrap();
    assert!(verification.is_equal(), "{verification:?}");
    vault.windows().await.unwrap();
}

pub(crate) async fn an_exchange_shows_what_is_new_in_order_and_keeps_the_record(
    fixture: &VaultsFixture,
) {
    let vault = fixture.vault();
    let recorded = vault.gateway_state().await.unwrap();
    assert_eq!((recorded.cursor, &recorded.state[..]), (0, &b""[..]));
    store(&vault, vec![message(5, "known")]).await.unwrap();
    let shown = Arc::new(Mutex::new(Vec::new()));
    let show = Arc::clone(&shown);
    let update: UpdateStateFn = Arc::new(move |record, timestamps| {
        *show.lock().unwrap() = vec![(record.to_vec(), timestamps.to_vec())];
        Ok([record, b"+"].concat())
    });
    let messages = [9, 5, 1, 1 << 40, 7].map(|millis| message(millis, "known")).to_vec();
    let answer = vault
        .exchange(MessageBatch::new_keeping_first(messages.clone()), Arc::clone(&update))
        .await;
    let expected = ExchangeOutcome { cursor: 1, stored: 4, state: Bytes::from_static(b"+") };
    assert_eq!(answer.unwrap(), expected);
    let fresh: Vec<Timestamp> = [1, 7, 9, 1 << 40].map(timestamp).to_vec();
    assert_eq!(*shown.lock().unwrap(), [(Vec::new(), fresh)]);
    // The same messages again: none is new.
    let answer = vault.exchange(MessageBatch::new_keeping_first(messages.clone()), update).await;
    let expected = ExchangeOutcome { cursor: 5, stored: 0, state: Bytes::from_static(b"++") };
    assert_eq!(answer.unwrap(), expected);
    assert_eq!(*shown.lock().unwrap(), [(b"+".to_vec(), Vec::new())]);
    let recorded = vault.gateway_state().await.unwrap();
    assert_eq!((recorded.cursor, &recorded.state[..]), (5, &b"++"[..]));
    let state = VaultSummary { cursor: 5, bytes: 25, fingerprint: fingerprint(&messages) };
    assert_eq!(vault.summary().await.unwrap(), state);
    check_sound(&vault).await;
}

pub(crate) async fn a_gateway_that_declines_stores_nothing(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    exchange(&vault, vec![message(1, "a")]).await;
    let before = (vault.summary().await.unwrap(), vault.gateway_state().await.unwrap());
    let declining = || -> UpdateStateFn { Arc::new(|_, _| Err("not today".into())) };
    let answer =
        vault.exchange(MessageBatch::new_keeping_first(vec![message(2, "b")]), declining()).await;
    let error = answer.unwrap_err();
    assert!(matches!(&error, Error::Declined(cause) if cause.to_string() == "not today"));
    let error = vault.clear(declining()).await.unwrap_err();
    assert!(matches!(error, Error::Declined(_)), "{error}");
    assert_eq!((vault.summary().await.unwrap(), vault.gateway_state().await.unwrap()), before);
    check_sound(&vault).await;
}

pub(crate) async fn the_first_content_of_a_timestamp_stays(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    exchange(&vault, vec![message(2, "second"), message(1, "one"), message(2, "other")]).await;
    let answer = exchange(&vault, vec![message(1, "sealed anew"), message(3, "new")]).await;
    assert_eq!((answer.stored, answer.cursor), (1, 2));
    let expected = [message(1, "one"), message(2, "second"), message(3, "new")];
    assert_eq!(vault.page(0, 10, 1_000, None).await.unwrap().messages, expected);
    let state = VaultSummary { cursor: 3, bytes: 12, fingerprint: fingerprint(&expected) };
    assert_eq!(vault.summary().await.unwrap(), state);
    check_sound(&vault).await;
    // Pushes of Warren's own devices are still refused.
    let error = store(&vault, vec![message(1, "sealed anew")]).await.unwrap_err();
    assert!(matches!(error, Error::TimestampConflict { .. }), "{error}");
}

pub(crate) async fn exchange_and_store_make_the_same_vault(fixture: &VaultsFixture) {
    let (one, other) = (fixture.vault(), fixture.vault());
    for batch in 0..4u64 {
        let messages: Vec<_> =
            (0..300).map(|n| message((n * 7 + batch) << 26, &format!("content {n}"))).collect();
        exchange(&one, messages.clone()).await;
        store(&other, messages).await.unwrap();
    }
    assert_eq!(one.summary().await.unwrap(), other.summary().await.unwrap());
    assert_eq!(one.windows().await.unwrap(), other.windows().await.unwrap());
    let pages = [&one, &other].map(|vault| vault.page(0, 5_000, 1 << 20, None));
    let [one_page, other_page] = pages;
    assert_eq!(one_page.await.unwrap(), other_page.await.unwrap());
    assert_eq!(count(&one.gateway_state().await.unwrap().state), 1_200);
    check_sound(&one).await;
}

pub(crate) async fn messages_since_a_timestamp_are_those_that_had_arrived(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    store(&vault, vec![message(50, "50")]).await.unwrap();
    store(&vault, vec![message(10, "10"), message(30, "30"), message(70, "70")]).await.unwrap();
    exchange(&vault, vec![message(20, "20"), message(60, "60")]).await;
    let all = usize::MAX;
    for (start, cursor, count_max, bytes_max, expected) in [
        (0, 6, all, all, &[10, 20, 30, 50, 60, 70][..]),
        (0, u64::MAX, all, all, &[10, 20, 30, 50, 60, 70]),
        (30, 6, all, all, &[30, 50, 60, 70]),
        (31, 6, all, all, &[50, 60, 70]),
        (71, 6, all, all, &[]),
        (0, 0, all, all, &[]),
        (0, 1, all, all, &[50]),
        // A cursor within one push: the messages that arrived together are in order of time.
        (0, 2, all, all, &[10, 50]),
        (0, 3, all, all, &[10, 30, 50]),
        (0, 4, all, all, &[10, 30, 50, 70]),
        (0, 5, all, all, &[10, 20, 30, 50, 70]),
        (40, 5, all, all, &[50, 70]),
        (0, 4, 2, all, &[10, 30]),
        (0, 6, 0, all, &[]),
        (0, 6, all, 1, &[10]),
        (0, 6, all, 4, &[10, 20]),
        (0, 6, all, 5, &[10, 20, 30]),
    ] {
        let found =
            vault.messages_from(timestamp(start), cursor, count_max, bytes_max).await.unwrap();
        let expected: Vec<_> = expected.iter().map(|n| message(*n, &n.to_string())).collect();
        assert_eq!(found, expected, "from {start} up to {cursor}, {count_max}, {bytes_max}");
    }
    assert_eq!(fixture.vault().messages_from(timestamp(0), 9, all, all).await.unwrap(), []);
}

pub(crate) async fn a_look_is_the_record_and_the_first_messages(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    exchange(&vault, vec![message(20, "b"), message(10, "a")]).await;
    let (recorded, messages) = vault.read_with_messages(timestamp(10), 1, 9).await.unwrap();
    assert_eq!(recorded, vault.gateway_state().await.unwrap());
    assert_eq!(messages, [message(10, "a")]);
    // New messages of the exchange itself had not arrived before it.
    let batch = MessageBatch::new_keeping_first(vec![message(20, "b"), message(15, "new")]);
    let looked = vault.exchange_and_read(batch, counting(), timestamp(11), 9, 9).await;
    let (exchanged, messages) = looked.unwrap();
    assert_eq!((exchanged.cursor, exchanged.stored, &exchanged.state[..]), (2, 1, &b"3"[..]));
    assert_eq!(messages, [message(20, "b")]);
}

pub(crate) async fn a_cleared_vault_goes_on_counting(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    vault.clear(writing(b"0")).await.unwrap();
    assert_eq!(vault.summary().await.unwrap(), VaultSummary::default());
    exchange_all(&vault, 0..500).await;
    store(&vault, vec![message(1 << 45, "late")]).await.unwrap();
    let chunk = BlobChunkId { blob: BlobId::generate(), number: 0 };
    vault.put_chunk(chunk, Bytes::from_static(b"stays")).await.unwrap();
    let seen = Arc::new(Mutex::new(None));
    let see = Arc::clone(&seen);
    let update: UpdateStateFn = Arc::new(move |record, timestamps| {
        *see.lock().unwrap() = Some((record.to_vec(), timestamps.len()));
        Ok(b"7".to_vec())
    });
    vault.clear(update).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), Some((b"500".to_vec(), 0)));
    assert_eq!(
        vault.summary().await.unwrap(),
        VaultSummary { cursor: 501, ..VaultSummary::default() }
    );
    assert_eq!(vault.windows().await.unwrap(), []);
    assert_eq!(vault.messages_from(timestamp(0), 501, 9, 9).await.unwrap(), []);
    check_sound(&vault).await;
    let empty = vault.page(3, 2, 1_000, None).await.unwrap();
    assert_eq!((&empty.messages[..], empty.cursor, empty.more), (&[][..], 501, false));
    let recorded = vault.gateway_state().await.unwrap();
    assert_eq!((recorded.cursor, &recorded.state[..]), (501, &b"7"[..]));
    assert_eq!(vault.chunk_ids().await.unwrap(), [chunk]);
    // Messages that were known are new again, and other contents do not conflict.
    let after = store(&vault, vec![message(1, "anew"), message(3, "anew")]).await.unwrap();
    assert_eq!((after.stored, after.after.cursor), (2, 503));
    let answer = exchange(&vault, vec![message(2, "anew"), message(3, "known")]).await;
    let record = Bytes::from_static(b"8");
    assert_eq!(answer, ExchangeOutcome { cursor: 503, stored: 1, state: record });
    for (cursor, count_max, millis, last) in
        [(0, 2, &[1, 3][..], 503), (400, 1, &[1], 502), (501, 9, &[1, 3, 2], 504)]
    {
        let page = vault.page(cursor, count_max, 1_000, None).await.unwrap();
        let found: Vec<_> = page.messages.iter().map(|m| m.timestamp.millis()).collect();
        assert_eq!((&found[..], page.cursor, page.more), (millis, last, last < 504));
    }
    let before_last = vault.messages_from(timestamp(0), 503, 9, 1_000).await.unwrap();
    assert_eq!(before_last, [message(1, "anew"), message(3, "anew")]);
    check_sound(&vault).await;
    vault.rebuild().await.unwrap();
    assert_eq!(vault.summary().await.unwrap().cursor, 504);
}

async fn exchange_all(vault: &Vault, range: std::ops::Range<u64>) {
    exchange(vault, range.map(|n| message(n << 25, "content")).collect()).await;
}

pub(crate) async fn pieces_are_kept_by_blob_and_number(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    let mut blobs = [BlobId::generate(), BlobId::generate()];
    blobs.sort_unstable();
    let [one, other] = blobs;
    let of = |blob, number| BlobChunkId { blob, number };
    let large: Bytes = (0..256 << 10).map(|n: u32| n.to_le_bytes()[(n % 3) as usize]).collect();
    let last = BlobChunkId::COUNT_MAX - 1;
    for (chunk, content) in [
        (of(other, 1), Bytes::from_static(b"second")),
        (of(other, 0), Bytes::new()),
        (of(one, last), large.clone()),
        (of(one, 0), Bytes::from_static(b"old")),
        (of(one, 0), Bytes::from_static(b"replaced")),
    ] {
        vault.put_chunk(chunk, content).await.unwrap();
    }
    let all = [of(one, 0), of(one, last), of(other, 0), of(other, 1)];
    assert_eq!(vault.chunk_ids().await.unwrap(), all);
    assert_eq!(vault.chunk(of(one, 0)).await.unwrap().unwrap(), "replaced");
    assert_eq!(vault.chunk(of(one, last)).await.unwrap().unwrap(), large);
    assert_eq!(vault.chunk(of(other, 0)).await.unwrap().unwrap(), "");
    assert_eq!(vault.chunk(of(other, 2)).await.unwrap(), None);
    assert_eq!(fixture.vault().chunk_ids().await.unwrap(), []);
    vault.remove_blob(one).await.unwrap();
    assert_eq!(vault.chunk_ids().await.unwrap(), all[2..]);
    vault.remove_blob(one).await.unwrap();
    vault.remove_blob(other).await.unwrap();
    assert_eq!(vault.chunk_ids().await.unwrap(), []);
}

pub(crate) async fn a_record_names_only_a_blob_that_is_whole(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    let [first, second] = [BlobId::generate(), BlobId::generate()];
    let put = async |blob, number| {
        vault.put_chunk(BlobChunkId { blob, number }, Bytes::from_static(b"piece")).await.unwrap();
    };
    let replace = async |id, chunks_count, record: &[u8]| {
        vault.replace_blob(CompleteBlob { id, chunks_count }, writing(record)).await
    };
    let blobs = async || -> BTreeSet<BlobId> {
        vault.chunk_ids().await.unwrap().into_iter().map(|chunk| chunk.blob).collect()
    };
    // Two servers write one blob each at the same time.
    for (blob, number) in [(first, 0), (second, 0), (first, 1), (second, 1)] {
        put(blob, number).await;
    }
    assert_eq!(replace(first, 2, b"first").await.unwrap().state, "first");
    assert_eq!(blobs().await, BTreeSet::from([first]));
    let refused = replace(second, 2, b"second").await.unwrap_err();
    assert!(matches!(refused, Error::BlobIncomplete), "{refused}");
    assert_eq!(vault.gateway_state().await.unwrap().state, "first");
    assert_eq!(blobs().await, BTreeSet::from([first]));
    // The next complete blob removes the rest of a broken upload.
    put(second, 0).await;
    let whole = BlobId::generate();
    put(whole, 0).await;
    replace(whole, 1, b"whole").await.unwrap();
    assert_eq!(blobs().await, BTreeSet::from([whole]));
    // A declined state changes nothing.
    put(second, 0).await;
    let declining: UpdateStateFn = Arc::new(|_, _| Err("no".into()));
    let blob = CompleteBlob { id: second, chunks_count: 1 };
    let refused = vault.replace_blob(blob, declining).await.unwrap_err();
    assert!(matches!(refused, Error::Declined(_)), "{refused}");
    assert_eq!(blobs().await, BTreeSet::from([second, whole]));
    // A blob of no bytes has no chunks.
    replace(BlobId::generate(), 0, b"empty").await.unwrap();
    assert_eq!(blobs().await, BTreeSet::new());
}

pub(crate) async fn a_large_record_comes_back(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    let large: Vec<u8> = (0..200_000u32).map(|n| n.to_le_bytes()[(n % 3) as usize]).collect();
    for record in [&large[..], &large[7..], b"", &large] {
        let answer = vault.exchange(MessageBatch::default(), writing(record)).await.unwrap();
        assert_eq!((answer.cursor, answer.stored, &answer.state[..]), (0, 0, record));
        assert_eq!(vault.gateway_state().await.unwrap().state, record);
    }
}

/// Sixteen tasks run at the same time with overlapping messages: every message is counted once.
pub(crate) async fn exchanges_at_once_lose_nothing(fixture: &VaultsFixture) {
    const TASKS: u64 = 16;
    let vault = fixture.vault();
    let task = |task: u64| {
        let vault = Vault::clone(&vault);
        async move {
            let mut stored = 0;
            for step in 0..6 {
                let first = (task * 3 + step * 5) * 4;
                let messages = (first..first + 12).map(|n| message(n << 28, "content"));
                stored += exchange(&vault, messages.collect()).await.stored;
            }
            stored
        }
    };
    let tasks: Vec<_> = (0..TASKS).map(|number| tokio::spawn(task(number))).collect();
    let mut stored = 0;
    for task in tasks {
        stored += task.await.unwrap();
    }
    let (state, recorded) = (vault.summary().await.unwrap(), vault.gateway_state().await.unwrap());
    assert_eq!((state.fingerprint.count, state.cursor), (stored, stored));
    assert_eq!((count(&recorded.state) as u64, recorded.cursor), (stored, stored));
    check_sound(&vault).await;
}

/// The state always belongs to the messages up to the cursor that is returned with it.
pub(crate) async fn a_reader_beside_exchanges_sees_a_record_that_fits(fixture: &VaultsFixture) {
    const WRITERS: u64 = 4;
    const EXCHANGES: u64 = 15;
    let vault = fixture.vault();
    let writer = |writer: u64| {
        let vault = Vault::clone(&vault);
        async move {
            for step in 0..EXCHANGES {
                let messages = (0..3).map(|n| message((step * 3 + n) * WRITERS + writer, "new"));
                exchange(&vault, messages.collect()).await;
            }
        }
    };
    let writers: Vec<_> = (0..WRITERS).map(|number| tokio::spawn(writer(number))).collect();
    let mut cursor = 0;
    while cursor < WRITERS * EXCHANGES * 3 {
        let recorded = vault.gateway_state().await.unwrap();
        assert_eq!(count(&recorded.state) as u64, recorded.cursor);
        assert!(recorded.cursor >= cursor);
        cursor = recorded.cursor;
        let found = vault.messages_from(timestamp(0), cursor, 1_000, 1 << 20).await.unwrap();
        assert_eq!(found.len() as u64, cursor);
        assert!(found.is_sorted_by(|one, next| one.timestamp < next.timestamp), "each once");
    }
    for writer in writers {
        writer.await.unwrap();
    }
}
