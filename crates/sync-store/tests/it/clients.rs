//! What a vault notes about devices.

use accounts::ClientId;
use sync_store::{Client, Seen, Vault};

use crate::{Store, message};

fn client(name: &str, created_ms: u64) -> Client {
    let id = ClientId::generate();
    Client { id, name: name.to_owned(), cursor: 0, seen_ms: 0, created_ms }
}

fn seen(client: &Client, now_ms: u64) -> Seen {
    Seen { client: client.id.clone(), now_ms }
}

/// Cursor and time of the only client.
fn noted(vault: &Vault) -> (u64, u64) {
    let clients = vault.clients().unwrap();
    assert_eq!(clients.len(), 1);
    (clients[0].cursor, clients[0].seen_ms)
}

#[test]
fn clients_are_listed_in_order_of_registration_until_removed() {
    let store = Store::new();
    let vault = store.vault();
    let (phone, laptop) = (client("phone", 2), client("laptop ☂", 1));
    vault.add_client(phone.clone()).wait().unwrap();
    vault.add_client(laptop.clone()).wait().unwrap();
    assert_eq!(vault.clients().unwrap(), [laptop.clone(), phone.clone()]);
    assert_eq!(vault.status().unwrap().clients_count, 2);
    vault.remove_clients(vec![phone.id, ClientId::generate()]).wait().unwrap();
    assert_eq!(vault.clients().unwrap(), [laptop]);
}

#[test]
fn a_push_moves_the_cursor_of_a_client_that_had_everything() {
    let store = Store::new();
    let vault = store.vault();
    let phone = client("phone", 1);
    vault.add_client(phone.clone()).wait().unwrap();
    vault.store(vec![message(1, "a"), message(2, "b")], Some(seen(&phone, 100))).wait().unwrap();
    assert_eq!(noted(&vault), (2, 100));
    vault.store(vec![message(3, "c")], None).wait().unwrap();
    vault.store(vec![message(4, "d")], Some(seen(&phone, 200))).wait().unwrap();
    assert_eq!(noted(&vault), (2, 200), "the third message is not the phone's");
}

#[test]
fn a_refused_push_is_not_noted() {
    let store = Store::new();
    let vault = store.vault();
    let phone = client("phone", 1);
    vault.add_client(phone.clone()).wait().unwrap();
    vault.store(vec![message(1, "a")], Some(seen(&phone, 100))).wait().unwrap();
    vault.store(vec![message(1, "b")], Some(seen(&phone, 200_000))).wait().unwrap_err();
    assert_eq!(noted(&vault), (1, 100));
}

#[test]
fn a_pull_is_written_only_when_it_says_something() {
    let store = Store::new();
    let vault = store.vault();
    let phone = client("phone", 1);
    vault.add_client(phone.clone()).wait().unwrap();
    let check = |now_ms, cursor, expected| {
        let pending = vault.seen(seen(&phone, now_ms), cursor).unwrap();
        assert_eq!(pending.is_some(), expected, "at {now_ms}");
        if let Some(pending) = pending {
            pending.wait().unwrap();
        }
    };
    check(100_000, 0, true);
    check(100_001, 0, false);
    check(159_999, 0, false);
    check(160_000, 0, true);
    check(160_001, 7, true);
    assert_eq!(noted(&vault), (7, 160_001));
    // A device that went back, as a restored one does, is noted too.
    check(160_002, 3, true);
    assert_eq!(noted(&vault), (3, 160_002));
}

#[test]
fn who_is_not_registered_is_not_noted() {
    let store = Store::new();
    let vault = store.vault();
    let stranger = client("stranger", 1);
    vault.store(vec![message(1, "a")], Some(seen(&stranger, 100))).wait().unwrap();
    assert!(vault.seen(seen(&stranger, 100), 1).unwrap().is_none());
    assert_eq!(vault.clients().unwrap(), []);
}
