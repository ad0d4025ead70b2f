//! Tracking: what begins and ends it, and what keeps it right when the schema changes.
//!
//! # Invariants
//! - Rows that were there before lose to every tracked change: they are stamped as the baseline.
//! - Untracking everything leaves no trace: the user's schema is as it was.
//! - A column that went away stops the sync with an error; nothing is guessed from names.

use crdt::{Baseline, Cell, Change, Fingerprint, Row, Value};
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use crate::capture::NEXT;
use crate::error::{Error, Result};
use crate::log::Log;
use crate::meta::{self, Key};
use crate::state::{self, Names, RowId};
use crate::table::{self, Column, Declared, DeclaredColumn, Table, quote};
use crate::value::{Bound, read};
use crate::{capture, parts, settle};

/// What tracking a table found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracked {
    /// The table.
    pub table: String,
    /// Rows that were there.
    pub rows: u64,
    /// Whether it was tracked before.
    pub already: bool,
    /// Whether SQLite counts its keys: of two devices that give one key to two new rows, the second
    /// to send gives its row another.
    pub counts: bool,
}

/// Begins to track a table: triggers, and its present rows as the baseline.
pub(crate) fn track(db: &Connection, declared: &Declared) -> Result<Tracked> {
    let name = &declared.name;
    let id = Names::new(db)?.table(name)?;
    let counts = table::counts(db, name)?;
    let sql = "SELECT tracked FROM warren_table WHERE id = ?1";
    if db.query_row(sql, [id], |row| row.get::<_, bool>(0))? {
        return Ok(Tracked { table: name.clone(), rows: 0, already: true, counts });
    }
    note_columns(db, id, declared)?;
    // The declared name is what other devices see, also where they wrote it in another case.
    let sql = "UPDATE warren_table SET tracked = 1, announce = 1, name = ?2 WHERE id = ?1";
    db.execute(sql, (id, name))?;
    let table = find(db, id)?;
    capture::install(db, &table)?;
    // What other devices sent of this table before it was tracked here is to be shown.
    settle::unsettle_table(db, id)?;
    let rows = add_baseline(db, &table)?;
    Ok(Tracked { table: name.clone(), rows, already: false, counts })
}

fn find(db: &Connection, id: i64) -> Result<Table> {
    let tables = Table::all(db)?;
    Ok(tables.into_iter().find(|table| table.id == id).expect("just marked as tracked"))
}

fn note_columns(db: &Connection, table: i64, declared: &Declared) -> Result<()> {
    for (place, column) in declared.captured().enumerate() {
        note_column(db, table, column, Some(place))?;
    }
    for column in declared.key() {
        note_column(db, table, column, None)?;
    }
    Ok(())
}

fn note_column(
    db: &Connection,
    table: i64,
    column: &DeclaredColumn,
    place: Option<usize>,
) -> Result<()> {
    let place = place.map(|place| i64::try_from(place).expect("at most 500 columns"));
    let key_place = (column.key_place > 0).then_some(column.key_place);
    let sql = "INSERT INTO warren_column (table_id, name, place, key_place) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (table_id, name) DO UPDATE
               SET name = excluded.name, place = excluded.place, key_place = excluded.key_place";
    db.prepare_cached(sql)?.execute((table, &column.name, place, key_place))?;
    Ok(())
}

/// Makes a baseline message for each row whose values nobody knows yet; returns how many rows the
/// table has.
fn add_baseline(db: &Connection, table: &Table) -> Result<u64> {
    let mut names = Names::new(db)?;
    let node = meta::node(db)?;
    let mut baseline = Baseline { next: meta::number(db, Key::BaselineNext)?, node };
    let mut fingerprint = meta::fingerprint(db)?;
    let mut rows = 0;
    for_each_row(db, table, |key, values| {
        rows += 1;
        let id = RowId::new(table.id, &key);
        let known = state::load(db, &id)?;
        if let Some(row) = &known
            && row.is_live()
            && differing(&mut names, table, row, &values)?.is_empty()
        {
            return Ok(());
        }
        let row = known.unwrap_or_default();
        add_baseline_row(&names.log, table, row, (key, values), &mut baseline, &mut fingerprint)
    })?;
    meta::set_number(db, Key::BaselineNext, baseline.next)?;
    meta::set_fingerprint(db, &fingerprint)?;
    Ok(rows)
}

