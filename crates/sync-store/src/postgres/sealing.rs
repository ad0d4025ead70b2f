//! Seals the values that PostgreSQL must not be able to read: contents, names, gateways' states and
//! chunks. The keys belong to the vault.
//!
//! # Invariants
//! - A sealed value opens only in its place: a content under its timestamp, a state as its version,
//!   a chunk under its number of its blob. A value of one kind never opens as another, because each
//!   kind has its own key.
//!
//! # Not here
//! - Protection against older values in the same place: anyone who can write to the database can
//!   restore them. Devices notice this for messages.

use accounts::DeviceId;
use bytes::Bytes;
use crdt::{NodeId, SealKey, Timestamp};
use engine::DatabaseKey;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::vault::batch::BatchEntry;
use crate::vault::gateway::BlobChunkId;

/// These keys differ from the one that encrypts a vault's file: two ciphers, two keys.
const CONTENTS_CONTEXT: &str = "warren 2026-11-21 contents of a vault in postgresql";
const STATE_CONTEXT: &str = "warren 2026-11-21 gateway state of a vault in postgresql";
const CHUNKS_CONTEXT: &str = "warren 2026-11-21 blob chunks of a vault in postgresql";
const TAIL_BYTES: usize = 8;

/// The keys of one vault, by the kind of value that they seal.
pub(super) struct VaultSealKeys {
    /// The key for contents and names.
    contents: SealKey,
    gateway_state: SealKey,
    chunks: SealKey,
}

impl VaultSealKeys {
    pub(super) fn from_vault_key(vault_key: &DatabaseKey) -> Self {
        let key = |context| {
            SealKey::new(Zeroizing::new(blake3::derive_key(context, vault_key.as_bytes())))
        };
        let (contents, gateway_state) = (key(CONTENTS_CONTEXT), key(STATE_CONTEXT));
        Self { contents, gateway_state, chunks: key(CHUNKS_CONTEXT) }
    }

    /// Seals the contents of messages, in their order.
    pub(super) fn seal_all(&self, entries: &[&BatchEntry]) -> Vec<Bytes> {
        let tails = random(entries.len());
        let seal = |(entry, tail): (&&BatchEntry, &[u8; TAIL_BYTES])| {
            self.contents.seal(entry.message.timestamp, &entry.message.content, *tail)
        };
        entries.iter().zip(tails.as_chunks::<TAIL_BYTES>().0).map(seal).collect()
    }

    /// Unseals the content of a message.
    pub(super) fn open(&self, timestamp: Timestamp, sealed: &[u8]) -> Result<Bytes> {
        let what = || format!("the content of {timestamp}");
        open(&self.contents, timestamp, sealed, what)
    }

    pub(super) fn seal_name(&self, id: &DeviceId, name: &str) -> Bytes {
        seal(&self.contents, place_of_name(id), name.as_bytes())
    }

    pub(super) fn open_name(&self, id: &DeviceId, sealed: &[u8]) -> Result<String> {
        let what = || format!("the name of device {id}");
        let name = open(&self.contents, place_of_name(id), sealed, what)?;
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    pub(super) fn seal_gateway_state(&self, version: i64, state: &[u8]) -> Bytes {
        seal(&self.gateway_state, place(version), state)
    }

    pub(super) fn open_gateway_state(&self, version: i64, sealed: &[u8]) -> Result<Bytes> {
        open(&self.gateway_state, place(version), sealed, || "the gateway's state".to_owned())
    }

    pub(super) fn seal_chunk(&self, chunk: BlobChunkId, content: &[u8]) -> Bytes {
        seal(&self.chunks, place(chunk.to_row()), content)
    }

    pub(super) fn open_chunk(&self, chunk: BlobChunkId, sealed: &[u8]) -> Result<Bytes> {
        let what = || format!("chunk {} of blob {}", chunk.number, chunk.blob.get());
        open(&self.chunks, place(chunk.to_row()), sealed, what)
    }
}

/// Returns the place of a value that is not a message: it is sealed like the content of a message
/// of 1970 whose node id is this number.
fn place(number: i64) -> Timestamp {
    let node = NodeId(number.cast_unsigned());
    Timestamp::new(0, 0, node).expect("1970 is before the year 10000")
}

fn place_of_name(id: &DeviceId) -> Timestamp {
    let node = u64::from_str_radix(id.as_str(), 16).expect("an id is 16 hex digits");
    place(node.cast_signed())
}

fn seal(key: &SealKey, place: Timestamp, content: &[u8]) -> Bytes {
    key.seal(place, content, *random(1).first_chunk().expect("one tail"))
}

fn open(
    key: &SealKey,
    place: Timestamp,
    sealed: &[u8],
    what: impl FnOnce() -> String,
) -> Result<Bytes> {
    key.open(place, sealed).map_err(|source| Error::Unreadable { what: what(), source })
}

fn random(tails: usize) -> Vec<u8> {
    let mut bytes = vec![0; tails * TAIL_BYTES];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}
