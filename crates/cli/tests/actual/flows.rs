//! Tests of the usual work with budgets, done by the published client libraries.
//!
//! # Not here
//! - The web app → `web.rs`. Processes that are killed → `kills.rs`.

use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;

use crate::actual_server::{ActualServer, ActualServerKind};
use crate::budget_client::{BudgetClient, BudgetLibrary, BudgetLocation, BudgetSnapshot};

const PASSWORD: &str = "correct horse";
const KEY: &str = "battery staple";

/// A server, and people who use it with one kind of client.
struct BudgetFlow {
    target: ActualServer,
    library: BudgetLibrary,
    folder: TempDir,
}

impl BudgetFlow {
    fn new(kind: ActualServerKind, library: BudgetLibrary) -> Self {
        let target = ActualServer::start(kind, &[]);
        Self { target, library, folder: tempfile::tempdir().unwrap() }
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[track_caller]
    fn sign_in(&self, name: &str) -> BudgetClient {
        self.sign_in_with(self.library, name)
    }

    #[track_caller]
    fn sign_in_with(&self, library: BudgetLibrary, name: &str) -> BudgetClient {
        BudgetClient::sign_in(library, self.target.address(), PASSWORD, &self.folder(name))
    }

    /// Creates Ada's budget with `count` transactions on the server.
    fn create(&self, count: u64) -> (BudgetClient, BudgetLocation) {
        let mut ada = self.sign_in("ada");
        let place = ada.create("Home");
        ada.account("Bank");
        ada.import("Bank", 0, count);
        ada.sync();
        (ada, place)
    }

    /// Opens the same budget as Ben.
    fn open(&self, place: &BudgetLocation, key: Option<&str>) -> BudgetClient {
        let mut ben = self.sign_in("ben");
        assert_eq!(ben.open(place, key).file, place.file);
        ben
    }
}

/// Asserts that both copies are equal, and returns their contents.
#[track_caller]
fn check_equal(a: &mut BudgetClient, b: &mut BudgetClient) -> BudgetSnapshot {
    let (a, b) = (a.state(), b.state());
    a.check_equal(&b);
    a
}

/// Checks that the edits of each client arrive at the other.
#[track_caller]
fn check_exchange(ada: &mut BudgetClient, ben: &mut BudgetClient) {
    ada.edit("Bank 1", &json!({"notes": "from Ada"}));
    ada.sync();
    ben.sync();
    ben.edit("Bank 2", &json!({"notes": "from Ben"}));
    ben.sync();
    ada.sync();
    let state = check_equal(ada, ben);
    assert_eq!(state.find("Bank 1").notes.as_deref(), Some("from Ada"));
    assert_eq!(state.find("Bank 2").notes.as_deref(), Some("from Ben"));
}

fn check_copies(kind: ActualServerKind, library: BudgetLibrary, count: u64) {
    let flow = BudgetFlow::new(kind, library);
    let (mut ada, place) = flow.create(count);
    let mut ben = flow.open(&place, None);
    let state = check_equal(&mut ada, &mut ben);
    assert_eq!(state.imported("Bank"), (0..count).collect::<Vec<_>>());
    // The amounts are 1 + 2 + … cents.
    assert_eq!(state.balances["Bank"], i64::try_from(count * (count + 1) / 2).unwrap());

    // Both edit concurrently: other rows, other cells of a row, the same cell.
    ada.import("Bank", count, 10);
    ben.import("Bank", count + 10, 10);
    ada.edit("Bank 1", &json!({"notes": "from Ada"}));
    ben.edit("Bank 1", &json!({"amount": 5_000}));
    ada.edit("Bank 2", &json!({"notes": "from Ada"}));
    ben.edit("Bank 2", &json!({"notes": "from Ben"}));
    for client in [&mut ada, &mut ben] {
        client.sync();
    }
    ada.sync();
    if library == BudgetLibrary::Python {
        // This library fetches no messages that are older than those it has sent.
        ben.again(None);
    }
    let state = check_equal(&mut ada, &mut ben);
    assert_eq!(state.imported("Bank"), (0..count + 20).collect::<Vec<_>>());
    let both = state.find("Bank 1");
    assert_eq!((both.notes.as_deref(), both.amount), (Some("from Ada"), 5_000));
    // Ben's edit was the later one.
    assert_eq!(state.find("Bank 2").notes.as_deref(), Some("from Ben"));
}

#[test]
fn copies_of_the_api_converge() {
    check_copies(ActualServerKind::Warren, BudgetLibrary::Api, 1_000);
}

#[test]
fn copies_of_actualpy_converge() {
    check_copies(ActualServerKind::Warren, BudgetLibrary::Python, 250);
}

/// Checks `actualpy` without the web app, because it asks the server for files of it.
#[test]
fn actualpy_works_under_a_path_and_without_the_web_app() {
    check_copies(ActualServerKind::WarrenPath, BudgetLibrary::Python, 50);
}

fn check_encryption(kind: ActualServerKind, library: BudgetLibrary) {
    let flow = BudgetFlow::new(kind, library);
    let (mut ada, place) = flow.create(50);
    let mut ben = flow.open(&place, None);
    let encrypted = ada.encrypt(KEY);
    assert_eq!(encrypted.file, place.file);
    assert_ne!(encrypted.group, place.group);
    assert!(ada.files()[0].key.is_some());

    assert_eq!(ben.try_sync().unwrap_err(), "file-has-reset");
    if library == BudgetLibrary::Api {
        assert_eq!(ben.ask(&json!({"do": "reset"})).unwrap_err(), "file-has-new-key");
    }
    let wrong = json!({"do": "open", "group": encrypted.group, "key": "wrong"});
    let without = json!({"do": "open", "group": encrypted.group});
    let mut eve = flow.sign_in("eve");
    for request in [without, wrong] {
        let reason = eve.ask(&request).unwrap_err();
        let known = ["missing-key", "decrypt-failure", "ActualDecryptionError"];
        assert!(known.iter().any(|known| reason.starts_with(known)), "{reason}");
    }
    assert_eq!(ben.again(Some(KEY)), encrypted);
    assert_eq!(check_equal(&mut ada, &mut ben).len(), 50);
    check_exchange(&mut ada, &mut ben);
    assert_eq!(eve.open(&encrypted, Some(KEY)), encrypted);
    check_equal(&mut ada, &mut eve);
}

#[test]
fn the_api_encrypts_a_budget() {
    check_encryption(ActualServerKind::Warren, BudgetLibrary::Api);
}

#[test]
fn actualpy_encrypts_a_budget() {
    check_encryption(ActualServerKind::Warren, BudgetLibrary::Python);
}

fn check_reset_rename_delete(kind: ActualServerKind, library: BudgetLibrary) {
    let flow = BudgetFlow::new(kind, library);
    let (mut ada, place) = flow.create(20);
    let mut ben = flow.open(&place, None);
    let reset = ada.reset();
    assert_eq!(reset.file, place.file);
    assert_ne!(reset.group, place.group);
    assert_eq!(ben.try_sync().unwrap_err(), "file-has-reset");
    assert_eq!(ben.again(None), reset);
    check_exchange(&mut ada, &mut ben);

    ada.run(&json!({"do": "rename", "name": "Zuhause & Büro"}));
    assert_eq!(ben.files()[0].name, "Zuhause & Büro");
    ada.sync();
    ben.sync();
    check_equal(&mut ada, &mut ben);

    ben.run(&json!({"do": "delete"}));
    assert_eq!(ada.files(), []);
    assert_eq!(ada.try_sync().unwrap_err(), "file-not-found");
    let place = ada.create("Second");
    assert_eq!(ada.files()[0].file, place.file);
}

#[test]
fn the_api_resets_renames_and_deletes_a_budget() {
    check_reset_rename_delete(ActualServerKind::Warren, BudgetLibrary::Api);
}

#[test]
fn actualpy_resets_renames_and_deletes_a_budget() {
    check_reset_rename_delete(ActualServerKind::Warren, BudgetLibrary::Python);
}

fn check_change_of_password(kind: ActualServerKind, library: BudgetLibrary) {
    let flow = BudgetFlow::new(kind, library);
    let (mut ada, place) = flow.create(5);
    let mut ben = flow.open(&place, None);
    ada.run(&json!({"do": "change-password", "password": "changed"}));
    ada.sync();
    match kind {
        // All logins have the same token.
        ActualServerKind::Published => ben.sync(),
        ActualServerKind::Warren | ActualServerKind::WarrenPath => {
            let reason = ben.try_sync().unwrap_err();
            // The second is the server's unchanged answer, from which the api derives the first.
            let known = ["token-expired", r#""details":"token-not-found""#];
            assert!(known.iter().any(|known| reason.contains(known)), "{reason}");
        }
    }

    let address = flow.target.address();
    let sign_in = |password| crate::budget_client::sign_in(address, password, &flow.folder("eve"));
    let mut eve = BudgetClient::start(library, &flow.folder("eve"));
    let reason = eve.ask(&sign_in(PASSWORD)).unwrap_err();
    assert!(["invalid-password", "AuthorizationError"].iter().any(|s| reason.starts_with(s)));
    eve.ask(&sign_in("changed")).unwrap();
    eve.open(&place, None);
    check_equal(&mut ada, &mut eve);
}

#[test]
fn the_api_changes_the_password() {
    check_change_of_password(ActualServerKind::Warren, BudgetLibrary::Api);
}

#[test]
fn actualpy_changes_the_password() {
    check_change_of_password(ActualServerKind::Warren, BudgetLibrary::Python);
}

/// Checks that each library can use the other's budget, in plain and then encrypted.
fn check_both_libraries(kind: ActualServerKind) {
    let flow = BudgetFlow::new(kind, BudgetLibrary::Api);
    let (mut ada, place) = flow.create(100);
    let mut ben = flow.sign_in_with(BudgetLibrary::Python, "ben");
    ben.open(&place, None);
    check_equal(&mut ada, &mut ben);
    check_exchange(&mut ada, &mut ben);
    ben.import("Bank", 100, 20);
    ben.sync();
    ada.sync();
    assert_eq!(check_equal(&mut ada, &mut ben).len(), 120);

    ada.encrypt(KEY);
    ben.again(Some(KEY));
    check_exchange(&mut ada, &mut ben);
}

#[test]
fn both_libraries_share_a_budget() {
    check_both_libraries(ActualServerKind::Warren);
}

/// Runs these flows on the published server, from which they were derived.
fn check_published(library: BudgetLibrary, count: u64) {
    let kind = ActualServerKind::Published;
    check_copies(kind, library, count);
    check_encryption(kind, library);
    check_reset_rename_delete(kind, library);
    check_change_of_password(kind, library);
}

#[test]
fn flows_of_the_api_are_those_of_the_published_server() {
    check_published(BudgetLibrary::Api, 1_000);
}

#[test]
fn flows_of_actualpy_are_those_of_the_published_server() {
    check_published(BudgetLibrary::Python, 250);
}

#[test]
fn both_libraries_share_a_budget_on_the_published_server() {
    check_both_libraries(ActualServerKind::Published);
}
