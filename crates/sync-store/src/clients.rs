//! What a vault knows about the user's devices: their names, and how far each has synced.
//!
//! # Not here
//! - Which devices there are, and their tokens → `accounts`. A row here gives nobody access.

use accounts::ClientId;
use rusqlite::{Connection, params};

use crate::error::Result;
use crate::schema::to_column;

/// A device of the vault's user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    pub id: ClientId,
    /// What people call it.
    pub name: String,
    /// Up to which arrival number it has what the vault has.
    pub cursor: u64,
    /// When it last synced, milliseconds since 1970; 0 if never.
    pub seen_ms: u64,
    /// When it was registered, milliseconds since 1970.
    pub created_ms: u64,
}

/// Who asks, and when.
#[derive(Clone, Debug)]
pub struct Seen {
    pub client: ClientId,
    pub now_ms: u64,
}

/// How long a device's `seen_ms` may lag behind when nothing else about it changes: a device that
/// asks every second should not cost a write every second.
const SEEN_LAG_MS_MAX: u64 = 60_000;

pub(crate) fn add(db: &Connection, client: &Client) -> Result<()> {
    db.prepare_cached(
        "INSERT INTO client (id, name, cursor, seen_ms, created_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        client.id.as_str(),
        client.name,
        to_column(client.cursor),
        to_column(client.seen_ms),
        to_column(client.created_ms)
    ])?;
    Ok(())
}

pub(crate) fn list(db: &Connection) -> Result<Vec<Client>> {
    let sql = "SELECT id, name, cursor, seen_ms, created_ms FROM client ORDER BY created_ms, id";
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        Ok(Client {
            id: row.get::<_, String>(0)?.parse().expect("only `add` writes ids"),
            name: row.get(1)?,
            cursor: row.get::<_, i64>(2)?.cast_unsigned(),
            seen_ms: row.get::<_, i64>(3)?.cast_unsigned(),
            created_ms: row.get::<_, i64>(4)?.cast_unsigned(),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn remove(db: &Connection, ids: &[ClientId]) -> Result<()> {
    let mut statement = db.prepare_cached("DELETE FROM client WHERE id = ?1")?;
    for id in ids {
        statement.execute([id.as_str()])?;
    }
    Ok(())
}

/// The device has stored something. If it had all that was there before, it has all that is there
/// after.
pub(crate) fn pushed(db: &Connection, seen: &Seen, before: u64, after: u64) -> Result<()> {
    db.prepare_cached(
        "UPDATE client SET seen_ms = ?2, cursor = iif(cursor = ?3, ?4, cursor)
         WHERE id = ?1 AND (seen_ms + ?5 <= ?2 OR ?3 <> ?4)",
    )?
    .execute(params![
        seen.client.as_str(),
        to_column(seen.now_ms),
        to_column(before),
        to_column(after),
        to_column(SEEN_LAG_MS_MAX)
    ])?;
    Ok(())
}

/// The device says that it has everything up to `cursor`.
pub(crate) fn pulled(db: &Connection, seen: &Seen, cursor: u64) -> Result<()> {
    db.prepare_cached("UPDATE client SET seen_ms = ?2, cursor = ?3 WHERE id = ?1")?
        .execute(params![seen.client.as_str(), to_column(seen.now_ms), to_column(cursor)])?;
    Ok(())
}

/// Whether [`pulled`] would change anything that matters.
pub(crate) fn is_stale(db: &Connection, seen: &Seen, cursor: u64) -> Result<bool> {
    let mut statement = db.prepare_cached(
        "SELECT 1 FROM client WHERE id = ?1 AND (cursor <> ?3 OR seen_ms + ?4 <= ?2)",
    )?;
    Ok(statement.exists(params![
        seen.client.as_str(),
        to_column(seen.now_ms),
        to_column(cursor),
        to_column(SEEN_LAG_MS_MAX)
    ])?)
}
