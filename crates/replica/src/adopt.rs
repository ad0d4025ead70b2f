//! Adopting: creates the tables and columns that other devices declared and this file lacks.
//!
//! `warren clone` and `sync --adopt` do it; otherwise what is not known here is kept and shown when
//! the program that owns the file creates it.
//!
//! # Invariants
//! - Of what came over the network only `CREATE TABLE` and `CREATE INDEX` statements about the
//!   named table run, one statement each; SQLite's authorizer is not needed for that, its parser
//!   is.

use rusqlite::Connection;

use crate::codec;
use crate::error::{Error, Result};
use crate::table::{Declared, quote};
use crate::track;

/// Creates what is missing; returns what it did, for people.
pub(crate) fn adopt(db: &Connection) -> Result<Vec<String>> {
    let sql =
        "SELECT name, tracked, schema_sql FROM warren_table WHERE schema_sql NOT NULL ORDER BY id";
    let mut statement = db.prepare(sql)?;
    let known = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let known: Vec<(String, bool, Vec<u8>)> = known.collect::<rusqlite::Result<_>>()?;
    let mut done = Vec::new();
    for (name, tracked, content) in known {
        let Some(sql) = codec::decode_declaration(&content) else { continue };
        match Declared::read(db, &name)? {
            None => {
                create(db, &name, &sql)?;
                done.push(format!("created table {name}"));
            }
            Some(here) if tracked => done.extend(add_columns(db, &here, &sql)?),
            Some(_) => {}
        }
    }
    Ok(done)
}

fn create(db: &Connection, name: &str, sql: &[String]) -> Result<()> {
    let refused = |why: &str| Error::Untrackable { table: name.into(), why: why.into() };
    for (index, statement) in sql.iter().enumerate() {
        let wanted: &[&str] = if index == 0 {
            &["CREATE TABLE "]
        } else {
            &["CREATE INDEX ", "CREATE UNIQUE INDEX "]
        };
        if !wanted.iter().any(|start| statement.starts_with(start)) {
            return Err(refused("another device declared it with a statement that is not taken"));
        }
        // Refuses more than one statement.
        db.execute(statement, [])?;
    }
    let declared = Declared::read(db, name)?;
    let declared = declared.ok_or_else(|| refused("its declaration creates another table"))?;
    track::track(db, &declared)?;
    Ok(())
}

fn add_columns(db: &Connection, here: &Declared, sql: &[String]) -> Result<Vec<String>> {
    let Some(create) = sql.first() else { return Ok(Vec::new()) };
    // SQLite reads the declaration, in a database of its own.
    let scratch = Connection::open_in_memory()?;
    scratch.execute(create, [])?;
    let Some(there) = Declared::read(&scratch, &here.name)? else { return Ok(Vec::new()) };
    let is_here = |name: &str| here.columns.iter().any(|c| c.name.eq_ignore_ascii_case(name));
    let mut done = Vec::new();
    for column in there.captured().filter(|column| !is_here(&column.name)) {
        let default = column.default.as_ref().map(|value| format!(" DEFAULT {value}"));
        let not_null = if column.not_null && default.is_some() { " NOT NULL" } else { "" };
        let (table, name) = (quote(&here.name), quote(&column.name));
        let (declared_type, default) = (&column.declared_type, default.unwrap_or_default());
        db.execute_batch(&format!(
            "ALTER TABLE {table} ADD COLUMN {name} {declared_type}{not_null}{default}"
        ))?;
        done.push(format!("added column {}.{}", here.name, column.name));
    }
    Ok(done)
}
