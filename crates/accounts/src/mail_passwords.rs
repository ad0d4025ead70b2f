//! Mail passwords of accounts: each wraps the key of the mail vault for one mail program.
//!
//! ```text
//! sealed_name   nonce (24 random bytes) ‖ encrypted name ‖ tag (16), XChaCha20-Poly1305 with the
//!               key HKDF-SHA256(mail vault's key, info "warren mail password name 1") and the
//!               associated data "warren mail password name 1" vault id
//! ```
//! So only the account's own password, or one of its mail passwords, shows the names.
//!
//! # Invariants
//! - A mail password opens the mail vault of its account, and no other vault.
//! - A removed password is on the revocation list, so an older accounts file does not bring it back.
//! - A new password of the account changes no mail password: the mail vault's key stays.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305};
use engine::DatabaseKey;
use rusqlite::params;

use crate::accounts::{Accounts, UnlockedAccount};
use crate::credentials::key_wrap::WrapContext;
use crate::credentials::login::Login;
use crate::credentials::mail_password::MailPassword;
use crate::credentials::random;
use crate::credentials::token::derive;
use crate::error::{Error, Result};
use crate::id::{AccountId, MailPasswordId, VaultId, vault_of_column};
use crate::limits::{MAIL_PASSWORD_NAME_BYTES_MAX, MAIL_PASSWORDS_COUNT_MAX};
use crate::revocations::Revocation;
use crate::schema;

const NAME_INFO: &[u8] = b"warren mail password name 1";
const NONCE_BYTES: usize = 24;

/// A new mail password, which is shown once.
pub struct NewMailPassword {
    pub id: MailPasswordId,
    pub password: MailPassword,
}

/// A mail password, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailPasswordRow {
    pub id: MailPasswordId,
    /// The name that the user gave it; empty if none.
    pub name: String,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
}

impl Accounts {
    /// Creates a mail password. `unlocked` is access to the account's own vault.
    ///
    /// Returns [`Error::MailNotSetUp`] if the account has no mail vault, and
    /// [`Error::TooManyMailPasswords`] beyond [`MAIL_PASSWORDS_COUNT_MAX`].
    pub fn add_mail_password(
        &self,
        unlocked: &UnlockedAccount,
        name: &str,
        now_ms: u64,
    ) -> Result<NewMailPassword> {
        if name.len() > MAIL_PASSWORD_NAME_BYTES_MAX {
            return Err(Error::MailPasswordNameTooLong);
        }
        let mail = unlocked.mail_vault();
        let (id, password) = (MailPasswordId::generate(), MailPassword::generate());
        let row = WrapContext::MailPassword(&mail.vault, &id);
        let wrapped_key = password.wrapping_key().wrap(&mail.key, &row);
        let sealed_name = seal_name(name, &mail.key, &mail.vault);
        let (account, hash, stored_id) = (unlocked.account, password.hash(), id.clone());
        schema::write(&self.database, move |db| {
            let sql = "SELECT 1 FROM mail_vault WHERE account_id = ?1";
            if !db.prepare_cached(sql)?.exists([account.0])? {
                return Err(Error::MailNotSetUp);
            }
            let count = "SELECT count(*) FROM mail_password WHERE account_id = ?1";
            let count: u32 = db.prepare_cached(count)?.query_row([account.0], |row| row.get(0))?;
            if count >= MAIL_PASSWORDS_COUNT_MAX {
                return Err(Error::TooManyMailPasswords);
            }
            let sql = "INSERT INTO mail_password
                           (id, account_id, hash, wrapped_key, sealed_name, created_ms)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            db.prepare_cached(sql)?.execute(params![
                stored_id.as_str(),
                account.0,
                hash,
                wrapped_key,
                sealed_name,
                now_ms.cast_signed()
            ])?;
            Ok(())
        })?;
        Ok(NewMailPassword { id, password })
    }

