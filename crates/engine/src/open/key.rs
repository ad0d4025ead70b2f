//! Defines the secrets that open a file. A database key is 32 random bytes, which are used
//! directly, so that opening derives nothing. Files of other programs may need a passphrase, from
//! which the cipher derives the key.
//!
//! # Invariants
//! - The bytes are zeroized on drop, and no `Debug` output shows them.
//!
//! # Not here
//! - Keys from passwords, wrapped keys → the `accounts` crate.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// A raw 256-bit database key.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct DatabaseKey([u8; 32]);

impl DatabaseKey {
    /// Generates a new key from the operating system's random source.
    ///
    /// # Panics
    /// Panics if the operating system cannot provide random bytes; nothing that needs a key can
    /// continue.
    pub fn generate() -> Self {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        let key = Self(bytes);
        bytes.zeroize();
        key
    }

    /// Creates a key from 32 bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the key. Do not log them, and do not put them into SQL.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A passphrase, from which a cipher derives a key; this takes some 50 ms at each opening.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Passphrase(Vec<u8>);

impl Passphrase {
    /// Creates a passphrase from these bytes, without changing them.
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
