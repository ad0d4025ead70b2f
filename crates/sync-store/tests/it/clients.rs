//! What a vault notes about devices.

use accounts::ClientId;
use crdt::{Message, Node};
use sync_store::{Batch, Client, Quota, Result, Seen, Stored, Vault};

use crate::bed::Bed;
use crate::message;

fn client(name: &str, created_ms: u64) -> Client {
    let id = ClientId::generate();
    let name = name.to_owned();
    Client { id, name, node: None, cursor: 0, unsent: 0, seen_ms: 0, created_ms }
}

fn seen(client: &Client, now_ms: u64) -> Seen {
    Seen { client: client.id.clone(), now_ms, node: None, unsent: None }
}

async fn push(vault: &Vault, messages: Vec<Message>, seen: Option<Seen>) -> Result<Stored> {
    vault.store(Batch::new(messages)?, Quota::UNLIMITED, seen).await
}

/// Cursor and time of the only client.
async fn noted(vault: &Vault) -> (u64, u64) {
    let clients = vault.clients().await.unwrap();
    assert_eq!(clients.len(), 1);
    (clients[0].cursor, clients[0].seen_ms)
}

pub(crate) async fn clients_are_listed_in_order_of_registration_until_removed(bed: &Bed) {
    let vault = bed.vault();
    let (phone, laptop) = (client("phone", 2), client("laptop ☂", 1));
    vault.add_client(phone.clone()).await.unwrap();
    vault.add_client(laptop.clone()).await.unwrap();
    assert_eq!(vault.clients().await.unwrap(), [laptop.clone(), phone.clone()]);
    assert_eq!(vault.status().await.unwrap().clients_count, 2);
    vault.remove_clients(vec![phone.id, ClientId::generate()]).await.unwrap();
    assert_eq!(vault.clients().await.unwrap(), [laptop]);
}

pub(crate) async fn a_push_moves_the_cursor_of_a_client_that_had_everything(bed: &Bed) {
    let vault = bed.vault();
    let phone = client("phone", 1);
    vault.add_client(phone.clone()).await.unwrap();
    push(&vault, vec![message(1, "a"), message(2, "b")], Some(seen(&phone, 100))).await.unwrap();
    assert_eq!(noted(&vault).await, (2, 100));
    push(&vault, vec![message(3, "c")], None).await.unwrap();
    push(&vault, vec![message(4, "d")], Some(seen(&phone, 200))).await.unwrap();
    assert_eq!(noted(&vault).await, (2, 200), "the third message is not the phone's");
}

pub(crate) async fn a_refused_push_is_not_noted(bed: &Bed) {
    let vault = bed.vault();
    let phone = client("phone", 1);
    vault.add_client(phone.clone()).await.unwrap();
    push(&vault, vec![message(1, "a")], Some(seen(&phone, 100))).await.unwrap();
    push(&vault, vec![message(1, "b")], Some(seen(&phone, 200_000))).await.unwrap_err();
    assert_eq!(noted(&vault).await, (1, 100));
}

/// A pull's note is written when it can be; a write that is answered after it is later.
async fn pull(vault: &Vault, cursor: u64, seen: Seen) {
    vault.page(cursor, 1, 1, Some(seen)).await.unwrap();
    push(vault, Vec::new(), None).await.unwrap();
}

pub(crate) async fn a_pull_is_noted(bed: &Bed) {
    let vault = bed.vault();
    let phone = client("phone", 1);
    vault.add_client(phone.clone()).await.unwrap();
    push(&vault, (0..9).map(|millis| message(millis, "a")).collect(), None).await.unwrap();
    pull(&vault, 0, seen(&phone, 100_000)).await;
    assert_eq!(noted(&vault).await, (1, 100_000));
    // A device that asks every second costs no write every second.
    pull(&vault, 0, seen(&phone, 159_999)).await;
    assert_eq!(noted(&vault).await, (1, 100_000));
    pull(&vault, 0, seen(&phone, 160_000)).await;
    assert_eq!(noted(&vault).await, (1, 160_000));
    pull(&vault, 6, seen(&phone, 160_001)).await;
    assert_eq!(noted(&vault).await, (7, 160_001));
    // A device that went back, as a restored one does, is noted too.
    pull(&vault, 2, seen(&phone, 160_002)).await;
    assert_eq!(noted(&vault).await, (3, 160_002));
}

pub(crate) async fn a_client_says_who_it_is_and_what_it_has_to_send(bed: &Bed) {
    let vault = bed.vault();
    let phone = client("phone", 1);
    vault.add_client(phone.clone()).await.unwrap();
    let said = Seen { node: Some(Node(u64::MAX)), unsent: Some(3), ..seen(&phone, 100) };
    pull(&vault, 0, said).await;
    let told = async || vault.clients().await.unwrap().remove(0);
    assert_eq!((told().await.node, told().await.unsent), (Some(Node(u64::MAX)), 3));
    push(&vault, vec![message(1, "a"), message(2, "b")], Some(seen(&phone, 101))).await.unwrap();
    assert_eq!((told().await.node, told().await.unsent), (Some(Node(u64::MAX)), 1));
    push(&vault, vec![message(1, "a"), message(2, "b")], Some(seen(&phone, 102))).await.unwrap();
    assert_eq!(told().await.unsent, 0);
    // It counts notes, of which several may become one message: it says what is left.
    let left = |unsent, now_ms| Seen { unsent: Some(unsent), ..seen(&phone, now_ms) };
    push(&vault, vec![message(3, "c")], Some(left(5, 103))).await.unwrap();
    assert_eq!((told().await.node, told().await.unsent), (Some(Node(u64::MAX)), 5));
    push(&vault, vec![message(3, "c")], Some(left(0, 104))).await.unwrap();
    assert_eq!(told().await.unsent, 0);
    push(&vault, vec![message(3, "c")], Some(left(2, 105))).await.unwrap();
    assert_eq!(told().await.unsent, 2);
}

pub(crate) async fn who_is_not_registered_is_not_noted(bed: &Bed) {
    let vault = bed.vault();
    let stranger = client("stranger", 1);
    push(&vault, vec![message(1, "a")], Some(seen(&stranger, 100))).await.unwrap();
    pull(&vault, 0, seen(&stranger, 100)).await;
    assert_eq!(vault.clients().await.unwrap(), []);
}
