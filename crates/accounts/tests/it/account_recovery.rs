//! Tests recovery secrets: what they open, and that a replaced one stays replaced.

use accounts::AccountRecoverySecret;
use zeroize::Zeroizing;

use super::*;

/// Whether this secret opens the account, with the right key.
fn opens(accounts: &Accounts, of: &UnlockedAccount, secret: &AccountRecoverySecret) -> bool {
    match accounts.unlock_by_recovery(&of.login, secret) {
        Ok(found) => {
            assert_eq!((found.account, &found.vault), (of.account, &of.vault));
            assert!(found.key.as_bytes() == of.key.as_bytes());
            true
        }
        Err(Error::WrongRecoverySecret) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_recovery_secret_opens_its_account_whatever_the_password_is() {
    let fixture = AccountsFixture::new();
    let [ada, bob] = ["ada", "bob"].map(|name| fixture.add(name));
    assert!(!fixture.accounts.has_recovery_secret(ada.account).unwrap());
    let written = fixture.accounts.create_recovery_secret(&ada).unwrap();
    let written = AccountRecoverySecret::from_bytes(Zeroizing::new(*written.as_bytes()));
    assert!(fixture.accounts.has_recovery_secret(ada.account).unwrap());
    assert!(!fixture.accounts.has_recovery_secret(bob.account).unwrap());
    assert!(opens(&fixture.accounts, &ada, &written));
    assert!(!opens(&fixture.accounts, &bob, &written), "another account");
    let other = fixture.accounts.create_recovery_secret(&bob).unwrap();
    assert!(!opens(&fixture.accounts, &ada, &other), "another secret");
    let refused = fixture.accounts.unlock_by_recovery(&login("eve"), &written);
    assert!(matches!(refused, Err(Error::WrongRecoverySecret)), "no account");

    let device = fixture.register(&ada, None);
    let found = fixture.accounts.unlock_by_recovery(&ada.login, &written).unwrap();
    fixture.accounts.reset_password(&found, &secret("the new one")).unwrap();
    let old = fixture.accounts.unlock(&ada.login, &password("ada"));
    assert!(matches!(old, Err(Error::WrongPassword)), "{old:?}");
    let new = fixture.accounts.unlock(&ada.login, &secret("the new one")).unwrap();
    assert!(new.key.as_bytes() == ada.key.as_bytes());
    assert!(opens(&fixture.accounts, &ada, &written), "after a new password");
    assert!(!is_unknown(&fixture, &device.token));
}

#[test]
fn a_wrap_opens_on_no_other_accounts_row() {
    let fixture = AccountsFixture::new();
    let (ada, eve) = (fixture.add("ada"), fixture.add("eve"));
    let eves = fixture.accounts.create_recovery_secret(&eve).unwrap();
    let copied = fixture.sql().execute(
        "UPDATE account SET recovery_wrapped_key =
             (SELECT recovery_wrapped_key FROM account WHERE login = 'eve') WHERE login = 'ada'",
        [],
    );
    assert_eq!(copied.unwrap(), 1);
    assert!(!opens(&fixture.accounts, &ada, &eves));
}

#[test]
fn a_replaced_secret_opens_nothing_in_an_older_copy_either() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let create = || fixture.accounts.create_recovery_secret(&ada).unwrap();
    let first = create();
    let copy = fixture.copy();
    let secrets = [first, create(), create()];
    let in_effect = [false, false, true];
    assert_eq!(secrets.each_ref().map(|it| opens(&fixture.accounts, &ada, it)), in_effect);

    let older = AccountsFixture::of_files(&copy, &fixture.list());
    assert!(opens(&older.accounts, &ada, &secrets[0]));
    assert_eq!(older.accounts.apply_revocations().unwrap().applied_count, 1);
    assert_eq!(secrets.each_ref().map(|it| opens(&older.accounts, &ada, it)), in_effect);
    assert_eq!(older.accounts.apply_revocations().unwrap().applied_count, 0);
}
