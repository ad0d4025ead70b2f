//! Tests of an account's sub-vaults.

use super::*;

#[test]
fn a_sub_vault_is_found_by_its_name_with_the_key_and_listed_without_it() {
    let fixture = AccountsFixture::new();
    let (ada, bob) = (fixture.add("ada"), fixture.add("bob"));
    let budget = ada.sub_vault_id("My-Finances-1a2b3c");
    assert_eq!(budget, fixture.unlock("ada").sub_vault_id("My-Finances-1a2b3c"));
    assert_ne!(budget, ada.sub_vault_id("My-Finances-1a2b3d"));
    assert_ne!(budget, bob.sub_vault_id("My-Finances-1a2b3c"));
    assert!(!fixture.accounts.has_sub_vault(ada.account, &budget).unwrap());

    fixture.accounts.add_sub_vault(ada.account, &budget).unwrap();
    fixture.accounts.add_sub_vault(ada.account, &budget).unwrap();
    assert!(fixture.accounts.has_sub_vault(ada.account, &budget).unwrap());
    assert!(!fixture.accounts.has_sub_vault(bob.account, &budget).unwrap());
    assert_eq!(fixture.accounts.sub_vaults(ada.account).unwrap(), std::slice::from_ref(&budget));
    assert_eq!(fixture.accounts.sub_vaults(bob.account).unwrap(), []);

    fixture.accounts.remove_sub_vault(bob.account, &budget).unwrap();
    assert!(fixture.accounts.has_sub_vault(ada.account, &budget).unwrap());
    fixture.accounts.remove_sub_vault(ada.account, &budget).unwrap();
    assert_eq!(fixture.accounts.sub_vaults(ada.account).unwrap(), []);
}

#[test]
fn a_sub_vaults_key_is_its_own() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let (one, two) = (ada.sub_vault_id("one"), ada.sub_vault_id("two"));
    let key = |vault| *ada.sub_vault(vault).key.as_bytes();
    assert_eq!(key(&one), *fixture.unlock("ada").sub_vault(&one).key.as_bytes());
    assert_ne!(key(&one), key(&two));
    assert_ne!(&key(&one), ada.key.as_bytes());
    assert_eq!(ada.sub_vault(&one).vault, one);
}

#[test]
fn sub_vaults_go_with_their_account() {
    let fixture = AccountsFixture::new();
    let (ada, bob) = (fixture.add("ada"), fixture.add("bob"));
    for unlocked in [&ada, &bob] {
        fixture.accounts.add_sub_vault(unlocked.account, &unlocked.sub_vault_id("budget")).unwrap();
    }
    let removed = fixture.accounts.remove(&login("ada")).unwrap();
    assert_eq!(removed, [ada.vault.clone(), ada.sub_vault_id("budget")]);
    assert_eq!(fixture.accounts.sub_vaults(ada.account).unwrap(), []);
    assert_eq!(fixture.accounts.sub_vaults(bob.account).unwrap(), [bob.sub_vault_id("budget")]);
}
