//! Writes the new file: runs the extension's statements, counts what became of each row, creates at
//! the end the objects that failed before, and lets SQLite check the result.
//!
//! # Invariants
//! - From the damaged file's schema, only single statements that begin with CREATE run here.
//! - A rejected row does not stop the recovery, and is counted.
//!
//! # Not here
//! - The path of the new file, and when it gets its name → `recover.rs`.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::path::Path;

use engine::{FileEncryption, open_connection};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, params_from_iter};
use sqlite3mc_sys::{RecoveredValue, stand_in_collation};

use super::losses::{FoundObject, FoundSchema, TreeLosses};
use super::report::{LostAndFound, MissingObject, RecoverReport, RecoveredTable, RejectedRows};
use crate::error::{Result, sqlite};
use crate::file::schema::is_create;
use crate::fix::AS_IS;

/// The table for rows that belong to no table that was found.
pub(super) const LOST_AND_FOUND: &CStr = c"lost_and_found";
const ROW_START: &str = "INSERT OR IGNORE INTO '";
const LOST_ROW_START: &str = "INSERT INTO lost_and_found";
const LOST_TABLE_START: &str = "CREATE TABLE lost_and_found";
const VIRTUAL_TABLE_START: &str = "INSERT INTO sqlite_schema";
const COLLATIONS: &str = "SELECT lower(name) FROM pragma_collation_list";
const MESSAGES_MAX: u32 = 100;
/// The number of cached statements: one for each number of columns that a table's rows have.
const STATEMENTS_KEPT: usize = 64;

/// The number of saved and rejected rows of a table.
#[derive(Clone, Debug, Default)]
struct RowCounts {
    saved: u64,
    rejected: u64,
    reason: Option<String>,
}

/// The new file while it is written.
pub(super) struct RecoveryOutput {
    db: Connection,
    tables: BTreeMap<String, RowCounts>,
    lost_and_found: Option<LostAndFound>,
    rows_count: u64,
    error: Option<rusqlite::Error>,
}

/// The content of the new file.
pub(super) struct RecoveredContent {
    tables: BTreeMap<String, RowCounts>,
    lost_and_found: Option<LostAndFound>,
    missing: Vec<MissingObject>,
    collations: Vec<String>,
    integrity: Vec<String>,
}

impl RecoveryOutput {
    /// Opens an empty file.
    pub(super) fn open(made: &Path, encryption: &FileEncryption) -> Result<Self> {
        let db = open(made, encryption)?;
        // No other process uses the file before it is complete, and it is flushed as a whole.
        db.execute_batch(
            "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
             PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -65536",
        )
        .map_err(sqlite("setting up the new file"))?;
        db.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        Ok(Self { db, tables: BTreeMap::new(), lost_and_found: None, rows_count: 0, error: None })
    }

    pub(super) const fn rows_count(&self) -> u64 {
        self.rows_count
    }

    pub(super) const fn take_error(&mut self) -> Option<rusqlite::Error> {
        self.error.take()
    }

    /// Runs a statement of the extension. Returns `false` if nothing more can be written.
    pub(super) fn run_statement(&mut self, sql: &str, values: &[RecoveredValue]) -> bool {
        let taken = if let Some(rest) = sql.strip_prefix(ROW_START) {
            self.take_row(table_name(rest), sql, values)
        } else if sql.starts_with(LOST_ROW_START) {
            self.take_lost_row(sql, values)
        } else if is_create(sql) {
            self.take_object(sql)
        } else if sql.starts_with(VIRTUAL_TABLE_START) {
            self.take_virtual_table(sql)
        } else {
            self.db.execute_batch(sql)
        };
        self.error = taken.err();
        self.error.is_none()
    }

