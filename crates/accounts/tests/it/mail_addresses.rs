//! Tests of mail addresses and of the recipients that they find.

use accounts::{MAIL_ADDRESSES_COUNT_MAX, MailRecipient};

use super::*;

impl AccountsFixture {
    /// Returns the addresses of one account or of all accounts, each with its login.
    fn addresses(&self, name: Option<&str>) -> Vec<String> {
        let addresses = self.accounts.mail_addresses(name.map(login).as_ref()).unwrap();
        addresses.iter().map(|(address, login)| format!("{address} {login}")).collect()
    }

    /// Asserts that mail for an address goes to this account, or is refused.
    fn check_recipient(&self, text: &str, expected: Option<&UnlockedAccount>) {
        let expected = expected.map(|unlocked| MailRecipient {
            public_key: MAIL_KEY.to_vec(),
            mail_bytes_max: None,
            account: unlocked.account,
            vault: unlocked.mail_vault().vault,
        });
        assert_eq!(self.accounts.find_recipient(text).unwrap(), expected, "{text:?}");
    }
}

#[test]
fn an_address_needs_an_account_with_a_mail_vault() {
    let fixture = AccountsFixture::new();
    let missing = fixture.add_address("ada", "ada@example.org");
    assert!(matches!(missing, Err(Error::NotFound)), "{missing:?}");
    let ada = fixture.add("ada");
    let without_vault = fixture.add_address("ada", "ada@example.org");
    assert!(matches!(without_vault, Err(Error::MailNotSetUp)), "{without_vault:?}");
    fixture.check_recipient("ada@example.org", None);

    fixture.accounts.record_mail_vault(&ada.mail_vault(), MAIL_KEY).unwrap();
    fixture.add_address("ada", "ada@example.org").unwrap();
    fixture.check_recipient("ada@example.org", Some(&ada));
    fixture.accounts.change_limits(&ada.login, |limits| limits.mail_bytes_max = Some(7)).unwrap();
    let recipient = fixture.accounts.find_recipient("ada@example.org").unwrap().unwrap();
    assert_eq!(recipient.mail_bytes_max, Some(7));
}

#[test]
fn an_address_belongs_to_one_account() {
    let fixture = AccountsFixture::new();
    let [ada, bob] = ["ada", "bob"].map(|name| fixture.add_with_mail(name));
    fixture.add_address("ada", "office@example.org").unwrap();
    fixture.add_address("ada", "Office@Example.org").unwrap();
    let taken = fixture.add_address("bob", "OFFICE@example.org");
    assert!(matches!(taken, Err(Error::MailAddressTaken)), "{taken:?}");
    fixture.check_recipient("office@example.org", Some(&ada));

    fixture.accounts.remove_mail_address(&address("office@EXAMPLE.org")).unwrap();
    fixture.check_recipient("office@example.org", None);
    let again = fixture.accounts.remove_mail_address(&address("office@example.org"));
    assert!(matches!(again, Err(Error::MailAddressNotFound)), "{again:?}");
    fixture.add_address("bob", "office@example.org").unwrap();
    fixture.check_recipient("office@example.org", Some(&bob));
}

#[test]
fn addresses_are_listed_in_order_with_their_logins() {
    let fixture = AccountsFixture::new();
    for name in ["ada", "bob"] {
        fixture.add_with_mail(name);
    }
    assert_eq!(fixture.addresses(None), [""; 0]);
    for (name, text) in [("bob", "b@x.org"), ("ada", "c@x.org"), ("ada", "A@x.org")] {
        fixture.add_address(name, text).unwrap();
    }
    assert_eq!(fixture.addresses(None), ["a@x.org ada", "b@x.org bob", "c@x.org ada"]);
    assert_eq!(fixture.addresses(Some("ada")), ["a@x.org ada", "c@x.org ada"]);
    let unknown = fixture.accounts.mail_addresses(Some(&login("cyd")));
    assert!(matches!(unknown, Err(Error::NotFound)), "{unknown:?}");
}

