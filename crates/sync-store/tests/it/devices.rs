//! Tests of the records of a vault about devices.

use accounts::DeviceId;
use crdt::{Message, NodeId};
use sync_store::{DeviceActivity, MessageBatch, Quota, Result, StoreOutcome, Vault, VaultDevice};

use crate::fixture::VaultsFixture;
use crate::message;

fn client(name: &str, created_ms: u64) -> VaultDevice {
    let id = DeviceId::generate();
    let name = name.to_owned();
    VaultDevice { id, name, node_id: None, cursor: 0, unsent_count: 0, last_seen_ms: 0, created_ms }
}

fn activity(device: &VaultDevice, now_ms: u64) -> DeviceActivity {
    DeviceActivity { device: device.id.clone(), now_ms, node_id: None, unsent_count: None }
}

async fn push(
    vault: &Vault,
    messages: Vec<Message>,
    seen: Option<DeviceActivity>,
) -> Result<StoreOutcome> {
    vault.store(MessageBatch::new(messages)?, Quota::UNLIMITED, seen).await
}

/// Returns the cursor and the time of the only device.
async fn cursor_and_last_seen(vault: &Vault) -> (u64, u64) {
    let devices = vault.devices().await.unwrap();
    assert_eq!(devices.len(), 1);
    (devices[0].cursor, devices[0].last_seen_ms)
}

pub(crate) async fn clients_are_listed_in_order_of_registration_until_removed(
    fixture: &VaultsFixture,
) {
    let vault = fixture.vault();
    let (phone, laptop) = (client("phone", 2), client("laptop ☂", 1));
    vault.add_device(phone.clone()).await.unwrap();
    vault.add_device(laptop.clone()).await.unwrap();
    assert_eq!(vault.devices().await.unwrap(), [laptop.clone(), phone.clone()]);
    assert_eq!(vault.status().await.unwrap().devices_count, 2);
    vault.remove_devices(vec![phone.id, DeviceId::generate()]).await.unwrap();
    assert_eq!(vault.devices().await.unwrap(), [laptop]);
}

pub(crate) async fn a_push_moves_the_cursor_of_a_client_that_had_everything(
    fixture: &VaultsFixture,
) {
    let vault = fixture.vault();
    let phone = client("phone", 1);
    vault.add_device(phone.clone()).await.unwrap();
    push(&vault, vec![message(1, "a"), message(2, "b")], Some(activity(&phone, 100)))
        .await
        .unwrap();
    assert_eq!(cursor_and_last_seen(&vault).await, (2, 100));
    push(&vault, vec![message(3, "c")], None).await.unwrap();
    push(&vault, vec![message(4, "d")], Some(activity(&phone, 200))).await.unwrap();
    assert_eq!(
        cursor_and_last_seen(&vault).await,
        (2, 200),
        "the third message is not the phone's"
    );
}

pub(crate) async fn a_refused_push_is_not_noted(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    let phone = client("phone", 1);
    vault.add_device(phone.clone()).await.unwrap();
    push(&vault, vec![message(1, "a")], Some(activity(&phone, 100))).await.unwrap();
    push(&vault, vec![message(1, "b")], Some(activity(&phone, 200_000))).await.unwrap_err();
    assert_eq!(cursor_and_last_seen(&vault).await, (1, 100));
}

/// Pulls and waits for the record of it: a pull is recorded in the background, and a write that
/// returns afterwards is later.
async fn pull(vault: &Vault, cursor: u64, seen: DeviceActivity) {
    vault.page(cursor, 1, 1, Some(seen)).await.unwrap();
    push(vault, Vec::new(), None).await.unwrap();
}

pub(crate) async fn a_pull_is_noted(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    let phone = client("phone", 1);
    vault.add_device(phone.clone()).await.unwrap();
    push(&vault, (0..9).map(|millis| message(millis, "a")).collect(), None).await.unwrap();
    pull(&vault, 0, activity(&phone, 100_000)).await;
    assert_eq!(cursor_and_last_seen(&vault).await, (1, 100_000));
    // A device that syncs every second costs no write every second.
    pull(&vault, 0, activity(&phone, 159_999)).await;
    assert_eq!(cursor_and_last_seen(&vault).await, (1, 100_000));
    pull(&vault, 0, activity(&phone, 160_000)).await;
    assert_eq!(cursor_and_last_seen(&vault).await, (1, 160_000));
    pull(&vault, 6, activity(&phone, 160_001)).await;
    assert_eq!(cursor_and_last_seen(&vault).await, (7, 160_001));
    // A device that went back, as a restored one does, is recorded, too.
    pull(&vault, 2, activity(&phone, 160_002)).await;
    assert_eq!(cursor_and_last_seen(&vault).await, (3, 160_002));
}

pub(crate) async fn a_client_says_who_it_is_and_what_it_has_to_send(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    let phone = client("phone", 1);
    vault.add_device(phone.clone()).await.unwrap();
    let said = DeviceActivity {
        node_id: Some(NodeId(u64::MAX)),
        unsent_count: Some(3),
        ..activity(&phone, 100)
    };
    pull(&vault, 0, said).await;
    let told = async || vault.devices().await.unwrap().remove(0);
    assert_eq!((told().await.node_id, told().await.unsent_count), (Some(NodeId(u64::MAX)), 3));
    push(&vault, vec![message(1, "a"), message(2, "b")], Some(activity(&phone, 101)))
        .await
        .unwrap();
    assert_eq!((told().await.node_id, told().await.unsent_count), (Some(NodeId(u64::MAX)), 1));
    push(&vault, vec![message(1, "a"), message(2, "b")], Some(activity(&phone, 102)))
        .await
        .unwrap();
    assert_eq!(told().await.unsent_count, 0);
    // The device counts pending changes, of which several may become one message: it reports how
    // many are left.
    let left =
        |unsent, now_ms| DeviceActivity { unsent_count: Some(unsent), ..activity(&phone, now_ms) };
    push(&vault, vec![message(3, "c")], Some(left(5, 103))).await.unwrap();
    assert_eq!((told().await.node_id, told().await.unsent_count), (Some(NodeId(u64::MAX)), 5));
    push(&vault, vec![message(3, "c")], Some(left(0, 104))).await.unwrap();
    assert_eq!(told().await.unsent_count, 0);
    push(&vault, vec![message(3, "c")], Some(left(2, 105))).await.unwrap();
    assert_eq!(told().await.unsent_count, 2);
}

pub(crate) async fn who_is_not_registered_is_not_noted(fixture: &VaultsFixture) {
    let vault = fixture.vault();
    let stranger = client("stranger", 1);
    push(&vault, vec![message(1, "a")], Some(activity(&stranger, 100))).await.unwrap();
    pull(&vault, 0, activity(&stranger, 100)).await;
    assert_eq!(vault.devices().await.unwrap(), []);
}
