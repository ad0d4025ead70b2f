//! Runs SQLite's planner with indexes that do not exist.
//!
//! The schema and its statistics are copied into memory, without rows. There, each index is created
//! with the statistics that `ANALYZE` would write, estimated from sampled rows, and removed again.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::FromSql;

use super::candidate::{CandidateIndex, ColumnsByTable};
use crate::checks::cardinality::TableCardinality;
use crate::file::check_error::CheckError;
use crate::file::opened_file::OpenedFile;
use crate::file::schema::{self, is_create};

const INSERT_STAT: &str = "INSERT INTO sqlite_stat1 VALUES (?1, ?2, ?3)";

/// The tables and columns that a statement reads and writes.
#[derive(Clone, Debug, Default)]
pub(super) struct StatementAccess {
    pub(super) read: ColumnsByTable,
    pub(super) updated: ColumnsByTable,
    /// The tables into which the statement inserts rows, or from which it deletes rows.
    pub(super) rows_of: BTreeSet<String>,
}

impl StatementAccess {
    /// Checks whether the statement changes this index.
    pub(super) fn changes(&self, index: &CandidateIndex) -> bool {
        let is_updated = self.updated.get(&index.table).is_some_and(|columns| {
            let mut keys = index.keys.iter().filter_map(|key| key.column.as_ref());
            keys.any(|key| columns.contains(key))
        });
        is_updated || self.rows_of.contains(&index.table)
    }
}

/// Opens an empty database in memory that can open no files: the texts of a schema come from
/// strangers.
fn empty_copy() -> rusqlite::Result<Connection> {
    let copy = Connection::open_in_memory()?;
    copy.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, true)?;
    copy.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // VACUUM INTO attaches its output, too.
    copy.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    Ok(copy)
}

/// Creates an object of the schema. An object that cannot be created is left out, and so is a text
/// of several statements or of another one.
fn create(copy: &Connection, sql: &str) {
    if is_create(sql) {
        drop(copy.execute(sql, []));
    }
}

/// SQLite's planner, with a copy of the schema in memory.
pub(super) struct QueryPlanner(Connection);

impl QueryPlanner {
    /// Copies the schema and its statistics. Objects that cannot be created in memory, such as a
    /// table of a module that is not compiled in, are left out.
    pub(super) fn for_file(subject: &OpenedFile) -> rusqlite::Result<Self> {
        let copy = empty_copy()?;
        let sql = "SELECT sql FROM sqlite_schema
                   WHERE sql IS NOT NULL AND type IN ('table', 'index', 'view')
                     AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
                   ORDER BY CASE type WHEN 'table' THEN 1 WHEN 'index' THEN 2 ELSE 3 END, rowid";
        let objects: Vec<String> = subject.rows(sql, [], |row| row.get(0))?;
        for object in objects {
            create(&copy, &object);
        }
        copy.execute_batch("ANALYZE; DELETE FROM sqlite_stat1; DELETE FROM sqlite_stat4")?;
        let has = |name: &str| subject.schema.tables.iter().any(|table| table.name == name);
        for (name, columns) in [("sqlite_stat1", 3), ("sqlite_stat4", 6)] {
            if has(name) {
                copy_table(subject, &copy, name, columns)?;
            }
        }
        copy.execute_batch("ANALYZE sqlite_schema")?;
        Ok(Self(copy))
    }

    /// Returns the plan with the existing indexes.
    pub(super) fn plan(&self, sql: &str) -> rusqlite::Result<Vec<String>> {
        plan(&self.0, sql)
    }

    /// Returns the plan with these additional indexes.
    pub(super) fn plan_with(
        &self,
        sql: &str,
        candidates: &[CandidateIndex],
        known: &TableCardinality,
    ) -> Result<Vec<String>, CheckError> {
        self.undone(|copy| {
            for (index, candidate) in candidates.iter().enumerate() {
                let name = candidate_name(index);
                copy.execute_batch(&candidate.create(&name))?;
                let table = &candidate.table;
                let stat = candidate.columns().and_then(|columns| known.stat(table, &columns));
                if let Some(stat) = stat {
                    copy.execute(INSERT_STAT, (table, &name, stat))?;
                }
            }
            self.estimate_unknown(known)?;
            copy.execute_batch("ANALYZE sqlite_schema")?;
            Ok(plan(copy, sql)?)
        })
    }

    /// Adds estimates for indexes without statistics. If only one of two indexes has statistics,
    /// the planner compares known numbers with guesses.
    fn estimate_unknown(&self, known: &TableCardinality) -> rusqlite::Result<()> {
        for table in known.tables() {
            let sql = "SELECT idx FROM sqlite_stat1 WHERE tbl = ?1 AND idx NOT NULL";
            let estimated = rows::<String>(&self.0, sql, table)?;
            let indexes = sqlite_schema::indexes(&self.0, table)?.into_iter();
            for index in indexes.filter(|it| !it.is_partial && !estimated.contains(&it.name)) {
                let columns: Option<Vec<String>> =
                    index.columns.into_iter().map(|key| key.column).collect();
                if let Some(stat) = columns.and_then(|columns| known.stat(table, &columns)) {
                    self.0.execute(INSERT_STAT, (table, &index.name, stat))?;
                }
            }
        }
        Ok(())
    }

