//! Records the tables that cannot be the same as on other devices, with reasons, in
//! `warren_schema_conflict`.

use rusqlite::{Connection, ErrorCode};
use serde::Serialize;
use sqlite_schema::quote_identifier;
use utoipa::ToSchema;

use super::declaration;
use super::tracked_table::TrackedTable;
use crate::error::{Error, Result, counted};
use crate::log::message_log::MessageLog;

/// The reason why a table differs from other devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SchemaConflictKind {
    /// SQLite does not let Warren write to the table, for example because an index calls a function
    /// that only the table's program has.
    Unwritable,
    /// SQLite rejects the table or a column as another device declared it.
    DeclarationRejected,
    /// Another device declared the table with another primary key.
    KeyMismatch,
    /// Rows of the table have NULL in the primary key, and stay on this device.
    NullKey,
}

impl SchemaConflictKind {
    const ALL: [Self; 4] =
        [Self::Unwritable, Self::DeclarationRejected, Self::KeyMismatch, Self::NullKey];

    /// Returns the stored name of the kind.
    fn name(self) -> &'static str {
        match self {
            Self::Unwritable => "unwritable",
            Self::DeclarationRejected => "declaration_rejected",
            Self::KeyMismatch => "key_mismatch",
            Self::NullKey => "null_key",
        }
    }
}

/// A table that cannot be the same as on other devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct SchemaConflict {
    /// The name of the table.
    pub table: String,
    /// The kind of conflict.
    pub kind: SchemaConflictKind,
    /// The reason in words, often the error message from SQLite.
    pub reason: String,
}

/// Returns SQLite's message if it rejects a table's schema or a statement, and the error if it
/// concerns the file or the machine.
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

/// Returns the tracked tables whose newest declaration has another primary key.
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
                "primary key is ({}) on another device and ({}) here; rows from that device are \
                 hidden",
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

/// Returns the tables that have rows with NULL in the primary key.
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
            let rows = counted(count.cast_unsigned(), "row has", "rows have");
            let reason = format!(
                "{rows} NULL in the primary key, cannot be identified across devices, and will not \
                 be synced"
            );
            let kind = SchemaConflictKind::NullKey;
            conflicts.push(SchemaConflict { table: table.name.clone(), kind, reason });
        }
    }
    Ok(conflicts)
}

/// Replaces all recorded conflicts.
pub(crate) fn replace(db: &Connection, conflicts: &[SchemaConflict]) -> Result<()> {
    db.execute("DELETE FROM warren_schema_conflict", [])?;
    let mut insert = db.prepare_cached("INSERT INTO warren_schema_conflict VALUES (?1, ?2, ?3)")?;
    for SchemaConflict { table, kind, reason } in conflicts {
        insert.execute((table, kind.name(), reason))?;
    }
    Ok(())
}

/// Returns the conflicts that the last sync recorded.
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
