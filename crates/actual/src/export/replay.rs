//! Loads a budget's database into memory and applies messages to it, as an app does when it
//! receives them.
//!
//! Source, of version 26.9.0: `@actual-app/core/server/sync/index.ts` (`compareMessages`, `apply`,
//! `deserializeValue`) and `@actual-app/core/server/sync/repair.ts`.
//!
//! # Invariants
//! - A message that the database already has changes nothing; a message that is older than another
//!   one of the same cell is only recorded.
//! - Afterwards the clock holds the trie of all recorded messages.
//! - The database comes from an app and may contain anything, so its triggers never run.

use std::collections::HashSet;

use crdt::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, MAIN_DB, OptionalExtension, params};
use serde_json::{Map, Value, json};
use sqlite_schema::quote_identifier;

use crate::export::error::ExportError;
use crate::trie::MerkleTrie;

/// The table whose messages are members of the budget's metadata instead of rows.
const PREFERENCES: &str = "prefs";
/// The number of cached statements: each written column needs two.
const STATEMENTS_COUNT_MAX: usize = 256;
/// The place of the two journal versions in the header of an SQLite file (File Format, §1.3.3).
const JOURNAL_VERSIONS: std::ops::Range<usize> = 18..20;
const ROLLBACK: u8 = 1;

/// The decoded content of a message: a cell's new value.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct CellMessage {
    /// The name of the table.
    #[prost(string, tag = "1")]
    dataset: String,
    /// The id of the row.
    #[prost(string, tag = "2")]
    row: String,
    #[prost(string, tag = "3")]
    column: String,
    /// The value: `0:`, `N:` and a number, or `S:` and a text.
    #[prost(string, tag = "4")]
    value: String,
}

impl CellMessage {
    /// Returns the value in JavaScript's sense: a whole number becomes an integer.
    fn sql_value(&self) -> Result<SqlValue, ExportError> {
        match self.value.split_at_checked(2) {
            Some(("S:", text)) => Ok(SqlValue::Text(text.to_owned())),
            Some(("N:", number)) => {
                let number: f64 = number.parse().unwrap_or(f64::NAN);
                #[expect(clippy::cast_possible_truncation, reason = "it is whole, and fits")]
                let whole = number as i64;
                let is_whole = number.abs() <= JS_WHOLE_MAX && number.fract() == 0.0;
                Ok(if is_whole { SqlValue::Integer(whole) } else { SqlValue::Real(number) })
            }
            _ if self.value.starts_with('0') => Ok(SqlValue::Null),
            _ => Err(ExportError::damaged(
                "cannot read a change that an app made",
                "its value has no type",
            )),
        }
    }
}

/// The value of JavaScript's `Number.MAX_SAFE_INTEGER`.
const JS_WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

pub(super) struct Replay {
    db: Connection,
    /// Columns that are known to exist.
    columns: HashSet<(String, String)>,
    preferences: Map<String, Value>,
    messages_count: u64,
}

/// The outcome of a replay.
pub(super) struct ReplayOutcome {
    /// The budget's database as the bytes of an SQLite file.
    pub(super) database: Vec<u8>,
    /// Members of the metadata that messages have set.
    pub(super) preferences: Map<String, Value>,
    /// The number of messages that the database did not have.
    pub(super) messages_count: u64,
}

impl Replay {
    pub(super) fn open(mut database: Vec<u8>) -> Result<Self, ExportError> {
        if let Some(versions) = database.get_mut(JOURNAL_VERSIONS) {
            // A database in memory has no WAL, and neither has the archive.
            versions.fill(ROLLBACK);
        }
        let db = load(&database).map_err(damaged)?;
        let (columns, preferences) = (HashSet::new(), Map::new());
        Ok(Self { db, columns, preferences, messages_count: 0 })
    }

    pub(super) fn apply(
        &mut self,
        timestamp: Timestamp,
        message: &CellMessage,
    ) -> Result<(), ExportError> {
        let value = message.sql_value()?;
        let text = timestamp.to_string();
        let is_known = "SELECT 1 FROM messages_crdt WHERE timestamp = ?1";
        if self.has(is_known, &[&text])? {
            return Ok(());
        }
        self.messages_count += 1;
        let CellMessage { dataset, row, column, .. } = message;
        let is_old = "SELECT 1 FROM messages_crdt
             WHERE dataset = ?1 AND row = ?2 AND \"column\" = ?3 AND timestamp > ?4";
        if !self.has(is_old, &[dataset, row, column, &text])? {
            self.write(message, &value)?;
        }
        let note = "INSERT INTO messages_crdt (timestamp, dataset, row, \"column\", value)
             VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut note = self.db.prepare_cached(note).map_err(damaged)?;
        note.execute([&text, dataset, row, column, &message.value]).map_err(damaged)?;
        Ok(())
    }