fn add_baseline_row(
    log: &Log<'_>,
    table: &Table,
    mut row: Row,
    (key, values): (Vec<Value>, Vec<Value>),
    baseline: &mut Baseline,
    fingerprint: &mut Fingerprint,
) -> Result<()> {
    let full =
        || Error::Untrackable { table: table.name.clone(), why: "the baseline is full".into() };
    let id = RowId::new(table.id, &key);
    let columns = table.columns.iter().zip(values);
    let cells = columns.map(|(column, value)| Cell::new(&column.name, value)).collect();
    // A baseline is no edit: its author may never have seen what other devices sent.
    let mut change = Change::Write { table: table.name.clone(), key, cells, deleted: None };
    for part in parts::take_out(log.db, &mut change)? {
        parts::add(log, baseline.send().ok_or_else(full)?, part, fingerprint)?;
    }
    let timestamp = baseline.send().ok_or_else(full)?;
    row.write(timestamp);
    for column in &table.columns {
        row.write_cell(column.id, timestamp);
    }
    log.add_local(timestamp, &change, fingerprint)?;
    state::save(log.db, &id, &row)
}

/// The captured columns whose values are not what the state says.
fn differing<'a>(
    names: &mut Names<'_>,
    table: &'a Table,
    row: &Row,
    values: &[Value],
) -> Result<Vec<&'a Column>> {
    let known = state::values(names, row)?;
    let pairs = table.columns.iter().zip(values);
    let differs = pairs.filter(|(column, value)| {
        !parts::is_same(value, known.get(&column.id).unwrap_or(&Value::Null))
    });
    Ok(differs.map(|(column, _)| column).collect())
}

fn for_each_row(
    db: &Connection,
    table: &Table,
    mut visit: impl FnMut(Vec<Value>, Vec<Value>) -> Result<()>,
) -> Result<()> {
    let sql = format!(
        "SELECT {} FROM {} WHERE {}",
        table.column_list(),
        quote(&table.name),
        table.is_named("")
    );
    let mut statement = db.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let key = read(row, 0, table.key.len())?;
        let values = read(row, table.key.len(), table.columns.len())?;
        visit(key, values)?;
    }
    Ok(())
}

