//! Tests of vaults as files: keys, isolation, restart, removal, and plaintext in their bytes.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use accounts::{DeviceId, VaultId};
use bytes::Bytes;
use engine::{DatabaseKey, FileEncryption, Profile};
use rusqlite::Connection;
use sync_store::{
    APPLICATION_ID, BlobChunkId, BlobId, Error, MessageBatch, UpdateStateFn, Vault, VaultDevice,
    VaultLocation,
};

use crate::fixture::DataDirFixture;
use crate::{message, store as push, timestamp};

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn a_vault_of_an_older_format_is_refused_and_stays() {
    let store = DataDirFixture::new();
    let (id, key) = (VaultId::generate(), DatabaseKey::generate());
    drop(store.open_vault(&id, &key).unwrap());
    store.databases.close(&id.path(store.path())).unwrap();
    let file = by_hand(&id.path(store.path()), &key);
    file.pragma_update(None, "user_version", 3).unwrap();
    let error = store.open_vault(&id, &key).err().unwrap();
    let is_too_old = |error: &Error| {
        matches!(error, Error::Engine(engine::Error::SchemaTooOld { found: 3, oldest: 4 }))
    };
    assert!(is_too_old(&error), "{error}");
    let version =
        file.query_row("SELECT user_version FROM pragma_user_version", [], |row| row.get(0));
    assert_eq!(version, Ok(3));
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let store = DataDirFixture::new();
    let (id, key) = (VaultId::generate(), DatabaseKey::generate());
    let vault = store.open_vault(&id, &key).unwrap();
    let after = push(&vault, vec![message(1, "a"), message(2, "b")]).await.unwrap().after;
    drop(vault);
    let store = store.restart();
    let vault = store.open_vault(&id, &key).unwrap();
    assert_eq!(vault.summary().await.unwrap(), after);
    assert!(vault.verify().await.unwrap().is_equal());
    assert_eq!(
        vault.page(0, 10, 1_000, None).await.unwrap().messages,
        [message(1, "a"), message(2, "b")]
    );
}

#[tokio::test]
async fn what_a_gateway_keeps_is_there_after_a_restart_and_unreadable_in_the_file() {
    let store = DataDirFixture::new();
    let (id, key) = (VaultId::generate(), DatabaseKey::generate());
    let vault = store.open_vault(&id, &key).unwrap();
    let chunk = BlobChunkId { blob: BlobId::generate(), number: 3 };
    let content = Bytes::from("SECRET chunk ".repeat(20_000));
    vault.put_chunk(chunk, content.clone()).await.unwrap();
    let update: UpdateStateFn = Arc::new(|_, _| Ok(b"SECRET state".repeat(10_000)));
    let batch = MessageBatch::new_keeping_first(vec![message(1, "SECRET message")]);
    let answer = vault.exchange(batch, update).await.unwrap();
    check_no_plaintext(store.path(), 2);
    drop(vault);
    let store = store.restart();
    check_no_plaintext(store.path(), 1);
    let vault = store.open_vault(&id, &key).unwrap();
    let recorded = vault.gateway_state().await.unwrap();
    assert_eq!((recorded.cursor, recorded.state), (1, answer.state));
    assert_eq!(vault.chunk_ids().await.unwrap(), [chunk]);
    assert_eq!(vault.chunk(chunk).await.unwrap(), Some(content));
    let found = vault.messages_from(timestamp(0), 1, 9, 1_000).await.unwrap();
    assert_eq!(found, [message(1, "SECRET message")]);
}

#[tokio::test]
async fn another_key_does_not_open_a_vault() {
    let store = DataDirFixture::new();
    let (id, key) = (VaultId::generate(), DatabaseKey::generate());
    push(&store.open_vault(&id, &key).unwrap(), vec![message(1, "a")]).await.unwrap();
    let store = store.restart();
    let error = store.open_vault(&id, &DatabaseKey::generate()).err().unwrap();
    assert!(matches!(error, Error::Engine(engine::Error::WrongKey { .. })), "{error}");
    assert_eq!(store.open_vault(&id, &key).unwrap().summary().await.unwrap().cursor, 1);
}

