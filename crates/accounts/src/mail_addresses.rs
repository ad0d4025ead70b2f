//! Mail addresses: the accounts that receive mail, and the addresses at which they do.
//!
//! # Invariants
//! - An address belongs to one account, which has a mail vault. It is removed with the account.
//! - A [`MailAddress`] is in lower case, so an address finds its account in any spelling.
//! - It contains only letters, digits and the signs of an unquoted address, so it is safe in a log
//!   line, a mail header and a terminal.
//!
//! # Not here
//! - The syntax of SMTP and LMTP, with quoted local parts and address literals → the receiver of
//!   mail. No such address can be added, so none of them has a recipient.

use std::fmt;

use rusqlite::{Connection, OptionalExtension, params};

use crate::accounts::Accounts;
use crate::credentials::login::{Login, login_of_column};
use crate::error::{Error, Result};
use crate::id::{AccountId, VaultId, vault_of_column};
use crate::limits::MAIL_ADDRESSES_COUNT_MAX;
use crate::schema;

/// The maximum length of an address: a path in SMTP has 256 bytes, with its angle brackets
/// (RFC 5321, 4.5.3.1.3).
const ADDRESS_BYTES_MAX: usize = 254;

/// The maximum length of a local part (RFC 5321, 4.5.3.1.1).
const LOCAL_PART_BYTES_MAX: usize = 64;

/// The maximum length of a label of a domain (RFC 1035, 2.3.4).
const LABEL_BYTES_MAX: usize = 63;

/// A valid mail address, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MailAddress(String);

/// The account that receives the mail for an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailRecipient {
    pub account: AccountId,
    /// The account's mail vault.
    pub vault: VaultId,
    /// The key to which deliveries for it are sealed.
    pub public_key: Vec<u8>,
    /// The account's own limit for the size of its mail in bytes, if it has one.
    pub mail_bytes_max: Option<u64>,
}

impl MailAddress {
    /// Parses an address without angle brackets and display name. The local part may contain
    /// letters that are not ASCII; the domain may not.
    ///
    /// Returns [`Error::InvalidMailAddress`] with the reason.
    pub fn parse(text: &str) -> Result<Self> {
        let invalid = |reason| Error::InvalidMailAddress { reason };
        // Before the limits: the lower case of some letters has more bytes.
        let address = text.to_lowercase();
        let (local, domain) =
            address.rsplit_once('@').ok_or(invalid("it must have the form name@domain"))?;
        if address.len() > ADDRESS_BYTES_MAX {
            return Err(invalid("it must not have more than 254 bytes"));
        }
        if local.is_empty() || local.len() > LOCAL_PART_BYTES_MAX {
            return Err(invalid("the part before the @ must have 1 to 64 bytes"));
        }
        if !local.chars().all(is_allowed) {
            return Err(invalid(
                "the part before the @ may contain only letters, digits and !#$%&'*+-/=?^_`{|}~.",
            ));
        }
        if !domain.split('.').all(is_label) {
            return Err(invalid(
                "the domain must have labels of 1 to 63 ASCII letters, digits and inner hyphens",
            ));
        }
        Ok(Self(address))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the address `name@domain` of an address `name+tag@domain`, or `None` if the address
    /// has no tag.
    fn without_tag(&self) -> Option<Self> {
        let (local, domain) = self.0.rsplit_once('@')?;
        let (name, _) = local.split_once('+').filter(|(name, _)| !name.is_empty())?;
        Some(Self(format!("{name}@{domain}")))
    }
}

impl fmt::Display for MailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Accounts {
    /// Adds an address to an account. Does not fail if the account has it already.
    ///
    /// Returns [`Error::NotFound`] without such an account, [`Error::MailNotSetUp`] if it has no
    /// mail vault, [`Error::MailAddressTaken`] if another account has the address, and
    /// [`Error::TooManyMailAddresses`] beyond [`MAIL_ADDRESSES_COUNT_MAX`].
    pub fn add_mail_address(&self, login: &Login, address: &MailAddress) -> Result<()> {
        let (login, address) = (login.clone(), address.clone());
        schema::write(&self.database, move |db| {
            let account = account_with_mail(db, &login)?;
            match recipient(db, &address)? {
                Some(owner) if owner.account == account => return Ok(()),
                Some(_) => return Err(Error::MailAddressTaken),
                None => {}
            }
            let sql = "SELECT count(*) FROM mail_address WHERE account_id = ?1";
            let count: u32 = db.prepare_cached(sql)?.query_row([account.0], |row| row.get(0))?;
            if count >= MAIL_ADDRESSES_COUNT_MAX {
                return Err(Error::TooManyMailAddresses);
            }
            let sql = "INSERT INTO mail_address (address, account_id) VALUES (?1, ?2)";
            db.prepare_cached(sql)?.execute(params![address.as_str(), account.0])?;
            Ok(())
        })
    }

    /// Removes an address from its account.
    ///
    /// Returns [`Error::MailAddressNotFound`] if no account has it.
    pub fn remove_mail_address(&self, address: &MailAddress) -> Result<()> {
        let address = address.clone();
        schema::write(&self.database, move |db| {
            let sql = "DELETE FROM mail_address WHERE address = ?1";
            let removed = db.prepare_cached(sql)?.execute([address.as_str()])?;
            if removed == 1 { Ok(()) } else { Err(Error::MailAddressNotFound) }
        })
    }