    fn take_row(
        &mut self,
        table: String,
        sql: &str,
        values: &[RecoveredValue],
    ) -> rusqlite::Result<()> {
        let inserted = self
            .db
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(params_from_iter(values)));
        let counts = self.tables.entry(table).or_default();
        match inserted {
            Ok(0) => {
                counts.rejected += 1;
                let reason = "a row with the same key exists, or a constraint is violated";
                counts.reason.get_or_insert_with(|| reason.to_owned());
            }
            Ok(_) => {
                counts.saved += 1;
                self.rows_count += 1;
            }
            Err(error) => {
                let reason = error.to_string();
                tolerate(Err::<(), _>(error))?;
                counts.rejected += 1;
                counts.reason.get_or_insert(reason);
            }
        }
        Ok(())
    }

    fn take_lost_row(&mut self, sql: &str, values: &[RecoveredValue]) -> rusqlite::Result<()> {
        let inserted = self
            .db
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(params_from_iter(values)));
        if tolerate(inserted)?.is_some() {
            self.rows_count += 1;
            if let Some(lost) = &mut self.lost_and_found {
                lost.rows_count += 1;
            }
        }
        Ok(())
    }

    fn take_object(&mut self, sql: &str) -> rusqlite::Result<()> {
        if sql.starts_with(LOST_TABLE_START) && self.lost_and_found.is_none() {
            let name = &sql["CREATE TABLE ".len()..];
            let name = name.split('(').next().unwrap_or_default();
            self.lost_and_found = Some(LostAndFound { table: name.to_owned(), rows_count: 0 });
        }
        // An object that cannot be created now is reported as missing at the end, with the reason.
        tolerate(self.db.execute(sql, [])).map(drop)
    }

    /// Adds a virtual table, which becomes a row of the schema. If the SQL of that row were invalid,
    /// the file would be unreadable.
    fn take_virtual_table(&mut self, sql: &str) -> rusqlite::Result<()> {
        let scratch = Connection::open_in_memory()?;
        scratch.execute_batch("PRAGMA writable_schema = ON")?;
        let compiles = || {
            scratch.execute(sql, [])?;
            let own = "SELECT sql FROM sqlite_schema";
            let own: String = scratch.query_row(own, [], |row| row.get(0))?;
            let plain = Connection::open_in_memory()?;
            plain.prepare(&format!("EXPLAIN {own}")).map(drop)
        };
        if compiles().is_err() {
            return Ok(());
        }
        tolerate(self.db.execute(sql, [])).map(drop)
    }

    /// Creates missing objects that can be created now, and lets SQLite check the file.
    pub(super) fn finish(
        self,
        made: &Path,
        encryption: &FileEncryption,
        schema: &FoundSchema,
        is_wal: bool,
    ) -> Result<RecoveredContent> {
        let Self { db, tables, lost_and_found, .. } = self;
        db.close().map_err(|(_, error)| sqlite("closing the new file")(error))?;
        // The file is opened again, so that virtual tables are known.
        let db = open(made, encryption)?;
        let missing = make_missing(&db, schema).map_err(sqlite("completing the schema"))?;
        let integrity = integrity(&db);
        let plain = Connection::open_in_memory().map_err(sqlite("reading the collations"))?;
        let known = names(&plain, COLLATIONS)?;
        let used = names(&db, COLLATIONS)?;
        let collations = used.into_iter().filter(|name| !known.contains(name)).collect();
        let journal_mode = if is_wal { "WAL" } else { "DELETE" };
        db.query_row(&format!("PRAGMA journal_mode = {journal_mode}"), [], |_| Ok(()))
            .map_err(sqlite("PRAGMA journal_mode"))?;
        db.close().map_err(|(_, error)| sqlite("closing the new file")(error))?;
        Ok(RecoveredContent { tables, lost_and_found, missing, collations, integrity })
    }
}

