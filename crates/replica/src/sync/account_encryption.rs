//! The form of the account's messages, plain or sealed: what the file has, what the server says,
//! and how a file in plain turns, or follows a device that has turned the account.
//!
//! # Invariants
//! - Nothing is sent in a form that is not the account's, as far as the server has said it; and
//!   nothing under a phrase that was typed in before a message has opened with it.
//! - A server that calls a sealed account plain gets nothing: the file says so, and stops.
//! - Before a file turns, it has everything of the plain set, in its log.
//!
//! # Not here
//! - When the server is asked to turn the account → `enable_e2ee.rs`.

use crdt::{EncryptionMode, KeyId, sealing_key_id};
use rusqlite::Connection;

use super::recovery_phrase::{self, RecoveryPhrase};
use crate::error::{RecoveryPhraseError, Result};
use crate::log::content_codec::ContentCodec;
use crate::log::message_log;
use crate::meta::{self, ReplicaMetaKey};
use crate::replica::Replica;

/// A phrase that the file gets when the server has put it into the e2ee set.
pub(crate) struct PendingPhrase {
    pub(crate) phrase: RecoveryPhrase,
    /// Whether it was made here, and the account may be turned.
    pub(crate) may_enable_e2ee: bool,
}

impl Replica {
    /// The user says that the account is new, or in plain: nothing has to open before this file
    /// sends.
    pub fn confirm_new_account(&self) -> Result<()> {
        self.transaction(|db| {
            if pending_phrase(db)?.is_some() {
                meta::set(db, ReplicaMetaKey::NextSecretEnablesE2ee, true)?;
            }
            meta::set(db, ReplicaMetaKey::RecoverySecretEntered, false)?;
            meta::set(db, ReplicaMetaKey::AccountUnconfirmed, false)
        })
    }

    /// Whether the account turns to end-to-end encryption, or this file follows it, at the next
    /// sync.
    pub fn is_enabling_e2ee(&self) -> Result<bool> {
        Ok(pending_phrase(&self.db)?.is_some())
    }

    /// From here on, as long as neither the server nor the user has said what the account is, this
    /// file sends nothing: [`RecoveryPhraseError::EncryptionUndecided`].
    pub fn require_account_confirmation(&self) -> Result<()> {
        self.transaction(|db| meta::set(db, ReplicaMetaKey::AccountUnconfirmed, true))
    }

    /// The phrase, if the file's contents are encrypted end to end, or will be from the next sync
    /// on.
    pub fn recovery_phrase(&self) -> Result<Option<RecoveryPhrase>> {
        let pending = pending_phrase(&self.db)?.map(|pending| pending.phrase);
        pending.map_or_else(|| recovery_phrase::load(&self.db), |phrase| Ok(Some(phrase)))
    }

    /// Encrypts end to end from here on, with a phrase that nobody has yet; returns it, or the one
    /// that the file has already.
    ///
    /// If the account is in plain, the next sync turns it: everything is sent again, sealed, and
    /// the other devices need the phrase. If it is encrypted already,
    /// [`RecoveryPhraseError::Required`].
    pub fn create_recovery_phrase(&self) -> Result<RecoveryPhrase> {
        if let Some(known) = self.recovery_phrase()? {
            if account_encryption_mode(&self.db)? == Some(EncryptionMode::Plain) {
                // Turned already, but the server was restored from a backup of before that.
                self.transaction(|db| set_pending_phrase(db, &known, true))?;
            }
            return Ok(known);
        }
        let phrase = RecoveryPhrase::generate();
        self.transaction(|db| match account_encryption_mode(db)? {
            None => encrypt_log(db, &phrase),
            Some(EncryptionMode::Plain) => set_pending_phrase(db, &phrase, true),
            Some(EncryptionMode::EndToEnd(_)) => Err(RecoveryPhraseError::Required.into()),
        })?;
        Ok(phrase)
    }

