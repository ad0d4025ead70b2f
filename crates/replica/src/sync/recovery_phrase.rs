//! Represents the secret of end-to-end encryption as words that people can write down.
//!
//! A recovery phrase is 256 random bits as 24 words of BIP-39's English list; the key of the
//! contents is derived from the bits (`docs/reference/formats/9-sealed-content.md`). The file
//! stores the bits, as it stores the device's token: a program that can read the file can read its
//! rows anyway.
//!
//! # Invariants
//! - A file keeps its phrase, because the contents that it sent are sealed with that key.
//!
//! # Not here
//! - Whether the phrase is the account's → `account_encryption.rs`.

use bip39::{Language, Mnemonic};
use crdt::SealKey;
use rusqlite::Connection;
use zeroize::Zeroizing;

use crate::error::{RecoveryPhraseError, Result};
use crate::meta::{self, ReplicaMetaKey};

const ENTROPY_BYTES: usize = 32;

/// A recovery phrase. It is zeroed on drop, and printed only by [`Self::words`].
pub struct RecoveryPhrase(Zeroizing<[u8; ENTROPY_BYTES]>);

impl RecoveryPhrase {
    /// Returns whether both phrases are equal.
    pub(crate) fn is(&self, other: &Self) -> bool {
        *self.0 == *other.0
    }

    /// The phrase of these random bits.
    pub fn from_entropy(entropy: Zeroizing<[u8; ENTROPY_BYTES]>) -> Self {
        Self(entropy)
    }

    /// Generates a new random phrase.
    pub fn generate() -> Self {
        let mut entropy = Zeroizing::new([0; ENTROPY_BYTES]);
        getrandom::fill(entropy.as_mut_slice()).expect("the system gives random numbers");
        Self(entropy)
    }

    /// Parses 24 words with any spacing and capitalization.
    pub fn parse(words: &str) -> Result<Self> {
        let words = Zeroizing::new(words.to_lowercase());
        let mnemonic = Mnemonic::parse_in_normalized(Language::English, &words)
            .map_err(|source| RecoveryPhraseError::Invalid(source.to_string()))?;
        let (entropy, length) = mnemonic.to_entropy_array();
        let entropy = Zeroizing::new(entropy);
        let entropy = entropy[..length].try_into().ok().map(Zeroizing::new);
        let short = || RecoveryPhraseError::Invalid("it must have 24 words".into());
        Ok(Self(entropy.ok_or_else(short)?))
    }

    /// Returns the 24 words.
    pub fn words(&self) -> Zeroizing<String> {
        let mnemonic = Mnemonic::from_entropy_in(Language::English, &*self.0);
        let mnemonic = mnemonic.expect("32 bytes are 24 words");
        // The buffer fits the longest words, so no shorter one is left in memory.
        let mut words = Zeroizing::new(String::with_capacity(24 * 9));
        for word in mnemonic.words() {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(word);
        }
        words
    }

    /// Returns the random bits. Do not log them.
    pub fn entropy(&self) -> &[u8; ENTROPY_BYTES] {
        &self.0
    }

    pub(crate) fn key(&self) -> SealKey {
        let context = "warren sealed content 2026-11-21 key";
        SealKey::new(Zeroizing::new(blake3::derive_key(context, self.0.as_slice())))
    }
}

pub(crate) fn store(db: &Connection, phrase: &RecoveryPhrase) -> Result<()> {
    meta::set(db, ReplicaMetaKey::RecoverySecret, phrase.entropy())
}

pub(crate) fn load(db: &Connection) -> Result<Option<RecoveryPhrase>> {
    load_from(db, ReplicaMetaKey::RecoverySecret)
}

/// Loads the phrase that is stored under a key.
pub(crate) fn load_from(db: &Connection, key: ReplicaMetaKey) -> Result<Option<RecoveryPhrase>> {
    let secret = meta::get::<[u8; ENTROPY_BYTES]>(db, key)?;
    Ok(secret.map(|secret| RecoveryPhrase(Zeroizing::new(secret))))
}

#[cfg(test)]
mod tests {
    use protocol::ErrorCode;

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
            assert_eq!(error.code(), ErrorCode::InvalidRecoveryPhrase, "{bad}");
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