    /// Checks whether the index can be created. An expression over two tables, for example, cannot
    /// be indexed.
    pub(super) fn can_make(&self, candidate: &CandidateIndex) -> bool {
        self.undone(|copy| Ok(copy.execute_batch(&candidate.create("warren_trial"))?)).is_ok()
    }

    /// Returns the tables and columns that the statement reads and writes, as SQLite resolves them.
    pub(super) fn touched(&mut self, sql: &str) -> rusqlite::Result<StatementAccess> {
        let touched = Arc::new(Mutex::new(StatementAccess::default()));
        let noted = Arc::clone(&touched);
        self.0.authorizer(Some(move |context: AuthContext<'_>| {
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            match context.action {
                AuthAction::Read { table_name, column_name } => {
                    let columns = noted.read.entry(table_name.to_owned()).or_default();
                    columns.insert(column_name.to_owned());
                }
                AuthAction::Update { table_name, column_name } => {
                    let columns = noted.updated.entry(table_name.to_owned()).or_default();
                    columns.insert(column_name.to_owned());
                }
                AuthAction::Insert { table_name } | AuthAction::Delete { table_name } => {
                    noted.rows_of.insert(table_name.to_owned());
                }
                _ => {}
            }
            Authorization::Allow
        }))?;
        drop(self.0.prepare(sql)?);
        self.0.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
        let touched = touched.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(touched)
    }

    fn undone<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, CheckError>,
    ) -> Result<T, CheckError> {
        self.0.execute_batch("SAVEPOINT tried")?;
        let result = work(&self.0);
        self.0.execute_batch("ROLLBACK TO tried; RELEASE tried")?;
        result
    }
}

/// Returns the name of the candidate at this position, as plans show it.
pub(super) fn candidate_name(index: usize) -> String {
    format!("warren_candidate_{index}")
}

/// Returns the lines of the query plan.
pub(super) fn plan(db: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
    statement.raw_query().mapped(|row| row.get(3)).collect()
}

/// Checks whether the plan uses the index with this name.
pub(super) fn uses(plan: &[String], name: &str) -> bool {
    plan.iter().any(|line| line.split(' ').any(|word| word == name))
}

/// Counts full table scans, sorts and automatic indexes in the plan.
pub(super) fn faults(plan: &[String]) -> usize {
    let is_fault = |line: &&String| {
        (line.starts_with("SCAN ") && !line.contains("CONSTANT ROW") && !line.contains("VIRTUAL"))
            || line.starts_with("USE TEMP B-TREE")
            || line.contains(" AUTOMATIC ")
    };
    plan.iter().filter(is_fault).count()
}

fn rows<T: FromSql>(db: &Connection, sql: &str, of: &str) -> rusqlite::Result<Vec<T>> {
    schema::rows(db, sql, [of], |row| row.get(0))
}

fn copy_table(
    subject: &OpenedFile,
    to: &Connection,
    name: &str,
    columns: usize,
) -> rusqlite::Result<()> {
    let marks = vec!["?"; columns].join(", ");
    let mut insert = to.prepare(&format!("INSERT INTO {name} VALUES ({marks})"))?;
    let values = subject.rows(&format!("SELECT * FROM {name}"), [], |row| {
        (0..columns).map(|index| row.get(index)).collect::<rusqlite::Result<Vec<_>>>()
    })?;
    for values in values {
        let values: Vec<rusqlite::types::Value> = values;
        insert.execute(rusqlite::params_from_iter(values))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SQLite rejects such texts when it reads a schema, unless the file changes afterwards.
    #[test]
    fn what_the_schema_says_opens_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let evil = folder.path().join("evil.db");
        let copy = empty_copy().unwrap();
        create(&copy, "CREATE TABLE t (x)");
        for sql in ["ATTACH '{}' AS evil", "VACUUM INTO '{}'"] {
            let sql = sql.replace("{}", evil.to_str().unwrap());
            create(&copy, &format!("CREATE TABLE u (x); {sql}; CREATE TABLE evil.v (x)"));
            create(&copy, &sql);
            create(&copy, "CREATE TABLE evil.v (x)");
            assert!(!evil.exists(), "{sql}");
        }
        create(&copy, "PRAGMA user_version = 7");
        let version: i64 = copy.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        assert_eq!(version, 0, "only CREATE statements run");
        assert!(copy.prepare("SELECT x FROM t").is_ok(), "the table is created");
        assert!(copy.prepare("SELECT x FROM u").is_err(), "texts of several statements do not run");
    }
}