    /// Joins devices that encrypt end to end, with their phrase. The file sends nothing before it
    /// has opened one of their messages, or [`Self::confirm_new_account`] was called.
    ///
    /// A file that has synced in plain follows at the next sync, if the account was turned.
    pub fn set_recovery_phrase(&self, phrase: &RecoveryPhrase) -> Result<()> {
        self.transaction(|db| {
            if recovery_phrase::load(db)?.is_some_and(|known| known.is(phrase)) {
                return Ok(());
            }
            let is_sealed = recovery_phrase::load(db)?.is_some();
            match account_encryption_mode(db)? {
                Some(EncryptionMode::EndToEnd(id)) if id != phrase.key().id() => {
                    let reason = if is_sealed {
                        RecoveryPhraseError::InUse
                    } else {
                        RecoveryPhraseError::Wrong
                    };
                    return Err(reason.into());
                }
                // It may have been turned since this file has last asked.
                Some(_) if meta::number(db, ReplicaMetaKey::LastSyncedMs)? > 0 => {
                    return set_pending_phrase(db, phrase, false);
                }
                Some(EncryptionMode::Plain) => {
                    return Err(RecoveryPhraseError::AccountNotEncrypted.into());
                }
                Some(EncryptionMode::EndToEnd(_)) | None => {}
            }
            encrypt_log(db, phrase)?;
            meta::set(db, ReplicaMetaKey::RecoverySecretEntered, true)
        })
    }
}

/// What the account's messages are, once the server has said so or this file has sent some.
pub(crate) fn account_encryption_mode(db: &Connection) -> Result<Option<EncryptionMode>> {
    let bytes = meta::get::<Vec<u8>>(db, ReplicaMetaKey::Encryption)?;
    Ok(bytes.and_then(|bytes| EncryptionMode::from_bytes(&bytes)))
}

/// Whether the server says something else than before.
pub(crate) fn is_news(
    db: &Connection,
    told: Option<&protocol::WireEncryptionMode>,
) -> Result<bool> {
    let told = told.and_then(protocol::WireEncryptionMode::to_crdt);
    Ok(told.is_some() && told != account_encryption_mode(db)?)
}

/// Notes what the server says; that it says nothing means nothing.
pub(crate) fn record_server_mode(
    db: &Connection,
    told: Option<&protocol::WireEncryptionMode>,
) -> Result<()> {
    match told.and_then(protocol::WireEncryptionMode::to_crdt) {
        None => Ok(()),
        Some(form) => meta::set(db, ReplicaMetaKey::Encryption, form.as_bytes()),
    }
}

/// Another account: nothing is known of it.
pub(crate) fn reset(db: &Connection) -> Result<()> {
    meta::set(db, ReplicaMetaKey::Encryption, None::<Vec<u8>>)
}

/// Whether this file takes what the server has it read. `in_plain`: that is the plain set of an
/// account that has turned, of which a sealed file takes nothing: anybody could have written it.
///
/// An error, if the file is not what the account is: a plain file would meet its own messages,
/// sealed, under their names, and a sealed one the plain ones.
pub(crate) fn may_take(db: &Connection, in_plain: bool) -> Result<bool> {
    let is_sealed = ContentCodec::load(db)?.has_key();
    match account_encryption_mode(db)? {
        Some(EncryptionMode::Plain) if is_sealed => {
            Err(RecoveryPhraseError::AccountNotEncrypted.into())
        }
        Some(EncryptionMode::EndToEnd(_)) if is_sealed => Ok(!in_plain),
        Some(EncryptionMode::EndToEnd(_)) if !in_plain => Err(RecoveryPhraseError::Required.into()),
        _ => Ok(true),
    }
}

/// Refuses to go on if what the file holds, or what waits to be merged, cannot be the account's.
///
/// As long as nobody has said what the account's messages are, those that wait tell it, by the ids
/// of their keys. One of this file's own says that the phrase is right; then what has another is
/// not worth stopping for, since anybody can write down an id.
pub(crate) fn require_matching_mode(db: &Connection) -> Result<()> {
    let own = ContentCodec::load(db)?.encryption_mode();
    let account = account_encryption_mode(db)?;
    match (own, account) {
        (EncryptionMode::Plain, Some(EncryptionMode::EndToEnd(_))) => {
            return Err(RecoveryPhraseError::Required.into());
        }
        (EncryptionMode::EndToEnd(_), Some(EncryptionMode::Plain)) => {
            return Err(RecoveryPhraseError::AccountNotEncrypted.into());
        }
        (own, Some(account)) if own != account => return Err(RecoveryPhraseError::Wrong.into()),
        (_, Some(_)) => return Ok(()),
        (_, None) => {}
    }
    let waiting = message_log::unmerged_e2ee_headers(db)?;
    let ids: Vec<KeyId> = waiting.iter().filter_map(|head| sealing_key_id(head)).collect();
    match own {
        _ if waiting.is_empty() => Ok(()),
        EncryptionMode::Plain => Err(RecoveryPhraseError::Required.into()),
        EncryptionMode::EndToEnd(own) => {
            let is_other = !ids.is_empty() && !ids.contains(&own);
            let is_proved = meta::get(db, ReplicaMetaKey::RecoverySecretVerified)?.unwrap_or(false);
            if is_other && !is_proved { Err(RecoveryPhraseError::Wrong.into()) } else { Ok(()) }
        }
    }
}

