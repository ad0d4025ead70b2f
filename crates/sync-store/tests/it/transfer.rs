//! Tests of copying vaults between storages.

use std::sync::Arc;

use accounts::DeviceId;
use bytes::Bytes;
use crdt::Message;
use sync_store::{BlobChunkId, BlobId, CompleteBlob, Error, Vault, VaultDevice, copy_vault};

use crate::fixture::{VaultsFixture, postgres, sqlite};
use crate::{message, store as push};

/// The order of arrival is not that of time.
const PUSHES: [&[u64]; 5] = [&[50, 51, 52], &[10], &[9], &[60, 61], &[1, 2, 70]];

fn all() -> Vec<Message> {
    PUSHES.concat().iter().map(|millis| message(*millis, &format!("content {millis}"))).collect()
}

async fn filled(fixture: &VaultsFixture) -> Vault {
    let vault = fixture.vault();
    for millis in PUSHES {
        let messages = millis.iter().map(|millis| message(*millis, &format!("content {millis}")));
        push(&vault, messages.collect()).await.unwrap();
    }
    let (name, node_id) = ("phone ☂".to_owned(), Some(crdt::NodeId(u64::MAX)));
    let id = DeviceId::generate();
    let phone = VaultDevice {
        id,
        name,
        node_id,
        cursor: 4,
        unsent_count: 2,
        last_seen_ms: 7,
        created_ms: 1,
    };
    vault.add_device(phone).await.unwrap();
    upload(&vault, b"first").await;
    vault
}

/// Writes a blob of two chunks, and a state that names it.
async fn upload(vault: &Vault, name: &'static [u8]) {
    let blob = BlobId::generate();
    for number in 0..2 {
        let content =
            Bytes::from([name, &number.to_string().repeat(100_000).into_bytes()].concat());
        vault.put_chunk(BlobChunkId { blob, number }, content).await.unwrap();
    }
    let update = Arc::new(move |_: &[u8], _: &[_]| Ok([name, &blob.get().to_be_bytes()].concat()));
    vault.replace_blob(CompleteBlob { id: blob, chunks_count: 2 }, update).await.unwrap();
}

async fn check_equal(from: &Vault, to: &Vault) {
    assert_eq!(from.summary().await.unwrap(), to.summary().await.unwrap());
    assert_eq!(from.windows().await.unwrap(), to.windows().await.unwrap());
    assert_eq!(from.devices().await.unwrap(), to.devices().await.unwrap());
    assert_eq!(from.gateway_state().await.unwrap(), to.gateway_state().await.unwrap());
    let chunks = from.chunk_ids().await.unwrap();
    assert_eq!(chunks, to.chunk_ids().await.unwrap());
    assert_eq!(chunks.len(), 2);
    for chunk in chunks {
        assert_eq!(from.chunk(chunk).await.unwrap(), to.chunk(chunk).await.unwrap());
    }
    for cursor in 0..all().len() as u64 {
        let (expected, found) =
            (from.page(cursor, 3, 1_000, None).await, to.page(cursor, 3, 1_000, None).await);
        assert_eq!(expected.unwrap(), found.unwrap(), "after {cursor}");
    }
}

#[tokio::test]
async fn a_vault_goes_to_postgres_and_back_as_it_is() {
    let (files, rows) = (sqlite(), postgres().await);
    let original = filled(&files).await;
    let (there, back) = (rows.vault(), files.vault());
    let mut done = Vec::new();
    let state = copy_vault(&original, &there, |count| done.push(count)).await.unwrap();
    assert_eq!((state.cursor, state.fingerprint.count), (10, 10));
    assert_eq!(done, [3, 4, 7, 10], "runs in order of time");
    check_equal(&original, &there).await;
    // Changes of the copy are copied back, even to a storage that has the rest.
    copy_vault(&there, &back, |_| ()).await.unwrap();
    push(&there, vec![message(5, "later")]).await.unwrap();
    upload(&there, b"second").await;
    there.remove_devices(vec![there.devices().await.unwrap().remove(0).id]).await.unwrap();
    let mut done = Vec::new();
    copy_vault(&there, &back, |count| done.push(count)).await.unwrap();
    assert_eq!(done, [11]);
    check_equal(&there, &back).await;
}

#[tokio::test]
async fn a_copy_that_broke_off_goes_on() {
    let (files, rows) = (sqlite(), postgres().await);
    let (original, there) = (filled(&files).await, rows.vault());
    // A killed copy has left its first runs.
    for messages in [&all()[..3], &all()[3..4]] {
        push(&there, messages.to_vec()).await.unwrap();
    }
    let first = original.chunk_ids().await.unwrap()[0];
    there.put_chunk(first, Bytes::from_static(b"half of it")).await.unwrap();
    let mut done = Vec::new();
    copy_vault(&original, &there, |count| done.push(count)).await.unwrap();
    assert_eq!(done.first(), Some(&7));
    check_equal(&original, &there).await;
}

#[tokio::test]
async fn a_place_that_has_other_messages_is_not_taken_for_a_copy() {
    let (files, rows) = (sqlite(), postgres().await);
    let (original, there) = (filled(&files).await, rows.vault());
    push(&there, vec![message(3, "of another")]).await.unwrap();
    let error = copy_vault(&original, &there, |_| ()).await.unwrap_err();
    assert!(matches!(error, Error::CopyDiffers { .. }), "{error}");
}

#[tokio::test]
async fn a_vault_that_was_cleared_is_copied_with_what_came_after() {
    let (files, rows) = (sqlite(), postgres().await);
    for (from, to) in [(&files, rows.vault()), (&rows, files.vault())] {
        let original = filled(from).await;
        original.clear(Arc::new(|record, _| Ok(record.to_vec()))).await.unwrap();
        push(&original, vec![message(7, "after"), message(8, "after")]).await.unwrap();
        push(&original, vec![message(1, "after")]).await.unwrap();
        let copied = copy_vault(&original, &to, |_| ()).await.unwrap();
        assert_eq!(copied.fingerprint, original.summary().await.unwrap().fingerprint);
        let (expected, found) =
            (original.page(0, 9, 1_000, None).await, to.page(0, 9, 1_000, None).await);
        assert_eq!(expected.unwrap().messages, found.unwrap().messages);
        assert_eq!(
            original.gateway_state().await.unwrap().state,
            to.gateway_state().await.unwrap().state
        );
        // A copy that still has cleared messages is not equal.
        original.clear(Arc::new(|record, _| Ok(record.to_vec()))).await.unwrap();
        let error = copy_vault(&original, &to, |_| ()).await.unwrap_err();
        assert!(matches!(error, Error::CopyDiffers { .. }), "{error}");
    }
}
