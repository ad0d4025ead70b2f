//! Tests that kill a client or the server with `kill -9` in the middle of a sync: every client
//! continues with its login, no copy is out of sync, and no transaction is lost.

use serde_json::json;
use tempfile::TempDir;

use crate::actual_server::ActualServer;
use crate::budget_client::{BudgetClient, BudgetLibrary, BudgetLocation};
use crate::proxy::{CutAction, CuttingProxy, ProxyEvent};

const PASSWORD: &str = "correct horse";
/// The number of transactions of one import: some 180,000 bytes for a server, and an eighth of
/// that for a client, compressed.
const IMPORTED: u64 = 200;
/// The bytes of a sync at which a process is killed, as sent and received bytes: at the first
/// byte, in the headers, and in the messages.
const KILLS: [(u64, u64, CutAction); 6] = [
    (1, 1, CutAction::Hold),
    (600, 600, CutAction::Hold),
    (40_000, 4_000, CutAction::Hold),
    (100_000, 10_000, CutAction::Hold),
    (2_000, 1_000, CutAction::Flow),
    (100_000, 10_000, CutAction::Flow),
];
/// The maximum number of attempts: a client notices a dead connection only when it uses it.
const TRIES_COUNT_MAX: u32 = 5;

/// A server behind a proxy that counts bytes.
struct KillFixture {
    target: ActualServer,
    proxy: CuttingProxy,
    folder: TempDir,
}

impl KillFixture {
    fn new() -> Self {
        let target = ActualServer::warren();
        let proxy = CuttingProxy::to(target.address());
        Self { target, proxy, folder: tempfile::tempdir().unwrap() }
    }

    fn sign_in(&self, name: &str) -> BudgetClient {
        let folder = self.folder.path().join(name);
        BudgetClient::sign_in(BudgetLibrary::Api, &self.proxy.address, PASSWORD, &folder)
    }

    /// Opens a budget with the copy in the client's folder, or with a download.
    fn open(&self, name: &str, place: &BudgetLocation) -> BudgetClient {
        let mut client = self.sign_in(name);
        assert_eq!(&client.open(place, None), place);
        client
    }

    /// Creates a budget with an account for each name.
    fn create(&self, accounts: &[&str]) -> (BudgetClient, BudgetLocation) {
        let mut client = self.sign_in("ada");
        let place = client.create("Home");
        for account in accounts {
            client.account(account);
        }
        client.sync();
        (client, place)
    }
}

/// Asserts that the client has exactly these transactions of the account, and none of them twice.
#[track_caller]
fn check_imported(client: &mut BudgetClient, account: &str, count: u64) {
    assert_eq!(client.state().imported(account), (0..count).collect::<Vec<_>>());
}

/// One client is killed while it sends, and another while it receives the same messages.
#[test]
fn killed_clients_lose_nothing() {
    let setting = KillFixture::new();
    let (mut ada, place) = setting.create(&["Bank"]);
    let mut ben = setting.open("ben", &place);
    let mut count = 0;
    for (sent, received, then) in KILLS {
        // The watch starts here, because the client may sync on its own before the request.
        let watch = setting.proxy.after(sent, then);
        ada.import("Bank", count, IMPORTED);
        count += IMPORTED;
        ada.send(&json!({"do": "sync"}));
        assert!(matches!(watch.next(), ProxyEvent::Passed));
        ada.kill();
        drop(watch);
        ada = setting.open("ada", &place);
        ada.sync();

        let watch = setting.proxy.after(received, then);
        ben.send(&json!({"do": "sync"}));
        assert!(matches!(watch.next(), ProxyEvent::Passed));
        ben.kill();
        drop(watch);
        ben = setting.open("ben", &place);
        ben.sync();
        for client in [&mut ada, &mut ben] {
            check_imported(client, "Bank", count);
        }
    }
    let mut eve = setting.open("eve", &place);
    let state = eve.state();
    for client in [&mut ada, &mut ben] {
        client.state().check_equal(&state);
    }
}

/// The published client's error when an answer breaks off within its body (`TypeError: terminated`
/// of its `fetch`), which it does not consider a network failure.
const BROKEN: &str = "We had an unknown problem opening";

/// A client's imports into the account of its name, and how many of them are acknowledged.
struct ImportRecord {
    account: &'static str,
    client: BudgetClient,
    imported: u64,
    acknowledged: u64,
}

impl ImportRecord {
    fn import(&mut self) {
        self.client.import(self.account, self.imported, IMPORTED);
        self.imported += IMPORTED;
    }
}

/// Syncs with a restarted server: only the network may fail.
#[track_caller]
fn sync_again(client: &mut BudgetClient) {
    for _ in 0..TRIES_COUNT_MAX {
        match client.try_sync() {
            Ok(()) => return,
            Err(reason) => assert_eq!(reason, "network-failure"),
        }
    }
    panic!("not in sync after {TRIES_COUNT_MAX} tries");
}

/// The server is killed while two clients sync at the same time, and restarted behind the same
/// address.
#[test]
fn a_killed_server_keeps_what_it_acknowledged() {
    let mut setting = KillFixture::new();
    let (ada, place) = setting.create(&["Ada", "Ben"]);
    let ben = setting.open("ben", &place);
    let mut eve = setting.open("eve", &place);
    let ledger = |account, client| ImportRecord { account, client, imported: 0, acknowledged: 0 };
    let mut ledgers = [ledger("Ada", ada), ledger("Ben", ben)];
    let mut interrupted = 0;
    for (sent, _, then) in KILLS {
        let watch = setting.proxy.after(sent, then);
        for ledger in &mut ledgers {
            ledger.import();
            ledger.client.send(&json!({"do": "sync"}));
        }
        assert!(matches!(watch.next(), ProxyEvent::Passed));
        setting.target.kill();
        drop(watch);
        setting.target.restart();
        for ledger in &mut ledgers {
            match ledger.client.answer() {
                Ok(_) => ledger.acknowledged = ledger.imported,
                Err(reason) => {
                    let is_of_network = reason == "network-failure" || reason.starts_with(BROKEN);
                    assert!(is_of_network, "{reason}");
                    interrupted += 1;
                }
            }
        }
        // Before they sync again: the server has everything that it acknowledged.
        sync_again(&mut eve);
        let state = eve.state();
        for ledger in &mut ledgers {
            let there = state.imported(ledger.account);
            let told: Vec<u64> = (0..ledger.acknowledged).collect();
            assert!(there.starts_with(&told), "{} of {}", there.len(), ledger.acknowledged);
            sync_again(&mut ledger.client);
            ledger.acknowledged = ledger.imported;
        }
    }
    // A kill that interrupts no sync proves nothing.
    assert!(interrupted >= KILLS.len() / 2, "{interrupted} syncs interrupted");
    let [ada, ben] = &mut ledgers;
    ada.client.sync();
    eve.sync();
    let state = eve.state();
    for ledger in [ada, ben] {
        check_imported(&mut ledger.client, ledger.account, ledger.imported);
        ledger.client.state().check_equal(&state);
    }
    setting.open("late", &place).state().check_equal(&state);
}
