//! A delivery, sealed so that only its mail vault can read it (Format 22).
//!
//! Mail arrives while the recipient's vault is locked. So the server seals each delivery to the
//! public key of the vault, by HPKE with X-Wing (ML-KEM-768 and X25519), and needs no secret for
//! that.
//!
//! ```text
//! version  encapsulated key  ciphertext        tag
//! 1        1,120 bytes       of the plaintext  16 bytes
//! ```
//!
//! # Invariants
//! - Each delivery has an encapsulated key of its own, so its cipher key is used once.
//! - The id of the vault is part of the key, so a delivery does not open in another vault.
//!
//! # Not here
//! - The plaintext → `sealed_delivery/delivery.rs`. Where sealed deliveries wait → `spool.rs`.

pub(crate) mod delivery;
pub(crate) mod keys;
#[cfg(test)]
mod tests;

use accounts::VaultId;
use hpke::aead::{AeadTag, ChaCha20Poly1305};
use hpke::inout::InOutBuf;
use hpke::kdf::HkdfSha256;
use hpke::kem::XWing;
use hpke::{Deserializable, Kem, OpModeR, OpModeS, Serializable};
use zeroize::Zeroizing;

use self::delivery::MailDelivery;
use self::keys::{MailPublicKey, MailSecretKey};
use crate::error::{Error, Result};

/// The version of the format, also in [`INFO`].
const VERSION: u8 = 1;
const INFO: &str = "warren mail delivery 1";

const ENCAPSULATED_BYTES: usize = 1_120;
const TAG_BYTES: usize = 16;
/// The number of bytes before the ciphertext.
const HEADER_BYTES: usize = 1 + ENCAPSULATED_BYTES;

const CUT_OFF: Error = Error::Damaged { what: "the end of a sealed delivery" };

/// Seals a delivery for the vault with this public key. Two seals of one delivery differ.
///
/// Returns [`Error::AddressTooLong`] or [`Error::MessageTooLarge`] for what the format does not
/// allow.
///
/// # Panics
/// Panics if the operating system cannot provide random bytes.
pub fn seal(
    delivery: &MailDelivery,
    public_key: &MailPublicKey,
    vault: &VaultId,
) -> Result<Vec<u8>> {
    let mut sealed = delivery.encode(HEADER_BYTES, TAG_BYTES)?;
    let (header, plaintext) = sealed.split_at_mut(HEADER_BYTES);
    let (encapsulated, tag) =
        hpke::single_shot_seal_inout_detached::<ChaCha20Poly1305, HkdfSha256, XWing>(
            &OpModeS::Base,
            &public_key.0,
            &info(vault),
            InOutBuf::from(plaintext),
            &[],
        )
        .expect("X-Wing accepts every valid key, and the cipher 256 GiB");
    header[0] = VERSION;
    encapsulated.write_exact(&mut header[1..]);
    sealed.extend_from_slice(&tag.to_bytes());
    // Sealed deliveries wait for a flush of the spool, and compression left much room.
    sealed.shrink_to_fit();
    Ok(sealed)
}

/// Opens a sealed delivery with the key of its vault.
///
/// Returns [`Error::WrongKey`] if it was sealed for another key or vault or has changed,
/// [`Error::UnknownVersion`] if a newer program sealed it, and [`Error::Damaged`] if it is cut off
/// or its plaintext does not have the format.
pub fn unseal(sealed: &[u8], secret_key: &MailSecretKey, vault: &VaultId) -> Result<MailDelivery> {
    let (&version, rest) = sealed.split_first().ok_or(CUT_OFF)?;
    if version != VERSION {
        return Err(Error::UnknownVersion { version });
    }
    let (encapsulated, rest) = rest.split_at_checked(ENCAPSULATED_BYTES).ok_or(CUT_OFF)?;
    let (ciphertext, tag) = rest.split_last_chunk::<TAG_BYTES>().ok_or(CUT_OFF)?;
    let encapsulated = <XWing as Kem>::EncappedKey::from_bytes(encapsulated).or(Err(CUT_OFF))?;
    let tag = AeadTag::from_bytes(tag).or(Err(CUT_OFF))?;
    let mut plaintext = Zeroizing::new(ciphertext.to_vec());
    hpke::single_shot_open_inout_detached::<ChaCha20Poly1305, HkdfSha256, XWing>(
        &OpModeR::Base,
        &secret_key.0,
        &encapsulated,
        &info(vault),
        InOutBuf::from(&mut plaintext[..]),
        &[],
        &tag,
    )
    .or(Err(Error::WrongKey))?;
    MailDelivery::decode(&plaintext)
}

fn info(vault: &VaultId) -> Vec<u8> {
    [INFO, vault.as_str()].concat().into_bytes()
}