/// Refuses to send under a phrase that has opened nothing, or in plain to an account of which
/// nobody has said what it is; else notes that what is sent settles it.
pub(crate) fn fix_encryption_mode(db: &Connection) -> Result<()> {
    require_matching_mode(db)?;
    let codec = ContentCodec::load(db)?;
    let is = |key| meta::get(db, key).map(|value| value.unwrap_or(false));
    if is(ReplicaMetaKey::RecoverySecretEntered)?
        && !is(ReplicaMetaKey::RecoverySecretVerified)?
        && !message_log::can_decode_any_unmerged(db, &codec)?
    {
        return Err(RecoveryPhraseError::Unverified.into());
    }
    if account_encryption_mode(db)?.is_none() {
        if codec.encryption_mode() == EncryptionMode::Plain
            && is(ReplicaMetaKey::AccountUnconfirmed)?
        {
            return Err(RecoveryPhraseError::EncryptionUndecided.into());
        }
        meta::set(db, ReplicaMetaKey::Encryption, codec.encryption_mode().as_bytes())?;
    }
    Ok(())
}

/// Notes that messages of other devices could be read.
pub(crate) fn mark_phrase_verified(db: &Connection) -> Result<()> {
    let form = ContentCodec::load(db)?.encryption_mode();
    if account_encryption_mode(db)?.is_none() {
        meta::set(db, ReplicaMetaKey::Encryption, form.as_bytes())?;
    }
    if form != EncryptionMode::Plain {
        meta::set(db, ReplicaMetaKey::RecoverySecretVerified, true)?;
    }
    Ok(())
}

pub(crate) fn pending_phrase(db: &Connection) -> Result<Option<PendingPhrase>> {
    let Some(phrase) = recovery_phrase::load_from(db, ReplicaMetaKey::NextRecoverySecret)? else {
        return Ok(None);
    };
    let may_enable_e2ee = meta::get(db, ReplicaMetaKey::NextSecretEnablesE2ee)?.unwrap_or(false);
    Ok(Some(PendingPhrase { phrase, may_enable_e2ee }))
}

pub(crate) fn set_pending_phrase(
    db: &Connection,
    phrase: &RecoveryPhrase,
    may_enable_e2ee: bool,
) -> Result<()> {
    meta::set(db, ReplicaMetaKey::NextRecoverySecret, phrase.entropy())?;
    meta::set(db, ReplicaMetaKey::NextSecretEnablesE2ee, may_enable_e2ee)
}

pub(crate) fn clear_pending_phrase(db: &Connection) -> Result<()> {
    meta::set(db, ReplicaMetaKey::NextRecoverySecret, None::<Vec<u8>>)
}

/// The server has put this file into the e2ee set: what is in plain is sealed, and everything is
/// sent again.
pub(crate) fn enable_e2ee(db: &Connection, pending: &PendingPhrase) -> Result<()> {
    let before = ContentCodec::load(db)?;
    recovery_phrase::store(db, &pending.phrase)?;
    let after = ContentCodec::load(db)?;
    message_log::change_form(db, &before, &after)?;
    message_log::mark_all_unsent(db)?;
    db.execute("DELETE FROM warren_unerased", [])?;
    meta::set_number(db, ReplicaMetaKey::Cursor, 0)?;
    meta::set(db, ReplicaMetaKey::Encryption, after.encryption_mode().as_bytes())?;
    // The server knows the key's id, and holds messages under it or none at all.
    meta::set(db, ReplicaMetaKey::RecoverySecretEntered, false)?;
    clear_pending_phrase(db)
}

/// Seals the log, under the phrase.
pub(crate) fn encrypt_log(db: &Connection, phrase: &RecoveryPhrase) -> Result<()> {
    let before = ContentCodec::load(db)?;
    recovery_phrase::store(db, phrase)?;
    message_log::change_form(db, &before, &ContentCodec::load(db)?)
}
