//! Tests of messages that get another content and keep their sequence numbers.

use crdt::{Fingerprint, Message};
use sync_store::{Error, MessageErasure, Quota, Vault, VaultSummary};

use crate::fixture::VaultsFixture;
use crate::{fingerprint, message, store};

/// Returns an erasure that replaces `before` with `after`.
fn erasure(before: &Message, after: &str) -> MessageErasure {
    let hash = Fingerprint::from_message(before.timestamp, &before.content).digest;
    MessageErasure { message: Message { content: after.to_owned().into(), ..before.clone() }, hash }
}

async fn all(vault: &Vault) -> Vec<Message> {
    vault.page(0, 100, 1 << 30, None).await.unwrap().messages
}

pub(crate) async fn erased_contents_are_gone_and_the_sums_follow(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    // The messages are in two windows of time.
    let before = [message(1, "secret one"), message(2, "kept"), message(1 << 40, "secret two")];
    store(&vault, before.to_vec()).await.unwrap();
    let after = [message(1, "-"), message(2, "kept"), message(1 << 40, "a longer one than before")];
    let erasures = vec![
        erasure(&before[2], "a longer one than before"),
        erasure(&before[1], "kept"),
        erasure(&before[0], "-"),
    ];
    let erased = vault.erase(erasures.clone(), Quota::UNLIMITED).await.unwrap();
    let bytes = after.iter().map(|message| message.content.len() as u64).sum();
    let state = VaultSummary { cursor: 3, bytes, fingerprint: fingerprint(&after) };
    assert_eq!((erased.stored, erased.known, erased.after), (2, 1, state));
    assert_eq!(all(&vault).await, after);
    assert!(vault.verify().await.unwrap().is_equal());
    let windows = vault.windows().await.unwrap();
    assert_eq!(windows.len(), 2);
    let again = vault.erase(erasures, Quota::UNLIMITED).await.unwrap();
    assert_eq!((again.stored, again.known, again.after), (0, 3, state), "asked again");
    let more = store(&vault, vec![message(3, "new")]).await.unwrap();
    assert_eq!((more.stored, more.after.cursor), (1, 4));
    assert!(vault.verify().await.unwrap().is_equal());
}

pub(crate) async fn what_is_not_as_it_was_taken_for_is_left(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    let stored = [message(1, "one"), message(2, "two")];
    let state = store(&vault, stored.to_vec()).await.unwrap().after;
    for other in [message(2, "another"), message(3, "not there")] {
        let erasures = vec![erasure(&stored[0], ""), erasure(&other, "")];
        let error = vault.erase(erasures, Quota::UNLIMITED).await.unwrap_err();
        assert!(matches!(error, Error::StaleCursor), "{error}");
        assert_eq!((all(&vault).await, vault.summary().await.unwrap()), (stored.to_vec(), state));
    }
    let quota = Quota { bytes_max: 7, ..Quota::UNLIMITED };
    let error = vault.erase(vec![erasure(&stored[0], "12345")], quota).await.unwrap_err();
    assert!(matches!(error, Error::QuotaExceeded { what: "bytes", wanted: 8, .. }), "{error}");
    assert_eq!((all(&vault).await, vault.summary().await.unwrap()), (stored.to_vec(), state));
    let none = vault.erase(Vec::new(), Quota::UNLIMITED).await.unwrap();
    assert_eq!((none.stored, none.after), (0, state));
}
