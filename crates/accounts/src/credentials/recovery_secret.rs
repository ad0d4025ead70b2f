//! Account recovery secrets: 256 random bits that open an account whose password is lost. The user
//! keeps them on paper, as words.
//!
//! ```text
//! wrapping  HKDF-SHA256(bits, info "warren account recovery key 1"), 32 bytes, never stored
//! ```
//!
//! # Invariants
//! - The bits are zeroized on drop, and there is no `Debug`.
//!
//! # Not here
//! - The words → `cli`.

use rusqlite::{Connection, params};
use zeroize::Zeroizing;

use super::key_wrap::{WrappedKey, WrappingKey};
use super::random;
use super::token::derive;
use crate::error::Result;
use crate::id::VaultId;

const WRAPPING_INFO: &[u8] = b"warren account recovery key 1";

/// The secret of an account recovery phrase.
pub struct AccountRecoverySecret(Zeroizing<[u8; 32]>);

impl AccountRecoverySecret {
    pub(crate) fn generate() -> Self {
        let mut bits = Zeroizing::new([0; 32]);
        random::fill(bits.as_mut());
        Self(bits)
    }

    /// The secret with these bits.
    pub fn from_bytes(bits: Zeroizing<[u8; 32]>) -> Self {
        Self(bits)
    }

    /// Returns the bits, which the user writes down as words. Do not log them.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(crate) fn wrapping_key(&self) -> WrappingKey {
        WrappingKey::new(derive(self.0.as_ref(), WRAPPING_INFO))
    }
}

/// Stores the wrap of an account's recovery secret, and its number.
pub(crate) fn write_recovery_wrap(
    db: &Connection,
    vault: &VaultId,
    number: u32,
    wrapped_key: &WrappedKey,
) -> Result<()> {
    let sql = "UPDATE account SET recovery_wrapped_key = ?3, recovery_number = ?2
               WHERE vault_id = ?1";
    db.prepare_cached(sql)?.execute(params![vault.as_str(), number, wrapped_key])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wrapping_key_is_that_of_the_format() {
        // Computed with Python's hmac and hashlib.
        assert_eq!(
            crate::id::hex(&*derive(&[7; 32], WRAPPING_INFO)),
            "e0692a3d9723a4d7339b788654f1c190cb92f6010234b863e2e998615f721940"
        );
    }
}
