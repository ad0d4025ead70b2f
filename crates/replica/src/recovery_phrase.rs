//! The recovery phrase: the secret of end-to-end encryption, as words that people can write down.
//!
//! 256 random bits as 24 words of BIP-39's English list; the key of the contents is derived from
//! the bits (`docs/formats/9-sealed-content.md`). The file keeps the bits, as it keeps the device's
//! token: whoever can read the file reads its rows anyway.
//!
//! # Invariants
//! - A file that has one keeps it: what the server has from it is sealed with that key.
//!
//! # Not here
//! - Whether it is the account's → `account_encryption.rs`.

use bip39::{Language, Mnemonic};
use crdt::{EncryptionMode, SealKey};
use rusqlite::Connection;
use zeroize::Zeroizing;

use crate::account_encryption;
use crate::content_codec::ContentCodec;
use crate::error::{RecoveryPhraseError, Result};
use crate::message_log;
use crate::meta::{self, ReplicaMetaKey};
use crate::replica::Replica;

const ENTROPY_BYTES: usize = 32;

/// A recovery phrase. Zeroised on drop, never printed but by [`Self::words`].
pub struct RecoveryPhrase(Zeroizing<[u8; ENTROPY_BYTES]>);

impl RecoveryPhrase {
    /// A phrase that nobody has.
    pub fn generate() -> Self {
        let mut entropy = Zeroizing::new([0; ENTROPY_BYTES]);
        getrandom::fill(entropy.as_mut_slice()).expect("the system gives random numbers");
        Self(entropy)
    }

    /// Reads 24 words, however they are spaced and capitalised.
    pub fn parse(words: &str) -> Result<Self> {
        let words = Zeroizing::new(words.to_lowercase());
        let mnemonic = Mnemonic::parse_in_normalized(Language::English, &words)
            .map_err(|source| RecoveryPhraseError::Invalid(source.to_string()))?;
        let (entropy, length) = mnemonic.to_entropy_array();
        let entropy = Zeroizing::new(entropy);
        let entropy = entropy[..length].try_into().ok().map(Zeroizing::new);
        let short = || RecoveryPhraseError::Invalid("it has 24 words".into());
        Ok(Self(entropy.ok_or_else(short)?))
    }

    /// The 24 words.
    pub fn words(&self) -> Zeroizing<String> {
        let mnemonic = Mnemonic::from_entropy_in(Language::English, &*self.0);
        let mnemonic = mnemonic.expect("32 bytes are 24 words");
        // Room for the longest words, so that no shorter buffer is left behind.
        let mut words = Zeroizing::new(String::with_capacity(24 * 9));
        for word in mnemonic.words() {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(word);
        }
        words
    }

    pub(crate) fn entropy(&self) -> &[u8] {
        self.0.as_slice()
    }

    pub(crate) fn key(&self) -> SealKey {
        let context = "warren sealed content 2026-11-21 key";
        SealKey::new(Zeroizing::new(blake3::derive_key(context, self.0.as_slice())))
    }
}

impl Replica {
    /// The phrase, if the file's contents are encrypted end to end, or will be from the next sync on.
    pub fn recovery_phrase(&self) -> Result<Option<RecoveryPhrase>> {
        let pending = account_encryption::pending_phrase(&self.db)?.map(|pending| pending.phrase);
        pending.map_or_else(|| load(&self.db), |phrase| Ok(Some(phrase)))
    }

    /// Encrypts end to end from here on, with a phrase that nobody has yet; returns it, or the one
    /// that the file has already.
    ///
    /// If the account is in plain, the next sync turns it: everything is sent again, sealed, and the
    /// other devices need the phrase. If it is encrypted already,
    /// [`RecoveryPhraseError::Required`].
    pub fn create_recovery_phrase(&self) -> Result<RecoveryPhrase> {
        if let Some(known) = self.recovery_phrase()? {
            if account_encryption::account_encryption_mode(&self.db)? == Some(EncryptionMode::Plain)
            {
                // Turned already, but the server was restored from a backup of before that.
                self.transaction(|db| account_encryption::set_pending_phrase(db, &known, true))?;
            }
            return Ok(known);
        }
        let phrase = RecoveryPhrase::generate();
        self.transaction(|db| match account_encryption::account_encryption_mode(db)? {
            None => encrypt_log(db, &phrase),
            Some(EncryptionMode::Plain) => {
                account_encryption::set_pending_phrase(db, &phrase, true)
            }
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
            if load(db)?.is_some_and(|known| *known.0 == *phrase.0) {
                return Ok(());
            }
            let is_sealed = load(db)?.is_some();
            match account_encryption::account_encryption_mode(db)? {
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
                    return account_encryption::set_pending_phrase(db, phrase, false);
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

/// Seals the log, under the phrase.
fn encrypt_log(db: &Connection, phrase: &RecoveryPhrase) -> Result<()> {
    let before = ContentCodec::load(db)?;
    store(db, phrase)?;
    message_log::change_form(db, &before, &ContentCodec::load(db)?)
}

pub(crate) fn store(db: &Connection, phrase: &RecoveryPhrase) -> Result<()> {
    meta::set(db, ReplicaMetaKey::RecoverySecret, phrase.entropy())
}

pub(crate) fn load(db: &Connection) -> Result<Option<RecoveryPhrase>> {
    load_from(db, ReplicaMetaKey::RecoverySecret)
}

/// As it is kept under a key.
pub(crate) fn load_from(db: &Connection, key: ReplicaMetaKey) -> Result<Option<RecoveryPhrase>> {
    let secret = meta::get::<[u8; ENTROPY_BYTES]>(db, key)?;
    Ok(secret.map(|secret| RecoveryPhrase(Zeroizing::new(secret))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_survives_writing_down() {
        let phrase = RecoveryPhrase::generate();
        let words = phrase.words();
        assert_eq!(words.split(' ').count(), 24);
        let typed = format!("  {}\n", words.to_uppercase().replace(' ', "\n "));
        assert_eq!(*RecoveryPhrase::parse(&typed).unwrap().0, *phrase.0);
        assert_ne!(*RecoveryPhrase::generate().0, *phrase.0);
    }

    #[test]
    fn words_that_were_mistyped_are_refused() {
        let good = "abandon ".repeat(23) + "art";
        assert!(RecoveryPhrase::parse(&good).is_ok());
        let short = "abandon ".repeat(11) + "about";
        for bad in [&good.replace("art", "able"), &good.replace("art", "arrt"), &short, ""] {
            let Err(error) = RecoveryPhrase::parse(bad) else { panic!("{bad} was taken") };
            assert_eq!(error.code(), "invalid_phrase", "{bad}");
        }
    }

    #[test]
    fn the_key_is_the_documented_one() {
        let phrase = RecoveryPhrase::parse(&("abandon ".repeat(23) + "art")).unwrap();
        assert_eq!(*phrase.0, [0; 32]);
        let key = blake3::derive_key("warren sealed content 2026-11-21 key", &[0; 32]);
        assert_eq!(phrase.key().id(), SealKey::new(Zeroizing::new(key)).id());
    }
}
