//! Finds the tables of a file that can be tracked, and the reasons why others cannot.

use rusqlite::Connection;
use sqlite_schema::{TableEntry, TableKind, virtual_table_module};

use crate::error::{Error, Result};
use crate::schema::tracked_table::{DeclaredTable, SHADOWED, is_internal};

/// Checks whether a table can be tracked, and returns its declaration.
pub(crate) fn check_trackable(db: &Connection, name: &str) -> Result<DeclaredTable> {
    let no =
        |reason: &str| Error::Untrackable { table: name.to_owned(), reason: reason.to_owned() };
    match sqlite_schema::table(db, name)?.map(|table| table.kind) {
        Some(TableKind::Ordinary | TableKind::Shadow) => {}
        Some(TableKind::View) => {
            return Err(no("views cannot be tracked; track the underlying tables"));
        }
        Some(TableKind::Virtual) => {
            return Err(no("virtual tables cannot be tracked (SQLite allows no triggers on them)"));
        }
        None => return Err(no("no such table")),
    }
    if is_internal(name) {
        return Err(no("reserved table name"));
    }
    let temporary = sqlite_schema::temporary_tables(db)?;
    if temporary.iter().any(|temporary| temporary.eq_ignore_ascii_case(name)) {
        return Err(no(SHADOWED));
    }
    if let Some(owner) = shadow_table_owner(db, name)? {
        return Err(no(&format!(
            "internal table of the virtual table {owner}; syncing it would corrupt {owner} on \
             other devices"
        )));
    }
    let declared = DeclaredTable::read(db, name)?.ok_or_else(|| no("no such table"))?;
    if declared.key().is_empty() {
        return Err(no("no primary key; rows could not be identified across devices"));
    }
    if declared.columns.len() > COLUMNS_COUNT_MAX {
        return Err(no("more than 500 columns, the limit for change tracking"));
    }
    Ok(declared)
}

/// The maximum number of columns: half of SQLite's limit on the depth of an expression (1,000),
/// because the mask is one concatenation.
const COLUMNS_COUNT_MAX: usize = 500;

/// Returns the trackable tables of a file, and for each of the others an error with the reason.
pub(crate) fn all(db: &Connection) -> Result<(Vec<String>, Vec<Error>)> {
    let is_candidate = |table: &TableEntry| {
        matches!(table.kind, TableKind::Ordinary | TableKind::Virtual) && !is_internal(&table.name)
    };
    let (mut can, mut cannot) = (Vec::new(), Vec::new());
    for table in sqlite_schema::tables(db)?.into_iter().filter(is_candidate) {
        match check_trackable(db, &table.name) {
            Ok(declared) => can.push(declared.name),
            Err(error @ Error::Untrackable { .. }) => cannot.push(error),
            Err(error) => return Err(error),
        }
    }
    Ok((can, cannot))
}

/// The suffixes of the tables in which modules store their content. SQLite reports such tables only
/// for modules that it has.
const SHADOW_TABLE_SUFFIXES: &[(&str, &[&str])] = &[
    ("rtree", &["node", "rowid", "parent"]),
    ("rtree_i32", &["node", "rowid", "parent"]),
    ("geopoly", &["node", "rowid", "parent"]),
    ("fts3", &["content", "segments", "segdir", "docsize", "stat"]),
    ("fts4", &["content", "segments", "segdir", "docsize", "stat"]),
    ("fts5", &["data", "idx", "content", "docsize", "config"]),
];

/// Returns the virtual table whose content a table stores. With an unknown module, every table
/// whose name begins with the virtual table's counts as its content.
fn shadow_table_owner(db: &Connection, name: &str) -> Result<Option<String>> {
    let sql =
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL %'";
    let mut statement = db.prepare_cached(sql)?;
    let all = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let all: Vec<(String, String)> = all.collect::<rusqlite::Result<_>>()?;
    let name = name.to_ascii_lowercase();
    let owner = all.into_iter().find(|(owner, sql)| {
        let ending =
            name.strip_prefix(&owner.to_ascii_lowercase()).and_then(|n| n.strip_prefix('_'));
        let module = virtual_table_module(sql);
        let known = SHADOW_TABLE_SUFFIXES
            .iter()
            .find(|(m, _)| module.is_some_and(|n| n.eq_ignore_ascii_case(m)));
        ending.is_some_and(|ending| known.is_none_or(|(_, endings)| endings.contains(&ending)))
    });
    Ok(owner.map(|(owner, _)| owner))
}