/// Stops tracking one table; its messages and state stay, in case it is tracked again.
pub(crate) fn untrack(db: &Connection, name: &str) -> Result<()> {
    let sql = "SELECT id, name FROM warren_table WHERE name = ?1 AND tracked = 1";
    let found = db.query_row(sql, [name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let not_tracked = || Error::Untrackable { table: name.into(), why: "it is not tracked".into() };
    let (id, name): (i64, String) = found.ok_or_else(not_tracked)?;
    capture::remove(db, &name)?;
    db.execute("UPDATE warren_table SET tracked = 0, announce = 0 WHERE id = ?1", [id])?;
    db.execute(
        "UPDATE warren_column SET place = NULL, key_place = NULL WHERE table_id = ?1",
        [id],
    )?;
    for table in ["warren_outbox", "warren_unsettled", "warren_exception", "warren_counted"] {
        db.execute(&format!("DELETE FROM {table} WHERE table_id = ?1"), [id])?;
    }
    Ok(())
}

/// Takes everything of Warren's out of the file.
pub(crate) fn remove_all(db: &Connection) -> Result<()> {
    let names = db
        .prepare("SELECT name FROM warren_table WHERE tracked = 1")?
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for name in names {
        capture::remove(db, &name)?;
    }
    let ours = db
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'warren\\_%' ESCAPE '\\'")?
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for table in ours {
        db.execute_batch(&format!("DROP TABLE {}", quote(&table)))?;
    }
    Ok(())
}

/// Compares every tracked table with what was noted, and takes note of what was added.
///
/// `at_ms` is the time that changes get whose own time no trigger noted.
pub(crate) fn follow_schema(db: &Connection, at_ms: u64) -> Result<()> {
    for table in Table::all(db)? {
        if let Some(what) = what_went_away(db, &table)? {
            return Err(Error::SchemaChanged { table: table.name, what });
        }
        let declared = Declared::read(db, &table.name)?.expect("it did not go away");
        let is_known = |d: &&DeclaredColumn| table.columns.iter().any(|c| c.name == d.name);
        let added: Vec<_> = declared.captured().filter(|d| !is_known(d)).collect();
        if !added.is_empty() {
            add_columns(db, &table, &added, at_ms)?;
        } else if !capture::is_installed(db, &table)? {
            note_differences(db, &table, at_ms)?;
            capture::install(db, &table)?;
        }
    }
    Ok(())
}

/// What is no longer as it was noted, so that the table cannot be read as it was.
pub(crate) fn what_went_away(db: &Connection, table: &Table) -> Result<Option<String>> {
    let Some(declared) = Declared::read(db, &table.name)? else {
        return Ok(Some("it was dropped or renamed".into()));
    };
    let key: Vec<_> = declared.key().iter().map(|column| column.name.clone()).collect();
    if key != table.key {
        return Ok(Some("its primary key is another one".into()));
    }
    let is_declared = |c: &&Column| declared.captured().any(|d| d.name == c.name);
    let gone = table.columns.iter().find(|column| !is_declared(column));
    Ok(gone.map(|column| format!("column {} was renamed or dropped", column.name)))
}

/// Columns came by ALTER TABLE: captured from here on. Where a row has another value than the
/// default, somebody wrote it since.
fn add_columns(
    db: &Connection,
    table: &Table,
    added: &[&DeclaredColumn],
    at_ms: u64,
) -> Result<()> {
    for (offset, column) in added.iter().enumerate() {
        let place = table.columns.len() + offset;
        note_column(db, table.id, column, Some(place))?;
        let default = column.default.as_deref().unwrap_or("NULL");
        let (places, keys) = outbox_key(table);
        let sql = format!(
            "INSERT INTO warren_outbox (at, table_id, changed, {places})
             SELECT ?1, ?2, ?3, {keys} FROM {} WHERE {} IS NOT ({default}) AND {}",
            quote(&table.name),
            quote(&column.name),
            table.is_named(""),
        );
        let mask = format!("{}1", "0".repeat(place));
        db.execute(&sql, (at_ms.cast_signed(), table.id, mask))?;
    }
    db.execute("UPDATE warren_table SET announce = 1 WHERE id = ?1", [table.id])?;
    // Other devices may have sent values of these columns before this file had them.
    settle::unsettle_table(db, table.id)?;
    capture::install(db, &find(db, table.id)?)
}

fn outbox_key(table: &Table) -> (String, String) {
    let places: Vec<_> = (1..=table.key.len()).map(|place| format!("k{place}")).collect();
    let keys: Vec<_> = table.key.iter().map(|column| quote(column)).collect();
    (places.join(", "), keys.join(", "))
}

/// The triggers were gone for a while (a table that was rebuilt, a tool that dropped them): what
/// differs from the state was changed meanwhile.
fn note_differences(db: &Connection, table: &Table, at_ms: u64) -> Result<()> {
    let mut names = Names::new(db)?;
    for_each_row(db, table, |key, values| {
        let row = state::load(db, &RowId::new(table.id, &key))?;
        let Some(row) = row.filter(Row::is_live) else {
            if table.counts {
                // Who gave the key is not known. Two rows that should be one can be put together
                // again, one that should be two cannot.
                note(db, table, &[Value::Null], NEXT, at_ms)?;
            }
            return note(db, table, &key, "*", at_ms);
        };
        let differing = differing(&mut names, table, &row, &values)?;
        if differing.is_empty() {
            return Ok(());
        }
        let differs = |c: &Column| differing.iter().any(|d| d.id == c.id);
        let mask = table.columns.iter().map(|c| if differs(c) { '1' } else { '0' });
        note(db, table, &key, &mask.collect::<String>(), at_ms)
    })?;
    note_missing_rows(db, table, at_ms)
}

fn note_missing_rows(db: &Connection, table: &Table, at_ms: u64) -> Result<()> {
    let sql = "SELECT key FROM warren_row WHERE table_id = ?1 AND NOT EXISTS (
                   SELECT 1 FROM warren_exception e
                   WHERE e.table_id = warren_row.table_id AND e.key = warren_row.key)";
    let mut statement = db.prepare(sql)?;
    let keys = statement.query_map([table.id], |row| row.get::<_, Vec<u8>>(0))?;
    for key in keys {
        let id = RowId { table: table.id, key: key? };
        let live = state::load(db, &id)?.is_some_and(|row| row.is_live());
        if live && !crate::show::is_shown(db, table, &id)? {
            note(db, table, &id.key_values()?, "-", at_ms)?;
        }
    }
    Ok(())
}

fn note(db: &Connection, table: &Table, key: &[Value], changed: &str, at_ms: u64) -> Result<()> {
    let (places, _) = outbox_key(table);
    let values: Vec<_> = (1..=key.len()).map(|place| format!("?{place}")).collect();
    let sql = format!(
        "INSERT INTO warren_outbox (at, table_id, changed, {places})
         VALUES ({at_ms}, {}, '{changed}', {})",
        table.id,
        values.join(", ")
    );
    db.prepare_cached(&sql)?.execute(params_from_iter(key.iter().map(Bound)))?;
    Ok(())
}
