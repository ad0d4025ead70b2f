//! Functions for rows of a vault's file that several modules need: its summary, and columns of a
//! message.

use crdt::{Fingerprint, Timestamp};
use rusqlite::{Connection, Row};

use crate::error::Result;
use crate::sqlite::schema::to_column;
use crate::vault::VaultSummary;

pub(crate) fn is_stale(db: &Connection) -> Result<bool> {
    let mut statement = db.prepare_cached("SELECT stale FROM vault_summary")?;
    Ok(statement.query_row([], |row| row.get(0))?)
}

pub(crate) fn summary(db: &Connection) -> Result<VaultSummary> {
    let sql = "SELECT last_seq, messages_bytes, messages_count, digest FROM vault_summary";
    let mut statement = db.prepare_cached(sql)?;
    let summary = statement.query_row([], |row| {
        Ok(VaultSummary {
            cursor: row.get::<_, i64>(0)?.cast_unsigned(),
            bytes: row.get::<_, i64>(1)?.cast_unsigned(),
            fingerprint: fingerprint(row, 2)?,
        })
    })?;
    Ok(summary)
}

/// Reads two columns: `messages_count, digest`.
pub(crate) fn fingerprint(row: &Row<'_>, first: usize) -> rusqlite::Result<Fingerprint> {
    Ok(Fingerprint {
        count: row.get::<_, i64>(first)?.cast_unsigned(),
        digest: u128::from_be_bytes(row.get(first + 1)?),
    })
}

pub(crate) fn write_summary(db: &Connection, summary: VaultSummary) -> Result<()> {
    let sql = "UPDATE vault_summary SET last_seq = ?1, messages_bytes = ?2, messages_count = ?3,
                   digest = ?4, stale = 0";
    let VaultSummary { cursor, bytes, fingerprint } = summary;
    db.prepare_cached(sql)?.execute((
        to_column(cursor),
        to_column(bytes),
        to_column(fingerprint.count),
        &fingerprint.digest_bytes()[..],
    ))?;
    Ok(())
}

pub(crate) fn timestamp(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    let bytes = blob(row, column)?;
    Ok(Timestamp::from_bytes(bytes).expect("`insert_all` alone writes timestamps"))
}

pub(crate) fn blob<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a [u8]> {
    Ok(row.get_ref(column)?.as_blob()?)
}
