//! Tests of the data that two sides compare: windows, buckets and entries.

use std::ops::Range;

use crdt::{Fingerprint, FingerprintWindow, Message, NodeId, Timestamp};
use sync_store::{RangeBucket, Vault};

use crate::fixture::VaultsFixture;
use crate::{fingerprint, message, store};

/// Returns messages that are spread unevenly over five windows.
fn spread() -> Vec<Message> {
    (0..500u64).map(|n| message(n * n * 21_000, &format!("content {n}"))).collect()
}

async fn vault_with(fixture: &VaultsFixture, messages: &[Message]) -> Vault {
    let vault = fixture.vault();
    for batch in messages.chunks(70).rev() {
        store(&vault, batch.to_vec()).await.unwrap();
    }
    vault
}

fn whole_time() -> Vec<Range<u64>> {
    std::iter::once(0..u64::MAX).collect()
}

fn sum(fingerprints: impl IntoIterator<Item = Fingerprint>) -> Fingerprint {
    fingerprints.into_iter().fold(Fingerprint::default(), |mut sum, one| {
        sum += one;
        sum
    })
}

pub(crate) async fn windows_add_up_to_the_state(fixture: &VaultsFixture) {
    let messages = spread();
    let vault = vault_with(fixture, &messages).await;
    let windows = vault.windows().await.unwrap();
    assert!(windows.len() > 4 && windows.is_sorted_by_key(|(window, _)| *window));
    assert_eq!(sum(windows.iter().map(|w| w.1)), vault.summary().await.unwrap().fingerprint);
    for (window, recorded) in windows {
        let of_window =
            messages.iter().filter(|m| FingerprintWindow::for_timestamp(m.timestamp) == window);
        assert_eq!(recorded, fingerprint(of_window), "{window:?}");
    }
}

pub(crate) async fn parts_are_cut_by_count_and_add_up(fixture: &VaultsFixture) {
    let messages = spread();
    let vault = vault_with(fixture, &messages).await;
    let moment = |index: usize| messages[index].timestamp.hybrid_time();
    let ranges = vec![0..moment(3), moment(3)..moment(110), moment(200)..u64::MAX];
    let parts = vault.buckets(ranges.clone(), 50).await.unwrap();
    let counts =
        |parts: &[RangeBucket]| parts.iter().map(|p| p.fingerprint.count).collect::<Vec<_>>();
    assert_eq!(counts(&parts[0]), [3]);
    assert_eq!(counts(&parts[1]), [50, 50, 7]);
    assert_eq!(counts(&parts[2]), [50; 6]);
    for (range, parts) in ranges.iter().zip(parts) {
        let mut start = range.start;
        for part in &parts {
            let of_part =
                messages.iter().filter(|m| (start..part.end).contains(&m.timestamp.hybrid_time()));
            assert_eq!(part.fingerprint, fingerprint(of_part));
            start = part.end;
        }
        assert_eq!(start, range.end);
    }
    let whole = vault.buckets(whole_time(), u64::MAX).await.unwrap();
    let fingerprint = vault.summary().await.unwrap().fingerprint;
    assert_eq!(whole, [vec![RangeBucket { end: u64::MAX, fingerprint }]]);
    assert_eq!(
        fixture.vault().buckets(vec![0..9, 9..u64::MAX], 1).await.unwrap(),
        [vec![], vec![]]
    );
}

pub(crate) async fn messages_of_one_moment_stay_together(fixture: &VaultsFixture) {
    let of = |node| Message {
        timestamp: Timestamp::new(9, 9, NodeId(node)).unwrap(),
        content: node.to_string().into(),
    };
    let messages: Vec<_> = (0..40).map(of).chain([message(10, "after")]).collect();
    let vault = vault_with(fixture, &messages).await;
    let parts = vault.buckets(whole_time(), 3).await.unwrap().remove(0);
    assert_eq!(parts.iter().map(|part| part.fingerprint.count).collect::<Vec<_>>(), [40, 1]);
    assert_eq!(parts[0].end, messages[40].timestamp.hybrid_time());
}

pub(crate) async fn the_newest_message_is_found_among_many(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    assert_eq!(sync_store::newest_timestamp(vault.as_ref()).await.unwrap(), None);
    // The vault has more than one bucket, in one window and in the next.
    for (start, count) in [(0, 1), (1, 2_100), (FingerprintWindow(3).time_range().start >> 16, 1)] {
        let messages: Vec<_> = (start..start + count).map(|n| message(n, "content")).collect();
        store(&vault, messages).await.unwrap();
        let newest = sync_store::newest_timestamp(vault.as_ref()).await.unwrap();
        assert_eq!(newest, Some(message(start + count - 1, "").timestamp));
    }
}

pub(crate) async fn items_are_those_of_their_ranges(fixture: &VaultsFixture) {
    let messages = spread();
    let vault = vault_with(fixture, &messages).await;
    let moment = |index: usize| messages[index].timestamp.hybrid_time();
    let ranges = vec![0..moment(2), moment(7)..moment(9), 5 << 60..6 << 60];
    let counts = async |count_max| {
        let found = vault.entries(ranges.clone(), count_max).await.unwrap();
        found.iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(counts(0).await, [0; 0]);
    assert_eq!(counts(2).await, [2]);
    assert_eq!(counts(3).await, [2, 1]);
    assert_eq!(counts(5).await, [2, 2, 0]);
    let found = vault.entries(ranges.clone(), usize::MAX).await;
    let expected = |range: Range<usize>| {
        let one =
            |m: &Message| (m.timestamp, Fingerprint::from_message(m.timestamp, &m.content).digest);
        messages[range].iter().map(one).collect::<Vec<_>>()
    };
    let found = found.unwrap().into_iter();
    let found: Vec<Vec<_>> = found
        .map(|items| items.into_iter().map(|item| (item.timestamp, item.hash)).collect())
        .collect();
    assert_eq!(found, [expected(0..2), expected(7..9), vec![]]);
}

pub(crate) async fn a_rebuilt_vault_is_as_it_was(fixture: &VaultsFixture) {
    let vault = vault_with(fixture, &spread()).await;
    let before = (vault.summary().await.unwrap(), vault.windows().await.unwrap());
    vault.rebuild().await.unwrap();
    assert_eq!((vault.summary().await.unwrap(), vault.windows().await.unwrap()), before);
    assert!(vault.verify().await.unwrap().is_equal());
}