    /// Returns the addresses of one account or of all accounts, each with its account's login,
    /// sorted by address.
    ///
    /// Returns [`Error::NotFound`] if no account has the login.
    pub fn mail_addresses(&self, login: Option<&Login>) -> Result<Vec<(MailAddress, Login)>> {
        if let Some(login) = login {
            self.find(login)?;
        }
        self.database.read(|db| {
            let mut statement = db.prepare_cached(
                "SELECT address, login FROM mail_address JOIN account ON id = account_id
                 WHERE ?1 IS NULL OR login = ?1 ORDER BY address",
            )?;
            let rows = statement.query_and_then([login.map(Login::as_str)], |row| {
                let address = address_of_column(&row.get::<_, String>(0)?)?;
                Ok((address, login_of_column(&row.get::<_, String>(1)?)?))
            })?;
            rows.collect()
        })
    }

    /// Returns the recipient of mail for an address: the account that has exactly this address, or
    /// the one that has it without its tag. Returns `None` if there is no such account, or if the
    /// text is not a valid address.
    pub fn find_recipient(&self, text: &str) -> Result<Option<MailRecipient>> {
        let Ok(address) = MailAddress::parse(text) else { return Ok(None) };
        self.database.read(|db| match (recipient(db, &address)?, address.without_tag()) {
            (None, Some(untagged)) => recipient(db, &untagged),
            (found, _) => Ok(found),
        })
    }
}

/// Returns the account that has exactly this address.
fn recipient(db: &Connection, address: &MailAddress) -> Result<Option<MailRecipient>> {
    let mut statement = db.prepare_cached(
        "SELECT account_id, mail_vault.vault_id, public_key, mail_bytes_max
         FROM mail_address JOIN mail_vault USING (account_id) JOIN account ON account.id = account_id
         WHERE address = ?1",
    )?;
    let mut rows = statement.query_and_then([address.as_str()], |row| {
        let (account, vault) = (AccountId(row.get(0)?), row.get::<_, String>(1)?);
        Ok(MailRecipient {
            account,
            vault: vault_of_column(&vault)?,
            public_key: row.get(2)?,
            mail_bytes_max: row.get::<_, Option<i64>>(3)?.map(i64::cast_unsigned),
        })
    })?;
    rows.next().transpose()
}

/// Returns the account with this login, which must have a mail vault.
fn account_with_mail(db: &Connection, login: &Login) -> Result<AccountId> {
    let mut statement = db.prepare_cached(
        "SELECT id, EXISTS (SELECT 1 FROM mail_vault WHERE account_id = id)
         FROM account WHERE login = ?1",
    )?;
    let found = statement.query_row([login.as_str()], |row| Ok((row.get(0)?, row.get(1)?)));
    match found.optional()? {
        Some((account, true)) => Ok(AccountId(account)),
        Some((_, false)) => Err(Error::MailNotSetUp),
        None => Err(Error::NotFound),
    }
}

/// Whether a local part may contain this character. Combining characters are not allowed, so that
/// there is only one way to write a letter with an accent.
fn is_allowed(character: char) -> bool {
    character.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(character)
}

fn is_label(label: &str) -> bool {
    let is_hyphenated = label.starts_with('-') || label.ends_with('-');
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && !is_hyphenated
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn address_of_column(text: &str) -> Result<MailAddress> {
    MailAddress::parse(text).or(Err(Error::Damaged { what: "a mail address" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let parsed = MailAddress::parse(text);
        match expected {
            Some(address) => {
                let parsed = parsed.unwrap();
                assert_eq!(parsed.as_str(), address);
                assert_eq!(MailAddress::parse(address).unwrap(), parsed);
            }
            None => {
                assert!(matches!(parsed, Err(Error::InvalidMailAddress { .. })), "{text:?}");
            }
        }
    }

    #[test]
    fn an_address_has_one_form() {
        check("Ada.Lovelace+Shop@Example-1.ORG", Some("ada.lovelace+shop@example-1.org"));
        check("a@localhost", Some("a@localhost"));
        check("!#$%&'*+-/=?^_`{|}~.@x.org", Some("!#$%&'*+-/=?^_`{|}~.@x.org"));
        check("ÄNNE@x.org", Some("änne@x.org"));
        check("用户@x.org", Some("用户@x.org"));
        // The Kelvin sign is a letter K.
        check("\u{212a}ate@x.org", Some("kate@x.org"));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "ada", "@", "ada@", "@x.org", "a@b@x.org", "ada@x.org ", " ada@x.org"] {
            check(text, None);
        }
        for sign in " \t\r\n\0\u{7f}\"<>,;:\\()[]\u{85}\u{a0}\u{200b}\u{202e}\u{301}".chars() {
            check(&format!("a{sign}b@x.org"), None);
            check(&format!("ab@x{sign}y.org"), None);
        }
        // Its lower case has a combining dot.
        check("İ@x.org", None);
        for domain in ["[192.0.2.1]", "[IPv6:::1]", ".org", "x..org", "x.org.", "-x.org", "x-.org"]
        {
            check(&format!("ada@{domain}"), None);
        }
        for domain in ["bücher.example", "x_y.org", "x/y.org"] {
            check(&format!("ada@{domain}"), None);
        }
    }

    #[test]
    fn the_parts_and_the_whole_have_limits() {
        let local = "a".repeat(64);
        check(&format!("{local}@x.org"), Some(&format!("{local}@x.org")));
        check(&format!("{local}a@x.org"), None);
        check(&format!("{}@x.org", "ä".repeat(33)), None);
        let label = "b".repeat(63);
        check(&format!("a@{label}.org"), Some(&format!("a@{label}.org")));
        check(&format!("a@b{label}.org"), None);
        let longest = format!("{local}@{label}.{label}.{}", "c".repeat(61));
        assert_eq!(longest.len(), ADDRESS_BYTES_MAX);
        check(&longest, Some(&longest));
        check(&format!("{longest}c"), None);
    }
}
