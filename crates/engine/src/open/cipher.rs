//! Lists the ciphers that a file may be encrypted with, under `sqlite3mc`'s own names.

use std::fmt;
use std::str::FromStr;

/// A cipher of `sqlite3mc`. `chacha20` is the default for new files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// ChaCha20-Poly1305, which authenticates each page.
    ChaCha20,
    /// AES-256 in CBC mode, which does not authenticate pages.
    Aes256Cbc,
    /// AEGIS-256, which is nearly free on processors with AES instructions.
    Aegis,
    /// The format of `SQLCipher` 4.
    SqlCipher,
    /// Ascon-128, which authenticates each page.
    Ascon128,
}

impl Cipher {
    /// Every cipher, the default first.
    pub const ALL: [Self; 5] =
        [Self::ChaCha20, Self::Aes256Cbc, Self::Aegis, Self::SqlCipher, Self::Ascon128];

    /// Returns the name that `PRAGMA cipher` takes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChaCha20 => "chacha20",
            Self::Aes256Cbc => "aes256cbc",
            Self::Aegis => "aegis",
            Self::SqlCipher => "sqlcipher",
            Self::Ascon128 => "ascon128",
        }
    }

    /// Returns whether reading a page reveals that it is not what was written.
    pub const fn authenticates(self) -> bool {
        !matches!(self, Self::Aes256Cbc)
    }
}

impl fmt::Display for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Cipher {
    type Err = UnknownCipher;

    fn from_str(name: &str) -> Result<Self, UnknownCipher> {
        let known = Self::ALL.into_iter().find(|cipher| cipher.name() == name);
        known.ok_or_else(|| UnknownCipher(name.to_owned()))
    }
}

/// The error for a name that belongs to no cipher.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown cipher {0:?}")]
pub struct UnknownCipher(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_parses_back_to_its_cipher() {
        for cipher in Cipher::ALL {
            assert_eq!(cipher.name().parse(), Ok(cipher));
        }
        assert_eq!("rot13".parse::<Cipher>(), Err(UnknownCipher("rot13".to_owned())));
    }
}
