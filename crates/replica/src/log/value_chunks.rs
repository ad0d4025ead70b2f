//! Splits large values into chunks, each of which is a message of its own, before the change that
//! names them.
//!
//! So no message exceeds the limit of a proxy, and if a value is written again, or a file grows,
//! only new chunks are sent.
//!
//! # Invariants
//! - A change from this device names only chunks that are in the log.
//! - The digest of a chunk is computed from its bytes, whoever sent it.

use crdt::{
    CHUNK_BYTES, CellWrite, Change, ChunkDigest, Fingerprint, LargeValue, Timestamp, Value,
};
use rusqlite::{Connection, OptionalExtension};

use super::message_log::MessageLog;
use crate::error::Result;

/// The bytes of a change's cells above which the largest cells are sent in chunks.
const CHANGE_BYTES_MAX: usize = 4 * CHUNK_BYTES;
/// The maximum bytes of a row that can be assembled: a browser tab runs out of memory before
/// SQLite's limit.
const ROW_BYTES_MAX: u64 =
    if cfg!(target_family = "wasm") { 256 << 20 } else { crdt::VALUE_BYTES_MAX };

pub(crate) const CHUNK_MISSING: &str = "part of a large value has not been received yet";

/// Replaces the large values of a new change by the digests of their chunks. Returns the chunks
/// that are in no message yet.
pub(crate) fn extract_chunks(db: &Connection, change: &mut Change) -> Result<Vec<Vec<u8>>> {
    let Change::Write { cells, .. } = change else { return Ok(Vec::new()) };
    let lengths = || cells.iter().map(|cell| length(&cell.value));
    let mut total: usize = lengths().sum();
    if total <= CHANGE_BYTES_MAX && lengths().all(|length| length <= CHUNK_BYTES) {
        return Ok(Vec::new());
    }
    let mut by_length: Vec<&mut CellWrite> = cells.iter_mut().collect();
    by_length.sort_by_key(|cell| std::cmp::Reverse(length(&cell.value)));
    let mut chunks = Vec::new();
    for cell in by_length {
        let length = length(&cell.value);
        if length <= CHUNK_BYTES && total <= CHANGE_BYTES_MAX {
            break;
        }
        let Some(large) = LargeValue::from_value(&cell.value) else { break };
        total -= length;
        let whole = std::mem::replace(&mut cell.value, Value::Large(large.clone()));
        let bytes = match &whole {
            Value::Text(text) => text.as_bytes(),
            Value::TextBytes(bytes) | Value::Blob(bytes) => bytes,
            _ => continue,
        };
        for (chunk, digest) in bytes.chunks(CHUNK_BYTES).zip(&large.chunks) {
            if find(db, digest)?.is_none() && !chunks.iter().any(|known| known == chunk) {
                chunks.push(chunk.to_vec());
            }
        }
    }
    Ok(chunks)
}

/// Returns the bytes of a value that could be sent in chunks.
fn length(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::TextBytes(bytes) | Value::Blob(bytes) => bytes.len(),
        Value::Null | Value::Integer(_) | Value::Real(_) | Value::Large(_) | Value::Erased => 0,
    }
}

/// Adds a message with a chunk.
pub(crate) fn add(
    log: &MessageLog<'_>,
    timestamp: Timestamp,
    bytes: Vec<u8>,
    total: &mut Fingerprint,
) -> Result<()> {
    record_chunk(log.db, &crdt::chunk_digest(&bytes), timestamp)?;
    log.add_local(timestamp, &Change::Chunk { bytes }, total)
}

/// Records which message contains a chunk.
pub(crate) fn record_chunk(
    db: &Connection,
    digest: &ChunkDigest,
    timestamp: Timestamp,
) -> Result<()> {
    let sql = "INSERT INTO warren_chunk VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING";
    db.prepare_cached(sql)?.execute((digest, timestamp.to_bytes()))?;
    Ok(())
}

/// Replaces the timestamp of a chunk's message.
pub(crate) fn replace_timestamp(db: &Connection, old: Timestamp, new: Timestamp) -> Result<()> {
    let sql = "UPDATE warren_chunk SET timestamp = ?2 WHERE timestamp = ?1";
    db.prepare_cached(sql)?.execute((old.to_bytes(), new.to_bytes()))?;
    Ok(())
}

/// Removes a chunk whose message was erased.
pub(crate) fn forget(db: &Connection, timestamp: Timestamp) -> Result<()> {
    let sql = "DELETE FROM warren_chunk WHERE timestamp = ?1";
    db.prepare_cached(sql)?.execute([timestamp.to_bytes()])?;
    Ok(())
}

fn find(db: &Connection, digest: &ChunkDigest) -> Result<Option<Timestamp>> {
    let sql = "SELECT timestamp FROM warren_chunk WHERE digest = ?1";
    let mut statement = db.prepare_cached(sql)?;
    let found = statement.query_row([digest], |row| row.get::<_, Vec<u8>>(0)).optional()?;
    Ok(found.and_then(|bytes| Timestamp::from_bytes(&bytes).ok()))
}

/// Returns the value with all its bytes, or `None` if some are missing.
pub(crate) fn assemble_value(db: &Connection, value: &Value) -> Result<Option<Value>> {
    let Value::Large(large) = value else { return Ok(Some(value.clone())) };
    let log = MessageLog::open(db)?;
    let mut bytes = Vec::new();
    for digest in &large.chunks {
        let Some(timestamp) = find(db, digest)? else { return Ok(None) };
        let Change::Chunk { bytes: chunk } = log.change(timestamp)? else { return Ok(None) };
        if crdt::chunk_digest(&chunk) != *digest {
            return Ok(None);
        }
        bytes.extend(chunk);
    }
    Ok((bytes.len() as u64 == large.length).then(|| large.to_value(bytes)))
}

/// Replaces the values of one row that name chunks by whole values. Returns the reason if this is
/// impossible.
pub(crate) fn assemble_row<'a>(
    db: &Connection,
    values: impl Iterator<Item = &'a mut Value>,
) -> Result<Option<String>> {
    let mut total = 0;
    for value in values {
        let Value::Large(large) = &*value else { continue };
        total += large.length;
        if total > ROW_BYTES_MAX {
            return Ok(Some(format!("row too large (more than {ROW_BYTES_MAX} bytes)")));
        }
        match assemble_value(db, value)? {
            Some(whole) => *value = whole,
            None => return Ok(Some(CHUNK_MISSING.to_owned())),
        }
    }
    Ok(None)
}

/// Returns whether a value equals the one that a change names, perhaps by its chunks.
pub(crate) fn is_same_value(here: &Value, named: &Value) -> bool {
    match named {
        Value::Large(large) => LargeValue::from_value(here).as_ref() == Some(large),
        _ => here == named,
    }
}
