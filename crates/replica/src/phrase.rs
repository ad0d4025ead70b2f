//! The recovery phrase: the secret of end-to-end encryption, as words that people can write down.
//!
//! 256 random bits as 24 words of BIP-39's English list; the key of the contents is derived from
//! the bits (`docs/formats/9-sealed-content.md`). The file keeps the bits, as it keeps the device's
//! token: whoever can read the file reads its rows anyway.
//!
//! # Invariants
//! - What a server has was all sealed with one key, or not at all: a phrase can be given, or
//!   replaced, only as long as this file has neither sent nor shown a message.
//! - Nothing is sent, and nothing shown, while what came from the server is sealed with another key
//!   than this file's.

use bip39::{Language, Mnemonic};
use crdt::{SealKey, sealed_with};
use rusqlite::Connection;
use zeroize::Zeroizing;

use crate::codec::Codec;
use crate::error::{PhraseError, Result};
use crate::log;
use crate::meta::{self, Key};
use crate::replica::Replica;

const ENTROPY_BYTES: usize = 32;

/// A recovery phrase. Zeroised on drop, never printed but by [`Self::words`].
pub struct Phrase(Zeroizing<[u8; ENTROPY_BYTES]>);

impl Phrase {
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
            .map_err(|source| PhraseError::Invalid(source.to_string()))?;
        let (entropy, length) = mnemonic.to_entropy_array();
        let entropy = Zeroizing::new(entropy);
        let entropy = entropy[..length].try_into().ok().map(Zeroizing::new);
        let short = || PhraseError::Invalid("it has 24 words".into());
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

    pub(crate) fn key(&self) -> SealKey {
        let context = "warren sealed content 2026-11-21 key";
        SealKey::new(Zeroizing::new(blake3::derive_key(context, self.0.as_slice())))
    }
}

/// What this file's messages are on the server, once some are there.
const FORM_PLAIN: &str = "plain";
const FORM_SEALED: &str = "sealed";

impl Replica {
    /// The phrase, if the file's contents are encrypted end to end.
    pub fn phrase(&self) -> Result<Option<Phrase>> {
        load(&self.db)
    }

    /// Encrypts end to end from here on, or joins devices that do, with their phrase. Refused once
    /// messages went out, or were shown, in another form.
    pub fn set_phrase(&self, phrase: &Phrase) -> Result<()> {
        self.transaction(|db| {
            let known = load(db)?;
            if known.as_ref().is_some_and(|known| *known.0 == *phrase.0) {
                return Ok(());
            }
            match meta::get::<String>(db, Key::Form)?.as_deref() {
                None => {}
                Some(FORM_PLAIN) => return Err(PhraseError::AlreadyPlain.into()),
                Some(_) => return Err(PhraseError::AlreadySealed.into()),
            }
            let before = Codec::load(db)?;
            meta::set(db, Key::Secret, phrase.0.as_slice())?;
            log::encode_anew(db, &before, &Codec::load(db)?)
        })
    }
}

pub(crate) fn load(db: &Connection) -> Result<Option<Phrase>> {
    let secret = meta::get::<[u8; ENTROPY_BYTES]>(db, Key::Secret)?;
    Ok(secret.map(|secret| Phrase(Zeroizing::new(secret))))
}

/// Refuses to go on if what waits to be merged cannot be this file's.
///
/// Looks at the ids of keys only. One of this file's own says that the phrase is right; then what
/// has another is not worth stopping for, since anybody can write down an id.
pub(crate) fn check(db: &Connection) -> Result<()> {
    let waiting = log::unmerged_sealed_heads(db)?;
    if waiting.is_empty() {
        return Ok(());
    }
    let Some(own) = Codec::load(db)?.key_id() else { return Err(PhraseError::Sealed.into()) };
    let mut ids = waiting.iter().filter_map(|head| sealed_with(head)).peekable();
    let other = ids.peek().is_some() && !ids.any(|id| id == own);
    if other && !meta::get(db, Key::SecretProved)?.unwrap_or(false) {
        return Err(PhraseError::Wrong.into());
    }
    Ok(())
}

/// Notes that messages go out: from here on their form is what it is.
pub(crate) fn settle_form(db: &Connection) -> Result<()> {
    if meta::get::<String>(db, Key::Form)?.is_none() {
        let form = if load(db)?.is_some() { FORM_SEALED } else { FORM_PLAIN };
        meta::set(db, Key::Form, form)?;
    }
    Ok(())
}

/// Notes that messages of other devices could be read.
pub(crate) fn prove(db: &Connection) -> Result<()> {
    settle_form(db)?;
    if load(db)?.is_some() {
        meta::set(db, Key::SecretProved, true)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_survives_writing_down() {
        let phrase = Phrase::generate();
        let words = phrase.words();
        assert_eq!(words.split(' ').count(), 24);
        let typed = format!("  {}\n", words.to_uppercase().replace(' ', "\n "));
        assert_eq!(*Phrase::parse(&typed).unwrap().0, *phrase.0);
        assert_ne!(*Phrase::generate().0, *phrase.0);
    }

    #[test]
    fn words_that_were_mistyped_are_refused() {
        let good = "abandon ".repeat(23) + "art";
        assert!(Phrase::parse(&good).is_ok());
        let short = "abandon ".repeat(11) + "about";
        for bad in [&good.replace("art", "able"), &good.replace("art", "arrt"), &short, ""] {
            let Err(error) = Phrase::parse(bad) else { panic!("{bad} was taken") };
            assert_eq!(error.code(), "invalid_phrase", "{bad}");
        }
    }

    #[test]
    fn the_key_is_the_documented_one() {
        let phrase = Phrase::parse(&("abandon ".repeat(23) + "art")).unwrap();
        assert_eq!(*phrase.0, [0; 32]);
        let key = blake3::derive_key("warren sealed content 2026-11-21 key", &[0; 32]);
        assert_eq!(phrase.key().id(), SealKey::new(Zeroizing::new(key)).id());
    }
}
