//! An edit of one cell by somebody who says what they saw in it: a form that was open while another
//! device's value arrived.
//!
//! An ordinary UPDATE counts as having seen whatever the table holds. Here the change says that it
//! replaced the value that its author saw, so what they did not see is listed as a lost edit
//! (`docs/decisions/7-replaced-timestamps.md`).

use crdt::{Change, Timestamp, Value};
use rusqlite::Connection;

use crate::error::{Error, Result};
use crate::log::Log;
use crate::renumber::Renumbered;
use crate::replica::Replica;
use crate::rules::{Rules, set_triggers};
use crate::show::{self, Shown};
use crate::stamp::{self, Now, SeenCell};
use crate::state::RowId;
use crate::table::Table;
use crate::{capture, parts, schema_change};

/// A new value for one cell, and the value that its author saw there.
#[derive(Clone, Debug)]
pub struct CellEdit<'a> {
    /// The cell's table.
    pub table: &'a str,
    /// The row's primary key.
    pub key: &'a [Value],
    /// The cell's column.
    pub column: &'a str,
    /// What the cell becomes.
    pub value: Value,
    /// What the author saw in the cell.
    pub seen: Value,
}

/// What became of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditOutcome {
    /// The cell has the new value.
    Written,
    /// So it has, and the value that was there, which the author had not seen, is a lost edit:
    /// [`Replica::conflicts`] lists it.
    Unseen,
    /// There is no such row (any more): nothing was written.
    Missing,
}

impl EditOutcome {
    /// As programs see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Unseen => "unseen",
            Self::Missing => "missing",
        }
    }
}

impl Replica {
    /// Writes one cell, as any program would, by somebody who saw `edit.seen` in it.
    ///
    /// [`Error::Untrackable`] if the table is not tracked or has no such column,
    /// [`Error::NotRestored`] if it does not take the value.
    pub fn edit(&self, edit: &CellEdit<'_>, now_ms: u64) -> Result<EditOutcome> {
        let now = Now { device_ms: now_ms, offset_ms: 0 };
        let mut key = edit.key.to_vec();
        for _ in 0..TRIES_COUNT_MAX {
            // Whatever was written before has a message of its own, which this edit can name.
            let moved = self.transaction(|db| {
                schema_change::follow_schema(db, now_ms)?;
                stamp::stamp(db, &Table::all(db)?, now)
            })?;
            follow_row(edit.table, &mut key, &moved);
            let edit =
                CellEdit { key: &key, value: edit.value.clone(), seen: edit.seen.clone(), ..*edit };
            // It is a user's write, so the table's rules are the user's.
            let rules = Rules { triggers: false, foreign_keys: true };
            let outcome = self.transaction_under(rules, |db| {
                let tables = Table::all(db)?;
                let is_stamped = capture::noted_count(db)? == 0;
                is_stamped.then(|| write(db, &tables, now, &edit)).transpose()
            })?;
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
        }
        Err(Error::NotRestored { why: "other programs write to the file all the time".into() })
    }
}

/// How often another program may write between the stamp and the edit.
const TRIES_COUNT_MAX: u32 = 50;

/// The author saw the row under the key that it had until now.
fn follow_row(table: &str, key: &mut [Value], moved: &[Renumbered]) {
    let [Value::Integer(key)] = key else { return };
    let mut of_table = moved.iter().filter(|moved| moved.table.eq_ignore_ascii_case(table));
    if let Some(moved) = of_table.find(|moved| moved.from == *key) {
        *key = moved.to;
    }
}

fn write(db: &Connection, tables: &[Table], now: Now, edit: &CellEdit<'_>) -> Result<EditOutcome> {
    let unknown = |why: String| Error::Untrackable { table: edit.table.to_owned(), why };
    let table = tables.iter().find(|table| table.name.eq_ignore_ascii_case(edit.table));
    let table = table.ok_or_else(|| unknown("it is not tracked here".into()))?;
    let mut columns = table.columns.iter();
    let column = columns.find(|column| column.name.eq_ignore_ascii_case(edit.column));
    let column =
        column.ok_or_else(|| unknown(format!("no column {} of it is tracked", edit.column)))?;
    let row = RowId::new(table.id, edit.key);
    let Some(shown) = show::cell(db, table, &row, &column.name)? else {
        return Ok(EditOutcome::Missing);
    };
    if is_same(&shown, &edit.value) {
        return Ok(EditOutcome::Written);
    }
    set_triggers(db, true)?;
    let written = show::write_cell(db, table, &row, (&column.name, &edit.value));
    set_triggers(db, false)?;
    if let Shown::Refused(why) = written? {
        return Err(Error::NotRestored { why });
    }
    if is_same(&shown, &edit.seen) {
        return Ok(EditOutcome::Written);
    }
    let message = newest_with(db, table, edit)?;
    stamp::stamp_seeing(db, tables, now, SeenCell { row, column: column.id, message })?;
    Ok(EditOutcome::Unseen)
}

/// The newest message that gave the cell the value that the author saw.
fn newest_with(db: &Connection, table: &Table, edit: &CellEdit<'_>) -> Result<Option<Timestamp>> {
    let mut newest = None;
    Log::open(db)?.for_each_change(|timestamp, change| {
        let Change::Write { table: name, key, cells, .. } = change else { return Ok(()) };
        let is_it = newest < Some(timestamp)
            && name.eq_ignore_ascii_case(&table.name)
            && key == edit.key
            && cells.iter().any(|cell| {
                cell.column.eq_ignore_ascii_case(edit.column) && is_same(&edit.seen, &cell.value)
            });
        if is_it {
            newest = Some(timestamp);
        }
        Ok(())
    })?;
    Ok(newest)
}

/// Whether a value that a program has read is the one that is named. SQLite gives a whole number to
/// a program as the column's affinity says, and JavaScript knows one kind of number.
fn is_same(read: &Value, named: &Value) -> bool {
    match (read, named) {
        #[expect(clippy::cast_precision_loss, reason = "as SQLite compares them, nearly")]
        (Value::Integer(integer), Value::Real(real))
        | (Value::Real(real), Value::Integer(integer)) => (*integer as f64).total_cmp(real).is_eq(),
        _ => parts::is_same(read, named),
    }
}
