//! A database key: 32 random bytes, used as they are, so that opening derives nothing. And what
//! other programs' files are opened with: a passphrase, from which the cipher derives the key.
//!
//! # Invariants
//! - The bytes are zeroised on drop, and no `Debug` output shows them.
//!
//! # Not here
//! - Keys from passwords, wrapped keys → the `accounts` crate.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// A raw 256-bit database key.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct DatabaseKey([u8; 32]);

impl DatabaseKey {
    /// A new key from the operating system's random source.
    ///
    /// # Panics
    /// If the operating system has no randomness to give; nothing that needs a key can go on then.
    pub fn generate() -> Self {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        let key = Self(bytes);
        bytes.zeroize();
        key
    }

    /// Takes 32 bytes as the key.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key itself. Do not log it, and do not put it into SQL.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// What a cipher derives a key from; takes it some 50 ms at each opening.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Passphrase(Vec<u8>);

impl Passphrase {
    /// Takes these bytes, as they are.
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(..)")
    }
}

impl fmt::Debug for DatabaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_the_bytes() {
        assert_eq!(format!("{:?}", DatabaseKey::from_bytes([7; 32])), "Key(..)");
        assert_eq!(format!("{:?}", Passphrase::new(vec![7])), "Passphrase(..)");
    }

    #[test]
    fn generated_keys_differ() {
        assert_ne!(DatabaseKey::generate().as_bytes(), DatabaseKey::generate().as_bytes());
    }
}