#[test]
fn an_account_has_a_limited_number_of_addresses() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add_with_mail("ada");
    fixture.add_address("ada", "first@x.org").unwrap();
    let fill = "WITH RECURSIVE number (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM number LIMIT ?1)
                INSERT INTO mail_address (address, account_id)
                SELECT n || '@x.org', account_id FROM number, mail_vault";
    fixture.sql().execute(fill, [MAIL_ADDRESSES_COUNT_MAX - 2]).unwrap();
    fixture.add_address("ada", "last@x.org").unwrap();
    let beyond = fixture.add_address("ada", "beyond@x.org");
    assert!(matches!(beyond, Err(Error::TooManyMailAddresses)), "{beyond:?}");
    // The account has this address already, so the limit does not matter.
    fixture.add_address("ada", "first@x.org").unwrap();
    fixture.check_recipient("last@x.org", Some(&ada));
    fixture.add_with_mail("bob");
    fixture.add_address("bob", "beyond@x.org").unwrap();
}

#[test]
fn an_address_finds_its_account_in_any_case_and_with_any_tag() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add_with_mail("ada");
    fixture.add_address("ada", "Ada.Lovelace@Example.org").unwrap();
    fixture.add_address("ada", "jürgen@example.org").unwrap();
    for text in [
        "ada.lovelace@example.org",
        "ADA.Lovelace@EXAMPLE.ORG",
        "ada.lovelace+shop@example.org",
        "ada.lovelace+shop+2@example.org",
        "ada.lovelace+@example.org",
        "JÜRGEN@example.org",
    ] {
        fixture.check_recipient(text, Some(&ada));
    }
    for text in [
        "adalovelace@example.org",
        "ada.lovelace@example.com",
        "ada.lovelace@mail.example.org",
        "+ada.lovelace@example.org",
        "ada.lovelace-shop@example.org",
        "ada.lovelace",
        "<ada.lovelace@example.org>",
        "",
    ] {
        fixture.check_recipient(text, None);
    }
}

#[test]
fn an_exact_address_wins_over_one_without_the_tag() {
    let fixture = AccountsFixture::new();
    let [ada, bob] = ["ada", "bob"].map(|name| fixture.add_with_mail(name));
    fixture.add_address("ada", "ada@x.org").unwrap();
    fixture.add_address("bob", "ada+bob@x.org").unwrap();
    fixture.check_recipient("Ada+Bob@x.org", Some(&bob));
    fixture.check_recipient("ada+eve@x.org", Some(&ada));
    // Only the whole tag is left out.
    fixture.check_recipient("ada+bob+eve@x.org", Some(&ada));
    fixture.add_address("bob", "+tag@x.org").unwrap();
    fixture.check_recipient("+tag@x.org", Some(&bob));
}

#[test]
fn addresses_go_with_their_account() {
    let fixture = AccountsFixture::new();
    let [_, bob] = ["ada", "bob"].map(|name| fixture.add_with_mail(name));
    fixture.add_address("ada", "ada@x.org").unwrap();
    fixture.add_address("bob", "bob@x.org").unwrap();
    fixture.accounts.remove(&login("ada")).unwrap();
    fixture.check_recipient("ada@x.org", None);
    assert_eq!(fixture.addresses(None), ["bob@x.org bob"]);
    fixture.add_address("bob", "ada@x.org").unwrap();
    fixture.check_recipient("ada@x.org", Some(&bob));
}

#[test]
fn addresses_stay_if_their_account_gets_another_login() {
    let fixture = AccountsFixture::new();
    let ada = fixture.add_with_mail("ada");
    fixture.add_address("ada", "ada@x.org").unwrap();
    fixture.accounts.rename(&ada, &login("augusta")).unwrap();
    assert_eq!(fixture.addresses(None), ["ada@x.org augusta"]);
    fixture.check_recipient("ada@x.org", Some(&ada));
}
