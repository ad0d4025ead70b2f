//! Writes one cell for a user who saw a known value in it, such as in a form that was open while
//! another device's value arrived.
//!
//! An ordinary UPDATE counts as having seen the present value. Here the change names the value that
//! its author saw as replaced, so a value that they did not see is listed as a lost edit
//! (`docs/internals/decisions/7-replaced-timestamps.md`).

use crdt::{Change, Timestamp, Value};
use rusqlite::Connection;

use crate::apply::row_writer::{self, WriteOutcome};
use crate::capture::renumber::RenumberedRow;
use crate::capture::timestamping::{self, CorrectedClock, SeenCell};
use crate::capture::triggers;
use crate::connection_flags::{ConnectionFlags, set_triggers};
use crate::error::{Error, Result};
use crate::log::message_log::MessageLog;
use crate::log::value_chunks;
use crate::replica::Replica;
use crate::row_id::RowId;
use crate::schema::tracked_table::TrackedTable;
use crate::tracking::schema_change;

/// A new value for one cell, and the value that its author saw there.
#[derive(Clone, Debug)]
pub struct CellEdit<'a> {
    /// The cell's table.
    pub table: &'a str,
    /// The row's primary key.
    pub key: &'a [Value],
    /// The cell's column.
    pub column: &'a str,
    /// The new value of the cell.
    pub value: Value,
    /// The value that the author saw in the cell.
    pub seen: Value,
}

/// The result of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditOutcome {
    /// The cell has the new value.
    Written,
    /// The cell has the new value, and the previous one, which the author had not seen, is a lost
    /// edit: [`Replica::conflicts`] lists it.
    Unseen,
    /// The row does not exist (any more); nothing was written.
    Missing,
}

impl EditOutcome {
    /// Returns the name of the outcome for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Unseen => "unseen",
            Self::Missing => "missing",
        }
    }
}

impl Replica {
    /// Writes one cell like any program, for an author who saw `edit.seen` in it.
    ///
    /// # Errors
    /// [`Error::Untrackable`] if the table is not tracked or has no such column,
    /// [`Error::ConstraintViolated`] if it does not accept the value.
    pub fn edit(&self, edit: &CellEdit<'_>, now_ms: u64) -> Result<EditOutcome> {
        let now = CorrectedClock { device_ms: now_ms, offset_ms: 0 };
        let mut key = edit.key.to_vec();
        for _ in 0..TRIES_COUNT_MAX {
            // Every earlier write gets a message of its own, which this edit can name.
            let moved = self.transaction(|db| {
                schema_change::follow_schema_changes(db, now_ms)?;
                timestamping::timestamp_pending(db, &TrackedTable::all(db)?, now)
            })?;
            follow_row(edit.table, &mut key, &moved);
            let edit =
                CellEdit { key: &key, value: edit.value.clone(), seen: edit.seen.clone(), ..*edit };
            // Foreign keys are enforced, because this is a user's write.
            let rules = ConnectionFlags { triggers: false, foreign_keys: true };
            let outcome = self.transaction_with_flags(rules, |db| {
                let tables = TrackedTable::all(db)?;
                let is_stamped = triggers::pending_count(db)? == 0;
                is_stamped.then(|| write(db, &tables, now, &edit)).transpose()
            })?;
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
        }
        Err(Error::ConstraintViolated { reason: "other programs keep writing to the file".into() })
    }
}

/// The number of times that another program may write between timestamping and the edit.
const TRIES_COUNT_MAX: u32 = 50;

/// Replaces the key under which the author saw the row, if the row was rekeyed since.
fn follow_row(table: &str, key: &mut [Value], moved: &[RenumberedRow]) {
    let [Value::Integer(key)] = key else { return };
    let mut of_table = moved.iter().filter(|moved| moved.table.eq_ignore_ascii_case(table));
    if let Some(moved) = of_table.find(|moved| moved.old_key == *key) {
        *key = moved.new_key;
    }
}

fn write(
    db: &Connection,
    tables: &[TrackedTable],
    now: CorrectedClock,
    edit: &CellEdit<'_>,
) -> Result<EditOutcome> {
    let unknown = |reason: String| Error::Untrackable { table: edit.table.to_owned(), reason };
    let table = tables.iter().find(|table| table.name.eq_ignore_ascii_case(edit.table));
    let table = table.ok_or_else(|| unknown("the table is not tracked here".into()))?;
    let mut columns = table.columns.iter();
    let column = columns.find(|column| column.name.eq_ignore_ascii_case(edit.column));
    let column =
        column.ok_or_else(|| unknown(format!("it has no tracked column {}", edit.column)))?;
    let row = RowId::new(table.id, edit.key);
    let Some(shown) = row_writer::cell(db, table, &row, &column.name)? else {
        return Ok(EditOutcome::Missing);
    };
    if is_same(&shown, &edit.value) {
        return Ok(EditOutcome::Written);
    }
    set_triggers(db, true)?;
    let written = row_writer::write_cell(db, table, &row, (&column.name, &edit.value));
    set_triggers(db, false)?;
    if let WriteOutcome::Rejected(reason) = written? {
        return Err(Error::ConstraintViolated { reason });
    }
    if is_same(&shown, &edit.seen) {
        return Ok(EditOutcome::Written);
    }
    let message = newest_with(db, table, edit)?;
    timestamping::timestamp_as_seeing(
        db,
        tables,
        now,
        SeenCell { row, column: column.id, message },
    )?;
    Ok(EditOutcome::Unseen)
}

/// Returns the newest message that gave the cell the value that the author saw.
fn newest_with(
    db: &Connection,
    table: &TrackedTable,
    edit: &CellEdit<'_>,
) -> Result<Option<Timestamp>> {
    let mut newest = None;
    MessageLog::open(db)?.for_each_change(|timestamp, change| {
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

/// Returns whether a value that a program has read equals the one in a message. SQLite returns a
/// whole number according to the column's affinity, and JavaScript has only one kind of number.
fn is_same(read: &Value, named: &Value) -> bool {
    match (read, named) {
        #[expect(clippy::cast_precision_loss, reason = "as SQLite compares them, nearly")]
        (Value::Integer(integer), Value::Real(real))
        | (Value::Real(real), Value::Integer(integer)) => (*integer as f64).total_cmp(real).is_eq(),
        _ => value_chunks::is_same_value(read, named),
    }
}
