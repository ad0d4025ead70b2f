//! Vaults as files: keys, isolation, restart, removal, and what their bytes give away.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use accounts::{ClientId, VaultId};
use engine::Key;
use sync_store::{APPLICATION_ID, Client, Error};

use crate::{Store, message};

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    let store = Store::new();
    let (id, key) = (VaultId::generate(), Key::generate());
    let vault = store.open_vault(&id, &key).unwrap();
    let after = vault.store(vec![message(1, "a"), message(2, "b")], None).wait().unwrap().after;
    drop(vault);
    let store = store.restart();
    let vault = store.open_vault(&id, &key).unwrap();
    assert_eq!(vault.state().unwrap(), after);
    assert!(vault.verify().unwrap().is_equal());
    assert_eq!(vault.page(0, 10, 1_000).unwrap().messages, [message(1, "a"), message(2, "b")]);
}

#[test]
fn another_key_does_not_open_a_vault() {
    let store = Store::new();
    let (id, key) = (VaultId::generate(), Key::generate());
    store.open_vault(&id, &key).unwrap().store(vec![message(1, "a")], None).wait().unwrap();
    let store = store.restart();
    let error = store.open_vault(&id, &Key::generate()).err().unwrap();
    assert!(matches!(error, Error::Engine(engine::Error::WrongKey { .. })), "{error}");
    assert_eq!(store.open_vault(&id, &key).unwrap().state().unwrap().cursor, 1);
}

#[test]
fn vaults_do_not_see_each_other() {
    let store = Store::new();
    let (ada, bob) = (store.vault(), store.vault());
    ada.store(vec![message(1, "ada's")], None).wait().unwrap();
    bob.store(vec![message(1, "bob's"), message(2, "bob's")], None).wait().unwrap();
    assert_eq!(ada.page(0, 10, 1_000).unwrap().messages, [message(1, "ada's")]);
    assert_eq!(bob.state().unwrap().cursor, 2);
}

#[test]
fn no_file_shows_a_content_or_a_name() {
    let store = Store::new();
    let vault = store.vault();
    let name = "SECRETNAME".to_owned();
    let id = ClientId::generate();
    vault.add_client(Client { id, name, cursor: 0, seen_ms: 0, created_ms: 1 }).wait().unwrap();
    let messages = (0..2_000).map(|millis| message(millis, "SECRETCONTENT")).collect();
    vault.store(messages, None).wait().unwrap();
    // While it is open there is a WAL, afterwards all is in the main file.
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

#[test]
fn the_key_is_asked_for_only_when_the_vault_is_not_open() {
    let store = Store::new();
    let (id, key, asked) = (VaultId::generate(), Key::generate(), Cell::new(0));
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

#[test]
fn a_key_that_cannot_be_had_opens_and_creates_nothing() {
    let store = Store::new();
    let (id, key) = (VaultId::generate(), Key::generate());
    for is_there in [false, true] {
        let refused = || Err(Error::Engine(engine::Error::Closed));
        let error = store.vaults.open_with::<Error>(&id, refused).err().unwrap();
        assert!(matches!(error, Error::Engine(engine::Error::Closed)), "{error}");
        assert_eq!(id.path(store.path()).exists(), is_there);
        store.open_vault(&id, &key).unwrap();
        store.databases.close(&id.path(store.path())).unwrap();
    }
}

#[test]
fn a_removed_vault_leaves_no_file() {
    let store = Store::new();
    let (id, key) = (VaultId::generate(), Key::generate());
    let vault = store.open_vault(&id, &key).unwrap();
    vault.store(vec![message(1, "a")], None).wait().unwrap();
    store.vaults.remove(&id).unwrap();
    assert_eq!(files_below(store.path()), Vec::<PathBuf>::new());
    // Who still holds it can do nothing with it.
    let error = vault.store(vec![message(2, "b")], None).wait().unwrap_err();
    assert!(matches!(error, Error::Engine(engine::Error::Closed)), "{error}");
    store.vaults.remove(&id).unwrap();
    store.vaults.remove(&VaultId::generate()).unwrap();
}

#[test]
fn a_vault_says_what_it_is() {
    let store = Store::new();
    let vault = store.vault();
    vault.store(vec![message(1, "a")], None).wait().unwrap();
    let status = vault.status().unwrap();
    assert_eq!(status.state, vault.state().unwrap());
    assert!(status.file_bytes >= 4096 && status.free_bytes < status.file_bytes, "{status:?}");
    let id = vault
        .database()
        .read(|db| Ok::<u32, Error>(db.query_row("PRAGMA application_id", [], |row| row.get(0))?));
    assert_eq!(id.unwrap(), APPLICATION_ID);
}
