//! Creates the tables and columns that other devices declared and this file lacks.
//!
//! `warren clone` and `sync --create-missing` do so. Otherwise unknown tables and columns are
//! stored, and become visible when the program that owns the file creates them.
//!
//! # Invariants
//! - No statement of another device runs here: `ddl` writes the statements, from data.
//! - A single table never stops the sync: if SQLite rejects a declaration, this is reported as a
//!   conflict and tried again at the next sync.

use std::collections::BTreeSet;

use crdt::{ColumnDeclaration, ColumnDefault, LeftOut, TableDeclaration};
use rusqlite::Connection;

use super::schema_conflict::{self, SchemaConflict, SchemaConflictKind};
use super::tracked_table::DeclaredTable;
use super::{ddl, declaration};
use crate::error::{Error, Result};
use crate::log::message_log::MessageLog;
use crate::tracking;

/// The result of creating declared tables and columns.
#[derive(Debug, Default)]
pub(crate) struct CreatedTables {
    /// The created tables and columns, described for people.
    pub(crate) created: Vec<String>,
    /// The tables and columns that could not be created.
    pub(crate) schema_conflicts: Vec<SchemaConflict>,
    /// The parts that the created tables lack, because they are SQL in the files that have them.
    pub(crate) left_out: BTreeSet<LeftOut>,
}

/// Creates the tables and columns that this file lacks.
pub(crate) fn create_remote_tables(db: &Connection) -> Result<CreatedTables> {
    let log = MessageLog::open(db)?;
    let sql = "SELECT id, name, tracked FROM warren_table
               WHERE id IN (SELECT table_id FROM warren_declaration) ORDER BY id";
    let mut statement = db.prepare(sql)?;
    let known = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let known: Vec<(i64, String, bool)> = known.collect::<rusqlite::Result<_>>()?;
    let mut created = CreatedTables::default();
    for (id, name, is_tracked) in known {
        let wanted = declaration::merged_declarations(&log, id)?;
        match DeclaredTable::read(db, &name)? {
            None => created.create(db, &name, &wanted)?,
            Some(here) if is_tracked => {
                for wanted in wanted.iter().filter(|wanted| has_matching_key(&here, wanted)) {
                    created.add_columns(db, &here, wanted)?;
                }
            }
            Some(_) => continue,
        }
        // The devices that declared the table know its declaration already.
        db.execute("UPDATE warren_table SET declaration_pending = 0 WHERE id = ?1", [id])?;
    }
    Ok(created)
}

/// Returns whether a table and a declaration have the same primary key.
fn has_matching_key(here: &DeclaredTable, wanted: &TableDeclaration) -> bool {
    let names = wanted.key.iter().map(|place| &wanted.columns[*place].name);
    let key = here.key();
    key.len() == wanted.key.len()
        && key.iter().zip(names).all(|(here, name)| here.name.eq_ignore_ascii_case(name))
}

impl CreatedTables {
    /// Creates the table from the first of its declarations that SQLite accepts.
    fn create(&mut self, db: &Connection, name: &str, wanted: &[TableDeclaration]) -> Result<()> {
        let mut conflict = None;
        for wanted in wanted {
            match in_savepoint(db, |db| create(db, name, wanted))? {
                Ok(done) => {
                    self.created.push(done);
                    self.left_out.extend(wanted.left_out.iter().cloned());
                    return Ok(());
                }
                Err(reason) => conflict = conflict.or(Some(reason)),
            }
        }
        self.schema_conflicts.extend(conflict.map(|reason| declaration_conflict(name, reason)));
        Ok(())
    }

    fn add_columns(
        &mut self,
        db: &Connection,
        here: &DeclaredTable,
        wanted: &TableDeclaration,
    ) -> Result<()> {
        for (place, column) in wanted.columns.iter().enumerate() {
            let is_same = |known: &str| known.eq_ignore_ascii_case(&column.name);
            if wanted.key.contains(&place) || here.columns.iter().any(|known| is_same(&known.name))
            {
                continue;
            }
            let reference =
                wanted.foreign_keys.iter().find(|reference| reference.columns == [place]);
            let added = in_savepoint(db, |db| {
                db.execute(&ddl::add_column(&here.name, column, reference), [])?;
                Ok(format!("added column {}.{}", here.name, column.name))
            })?;
            match added {
                Ok(done) => self.created.push(done),
                Err(reason) => self.schema_conflicts.push(declaration_conflict(&here.name, reason)),
            }
        }
        Ok(())
    }
}

fn declaration_conflict(table: &str, reason: String) -> SchemaConflict {
    SchemaConflict {
        table: table.to_owned(),
        kind: SchemaConflictKind::DeclarationRejected,
        reason,
    }
}

/// Runs `work` in a savepoint. The inner `Err` is the reason why SQLite rejects it; then it is
/// rolled back.
fn in_savepoint(
    db: &Connection,
    work: impl FnOnce(&Connection) -> Result<String>,
) -> Result<std::result::Result<String, String>> {
    db.execute_batch("SAVEPOINT warren_adopt")?;
    let done = match work(db) {
        Ok(done) => Ok(done),
        Err(error) => {
            let reason = schema_conflict::rejection_text(error)?;
            db.execute_batch("ROLLBACK TO warren_adopt")?;
            Err(reason)
        }
    };
    db.execute_batch("RELEASE warren_adopt")?;
    Ok(done)
}

fn create(db: &Connection, name: &str, wanted: &TableDeclaration) -> Result<String> {
    let refused = |reason: &str| Error::Untrackable { table: name.into(), reason: reason.into() };
    if let Some(reason) = ddl::why_not_creatable(name, wanted) {
        return Err(refused(reason));
    }
    db.execute(&ddl::create_table(name, wanted), [])?;
    for sql in ddl::create_indexes(name, wanted) {
        // A table without one of its indexes is still the same, unless the index is UNIQUE.
        if let Err(error) = db.execute(&sql, []) {
            schema_conflict::rejection_text(error.into())?;
        }
    }
    let declared =
        DeclaredTable::read(db, name)?.ok_or_else(|| refused("the table was not created"))?;
    tracking::track(db, &declared)?;
    let is_computed = |column: &ColumnDeclaration| column.default == Some(ColumnDefault::Computed);
    let has_computed = wanted.columns.iter().any(is_computed);
    let rest = if has_computed { " without its computed defaults" } else { "" };
    Ok(format!("created table {name}{rest}"))
}
