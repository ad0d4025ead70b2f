//! Seals and unseals contents: end-to-end encryption of a message
//! (`docs/reference/formats/9-sealed-content.md`).
//!
//! ```text
//! sealed    = 02 key-id(8) nonce(24) length ciphertext     length: of the ciphertext, LEB128
//! nonce     = timestamp(16) tail(8)                        tail: random, or SealKey::nonce_tail
//! plaintext = length content zeros                         padded by PADMÉ, 32 bytes at least
//! ```
//! The cipher is XChaCha20-Poly1305; associated data is `02 timestamp`. The errors distinguish what
//! a server can do to a message: another key, truncation, another message's content under this
//! timestamp, anything else.
//!
//! # Invariants
//! - `open` returns exactly the content that was passed to `seal` with this key and timestamp, or
//!   an error; it does not panic on any input, and allocates no more than the input's own size.
//! - A nonce is used once: a timestamp belongs to one message of one device, and a message that
//!   gets another content under its old timestamp gets another tail, too.
//!
//! # Not here
//! - The origin of the key, and the choice of contents to seal → `replica`.

use bytes::Bytes;
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{Tag, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use crate::Timestamp;
use crate::codec::{ByteReader, put_varint};

/// The id of the key that sealed a content. It distinguishes a wrong key from damage, and reveals
/// nothing about the key.
pub type KeyId = [u8; 8];

/// The key that seals the contents of a vault's messages. It is zeroed on drop and never printed.
pub struct SealKey {
    key: Zeroizing<[u8; 32]>,
    id: KeyId,
}

/// The encryption mode of all messages of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncryptionMode {
    /// The contents are not encrypted.
    Plain,
    /// Each content is sealed with the key that has this id.
    EndToEnd(KeyId),
}

impl EncryptionMode {
    /// Parses a mode from its bytes: a key's id, or none for plain.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [] => Some(Self::Plain),
            id => id.try_into().ok().map(Self::EndToEnd),
        }
    }

    /// Returns the key's id, or no bytes for plain.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Plain => &[],
            Self::EndToEnd(id) => id,
        }
    }
}

/// The reason why a content cannot be unsealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    /// The content is not sealed: it is plain, or of another version.
    #[error("not encrypted")]
    NotSealed,
    /// The content was sealed with another key.
    #[error("encrypted with another key")]
    WrongKey,
    /// The end of the content is missing.
    #[error("truncated")]
    Truncated,
    /// The content is the complete one of another message.
    #[error("belongs to another message")]
    Replayed,
    /// The content was changed by someone without the key.
    #[error("changed by someone without the key")]
    Tampered,
}

/// The version of sealed contents in Format 2's table.
const VERSION: u8 = 2;
const ID_BYTES: usize = 8;
const TAIL_BYTES: usize = 8;
const TAG_BYTES: usize = 16;
/// The minimum length after padding: an edit of one small cell is about as long as its names, so
/// lengths below this reveal nothing.
const PADDED_BYTES_MIN: usize = 32;

impl SealKey {
    /// Creates a key from its bytes.
    pub fn new(key: Zeroizing<[u8; 32]>) -> Self {
        let derived = blake3::derive_key("warren sealed content 2026-11-21 key id", &*key);
        let id = *derived.first_chunk().expect("BLAKE3 gives 32 bytes");
        Self { key, id }
    }

    /// Returns the id that marks contents sealed with this key.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Computes a tail that depends on the content: devices that seal the same message create the
    /// same bytes, and another content under the same timestamp has another nonce.
    pub fn nonce_tail(&self, timestamp: Timestamp, content: &[u8]) -> [u8; TAIL_BYTES] {
        let key = blake3::derive_key("warren sealed content 2026-11-23 nonce tail", &*self.key);
        let key = Zeroizing::new(key);
        let mut hasher = blake3::Hasher::new_keyed(&key);
        hasher.update(&timestamp.to_bytes()).update(content);
        *hasher.finalize().as_bytes().first_chunk().expect("BLAKE3 gives 32 bytes")
    }

    /// Seals a content under the timestamp of its message. `nonce_tail` is random, or
    /// [`Self::nonce_tail`].
    pub fn seal(
        &self,
        timestamp: Timestamp,
        content: &[u8],
        nonce_tail: [u8; TAIL_BYTES],
    ) -> Bytes {
        let mut body = pad(content);
        let nonce = nonce(timestamp, nonce_tail);
        let tag = self
            .cipher()
            .encrypt_inout_detached(&nonce, &associated(timestamp), body.as_mut_slice().into())
            .expect("a content is below the cipher's limit of 256 GiB");
        let mut sealed =
            Vec::with_capacity(1 + ID_BYTES + nonce.len() + 5 + body.len() + TAG_BYTES);
        sealed.push(VERSION);
        sealed.extend(self.id);
        sealed.extend(nonce);
        put_varint(&mut sealed, (body.len() + TAG_BYTES) as u64);
        sealed.extend(&*body);
        sealed.extend(tag);
        sealed.into()
    }