#[tokio::test]
async fn no_file_shows_a_content_or_a_name() {
    let store = DataDirFixture::new();
    let vault = store.vault();
    let name = "SECRETNAME".to_owned();
    let id = DeviceId::generate();
    vault
        .add_device(VaultDevice {
            id,
            name,
            node_id: None,
            cursor: 0,
            unsent_count: 0,
            last_seen_ms: 0,
            created_ms: 1,
        })
        .await
        .unwrap();
    let messages = (0..2_000).map(|millis| message(millis, "SECRETCONTENT")).collect();
    push(&vault, messages).await.unwrap();
    // While the vault is open, there is a WAL; afterwards all data is in the main file.
    check_no_plaintext(store.path(), 2);
    drop(vault);
    let store = store.restart();
    check_no_plaintext(store.path(), 1);
}

fn check_no_plaintext(directory: &Path, files_count_min: usize) {
    let files = files_below(directory);
    assert!(files.len() >= files_count_min, "{files:?}");
    for file in files {
        let bytes = fs::read(&file).unwrap();
        for plain in [&b"SECRET"[..], b"SQLite format 3", b"CREATE TABLE"] {
            let found = bytes.windows(plain.len()).any(|window| window == plain);
            assert!(!found, "{} shows {}", file.display(), String::from_utf8_lossy(plain));
        }
    }
}

#[tokio::test]
async fn the_key_is_asked_for_only_when_the_vault_is_not_open() {
    let store = DataDirFixture::new();
    let (id, key, asked) = (VaultId::generate(), DatabaseKey::generate(), Cell::new(0));
    let open = || {
        store.vaults.open_with::<Error>(&id, || {
            asked.set(asked.get() + 1);
            Ok(key.clone())
        })
    };
    let vault = open().unwrap();
    open().unwrap();
    drop(vault);
    open().unwrap();
    assert_eq!(asked.get(), 1);
}

#[tokio::test]
async fn a_key_that_cannot_be_had_opens_and_creates_nothing() {
    let store = DataDirFixture::new();
    let (id, key) = (VaultId::generate(), DatabaseKey::generate());
    for is_there in [false, true] {
        let refused = || Err(Error::Engine(engine::Error::Closed));
        let error = store.vaults.open_with::<Error>(&id, refused).err().unwrap();
        assert!(matches!(error, Error::Engine(engine::Error::Closed)), "{error}");
        assert_eq!(id.path(store.path()).exists(), is_there);
        store.open_vault(&id, &key).unwrap();
        store.databases.close(&id.path(store.path())).unwrap();
    }
}

#[tokio::test]
async fn a_removed_vault_leaves_no_file() {
    let store = DataDirFixture::new();
    let (id, key) = (VaultId::generate(), DatabaseKey::generate());
    let vault = store.open_vault(&id, &key).unwrap();
    push(&vault, vec![message(1, "a")]).await.unwrap();
    store.vaults.remove(&id).await.unwrap();
    assert_eq!(files_below(store.path()), Vec::<PathBuf>::new());
    // A handle to the removed vault is useless.
    let error = push(&vault, vec![message(2, "b")]).await.unwrap_err();
    assert!(matches!(error, Error::Engine(engine::Error::Closed)), "{error}");
    store.vaults.remove(&id).await.unwrap();
    store.vaults.remove(&VaultId::generate()).await.unwrap();
}

#[tokio::test]
async fn a_vault_says_what_it_is() {
    let store = DataDirFixture::new();
    let (id, key) = (VaultId::generate(), DatabaseKey::generate());
    let vault = store.open_vault(&id, &key).unwrap();
    push(&vault, vec![message(1, "a")]).await.unwrap();
    let status = vault.status().await.unwrap();
    assert_eq!(status.state, vault.summary().await.unwrap());
    let VaultLocation::Sqlite { path, file_bytes, free_bytes, cipher, .. } = status.storage else {
        panic!("not a file")
    };
    assert!(file_bytes >= 4096 && free_bytes < file_bytes, "{file_bytes} {free_bytes}");
    assert_eq!((cipher, path.exists()), ("chacha20", true));
    let by_hand = by_hand(&path, &key);
    let id: u32 = by_hand.query_row("PRAGMA application_id", [], |row| row.get(0)).unwrap();
    assert_eq!(id, APPLICATION_ID);
}

fn by_hand(path: &Path, key: &DatabaseKey) -> Connection {
    let encryption = FileEncryption::Key { key: key.clone(), cipher: None };
    engine::open_connection(path, &encryption, Profile::SERVER, false, false).unwrap().0
}

/// Changes a closed vault's file, as another program with its key would.
fn change(store: &DataDirFixture, id: &VaultId, key: &DatabaseKey, sql: &str) -> Vault {
    store.databases.close(&id.path(store.path())).unwrap();
    by_hand(&id.path(store.path()), key).execute(sql, []).unwrap();
    store.open_vault(id, key).unwrap()
}

