//! The form of the account's messages, plain or sealed: what the file has, what the server says, and
//! how a file in plain turns, or follows a device that has turned the account.
//!
//! # Invariants
//! - Nothing is sent in a form that is not the account's, as far as the server has said it; and
//!   nothing under a phrase that was typed in before a message has opened with it.
//! - A server that calls a sealed account plain gets nothing: the file says so, and stops.
//! - Before a file turns, it has everything of the plain set, in its log.
//!
//! # Not here
//! - When the server is asked to turn the account → `sync/turn.rs`.

use crdt::{ContentForm, KeyId, sealed_with};
use rusqlite::Connection;

use crate::codec::Codec;
use crate::error::{PhraseError, Result};
use crate::log;
use crate::meta::{self, Key};
use crate::phrase::{self, Phrase};
use crate::replica::Replica;

/// A phrase that the file gets when the server has put it into the sealed set.
pub(crate) struct Pending {
    pub(crate) phrase: Phrase,
    /// Whether it was made here, and the account may be turned.
    pub(crate) begins: bool,
}

impl Replica {
    /// The user says that the account is new, or in plain: nothing has to open before this file
    /// sends.
    pub fn begin_account(&self) -> Result<()> {
        self.transaction(|db| {
            if pending(db)?.is_some() {
                meta::set(db, Key::NextSecretBegins, true)?;
            }
            meta::set(db, Key::SecretGiven, false)?;
            meta::set(db, Key::AsksForm, false)
        })
    }

    /// Whether the account turns to end-to-end encryption, or this file follows it, at the next
    /// sync.
    pub fn is_turning(&self) -> Result<bool> {
        Ok(pending(&self.db)?.is_some())
    }

    /// From here on, as long as neither the server nor the user has said what the account is, this
    /// file sends nothing: [`PhraseError::NewAccount`].
    pub fn ask_form(&self) -> Result<()> {
        self.transaction(|db| meta::set(db, Key::AsksForm, true))
    }
}

/// What the account's messages are, once the server has said so or this file has sent some.
pub(crate) fn of_account(db: &Connection) -> Result<Option<ContentForm>> {
    let bytes = meta::get::<Vec<u8>>(db, Key::Form)?;
    Ok(bytes.and_then(|bytes| ContentForm::from_bytes(&bytes)))
}

/// Whether the server says something else than before.
pub(crate) fn is_news(db: &Connection, told: Option<&protocol::ContentForm>) -> Result<bool> {
    let told = told.and_then(protocol::ContentForm::to_crdt);
    Ok(told.is_some() && told != of_account(db)?)
}

/// Notes what the server says; that it says nothing means nothing.
pub(crate) fn note(db: &Connection, told: Option<&protocol::ContentForm>) -> Result<()> {
    match told.and_then(protocol::ContentForm::to_crdt) {
        None => Ok(()),
        Some(form) => meta::set(db, Key::Form, form.as_bytes()),
    }
}

/// Another account: nothing is known of it.
pub(crate) fn forget(db: &Connection) -> Result<()> {
    meta::set(db, Key::Form, None::<Vec<u8>>)
}

/// Whether this file takes what the server has it read. `in_plain`: that is the plain set of an
/// account that has turned, of which a sealed file takes nothing: anybody could have written it.
///
/// An error, if the file is not what the account is: a plain file would meet its own messages,
/// sealed, under their names, and a sealed one the plain ones.
pub(crate) fn may_take(db: &Connection, in_plain: bool) -> Result<bool> {
    let is_sealed = Codec::load(db)?.has_key();
    match of_account(db)? {
        Some(ContentForm::Plain) if is_sealed => Err(PhraseError::AccountPlain.into()),
        Some(ContentForm::Sealed(_)) if is_sealed => Ok(!in_plain),
        Some(ContentForm::Sealed(_)) if !in_plain => Err(PhraseError::Sealed.into()),
        _ => Ok(true),
    }
}