    /// Opens the mail vault of an account with one of its mail passwords. The result is access to
    /// that vault only.
    ///
    /// Returns [`Error::WrongPassword`] if the account does not exist or has no such password.
    pub fn unlock_mail(&self, login: &Login, password: &MailPassword) -> Result<UnlockedAccount> {
        self.database.read(|db| {
            let mut statement = db.prepare_cached(
                "SELECT mail_password.id, account_id, mail_vault.vault_id, mail_password.wrapped_key
                 FROM mail_password
                     JOIN mail_vault USING (account_id) JOIN account ON account.id = account_id
                 WHERE hash = ?1 AND login = ?2",
            )?;
            let mut rows = statement.query(params![password.hash(), login.as_str()])?;
            let row = rows.next()?.ok_or(Error::WrongPassword)?;
            let id = id_of_column(&row.get::<_, String>(0)?)?;
            let vault = vault_of_column(&row.get::<_, String>(2)?)?;
            let context = WrapContext::MailPassword(&vault, &id);
            let key = password.wrapping_key().unwrap(&row.get(3)?, &context);
            let key = key.ok_or(Error::Damaged { what: "the wrapped key of a mail password" })?;
            Ok(UnlockedAccount {
                account: AccountId(row.get(1)?),
                login: login.clone(),
                vault,
                key,
            })
        })
    }

    /// Returns the mail passwords of an account, the oldest first. `mail` is access to its mail
    /// vault.
    pub fn mail_passwords(&self, mail: &UnlockedAccount) -> Result<Vec<MailPasswordRow>> {
        self.database.read(|db| {
            let mut statement = db.prepare_cached(
                "SELECT id, sealed_name, created_ms FROM mail_password WHERE account_id = ?1
                 ORDER BY created_ms, id",
            )?;
            let rows = statement.query_and_then([mail.account.0], |row| {
                Ok(MailPasswordRow {
                    id: id_of_column(&row.get::<_, String>(0)?)?,
                    name: open_name(&row.get::<_, Vec<u8>>(1)?, &mail.key, &mail.vault)?,
                    created_ms: row.get::<_, i64>(2)?.cast_unsigned(),
                })
            })?;
            rows.collect()
        })
    }

    /// Removes a mail password, which opens nothing any more.
    pub fn remove_mail_password(&self, account: AccountId, id: &MailPasswordId) -> Result<()> {
        let id = id.clone();
        self.revoke_in(move |db| {
            let sql = "DELETE FROM mail_password WHERE account_id = ?1 AND id = ?2";
            if db.prepare_cached(sql)?.execute(params![account.0, id.as_str()])? == 0 {
                return Err(Error::NotFound);
            }
            Ok(((), vec![Revocation::MailPassword(id.clone())]))
        })
    }
}

fn name_cipher(key: &DatabaseKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new((&*derive(key.as_bytes(), NAME_INFO)).into())
}

fn name_data(vault: &VaultId) -> Vec<u8> {
    [NAME_INFO, vault.as_str().as_bytes()].concat()
}

fn seal_name(name: &str, key: &DatabaseKey, vault: &VaultId) -> Vec<u8> {
    let nonce: [u8; NONCE_BYTES] = random::bytes();
    let payload = Payload { msg: name.as_bytes(), aad: &name_data(vault) };
    let sealed = name_cipher(key).encrypt(&nonce.into(), payload);
    [&nonce[..], &sealed.expect("a name is below the cipher's limit")].concat()
}

fn open_name(sealed: &[u8], key: &DatabaseKey, vault: &VaultId) -> Result<String> {
    let damaged = || Error::Damaged { what: "the name of a mail password" };
    let (nonce, rest) = sealed.split_first_chunk::<NONCE_BYTES>().ok_or_else(damaged)?;
    let payload = Payload { msg: rest, aad: &name_data(vault) };
    let name = name_cipher(key).decrypt(nonce.into(), payload).or(Err(damaged()))?;
    String::from_utf8(name).or(Err(damaged()))
}

fn id_of_column(text: &str) -> Result<MailPasswordId> {
    text.parse().or(Err(Error::Damaged { what: "the id of a mail password" }))
}
