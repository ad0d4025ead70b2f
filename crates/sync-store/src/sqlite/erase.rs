//! Replaces the contents of a vault's messages.
//!
//! # Not here
//! - The removal of the old contents from all pages of the file → `engine::Database::rewrite`.

use crdt::{Fingerprint, FingerprintWindow};
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Error, Result};
use crate::sqlite::messages::check;
use crate::sqlite::rows::{is_stale, summary, write_summary};
use crate::sqlite::windows;
use crate::vault::{MessageErasure, Quota, StoreOutcome};

pub(super) fn erase(
    db: &Connection,
    erasures: &[MessageErasure],
    quota: Quota,
) -> Result<StoreOutcome> {
    if is_stale(db)? {
        windows::rebuild(db)?;
    }
    let mut after = summary(db)?;
    let (mut stored, mut known) = (0, 0);
    let mut find =
        db.prepare_cached("SELECT hash, length(content) FROM message WHERE timestamp = ?1")?;
    let sql = "UPDATE message SET hash = ?2, content = ?3 WHERE timestamp = ?1";
    let mut update = db.prepare_cached(sql)?;
    for MessageErasure { message, hash } in erasures {
        let key = message.timestamp.to_bytes();
        let found = find
            .query_row([&key[..]], |row| {
                Ok((u128::from_be_bytes(row.get(0)?), row.get::<_, i64>(1)?.cast_unsigned()))
            })
            .optional()?;
        let (digest, bytes) = found.ok_or(Error::StaleCursor)?;
        let new = Fingerprint::from_message(message.timestamp, &message.content);
        if digest == new.digest {
            known += 1;
            continue;
        }
        if digest != *hash {
            return Err(Error::StaleCursor);
        }
        let old = Fingerprint { count: 1, digest };
        update.execute((&key[..], &new.digest_bytes()[..], &message.content[..]))?;
        windows::replace(db, FingerprintWindow::for_timestamp(message.timestamp), old, new)?;
        after.fingerprint -= old;
        after.fingerprint += new;
        after.bytes = (after.bytes + message.content.len() as u64).saturating_sub(bytes);
        stored += 1;
    }
    check(after, quota)?;
    write_summary(db, after)?;
    Ok(StoreOutcome { stored, known, after })
}
