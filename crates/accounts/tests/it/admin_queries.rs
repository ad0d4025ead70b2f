//! Tests of the operator's queries over many accounts.

use accounts::{AccountPageQuery, AccountSortBy, AccountSummary, AccountTotals, VaultId};

use crate::{AccountsFixture, NOW, login, password};

fn logins(accounts: Vec<AccountSummary>) -> Vec<String> {
    accounts.into_iter().map(|account| account.login.as_str().to_owned()).collect()
}

fn all() -> AccountPageQuery {
    AccountPageQuery { count_max: 10, ..AccountPageQuery::default() }
}

#[test]
fn accounts_devices_and_vaults_are_counted() {
    let fixture = AccountsFixture::new();
    assert_eq!(fixture.accounts.totals().unwrap(), AccountTotals::default());
    let (ada, bob) = (fixture.add("ada"), fixture.add("bob"));
    for _ in 0..3 {
        fixture.register(&ada, None);
    }
    fixture.register(&bob, None);
    let sub_vault = ada.sub_vault_id("a budget");
    fixture.accounts.add_sub_vault(ada.account, &sub_vault).unwrap();
    let count = fixture.accounts.totals().unwrap();
    assert_eq!(count, AccountTotals { accounts: 2, devices: 4, vaults: 3 });
}

#[test]
fn accounts_are_found_and_put_in_order() {
    let fixture = AccountsFixture::new();
    for (place, name) in ["dan", "ada", "cyd", "bob"].into_iter().enumerate() {
        let now_ms = NOW + place as u64;
        let unlocked = fixture.accounts.add(&login(name), &password(name), now_ms).unwrap();
        // The accounts have one device, two, one and none.
        for _ in 0..[1, 2, 1, 0][place] {
            fixture.register(&unlocked, None);
        }
    }
    let ordered = |selection: &AccountPageQuery, order| {
        logins(fixture.accounts.list_page(selection, order).unwrap())
    };
    let descending = AccountPageQuery { is_descending: true, ..all() };
    assert_eq!(ordered(&all(), AccountSortBy::Login), ["ada", "bob", "cyd", "dan"]);
    assert_eq!(ordered(&descending, AccountSortBy::Login), ["dan", "cyd", "bob", "ada"]);
    assert_eq!(ordered(&all(), AccountSortBy::Created), ["dan", "ada", "cyd", "bob"]);
    assert_eq!(ordered(&all(), AccountSortBy::Devices), ["bob", "cyd", "dan", "ada"]);
    assert_eq!(ordered(&descending, AccountSortBy::Devices), ["ada", "cyd", "dan", "bob"]);

    let part = AccountPageQuery { offset: 1, count_max: 2, ..all() };
    assert_eq!(ordered(&part, AccountSortBy::Login), ["bob", "cyd"]);
    let found = AccountPageQuery { search: "d".to_owned(), ..all() };
    assert_eq!(ordered(&found, AccountSortBy::Login), ["ada", "cyd", "dan"]);
    assert_eq!(fixture.accounts.count_matching("d").unwrap(), 3);
    // The search is plain text, not a pattern.
    let none = AccountPageQuery { search: "%".to_owned(), ..all() };
    assert_eq!(ordered(&none, AccountSortBy::Login), [""; 0]);
}

#[test]
fn accounts_are_put_in_order_of_what_their_vaults_weigh_together() {
    let fixture = AccountsFixture::new();
    let unlocked = ["ada", "bob", "cyd"].map(|name| fixture.add(name));
    let sub_vault = unlocked[2].sub_vault_id("a budget");
    fixture.accounts.add_sub_vault(unlocked[2].account, &sub_vault).unwrap();
    let of = |vault: &VaultId| match unlocked.iter().position(|known| known.vault == *vault) {
        Some(place) => [20, 30, 10][place],
        None => 15,
    };
    let by_weight = |selection: &AccountPageQuery| {
        logins(fixture.accounts.list_page_by_size(selection, of).unwrap())
    };
    let descending = AccountPageQuery { is_descending: true, ..all() };
    assert_eq!(by_weight(&all()), ["ada", "cyd", "bob"]);
    assert_eq!(by_weight(&descending), ["bob", "cyd", "ada"]);
    assert_eq!(by_weight(&AccountPageQuery { offset: 1, count_max: 1, ..all() }), ["cyd"]);
    assert_eq!(by_weight(&AccountPageQuery { search: "b".to_owned(), ..all() }), ["bob"]);
}
