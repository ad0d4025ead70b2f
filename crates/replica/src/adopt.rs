//! Adopting: creates the tables and columns that other devices declared and this file lacks.
//!
//! `warren clone` and `sync --adopt` do it; otherwise what is not known here is kept and shown when
//! the program that owns the file creates it.
//!
//! # Invariants
//! - No statement of another device runs here: `ddl` writes them, from data.
//! - What one table is like is no reason to stop: what SQLite does not take is told as an obstacle,
//!   and tried again at the next sync.

use std::collections::BTreeSet;

use crdt::{ColumnDeclaration, Declaration, DefaultValue, LeftOut};
use rusqlite::Connection;

use crate::ddl;
use crate::declaration;
use crate::error::{Error, Result};
use crate::log::Log;
use crate::obstacle::{self, Obstacle, ObstacleKind};
use crate::table::Declared;
use crate::track;

/// What became of the declarations.
#[derive(Debug, Default)]
pub(crate) struct Adopted {
    /// What was created, for people.
    pub(crate) done: Vec<String>,
    /// What could not be.
    pub(crate) obstacles: Vec<Obstacle>,
    /// What the tables that were created lack, since it is SQL of the files that have it.
    pub(crate) left_out: BTreeSet<LeftOut>,
}

/// Creates what is missing.
pub(crate) fn adopt(db: &Connection) -> Result<Adopted> {
    let log = Log::open(db)?;
    let sql = "SELECT id, name, tracked FROM warren_table
               WHERE id IN (SELECT table_id FROM warren_declaration) ORDER BY id";
    let mut statement = db.prepare(sql)?;
    let known = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let known: Vec<(i64, String, bool)> = known.collect::<rusqlite::Result<_>>()?;
    let mut adopted = Adopted::default();
    for (id, name, is_tracked) in known {
        let wanted = declaration::merged(&log, id)?;
        match Declared::read(db, &name)? {
            None => adopted.create(db, &name, &wanted)?,
            Some(here) if is_tracked => {
                for wanted in wanted.iter().filter(|wanted| is_key(&here, wanted)) {
                    adopted.add_columns(db, &here, wanted)?;
                }
            }
            Some(_) => continue,
        }
        // What was adopted is known to whom it came from.
        db.execute("UPDATE warren_table SET announce = 0 WHERE id = ?1", [id])?;
    }
    Ok(adopted)
}

/// Whether they have the same primary key.
fn is_key(here: &Declared, wanted: &Declaration) -> bool {
    let names = wanted.key.iter().map(|place| &wanted.columns[*place].name);
    let key = here.key();
    key.len() == wanted.key.len()
        && key.iter().zip(names).all(|(here, name)| here.name.eq_ignore_ascii_case(name))
}

impl Adopted {
    /// Creates the table from the first of its declarations that SQLite takes.
    fn create(&mut self, db: &Connection, name: &str, wanted: &[Declaration]) -> Result<()> {
        let mut obstacle = None;
        for wanted in wanted {
            match attempt(db, |db| create(db, name, wanted))? {
                Ok(done) => {
                    self.done.push(done);
                    self.left_out.extend(wanted.left_out.iter().cloned());
                    return Ok(());
                }
                Err(why) => obstacle = obstacle.or(Some(why)),
            }
        }
        self.obstacles.extend(obstacle.map(|why| refused(name, why)));
        Ok(())
    }

    fn add_columns(
        &mut self,
        db: &Connection,
        here: &Declared,
        wanted: &Declaration,
    ) -> Result<()> {
        for (place, column) in wanted.columns.iter().enumerate() {
            let is_same = |known: &str| known.eq_ignore_ascii_case(&column.name);
            if wanted.key.contains(&place) || here.columns.iter().any(|known| is_same(&known.name))
            {
                continue;
            }
            let reference = wanted.references.iter().find(|reference| reference.columns == [place]);
            let added = attempt(db, |db| {
                db.execute(&ddl::add_column(&here.name, column, reference), [])?;
                Ok(format!("added column {}.{}", here.name, column.name))
            })?;
            match added {
                Ok(done) => self.done.push(done),
                Err(why) => self.obstacles.push(refused(&here.name, why)),
            }
        }
        Ok(())
    }
}

fn refused(table: &str, why: String) -> Obstacle {
    Obstacle { table: table.to_owned(), kind: ObstacleKind::Declaration, why }
}

/// Does all of it or nothing. `Err` within: SQLite refuses.
fn attempt(
    db: &Connection,
    work: impl FnOnce(&Connection) -> Result<String>,
) -> Result<std::result::Result<String, String>> {
    db.execute_batch("SAVEPOINT warren_adopt")?;
    let done = match work(db) {
        Ok(done) => Ok(done),
        Err(error) => {
            let why = obstacle::refusal(error)?;
            db.execute_batch("ROLLBACK TO warren_adopt")?;
            Err(why)
        }
    };
    db.execute_batch("RELEASE warren_adopt")?;
    Ok(done)
}

fn create(db: &Connection, name: &str, wanted: &Declaration) -> Result<String> {
    let refused = |why: &str| Error::Untrackable { table: name.into(), why: why.into() };
    if let Some(why) = ddl::objection(name, wanted) {
        return Err(refused(why));
    }
    db.execute(&ddl::create_table(name, wanted), [])?;
    for sql in ddl::create_indexes(name, wanted) {
        // Without an index the table is the same, unless it is UNIQUE.
        if let Err(error) = db.execute(&sql, []) {
            obstacle::refusal(error.into())?;
        }
    }
    let declared = Declared::read(db, name)?.ok_or_else(|| refused("it was not created"))?;
    track::track(db, &declared)?;
    let is_computed = |column: &ColumnDeclaration| column.default == Some(DefaultValue::Computed);
    let has_computed = wanted.columns.iter().any(is_computed);
    let rest = if has_computed { ", without its computed defaults" } else { "" };
    Ok(format!("created table {name}{rest}"))
}
