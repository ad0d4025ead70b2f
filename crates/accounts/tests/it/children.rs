//! Further vaults of an account.

use super::*;

#[test]
fn a_child_is_found_by_its_name_with_the_key_and_listed_without_it() {
    let fixture = Fixture::new();
    let (ada, bob) = (fixture.add("ada"), fixture.add("bob"));
    let budget = ada.child_named("My-Finances-1a2b3c");
    assert_eq!(budget, fixture.unlock("ada").child_named("My-Finances-1a2b3c"));
    assert_ne!(budget, ada.child_named("My-Finances-1a2b3d"));
    assert_ne!(budget, bob.child_named("My-Finances-1a2b3c"));
    assert!(!fixture.accounts.has_child(ada.account, &budget).unwrap());

    fixture.accounts.add_child(ada.account, &budget).unwrap();
    fixture.accounts.add_child(ada.account, &budget).unwrap();
    assert!(fixture.accounts.has_child(ada.account, &budget).unwrap());
    assert!(!fixture.accounts.has_child(bob.account, &budget).unwrap());
    assert_eq!(fixture.accounts.children(ada.account).unwrap(), std::slice::from_ref(&budget));
    assert_eq!(fixture.accounts.children(bob.account).unwrap(), []);

    fixture.accounts.remove_child(bob.account, &budget).unwrap();
    assert!(fixture.accounts.has_child(ada.account, &budget).unwrap());
    fixture.accounts.remove_child(ada.account, &budget).unwrap();
    assert_eq!(fixture.accounts.children(ada.account).unwrap(), []);
}

#[test]
fn a_childs_key_is_its_own() {
    let fixture = Fixture::new();
    let ada = fixture.add("ada");
    let (one, two) = (ada.child_named("one"), ada.child_named("two"));
    let key = |vault| *ada.child(vault).key.as_bytes();
    assert_eq!(key(&one), *fixture.unlock("ada").child(&one).key.as_bytes());
    assert_ne!(key(&one), key(&two));
    assert_ne!(&key(&one), ada.key.as_bytes());
    assert_eq!(ada.child(&one).vault, one);
}

#[test]
fn children_go_with_their_account() {
    let fixture = Fixture::new();
    let (ada, bob) = (fixture.add("ada"), fixture.add("bob"));
    for unlocked in [&ada, &bob] {
        fixture.accounts.add_child(unlocked.account, &unlocked.child_named("budget")).unwrap();
    }
    let removed = fixture.accounts.remove(&login("ada")).unwrap();
    assert_eq!(removed, [ada.vault.clone(), ada.child_named("budget")]);
    assert_eq!(fixture.accounts.children(ada.account).unwrap(), []);
    assert_eq!(fixture.accounts.children(bob.account).unwrap(), [bob.child_named("budget")]);
}
