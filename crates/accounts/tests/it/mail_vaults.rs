//! Tests of the records of mail vaults.

use super::*;

#[test]
fn the_mail_vault_is_the_sub_vault_named_mail_and_is_not_listed_among_the_others() {
    let fixture = AccountsFixture::new();
    let (ada, bob) = (fixture.add("ada"), fixture.add("bob"));
    let mail = ada.mail_vault();
    assert_eq!(mail.vault, ada.sub_vault_id("mail vault"));
    assert_eq!(mail.key.as_bytes(), ada.sub_vault(&mail.vault).key.as_bytes());
    assert_eq!((mail.account, &mail.login), (ada.account, &ada.login));
    assert_eq!(fixture.accounts.mail_vault(ada.account).unwrap(), None);

    for _ in 0..2 {
        fixture.accounts.record_mail_vault(&ada.mail_vault(), MAIL_KEY).unwrap();
        let row = fixture.accounts.mail_vault(ada.account).unwrap().unwrap();
        assert_eq!((row.vault, row.restores_count), (mail.vault.clone(), 0));
    }
    assert_eq!(fixture.accounts.mail_vault(bob.account).unwrap(), None);
    assert_eq!(fixture.accounts.sub_vaults(ada.account).unwrap(), []);
    assert!(!fixture.accounts.has_sub_vault(ada.account, &mail.vault).unwrap());
}

#[test]
fn a_removed_account_gets_no_mail_vault() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    fixture.accounts.remove(&login("ada")).unwrap();
    let added = fixture.accounts.record_mail_vault(&ada.mail_vault(), MAIL_KEY);
    assert!(matches!(added, Err(Error::NotFound)), "{added:?}");
}

#[test]
fn a_restore_counts_for_all_mail_vaults_and_for_later_ones_it_does_not() {
    let fixture = AccountsFixture::new();
    let [ada, bob] = ["ada", "bob"].map(|name| fixture.add_with_mail(name));
    fixture.accounts.record_mail_restore().unwrap();
    fixture.accounts.record_mail_restore().unwrap();
    // Recording the mail vault again keeps the count.
    fixture.accounts.record_mail_vault(&ada.mail_vault(), MAIL_KEY).unwrap();
    let cyd = fixture.add_with_mail("cyd");
    let counts = [ada, bob, cyd].map(|unlocked| {
        fixture.accounts.mail_vault(unlocked.account).unwrap().unwrap().restores_count
    });
    assert_eq!(counts, [2, 2, 0]);
}

#[test]
fn the_mail_vault_goes_with_its_account() {
    let fixture = AccountsFixture::new();
    let [ada, bob] = ["ada", "bob"].map(|name| fixture.add_with_mail(name));
    fixture.accounts.add_sub_vault(ada.account, &ada.sub_vault_id("budget")).unwrap();
    let removed = fixture.accounts.remove(&login("ada")).unwrap();
    assert_eq!(removed, [ada.vault.clone(), ada.sub_vault_id("budget"), ada.mail_vault().vault]);
    assert_eq!(fixture.accounts.mail_vault(ada.account).unwrap(), None);
    let kept = fixture.accounts.mail_vault(bob.account).unwrap().unwrap();
    assert_eq!(kept.vault, bob.mail_vault().vault);
}
