//! What PostgreSQL must not read: contents and names, sealed with a key of the vault.

use accounts::ClientId;
use bytes::Bytes;
use crdt::{Node, SealKey, Timestamp};
use engine::Key;
use zeroize::Zeroizing;

use crate::batch::Batch;
use crate::error::{Error, Result};

/// The key is not the one that encrypts the vault where it is a file: two ciphers, two keys.
const CONTEXT: &str = "warren 2026-11-21 contents of a vault in postgresql";
const TAIL_BYTES: usize = 8;

pub(super) fn key(vault_key: &Key) -> SealKey {
    SealKey::new(Zeroizing::new(blake3::derive_key(CONTEXT, vault_key.as_bytes())))
}

/// The contents of a batch, in its order.
pub(super) fn seal_all(key: &SealKey, batch: &Batch) -> Vec<Bytes> {
    let tails = random(batch.entries.len());
    let entries = batch.entries.iter().zip(tails.as_chunks::<TAIL_BYTES>().0);
    let seal = |(entry, tail): (&crate::batch::Entry, &[u8; TAIL_BYTES])| {
        key.seal(entry.message.timestamp, &entry.message.content, *tail)
    };
    entries.map(seal).collect()
}

pub(super) fn open(key: &SealKey, timestamp: Timestamp, sealed: &[u8]) -> Result<Bytes> {
    key.open(timestamp, sealed).map_err(|source| Error::Unreadable { timestamp, source })
}

/// A device's name is sealed like the content of a message of 1970, which no device sends.
fn name_timestamp(id: &ClientId) -> Timestamp {
    let node = u64::from_str_radix(id.as_str(), 16).expect("an id is 16 hex digits");
    Timestamp::new(0, 0, Node(node)).expect("1970 is before the year 10000")
}

pub(super) fn seal_name(key: &SealKey, id: &ClientId, name: &str) -> Bytes {
    let tail = *random(1).first_chunk().expect("one tail");
    key.seal(name_timestamp(id), name.as_bytes(), tail)
}

pub(super) fn open_name(key: &SealKey, id: &ClientId, sealed: &[u8]) -> Result<String> {
    let name = open(key, name_timestamp(id), sealed)?;
    Ok(String::from_utf8_lossy(&name).into_owned())
}

fn random(tails: usize) -> Vec<u8> {
    let mut bytes = vec![0; tails * TAIL_BYTES];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}