impl RecoveredContent {
    /// Returns a report with the facts about the content; the caller adds the rest.
    pub(super) fn report(self, schema: &FoundSchema, losses: &TreeLosses) -> RecoverReport {
        let mut tables = self.tables;
        for table in schema.tables() {
            tables.entry(table.name.clone()).or_default();
        }
        let is_missing = |name: &String| self.missing.iter().any(|it| it.name == *name);
        tables.retain(|name, _| !is_missing(name));
        let tables = tables.into_iter().map(|(name, counts)| {
            let loss = losses.tables.get(&name).copied().unwrap_or_default();
            let RowCounts { saved, rejected, reason } = counts;
            RecoveredTable {
                saved_rows_count: saved,
                lost_rows_count: loss.rows_known.saturating_sub(saved + rejected),
                torn_rows_count: loss.tree.torn,
                lost_pages_count: loss.tree.pages,
                rejected: reason.map(|reason| RejectedRows { rows_count: rejected, reason }),
                name,
            }
        });
        RecoverReport {
            tables: tables.collect(),
            lost_and_found: self.lost_and_found,
            missing: self.missing,
            collations: self.collations,
            integrity: self.integrity,
            lost_schema_pages_count: losses.schema.pages,
            torn_schema_rows_count: losses.schema.torn,
            ..RecoverReport::default()
        }
    }
}

fn open(made: &Path, encryption: &FileEncryption) -> Result<Connection> {
    let (db, _) = open_connection(made, encryption, &AS_IS, false, true)?;
    let set_up = || {
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        db.collation_needed(stand_in_collation)
    };
    set_up().map_err(sqlite("setting up the new file"))?;
    Ok(db)
}

/// Returns `None` for an error about a row or an object; errors about the new file stay errors.
fn tolerate<T>(result: rusqlite::Result<T>) -> rusqlite::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => match error.sqlite_error_code() {
            Some(
                ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
                | ErrorCode::ReadOnly
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::CannotOpen,
            ) => Err(error),
            _ => Ok(None),
        },
    }
}

/// Returns the name up to its closing quote. A quote within the name is doubled.
fn table_name(rest: &str) -> String {
    let mut name = String::new();
    let mut characters = rest.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\'' && characters.next_if_eq(&'\'').is_none() {
            break;
        }
        name.push(character);
    }
    name
}

/// Creates the objects of the damaged file's schema that the new file lacks. Returns those that
/// cannot be created.
fn make_missing(db: &Connection, schema: &FoundSchema) -> rusqlite::Result<Vec<MissingObject>> {
    let is_there = |object: &FoundObject| {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE type = ?1 AND name = ?2";
        let count = db.query_row(sql, (&object.kind, &object.name), |row| row.get::<_, i64>(0));
        count.map(|count| count > 0)
    };
    let mut missing = Vec::new();
    for object in &schema.objects {
        // Indexes of constraints are created with their tables, and have no statement.
        let is_known = ["table", "index", "view", "trigger"].contains(&object.kind.as_str());
        let Some(sql) = object.sql.as_ref().filter(|_| is_known) else { continue };
        if is_there(object)? {
            continue;
        }
        let made = if is_create(sql) {
            db.execute(sql, []).map(drop).map_err(|error| error.to_string())
        } else {
            Err("its CREATE statement cannot be read".to_owned())
        };
        match made {
            Ok(()) if is_there(object)? => {}
            made => missing.push(MissingObject {
                kind: object.kind.clone(),
                name: object.name.clone(),
                reason: made
                    .err()
                    .unwrap_or_else(|| "its CREATE statement creates another object".to_owned()),
                sql: sql.clone(),
            }),
        }
    }
    Ok(missing)
}

/// Returns `ok`, or the faults that SQLite finds.
fn integrity(db: &Connection) -> Vec<String> {
    let sql = format!("PRAGMA integrity_check({MESSAGES_MAX})");
    let found = db.prepare(&sql).and_then(|mut statement| {
        statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
    });
    found.unwrap_or_else(|error| vec![error.to_string()])
}

fn names(db: &Connection, sql: &str) -> Result<Vec<String>> {
    let names = db.prepare(sql).and_then(|mut statement| {
        statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()
    });
    names.map_err(sqlite("reading the collations"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tables_name_ends_at_its_quote() {
        for (rest, name) in [("t'(a", "t"), ("it''s'(x", "it's"), ("'''(x", "'"), ("t", "t")] {
            assert_eq!(table_name(rest), name, "{rest}");
        }
    }
}
