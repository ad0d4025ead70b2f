//! A test of the published web app in two browser profiles, served by the server that it syncs
//! with.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::actual_server::{ActualServer, ActualServerKind};
use crate::budget_client::{BudgetClient, BudgetLibrary, BudgetLocation};

const PASSWORD: &str = "correct horse";

/// The contents of an account's page.
#[derive(Debug, Deserialize, PartialEq, Eq)]
struct AccountPageText {
    balance: String,
    /// The notes and the payment of each row.
    rows: Vec<(String, String)>,
}

#[track_caller]
fn check_page(client: &mut BudgetClient, balance: &str, rows: &[(&str, &str)]) {
    let page: AccountPageText = client.get(&json!({"do": "state"}));
    let mut found: Vec<_> = page.rows.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    found.sort_unstable();
    assert_eq!((page.balance.as_str(), found.as_slice()), (balance, rows));
}

fn check_two_profiles(kind: ActualServerKind) {
    let target = ActualServer::start(kind, &[]);
    let folder = tempfile::tempdir().unwrap();
    let sign_in = |library, name: &str| {
        BudgetClient::sign_in(library, target.address(), PASSWORD, &folder.path().join(name))
    };
    let mut ada = sign_in(BudgetLibrary::Web, "ada");
    assert_eq!(ada.get::<Value>(&json!({"do": "isolated"})), true);
    ada.run(&json!({"do": "create"}));
    ada.run(&json!({"do": "account", "name": "Checking"}));
    ada.run(&json!({"do": "add", "notes": "rent", "payment": "12.34"}));
    check_page(&mut ada, "-12.34", &[("rent", "12.34")]);

    let mut ben = sign_in(BudgetLibrary::Web, "ben");
    assert_eq!(ben.get::<Value>(&json!({"do": "isolated"})), true);
    ben.run(&json!({"do": "open", "name": "My Finances"}));
    ben.run(&json!({"do": "go-to", "account": "Checking"}));
    ben.run(&json!({"do": "see", "notes": "rent"}));
    check_page(&mut ben, "-12.34", &[("rent", "12.34")]);

    ben.run(&json!({"do": "edit", "notes": "rent", "set": "rent of May"}));
    ben.run(&json!({"do": "add", "notes": "bread", "payment": "3.00"}));
    ada.run(&json!({"do": "see", "notes": "bread"}));
    ada.run(&json!({"do": "see", "notes": "rent of May"}));
    for client in [&mut ada, &mut ben] {
        check_page(client, "-15.34", &[("bread", "3.00"), ("rent of May", "12.34")]);
    }

    // Another client can read the browsers' changes.
    let mut eve = sign_in(BudgetLibrary::Api, "eve");
    let listed = eve.files().remove(0);
    eve.open(&BudgetLocation { file: listed.file, group: listed.group.unwrap() }, None);
    let state = eve.state();
    assert_eq!((state.len(), state.balances["Checking"]), (2, -1_534));
}

#[test]
fn the_web_app_syncs_two_profiles() {
    check_two_profiles(ActualServerKind::Warren);
}

#[test]
fn the_web_app_syncs_two_profiles_with_the_published_server() {
    check_two_profiles(ActualServerKind::Published);
}
