//! How a file is encrypted: with which secret, and which cipher.

use crate::open::cipher::Cipher;
use crate::open::key::{DatabaseKey, Passphrase};

/// The ciphers that are tried when none is named; a new file gets the first.
pub(super) const DEFAULT_CIPHERS: &[Cipher] = &[Cipher::ChaCha20, Cipher::Aes256Cbc];

/// How a file is encrypted.
#[derive(Clone, Debug)]
pub enum FileEncryption {
    /// Not at all.
    None,
    /// With a raw key.
    Key {
        /// The key.
        key: DatabaseKey,
        /// The cipher; if not given, `chacha20`, and for a file that this does not open
        /// `aes256cbc`.
        cipher: Option<Cipher>,
    },
    /// With a key that the cipher derives from a passphrase: files of other programs.
    Passphrase {
        /// The passphrase.
        passphrase: Passphrase,
        /// As for a raw key.
        cipher: Option<Cipher>,
    },
}

/// What opens an encrypted file.
#[derive(Clone, Copy)]
pub(super) enum KeyOrPassphrase<'a> {
    Key(&'a DatabaseKey),
    Passphrase(&'a Passphrase),
}

impl FileEncryption {
    /// What a new file is encrypted with.
    pub(crate) fn default_cipher(&self) -> Option<Cipher> {
        self.secret().map(|(_, cipher)| cipher.unwrap_or(DEFAULT_CIPHERS[0]))
    }

    /// The secret, and the cipher if it was named.
    pub(super) fn secret(&self) -> Option<(KeyOrPassphrase<'_>, Option<Cipher>)> {
        match self {
            Self::None => None,
            Self::Key { key, cipher } => Some((KeyOrPassphrase::Key(key), *cipher)),
            Self::Passphrase { passphrase, cipher } => {
                Some((KeyOrPassphrase::Passphrase(passphrase), *cipher))
            }
        }
    }
}
