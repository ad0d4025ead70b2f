//! Tracks whether the account's messages are plain or end-to-end encrypted, in this file and on the
//! server, and encrypts a plain file when its device or another one encrypts the account.
//!
//! # Invariants
//! - Nothing is sent in another mode than the account's, as far as the server has reported it, and
//!   nothing under an entered phrase before a message was unsealed with it.
//! - A server that reports an encrypted account as plain gets nothing: the sync fails.
//! - Before a file becomes encrypted, its log contains the whole plain set.
//!
//! # Not here
//! - The request that encrypts the account → `enable_e2ee.rs`.

use crdt::{EncryptionMode, KeyId, sealing_key_id};
use rusqlite::Connection;

use super::recovery_phrase::{self, RecoveryPhrase};
use crate::error::{RecoveryPhraseError, Result};
use crate::log::content_codec::ContentCodec;
use crate::log::message_log;
use crate::meta::{self, ReplicaMetaKey};
use crate::replica::Replica;

/// A phrase that the file adopts when the server has put it into the e2ee set.
pub(crate) struct PendingPhrase {
    pub(crate) phrase: RecoveryPhrase,
    /// Whether the phrase was generated here, so that it may encrypt the account.
    pub(crate) may_enable_e2ee: bool,
}

impl Replica {
    /// Records the user's confirmation that the account is new or plain, so that this file may send
    /// without having unsealed a message.
    pub fn confirm_new_account(&self) -> Result<()> {
        self.transaction(|db| {
            if pending_phrase(db)?.is_some() {
                meta::set(db, ReplicaMetaKey::NextSecretEnablesE2ee, true)?;
            }
            meta::set(db, ReplicaMetaKey::RecoverySecretEntered, false)?;
            meta::set(db, ReplicaMetaKey::AccountUnconfirmed, false)
        })
    }

    /// Returns whether the next sync encrypts the account, or follows a device that did.
    pub fn is_enabling_e2ee(&self) -> Result<bool> {
        Ok(pending_phrase(&self.db)?.is_some())
    }

    /// Blocks sending with [`RecoveryPhraseError::EncryptionUndecided`] until the server or the
    /// user confirms the account's encryption mode.
    pub fn require_account_confirmation(&self) -> Result<()> {
        self.transaction(|db| meta::set(db, ReplicaMetaKey::AccountUnconfirmed, true))
    }

    /// Returns the phrase, if the file is end-to-end encrypted or will be from the next sync on.
    pub fn recovery_phrase(&self) -> Result<Option<RecoveryPhrase>> {
        let pending = pending_phrase(&self.db)?.map(|pending| pending.phrase);
        pending.map_or_else(|| recovery_phrase::load(&self.db), |phrase| Ok(Some(phrase)))
    }

    /// Enables end-to-end encryption with a new phrase. Returns that phrase, or the one that the
    /// file already has.
    ///
    /// If the account is plain, the next sync encrypts it: everything is sent again, sealed, and
    /// the other devices need the phrase.
    ///
    /// # Errors
    /// [`RecoveryPhraseError::Required`] if the account is already encrypted.
    pub fn create_recovery_phrase(&self) -> Result<RecoveryPhrase> {
        if let Some(known) = self.recovery_phrase()? {
            if account_encryption_mode(&self.db)? == Some(EncryptionMode::Plain) {
                // The account was encrypted, but the server was restored from an older backup.
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

    /// Joins devices that use end-to-end encryption, with their phrase. The file sends nothing
    /// before it has unsealed one of their messages, or [`Self::confirm_new_account`] was called.
    ///
    /// A file that has synced plain messages follows at the next sync, if the account was
    /// encrypted.
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
                // The account may have been encrypted since this file's last request.
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

/// Returns the account's encryption mode, once the server has reported it or this file has sent
/// messages.
pub(crate) fn account_encryption_mode(db: &Connection) -> Result<Option<EncryptionMode>> {
    let bytes = meta::get::<Vec<u8>>(db, ReplicaMetaKey::Encryption)?;
    Ok(bytes.and_then(|bytes| EncryptionMode::from_bytes(&bytes)))
}

/// Returns whether the server reports another mode than before.
pub(crate) fn is_news(
    db: &Connection,
    told: Option<&protocol::WireEncryptionMode>,
) -> Result<bool> {
    let told = told.and_then(protocol::WireEncryptionMode::to_crdt);
    Ok(told.is_some() && told != account_encryption_mode(db)?)
}

/// Records the mode that the server reports; a missing mode changes nothing.
pub(crate) fn record_server_mode(
    db: &Connection,
    told: Option<&protocol::WireEncryptionMode>,
) -> Result<()> {
    match told.and_then(protocol::WireEncryptionMode::to_crdt) {
        None => Ok(()),
        Some(form) => meta::set(db, ReplicaMetaKey::Encryption, form.as_bytes()),
    }
}

/// Forgets the account's mode, because the file signed in on another server.
pub(crate) fn reset(db: &Connection) -> Result<()> {
    meta::set(db, ReplicaMetaKey::Encryption, None::<Vec<u8>>)
}

/// Returns whether this file may take the messages that the server offers. `in_plain` means the
/// plain set of an encrypted account: an encrypted file does not take it, because anyone could have
/// written it.
///
/// # Errors
/// Fails if the file's mode is not the account's: a plain file would receive its own messages
/// sealed, under the same timestamps, and an encrypted file would receive them unsealed.
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

/// Checks that the file's messages, and those that wait to be merged, can belong to the account.
///
/// While the account's mode is unknown, the key ids of the waiting messages decide. One with this
/// file's key id confirms the phrase; then messages with other ids do not stop the sync, because
/// anyone can write down an id.
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

/// Checks that the file may send: its entered phrase has unsealed a message, and a plain file's
/// account is confirmed. If the account's mode is unknown, records this file's mode as the
/// account's.
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

/// Records that messages of other devices could be decoded.
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

/// Encrypts this file after the server has put it into the e2ee set: its plain messages are sealed,
/// and everything is sent again.
pub(crate) fn enable_e2ee(db: &Connection, pending: &PendingPhrase) -> Result<()> {
    let before = ContentCodec::load(db)?;
    recovery_phrase::store(db, &pending.phrase)?;
    let after = ContentCodec::load(db)?;
    message_log::change_form(db, &before, &after)?;
    message_log::mark_all_unsent(db)?;
    db.execute("DELETE FROM warren_unerased", [])?;
    meta::set_number(db, ReplicaMetaKey::Cursor, 0)?;
    meta::set(db, ReplicaMetaKey::Encryption, after.encryption_mode().as_bytes())?;
    // The server has the key's id, and only messages that are sealed with this key, if any.
    meta::set(db, ReplicaMetaKey::RecoverySecretEntered, false)?;
    clear_pending_phrase(db)
}

/// Seals the log with the phrase.
pub(crate) fn encrypt_log(db: &Connection, phrase: &RecoveryPhrase) -> Result<()> {
    let before = ContentCodec::load(db)?;
    recovery_phrase::store(db, phrase)?;
    message_log::change_form(db, &before, &ContentCodec::load(db)?)
}