/// Refuses to go on if what the file holds, or what waits to be merged, cannot be the account's.
///
/// As long as nobody has said what the account's messages are, those that wait tell it, by the ids
/// of their keys. One of this file's own says that the phrase is right; then what has another is
/// not worth stopping for, since anybody can write down an id.
pub(crate) fn check(db: &Connection) -> Result<()> {
    let own = Codec::load(db)?.form();
    let account = of_account(db)?;
    match (own, account) {
        (ContentForm::Plain, Some(ContentForm::Sealed(_))) => {
            return Err(PhraseError::Sealed.into());
        }
        (ContentForm::Sealed(_), Some(ContentForm::Plain)) => {
            return Err(PhraseError::AccountPlain.into());
        }
        (own, Some(account)) if own != account => return Err(PhraseError::Wrong.into()),
        (_, Some(_)) => return Ok(()),
        (_, None) => {}
    }
    let waiting = log::unmerged_sealed_heads(db)?;
    let ids: Vec<KeyId> = waiting.iter().filter_map(|head| sealed_with(head)).collect();
    match own {
        _ if waiting.is_empty() => Ok(()),
        ContentForm::Plain => Err(PhraseError::Sealed.into()),
        ContentForm::Sealed(own) => {
            let is_other = !ids.is_empty() && !ids.contains(&own);
            let is_proved = meta::get(db, Key::SecretProved)?.unwrap_or(false);
            if is_other && !is_proved { Err(PhraseError::Wrong.into()) } else { Ok(()) }
        }
    }
}

/// Refuses to send under a phrase that has opened nothing, or in plain to an account of which
/// nobody has said what it is; else notes that what is sent settles it.
pub(crate) fn settle(db: &Connection) -> Result<()> {
    check(db)?;
    let codec = Codec::load(db)?;
    let is = |key| meta::get(db, key).map(|value| value.unwrap_or(false));
    if is(Key::SecretGiven)? && !is(Key::SecretProved)? && !log::opens_waiting(db, &codec)? {
        return Err(PhraseError::Unproved.into());
    }
    if of_account(db)?.is_none() {
        if codec.form() == ContentForm::Plain && is(Key::AsksForm)? {
            return Err(PhraseError::NewAccount.into());
        }
        meta::set(db, Key::Form, codec.form().as_bytes())?;
    }
    Ok(())
}

/// Notes that messages of other devices could be read.
pub(crate) fn prove(db: &Connection) -> Result<()> {
    let form = Codec::load(db)?.form();
    if of_account(db)?.is_none() {
        meta::set(db, Key::Form, form.as_bytes())?;
    }
    if form != ContentForm::Plain {
        meta::set(db, Key::SecretProved, true)?;
    }
    Ok(())
}

pub(crate) fn pending(db: &Connection) -> Result<Option<Pending>> {
    let Some(phrase) = phrase::of_key(db, Key::NextSecret)? else { return Ok(None) };
    let begins = meta::get(db, Key::NextSecretBegins)?.unwrap_or(false);
    Ok(Some(Pending { phrase, begins }))
}

pub(crate) fn set_pending(db: &Connection, phrase: &Phrase, begins: bool) -> Result<()> {
    meta::set(db, Key::NextSecret, phrase.entropy())?;
    meta::set(db, Key::NextSecretBegins, begins)
}

pub(crate) fn drop_pending(db: &Connection) -> Result<()> {
    meta::set(db, Key::NextSecret, None::<Vec<u8>>)
}

/// The server has put this file into the sealed set: what is in plain is sealed, and everything is
/// sent again.
pub(crate) fn turn(db: &Connection, pending: &Pending) -> Result<()> {
    let before = Codec::load(db)?;
    phrase::store(db, &pending.phrase)?;
    let after = Codec::load(db)?;
    log::change_form(db, &before, &after)?;
    log::mark_all_unsent(db)?;
    db.execute("DELETE FROM warren_unerased", [])?;
    meta::set_number(db, Key::Cursor, 0)?;
    meta::set(db, Key::Form, after.form().as_bytes())?;
    // The server knows the key's id, and holds messages under it or none at all.
    meta::set(db, Key::SecretGiven, false)?;
    drop_pending(db)
}
