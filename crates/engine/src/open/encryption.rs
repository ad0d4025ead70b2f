//! Describes how a file is encrypted: with which secret and which cipher.

use crate::open::cipher::Cipher;
use crate::open::key::{DatabaseKey, Passphrase};

/// The ciphers that are tried when none is named; a new file gets the first.
pub(super) const DEFAULT_CIPHERS: &[Cipher] = &[Cipher::ChaCha20, Cipher::Aes256Cbc];

/// The encryption of a file: its secret and its cipher.
#[derive(Clone, Debug)]
pub enum FileEncryption {
    /// The file is not encrypted.
    None,
    /// The file is encrypted with a raw key.
    Key {
        /// The key of the file.
        key: DatabaseKey,
        /// The cipher of the file. If it is `None`, `chacha20` is used, or `aes256cbc` for a file
        /// that this does not open.
        cipher: Option<Cipher>,
    },
    /// The file is encrypted with a key that the cipher derives from a passphrase, as in other
    /// programs.
    Passphrase {
        /// The passphrase of the file.
        passphrase: Passphrase,
        /// The cipher of the file, with the same default as for a raw key.
        cipher: Option<Cipher>,
    },
}

/// The secret that opens an encrypted file.
#[derive(Clone, Copy)]
pub(super) enum KeyOrPassphrase<'a> {
    Key(&'a DatabaseKey),
    Passphrase(&'a Passphrase),
}

impl FileEncryption {
    /// Returns the cipher that a new file gets, or `None` if it is not encrypted.
    pub(crate) fn default_cipher(&self) -> Option<Cipher> {
        self.secret().map(|(_, cipher)| cipher.unwrap_or(DEFAULT_CIPHERS[0]))
    }

    /// Returns the secret, and the cipher if it was named.
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
