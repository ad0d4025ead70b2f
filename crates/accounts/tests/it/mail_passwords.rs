//! Tests mail passwords: what they open, and that removed ones stay removed.

use accounts::{Error, MAIL_PASSWORD_NAME_BYTES_MAX, MAIL_PASSWORDS_COUNT_MAX, MailPassword};

use crate::{AccountsFixture, NOW, login, password, secret};

#[test]
fn a_mail_password_opens_the_mail_vault_of_its_account_only() {
    let fixture = AccountsFixture::new();
    let [ada, bob] = ["ada", "bob"].map(|name| fixture.add_with_mail(name));
    let phone = fixture.accounts.add_mail_password(&ada, "phone", NOW).unwrap();
    let typed = MailPassword::parse(&phone.password.to_text().to_uppercase()).unwrap();
    let mail = fixture.accounts.unlock_mail(&ada.login, &typed).unwrap();
    assert_eq!((mail.account, &mail.vault), (ada.account, &ada.mail_vault().vault));
    assert!(mail.key.as_bytes() == ada.mail_vault().key.as_bytes());
    assert!(mail.key.as_bytes() != ada.key.as_bytes());

    let refused = fixture.accounts.unlock_mail(&bob.login, &typed);
    assert!(matches!(refused, Err(Error::WrongPassword)), "another account");
    let refused = fixture.accounts.unlock_mail(&login("eve"), &typed);
    assert!(matches!(refused, Err(Error::WrongPassword)), "no account");
    let refused = fixture.accounts.unlock(&ada.login, &secret(&phone.password.to_text()));
    assert!(matches!(refused, Err(Error::WrongPassword)), "the account's own vault");

    // A new password of the account, and another login, change no mail password.
    let (old, new) = (password("ada"), secret("another password"));
    fixture.accounts.change_password(&ada.login, &old, &new).unwrap();
    fixture.accounts.rename(&ada, &login("lovelace")).unwrap();
    fixture.accounts.unlock_mail(&login("lovelace"), &typed).unwrap();
    fixture.accounts.remove(&login("lovelace")).unwrap();
    let refused = fixture.accounts.unlock_mail(&login("lovelace"), &typed);
    assert!(matches!(refused, Err(Error::WrongPassword)), "removed with its account");
}

#[test]
fn mail_passwords_are_listed_with_names_that_only_their_key_shows() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add_with_mail("ada");
    let add = |name: &str, now_ms| fixture.accounts.add_mail_password(&ada, name, now_ms);
    let (phone, other) = (add("Ada's telephone", NOW).unwrap(), add("", NOW + 1).unwrap());
    let listed = || fixture.accounts.mail_passwords(&ada.mail_vault()).unwrap();
    let found: Vec<_> =
        listed().into_iter().map(|row| (row.id, row.name, row.created_ms)).collect();
    let expected =
        [(phone.id.clone(), "Ada's telephone".to_owned(), NOW), (other.id, String::new(), NOW + 1)];
    assert_eq!(found, expected);
    let id = &phone.id;
    fixture.accounts.remove_mail_password(ada.account, id).unwrap();
    assert_eq!(listed().len(), 1);
    let again = fixture.accounts.remove_mail_password(ada.account, id);
    assert!(matches!(again, Err(Error::NotFound)), "{again:?}");
    let refused = fixture.accounts.unlock_mail(&ada.login, &phone.password);
    assert!(matches!(refused, Err(Error::WrongPassword)));
}

#[test]
fn mail_passwords_need_mail_and_have_limits() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add("ada");
    let add = |name: &str| fixture.accounts.add_mail_password(&ada, name, NOW).err();
    assert!(matches!(add(""), Some(Error::MailNotSetUp)));
    fixture.accounts.record_mail_vault(&ada.mail_vault(), b"key").unwrap();
    let long = "x".repeat(MAIL_PASSWORD_NAME_BYTES_MAX);
    assert!(matches!(add(&format!("{long}x")), Some(Error::MailPasswordNameTooLong)));
    for _ in 0..MAIL_PASSWORDS_COUNT_MAX {
        assert!(add(&long).is_none());
    }
    assert!(matches!(add(""), Some(Error::TooManyMailPasswords)));
}