    /// Unseals a content that [`Self::seal`] created for this timestamp.
    pub fn open(&self, timestamp: Timestamp, sealed: &[u8]) -> Result<Bytes, UnsealError> {
        let chunks = SealedContent::read(sealed, self.id)?;
        if chunks.timestamp == timestamp.to_bytes() {
            return self.decrypt(&chunks, timestamp);
        }
        // The content is replayed only if it is valid for the other message: if it cannot be
        // unsealed under its own timestamp either, it was changed.
        let other = Timestamp::from_bytes(&chunks.timestamp).ok().ok_or(UnsealError::Tampered)?;
        self.decrypt(&chunks, other)?;
        Err(UnsealError::Replayed)
    }

    fn decrypt(
        &self,
        chunks: &SealedContent<'_>,
        timestamp: Timestamp,
    ) -> Result<Bytes, UnsealError> {
        let mut body = Zeroizing::new(chunks.body.to_vec());
        let nonce = nonce(timestamp, chunks.tail);
        let associated = associated(timestamp);
        let tag = Tag::from(chunks.tag);
        let opened = self.cipher().decrypt_inout_detached(
            &nonce,
            &associated,
            body.as_mut_slice().into(),
            &tag,
        );
        opened.ok().and_then(|()| unpad(&body)).ok_or(UnsealError::Tampered)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.key).into())
    }
}

/// Returns the key id in a content's header, or `None` if the content is not sealed. It proves
/// nothing: anyone can write such a header.
pub fn sealing_key_id(content: &[u8]) -> Option<KeyId> {
    let (version, rest) = content.split_first()?;
    (*version == VERSION).then(|| rest.first_chunk().copied())?
}

/// The parsed parts of a sealed content.
struct SealedContent<'a> {
    timestamp: [u8; Timestamp::BYTES],
    tail: [u8; TAIL_BYTES],
    body: &'a [u8],
    tag: [u8; TAG_BYTES],
}

impl<'a> SealedContent<'a> {
    fn read(sealed: &'a [u8], id: KeyId) -> Result<Self, UnsealError> {
        let (version, rest) = sealed.split_first().ok_or(UnsealError::NotSealed)?;
        if *version != VERSION {
            return Err(UnsealError::NotSealed);
        }
        let (found, rest) = rest.split_first_chunk::<ID_BYTES>().ok_or(UnsealError::Truncated)?;
        if *found != id {
            return Err(UnsealError::WrongKey);
        }
        let (timestamp, rest) = rest.split_first_chunk().ok_or(UnsealError::Truncated)?;
        let (tail, rest) = rest.split_first_chunk().ok_or(UnsealError::Truncated)?;
        let mut reader = ByteReader(rest);
        let length = match reader.varint() {
            Ok(length) => length,
            // A last group with its high bit set means that more bytes should follow.
            Err(_) if rest.iter().all(|byte| *byte >= 0x80) => return Err(UnsealError::Truncated),
            Err(_) => return Err(UnsealError::Tampered),
        };
        if (reader.0.len() as u64) < length {
            return Err(UnsealError::Truncated);
        }
        let chunks = reader.0.split_last_chunk().filter(|_| reader.0.len() as u64 == length);
        let (body, tag) = chunks.ok_or(UnsealError::Tampered)?;
        Ok(Self { timestamp: *timestamp, tail: *tail, body, tag: *tag })
    }
}

fn nonce(timestamp: Timestamp, tail: [u8; TAIL_BYTES]) -> XNonce {
    let mut nonce = XNonce::default();
    nonce[..Timestamp::BYTES].copy_from_slice(&timestamp.to_bytes());
    nonce[Timestamp::BYTES..].copy_from_slice(&tail);
    nonce
}

fn associated(timestamp: Timestamp) -> [u8; 1 + Timestamp::BYTES] {
    let mut bytes = [VERSION; 1 + Timestamp::BYTES];
    bytes[1..].copy_from_slice(&timestamp.to_bytes());
    bytes
}

fn pad(content: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut head = Vec::with_capacity(10);
    put_varint(&mut head, content.len() as u64);
    let length = padded_length(head.len() + content.len());
    let mut body = Zeroizing::new(Vec::with_capacity(length));
    body.extend(head);
    body.extend(content);
    body.resize(length, 0);
    body
}

/// Removes the padding, or returns `None` if [`pad`] would not write it.
fn unpad(body: &[u8]) -> Option<Bytes> {
    let mut reader = ByteReader(body);
    let length = usize::try_from(reader.varint().ok()?).ok()?;
    let (content, zeros) = reader.0.split_at_checked(length)?;
    let padded = padded_length(body.len() - zeros.len()) == body.len();
    (padded && zeros.iter().all(|byte| *byte == 0)).then(|| Bytes::copy_from_slice(content))
}

/// Rounds a length up by PADMÉ (Nikitin et al., "Reducing Metadata Leakage from Encrypted Files and
/// Communication with PURBs", 2019): only the first ⌊log₂ log₂ length⌋ + 2 binary digits of a
/// length carry information. The result is at most 12 % longer, and relatively less for longer
/// contents.
fn padded_length(length: usize) -> usize {
    if length <= PADDED_BYTES_MIN {
        return PADDED_BYTES_MIN;
    }
    let digits = length.ilog2();
    let mask = (1 << (digits - digits.ilog2() - 1)) - 1;
    (length + mask) & !mask
}

#[cfg(test)]
mod tests;