    fn has(&self, sql: &str, values: &[&str]) -> Result<bool, ExportError> {
        let mut statement = self.db.prepare_cached(sql).map_err(damaged)?;
        statement.exists(rusqlite::params_from_iter(values)).map_err(damaged)
    }

    fn write(&mut self, message: &CellMessage, value: &SqlValue) -> Result<(), ExportError> {
        let CellMessage { dataset, row, column, .. } = message;
        if dataset == PREFERENCES {
            self.preferences.insert(row.clone(), to_json(value));
            return Ok(());
        }
        self.check_column(dataset, column)?;
        let (table, column) = (quote_identifier(dataset), quote_identifier(column));
        let update = format!("UPDATE {table} SET {column} = ?2 WHERE id = ?1");
        let insert = format!("INSERT INTO {table} (id, {column}) VALUES (?1, ?2)");
        for sql in [update, insert] {
            let mut statement = self.db.prepare_cached(&sql).map_err(damaged)?;
            if statement.execute(params![row, value]).map_err(damaged)? > 0 {
                break;
            }
        }
        Ok(())
    }

    fn check_column(&mut self, dataset: &str, column: &str) -> Result<(), ExportError> {
        let known = (dataset.to_owned(), column.to_owned());
        if self.columns.contains(&known) {
            return Ok(());
        }
        let is_there = "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2";
        if !self.has(is_there, &[dataset, column])? {
            return Err(ExportError::NewerApp { column: format!("{dataset}.{column}") });
        }
        self.columns.insert(known);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<ReplayOutcome, ExportError> {
        self.set_clock()?;
        self.db.execute_batch("COMMIT").map_err(damaged)?;
        let database = self.db.serialize(MAIN_DB).map_err(damaged)?.to_vec();
        let Self { preferences, messages_count, .. } = self;
        Ok(ReplayOutcome { database, preferences, messages_count })
    }

    /// Stores the trie of all messages and the time of the last. Without messages the clock is
    /// unchanged.
    fn set_clock(&self) -> Result<(), ExportError> {
        let (mut trie, mut last) = (MerkleTrie::new(), None);
        let sql = "SELECT timestamp FROM messages_crdt ORDER BY timestamp";
        let mut statement = self.db.prepare(sql).map_err(damaged)?;
        let mut rows = statement.query([]).map_err(damaged)?;
        while let Some(row) = rows.next().map_err(damaged)? {
            let text: String = row.get(0).map_err(damaged)?;
            let timestamp = text.parse::<Timestamp>();
            let timestamp = timestamp
                .map_err(|why| ExportError::damaged("invalid timestamp of a change", why))?;
            trie.insert(timestamp);
            last = Some(text);
        }
        let Some(last) = last else { return Ok(()) };
        trie.prune();
        let mut merkle = String::new();
        trie.write_json(&mut merkle);
        let clock = format!(r#"{{"timestamp":{},"merkle":{merkle}}}"#, json!(last));
        let sql = "INSERT OR REPLACE INTO messages_clock (id, clock) VALUES (1, ?1)";
        self.db.execute(sql, [clock]).map_err(damaged)?;
        Ok(())
    }
}

/// Loads a file into a database in memory and starts a transaction.
fn load(file: &[u8]) -> rusqlite::Result<Connection> {
    let mut db = Connection::open_in_memory()?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS_COUNT_MAX);
    db.deserialize_read_exact(MAIN_DB, file, file.len(), false)?;
    // A file that is not a database fails here.
    db.query_row("SELECT 1 FROM sqlite_schema", [], |_| Ok(())).optional()?;
    db.execute_batch("BEGIN")?;
    Ok(db)
}

fn damaged(why: rusqlite::Error) -> ExportError {
    ExportError::damaged("cannot read its database", why)
}

fn to_json(value: &SqlValue) -> Value {
    match value {
        SqlValue::Integer(number) => json!(number),
        SqlValue::Real(number) => json!(number),
        SqlValue::Text(text) => json!(text),
        SqlValue::Null | SqlValue::Blob(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests;