#[tokio::test]
async fn who_changes_messages_by_hand_leaves_a_vault_that_knows_it() {
    let store = DataDirFixture::new();
    let (id, key) = (VaultId::generate(), DatabaseKey::generate());
    let mut vault = store.open_vault(&id, &key).unwrap();
    push(&vault, (0..9).map(|millis| message(millis, "content")).collect()).await.unwrap();
    for (sql, count) in [
        ("DELETE FROM message WHERE seq = 4", 8),
        ("DELETE FROM message WHERE seq = 9", 7),
        ("UPDATE message SET content = x'00' WHERE seq = 2", 7),
    ] {
        let before = vault.summary().await.unwrap();
        vault = change(&store, &id, &key, sql);
        let after = vault.summary().await.unwrap();
        assert_ne!(after.fingerprint, before.fingerprint, "{sql}");
        assert_eq!((after.fingerprint.count, after.cursor), (count, 9), "{sql}");
        assert!(vault.verify().await.unwrap().is_equal(), "{sql}");
    }
    // No sequence number is used twice.
    let after = push(&vault, vec![message(8, "content")]).await.unwrap().after;
    assert_eq!((after.cursor, after.fingerprint.count), (10, 8));
}

#[tokio::test]
async fn a_window_that_was_changed_by_hand_is_found_and_made_anew() {
    let store = DataDirFixture::new();
    let (id, key) = (VaultId::generate(), DatabaseKey::generate());
    let vault = store.open_vault(&id, &key).unwrap();
    push(&vault, (0..9).map(|n| message(n << 30, "content")).collect()).await.unwrap();
    let windows = vault.windows().await.unwrap();
    for sql in [
        "UPDATE fingerprint_window SET digest = zeroblob(16) WHERE window_id = 3",
        "DELETE FROM fingerprint_window WHERE window_id = 4",
        "INSERT INTO fingerprint_window VALUES (77, 1, zeroblob(16))",
    ] {
        let vault = change(&store, &id, &key, sql);
        let found = vault.verify().await.unwrap();
        assert!(!found.is_equal() && found.windows_wrong == 1, "{sql}: {found:?}");
        vault.rebuild().await.unwrap();
        assert!(vault.verify().await.unwrap().is_equal(), "{sql}");
        assert_eq!(vault.windows().await.unwrap(), windows, "{sql}");
        // Reading only the windows returns the right ones, too.
        let vault = change(&store, &id, &key, sql);
        assert_eq!(vault.windows().await.unwrap(), windows, "{sql}");
        assert!(vault.verify().await.unwrap().is_equal(), "{sql}");
    }
}

#[tokio::test]
async fn sizes_are_told_without_opening_and_only_open_vaults_are_found_open() {
    let store = DataDirFixture::new();
    assert_eq!(store.vaults.sizes().unwrap(), Some(vec![]));
    let (id, key) = (VaultId::generate(), DatabaseKey::generate());
    assert_eq!(store.vaults.file_sizes(&id), None);
    let vault = store.open_vault(&id, &key).unwrap();
    push(&vault, vec![message(1, "a")]).await.unwrap();
    let open = store.vaults.file_sizes(&id).unwrap();
    let file = files_below(store.path()).into_iter().find(|file| file.ends_with(name(&id)));
    assert_eq!(open.file_bytes, file.unwrap().metadata().unwrap().len());
    assert!(open.wal_bytes > 0 && open.changed_ms > 1_700_000_000_000, "{open:?}");
    assert_eq!(store.vaults.get_open(&id).unwrap().summary().await.unwrap().cursor, 1);
    drop(vault);

    let store = store.restart();
    // Other files are ignored.
    fs::write(store.path().join("vaults/stray.sqlite"), "x").unwrap();
    fs::write(store.path().join("vaults").join(&id.as_str()[..2]).join("x.sqlite"), "x").unwrap();
    assert!(store.vaults.get_open(&id).is_none());
    let sizes = store.vaults.sizes().unwrap().unwrap();
    let closed = store.vaults.file_sizes(&id).unwrap();
    assert_eq!(sizes, [(id.clone(), closed)]);
    assert!(closed.file_bytes > open.file_bytes && closed.wal_bytes == 0, "{closed:?}");
    assert!(store.vaults.get_open(&id).is_none(), "and still is not");
}

fn name(vault: &VaultId) -> String {
    format!("{vault}.sqlite")
}
