//! What an operator sees of many accounts.

use accounts::{AccountSummary, Count, Order, Selection, VaultId};

use crate::{Fixture, NOW, login, password};

fn logins(accounts: Vec<AccountSummary>) -> Vec<String> {
    accounts.into_iter().map(|account| account.login.as_str().to_owned()).collect()
}

fn all() -> Selection {
    Selection { count_max: 10, ..Selection::default() }
}

#[test]
fn accounts_devices_and_vaults_are_counted() {
    let fixture = Fixture::new();
    assert_eq!(fixture.accounts.count().unwrap(), Count::default());
    let (ada, bob) = (fixture.add("ada"), fixture.add("bob"));
    for _ in 0..3 {
        fixture.register(&ada, None);
    }
    fixture.register(&bob, None);
    let child = ada.child_named("a budget");
    fixture.accounts.add_child(ada.account, &child).unwrap();
    let count = fixture.accounts.count().unwrap();
    assert_eq!(count, Count { accounts: 2, clients: 4, vaults: 3 });
}

#[test]
fn accounts_are_found_and_put_in_order() {
    let fixture = Fixture::new();
    for (place, name) in ["dan", "ada", "cyd", "bob"].into_iter().enumerate() {
        let now_ms = NOW + place as u64;
        let unlocked = fixture.accounts.add(&login(name), &password(name), now_ms).unwrap();
        // One device, two, one, none.
        for _ in 0..[1, 2, 1, 0][place] {
            fixture.register(&unlocked, None);
        }
    }
    let ordered =
        |selection: &Selection, order| logins(fixture.accounts.select(selection, order).unwrap());
    let descending = Selection { is_descending: true, ..all() };
    assert_eq!(ordered(&all(), Order::Login), ["ada", "bob", "cyd", "dan"]);
    assert_eq!(ordered(&descending, Order::Login), ["dan", "cyd", "bob", "ada"]);
    assert_eq!(ordered(&all(), Order::Created), ["dan", "ada", "cyd", "bob"]);
    assert_eq!(ordered(&all(), Order::Clients), ["bob", "cyd", "dan", "ada"]);
    assert_eq!(ordered(&descending, Order::Clients), ["ada", "cyd", "dan", "bob"]);

    let part = Selection { offset: 1, count_max: 2, ..all() };
    assert_eq!(ordered(&part, Order::Login), ["bob", "cyd"]);
    let found = Selection { search: "d".to_owned(), ..all() };
    assert_eq!(ordered(&found, Order::Login), ["ada", "cyd", "dan"]);
    assert_eq!(fixture.accounts.count_selected("d").unwrap(), 3);
    // No pattern, just text.
    let none = Selection { search: "%".to_owned(), ..all() };
    assert_eq!(ordered(&none, Order::Login), [""; 0]);
}

#[test]
fn accounts_are_put_in_order_of_what_their_vaults_weigh_together() {
    let fixture = Fixture::new();
    let unlocked = ["ada", "bob", "cyd"].map(|name| fixture.add(name));
    let child = unlocked[2].child_named("a budget");
    fixture.accounts.add_child(unlocked[2].account, &child).unwrap();
    let of = |vault: &VaultId| match unlocked.iter().position(|known| known.vault == *vault) {
        Some(place) => [20, 30, 10][place],
        None => 15,
    };
    let by_weight =
        |selection: &Selection| logins(fixture.accounts.select_by_weight(selection, of).unwrap());
    let descending = Selection { is_descending: true, ..all() };
    assert_eq!(by_weight(&all()), ["ada", "cyd", "bob"]);
    assert_eq!(by_weight(&descending), ["bob", "cyd", "ada"]);
    assert_eq!(by_weight(&Selection { offset: 1, count_max: 1, ..all() }), ["cyd"]);
    assert_eq!(by_weight(&Selection { search: "b".to_owned(), ..all() }), ["bob"]);
}
