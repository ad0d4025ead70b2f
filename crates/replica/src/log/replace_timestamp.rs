//! Replaces a message's timestamp everywhere it is recorded.

use crdt::{Change, Timestamp};
use rusqlite::Connection;

use super::value_chunks;
use crate::apply::row_state::{NameResolver, load, mark_dirty, save};
use crate::capture::provisional_keys;
use crate::error::Result;
use crate::row_id::RowId;
use crate::schema::declaration;

/// Replaces a message's timestamp in the state of the row that the message changed.
pub(crate) fn replace_timestamp(
    db: &Connection,
    change: &Change,
    old: Timestamp,
    new: Timestamp,
) -> Result<()> {
    let (table, key) = match change {
        Change::Write { table, key, .. } | Change::Delete { table, key, .. } => (table, key),
        Change::TableDeclaration { .. } => return declaration::replace_timestamp(db, old, new),
        Change::Chunk { .. } => return value_chunks::replace_timestamp(db, old, new),
        Change::Erased => return Ok(()),
    };
    provisional_keys::replace_timestamp(db, old, new)?;
    let id = RowId::new(NameResolver::new(db)?.table(table)?, key);
    if let Some(mut row) = load(db, &id)? {
        row.replace_timestamp(old, new);
        save(db, &id, &row)?;
        if new < old {
            // Another write may be the newest now.
            mark_dirty(db, &id, true)?;
        }
    }
    Ok(())
}
