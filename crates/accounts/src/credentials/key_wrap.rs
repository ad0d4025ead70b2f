//! Key wraps: a vault's key, encrypted under a key that only a password or a token gives.
//!
//! The cipher is XChaCha20-Poly1305, whose nonce is long enough to be random:
//!
//! ```text
//! bytes        0 … 23     24 … 55           56 … 71
//! wrapped key  nonce      encrypted key     tag
//!
//! associated data of a password's wrap:  "warren password wrap 1" vault
//! associated data of a token's wrap:     "warren token wrap 1" vault device
//! … of a mail password's wrap:           "warren mail password wrap 1" vault password
//! … of a recovery secret's wrap:         "warren account recovery wrap 1" vault
//! ```
//! with the vault's 32 and the device's or password's 16 hex digits as text. The number in the
//! label is the version of the format.
//!
//! # Invariants
//! - A wrap opens only in the row for which it was created: if it is moved to another account or
//!   device, it is refused.
//! - Opening a wrap proves the password or the token; there is no other proof.
//!
//! # Not here
//! - The origin of wrapping keys → `kdf.rs`, `token.rs`.

use chacha20poly1305::aead::inout::InOutBuf;
use chacha20poly1305::{AeadInOut, KeyInit, XChaCha20Poly1305};
use engine::DatabaseKey;
use zeroize::Zeroizing;

use super::random;
use crate::id::{DeviceId, MailPasswordId, VaultId};

const NONCE_BYTES: usize = 24;
const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;

/// A wrapped key as it is stored. Without the wrapping key, it is noise.
pub(crate) type WrappedKey = [u8; NONCE_BYTES + KEY_BYTES + TAG_BYTES];

/// The row that a wrapped key belongs to.
pub(crate) enum WrapContext<'a> {
    Account(&'a VaultId),
    Device(&'a VaultId, &'a DeviceId),
    /// The mail vault, and the mail password that wraps its key.
    MailPassword(&'a VaultId, &'a MailPasswordId),
    Recovery(&'a VaultId),
}

/// A key that wraps vault keys.
pub(crate) struct WrappingKey(Zeroizing<[u8; 32]>);

impl WrappingKey {
    pub(crate) fn new(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self(bytes)
    }

    pub(crate) fn wrap(&self, key: &DatabaseKey, row: &WrapContext<'_>) -> WrappedKey {
        let nonce: [u8; NONCE_BYTES] = random::bytes();
        let mut body = Zeroizing::new(*key.as_bytes());
        let tag = self
            .cipher()
            .encrypt_inout_detached(
                &nonce.into(),
                &row.to_bytes(),
                InOutBuf::from(body.as_mut_slice()),
            )
            .expect("32 bytes are below the cipher's limit");
        let mut wrapped = [0; _];
        wrapped[..NONCE_BYTES].copy_from_slice(&nonce);
        wrapped[NONCE_BYTES..][..KEY_BYTES].copy_from_slice(body.as_slice());
        wrapped[NONCE_BYTES + KEY_BYTES..].copy_from_slice(&tag);
        wrapped
    }

    /// Decrypts a wrapped key. Returns `None` if it was wrapped with another key or for another
    /// row.
    pub(crate) fn unwrap(
        &self,
        wrapped: &WrappedKey,
        row: &WrapContext<'_>,
    ) -> Option<DatabaseKey> {
        let (nonce, rest) = wrapped.split_first_chunk::<NONCE_BYTES>()?;
        let (body, tag) = rest.split_first_chunk::<KEY_BYTES>()?;
        let tag: &[u8; TAG_BYTES] = tag.as_array()?;
        let mut body = Zeroizing::new(*body);
        let opened = self.cipher().decrypt_inout_detached(
            nonce.into(),
            &row.to_bytes(),
            InOutBuf::from(body.as_mut_slice()),
            tag.into(),
        );
        opened.is_ok().then(|| DatabaseKey::from_bytes(*body))
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.0).into())
    }
}

impl WrapContext<'_> {
    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Account(vault) => ["warren password wrap 1", vault.as_str()].concat(),
            Self::Device(vault, device) => {
                ["warren token wrap 1", vault.as_str(), device.as_str()].concat()
            }
            Self::MailPassword(vault, password) => {
                ["warren mail password wrap 1", vault.as_str(), password.as_str()].concat()
            }
            Self::Recovery(vault) => ["warren account recovery wrap 1", vault.as_str()].concat(),
        }
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapping_key(byte: u8) -> WrappingKey {
        WrappingKey::new(Zeroizing::new([byte; 32]))
    }

    #[test]
    fn opens_with_its_key_in_its_row_only() {
        let key = DatabaseKey::generate();
        let (vault, device) = (VaultId::generate(), DeviceId::generate());
        let (other_vault, other_client) = (VaultId::generate(), DeviceId::generate());
        let row = WrapContext::Device(&vault, &device);
        let wrapped = wrapping_key(1).wrap(&key, &row);

        assert_eq!(wrapping_key(1).unwrap(&wrapped, &row).unwrap().as_bytes(), key.as_bytes());
        assert!(wrapping_key(2).unwrap(&wrapped, &row).is_none());
        let rows = [
            WrapContext::Device(&vault, &other_client),
            WrapContext::Device(&other_vault, &device),
            WrapContext::Account(&vault),
        ];
        for other in rows {
            assert!(wrapping_key(1).unwrap(&wrapped, &other).is_none());
        }
    }

    #[test]
    fn any_changed_byte_is_refused() {
        let vault = VaultId::generate();
        let row = WrapContext::Account(&vault);
        let wrapped = wrapping_key(1).wrap(&DatabaseKey::generate(), &row);
        for index in 0..wrapped.len() {
            let mut changed = wrapped;
            changed[index] ^= 1;
            assert!(wrapping_key(1).unwrap(&changed, &row).is_none(), "byte {index}");
        }
    }

    #[test]
    fn the_same_key_is_wrapped_differently_each_time() {
        let (vault, key) = (VaultId::generate(), DatabaseKey::generate());
        let wrap = || wrapping_key(1).wrap(&key, &WrapContext::Account(&vault));
        assert_ne!(wrap(), wrap());
    }
}
