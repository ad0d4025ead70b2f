//! The bytes of a message in the vault: compressed, and equal large parts only once.
//!
//! A message is cut into segments. A part of at least [`SHARED_BYTES_MIN`] has segments of its own,
//! which have a digest: a segment that the vault has already is not stored again. All between these
//! parts is in segments without a digest. The bytes are not decoded, so that the message comes back
//! byte for byte.
//!
//! # Invariants
//! - A segment has at most [`CONTENT_BYTES_MAX`] bytes, so reading needs little memory.
//! - The digest is keyed with a key of the vault. Without it, two parts with the
//!   same digest cannot be made, and a digest does not reveal its part.

use blake3::derive_key;
use engine::{DatabaseKey, StaticStatement, Transaction};
use rusqlite::{OptionalExtension, params};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::limits::{CONTENT_BYTES_MAX, SHARED_BYTES_MIN};
use crate::part_tree::PartTree;

const DIGEST_CONTEXT: &str = "warren mail content 2026-11-29 digest";

/// `content.encoding` of bytes that are not compressed.
const PLAIN: i64 = 0;
/// `content.encoding` of one zstd frame.
const ZSTD: i64 = 1;

/// zstd's default. Level 9 makes mail 2 to 3 % smaller and takes several times as long.
const ZSTD_LEVEL: i32 = 3;

/// The key of the digests of one vault.
#[derive(Clone)]
pub(crate) struct DigestKey(Zeroizing<[u8; 32]>);

impl DigestKey {
    pub(crate) fn derive(vault: &DatabaseKey) -> Self {
        Self(Zeroizing::new(derive_key(DIGEST_CONTEXT, vault.as_bytes())))
    }
}

/// A segment of a message, ready to be stored.
pub(crate) struct PreparedSegment {
    /// The offset in the message.
    pub(crate) position: usize,
    digest: Option<[u8; 32]>,
    encoding: i64,
    bytes: Vec<u8>,
}

/// Cuts a message into segments and compresses them.
pub(crate) fn prepare(message: &[u8], parts: &PartTree, key: &DigestKey) -> Vec<PreparedSegment> {
    let mut segments = Vec::new();
    let mut at = 0;
    for part in parts.leaves().filter(|part| part.end - part.body >= SHARED_BYTES_MIN) {
        cut(message, at, part.body, None, &mut segments);
        cut(message, part.body, part.end, Some(key), &mut segments);
        at = part.end;
    }
    cut(message, at, message.len(), None, &mut segments);
    segments
}

fn cut(
    message: &[u8],
    start: usize,
    end: usize,
    key: Option<&DigestKey>,
    segments: &mut Vec<PreparedSegment>,
) {
    for (index, bytes) in message[start..end].chunks(CONTENT_BYTES_MAX).enumerate() {
        let digest = key.map(|key| *blake3::keyed_hash(&key.0, bytes).as_bytes());
        let frame = compress(bytes);
        let (encoding, bytes) = match frame {
            Some(frame) if frame.len() < bytes.len() => (ZSTD, frame),
            _ => (PLAIN, bytes.to_vec()),
        };
        let position = start + index * CONTENT_BYTES_MAX;
        segments.push(PreparedSegment { position, digest, encoding, bytes });
    }
}

/// Compresses bytes to one zstd frame; `None` if there is not enough memory.
pub(crate) fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    zstd::bulk::compress(bytes, ZSTD_LEVEL).ok()
}

/// Decompresses a frame of at most `max` bytes.
pub(crate) fn decompress(frame: &[u8], max: usize) -> Result<Vec<u8>> {
    let bytes = zstd::bulk::decompress(frame, max);
    bytes.or(Err(Error::Damaged { what: "a compressed content" }))
}

/// Stores a segment, or counts another reference to the same content. Returns the content's id.
pub(crate) fn store(db: &Transaction<'_>, segment: &PreparedSegment) -> Result<i64> {
    static FIND: StaticStatement = StaticStatement::new("SELECT id FROM content WHERE digest = ?1");
    static COUNT: StaticStatement = StaticStatement::new(
        "UPDATE content SET references_count = references_count + 1 WHERE id = ?1",
    );
    static INSERT: StaticStatement = StaticStatement::new(
        "INSERT INTO content (references_count, digest, encoding, bytes) VALUES (1, ?1, ?2, ?3)
         RETURNING id",
    );
    let digest = segment.digest.as_ref().map(|digest| &digest[..]);
    if let Some(digest) = digest {
        let known: Option<i64> =
            db.statement(&FIND)?.query_row([digest], |row| row.get(0)).optional()?;
        if let Some(id) = known {
            db.statement(&COUNT)?.execute([id])?;
            return Ok(id);
        }
    }
    let columns = params![digest, segment.encoding, segment.bytes];
    Ok(db.statement(&INSERT)?.query_row(columns, |row| row.get(0))?)
}

/// Returns the bytes of a content.
pub(crate) fn read(db: &Transaction<'_>, id: i64) -> Result<Vec<u8>> {
    static READ: StaticStatement =
        StaticStatement::new("SELECT encoding, bytes FROM content WHERE id = ?1");
    let found = db.statement(&READ)?.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)));
    let (encoding, bytes): (i64, Vec<u8>) =
        found.optional()?.ok_or(Error::Damaged { what: "the content of a message" })?;
    match encoding {
        PLAIN => Ok(bytes),
        ZSTD => decompress(&bytes, CONTENT_BYTES_MAX),
        _ => Err(Error::Damaged { what: "the encoding of a content" }),
    }
}
