//! Tables that cannot be as other devices have them, each with the reason:
//! `warren_schema_conflict`.

use rusqlite::{Connection, ErrorCode};
use serde::Serialize;
use sqlite_schema::quote_identifier;
use utoipa::ToSchema;

use super::declaration;
use super::tracked_table::TrackedTable;
use crate::error::{Error, Result};
use crate::log::message_log::MessageLog;

/// What is in a table's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SchemaConflictKind {
    /// SQLite does not let Warren write to the table, as where an index calls a function that only
    /// the table's program has.
    Unwritable,
    /// SQLite does not take the table, or a column, as another device declared it.
    DeclarationRejected,
    /// Another device declared the table with another primary key.
    KeyMismatch,
    /// Rows have NULL in the primary key, and stay on this device.
    NullKey,
}

impl SchemaConflictKind {
    const ALL: [Self; 4] =
        [Self::Unwritable, Self::DeclarationRejected, Self::KeyMismatch, Self::NullKey];

    /// As it is stored.
    fn name(self) -> &'static str {
        match self {
            Self::Unwritable => "unwritable",
            Self::DeclarationRejected => "declaration_rejected",
            Self::KeyMismatch => "key_mismatch",
            Self::NullKey => "null_key",
        }
    }
}

/// A table, and what is in its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct SchemaConflict {
    /// The table.
    pub table: String,
    /// What it is.
    pub kind: SchemaConflictKind,
    /// The same in words, often SQLite's.
    pub reason: String,
}

/// SQLite's words, if it refuses for what a table or a statement is like. An error if it is about
/// the file or the machine.
pub(crate) fn rejection_text(error: Error) -> Result<String> {
    match error {
        Error::Untrackable { reason, .. } => Ok(reason),
        Error::Sqlite(rusqlite::Error::SqliteFailure(code, message))
            if is_schema_error(code.code) =>
        {
            Ok(message.unwrap_or_else(|| code.to_string()))
        }
        Error::Sqlite(rusqlite::Error::SqlInputError { msg, .. }) => Ok(msg),
        error => Err(error),
    }
}

fn is_schema_error(code: ErrorCode) -> bool {
    use ErrorCode as Code;
    matches!(code, Code::ConstraintViolation | Code::TypeMismatch | Code::TooBig | Code::Unknown)
}

/// The tracked tables whose newest declaration has another key.
pub(crate) fn key_mismatches(
    db: &Connection,
    tables: &[TrackedTable],
) -> Result<Vec<SchemaConflict>> {
    let log = MessageLog::open(db)?;
    let mut conflicts = Vec::new();
    for table in tables {
        let Some(declared) = declaration::newest(&log, table.id)? else { continue };
        let there: Vec<_> =
            declared.key.iter().map(|place| &*declared.columns[*place].name).collect();
        let is_same = there.len() == table.key.len()
            && there.iter().zip(&table.key).all(|(there, here)| there.eq_ignore_ascii_case(here));
        if !is_same {
            let reason = format!(
                "another device has the primary key ({}), this file ({}): their rows are not shown",
                there.join(", "),
                table.key.join(", ")
            );
            conflicts.push(SchemaConflict {
                table: table.name.clone(),
                kind: SchemaConflictKind::KeyMismatch,
                reason,
            });
        }
    }
    Ok(conflicts)
}

/// The tables with rows that have no name.
pub(crate) fn tables_with_null_keys(
    db: &Connection,
    tables: &[TrackedTable],
) -> Result<Vec<SchemaConflict>> {
    let mut conflicts = Vec::new();
    for table in tables.iter().filter(|table| !table.nullable.is_empty()) {
        let (name, is_nameless) = (quote_identifier(&table.name), table.key_null_sql());
        let sql = format!("SELECT count(*) FROM {name} WHERE {is_nameless}");
        let count: i64 = db.prepare_cached(&sql)?.query_row([], |row| row.get(0))?;
        if count > 0 {
            let reason = format!(
                "{count} rows have NULL in the primary key, so they have no name that devices could \
                 share, and stay on this device"
            );
            let kind = SchemaConflictKind::NullKey;
            conflicts.push(SchemaConflict { table: table.name.clone(), kind, reason });
        }
    }
    Ok(conflicts)
}

/// Records these in the place of all others.
pub(crate) fn replace(db: &Connection, conflicts: &[SchemaConflict]) -> Result<()> {
    db.execute("DELETE FROM warren_schema_conflict", [])?;
    let mut insert = db.prepare_cached("INSERT INTO warren_schema_conflict VALUES (?1, ?2, ?3)")?;
    for SchemaConflict { table, kind, reason } in conflicts {
        insert.execute((table, kind.name(), reason))?;
    }
    Ok(())
}

/// Those that the last sync recorded.
pub(crate) fn all(db: &Connection) -> Result<Vec<SchemaConflict>> {
    let mut statement =
        db.prepare("SELECT table_name, kind, reason FROM warren_schema_conflict ORDER BY rowid")?;
    let mut rows = statement.query([])?;
    let mut conflicts = Vec::new();
    while let Some(row) = rows.next()? {
        let kind: String = row.get(1)?;
        let kind = SchemaConflictKind::ALL.into_iter().find(|known| known.name() == kind);
        let kind = kind.unwrap_or(SchemaConflictKind::DeclarationRejected);
        conflicts.push(SchemaConflict { table: row.get(0)?, kind, reason: row.get(2)? });
    }
    Ok(conflicts)
}
