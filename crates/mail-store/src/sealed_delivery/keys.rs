//! The key pair of a mail vault.
//!
//! # Invariants
//! - The secret key is zeroized on drop, and has no `Debug` output.
//! - A public key is valid: sealing to it cannot fail.

use engine::DatabaseKey;
use hkdf::Hkdf;
use hpke::kem::XWing;
use hpke::{Deserializable, Kem, Serializable};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::error::{Error, Result};

const SECRET_KEY_INFO: &[u8] = b"warren mail secret key 1";

/// The key that opens the deliveries of a mail vault.
// X-Wing's key zeroizes itself.
pub struct MailSecretKey(pub(super) <XWing as Kem>::PrivateKey);

/// The key to which the deliveries of a mail vault are sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailPublicKey(pub(super) <XWing as Kem>::PublicKey);

impl MailSecretKey {
    /// Derives the secret key of the mail vault that has this database key.
    pub fn derive(vault_key: &DatabaseKey) -> Self {
        let mut seed = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(None, vault_key.as_bytes())
            .expand(SECRET_KEY_INFO, &mut *seed)
            .expect("HKDF can make 32 bytes");
        Self::from_seed(&seed)
    }

    pub(super) fn from_seed(seed: &[u8; 32]) -> Self {
        let key = <XWing as Kem>::PrivateKey::from_bytes(seed);
        Self(key.expect("every 32 bytes are a seed of X-Wing"))
    }

    pub fn public_key(&self) -> MailPublicKey {
        MailPublicKey(XWing::sk_to_pk(&self.0))
    }
}

impl MailPublicKey {
    /// The length of a public key.
    pub const BYTES: usize = 1_216;

    /// Reads a public key. Returns [`Error::Damaged`] if the bytes are not one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let key = <XWing as Kem>::PublicKey::from_bytes(bytes);
        key.map(Self).or(Err(Error::Damaged { what: "a public key for mail" }))
    }

    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        self.0.write_exact(&mut bytes);
        bytes
    }
}
