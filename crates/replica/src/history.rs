//! History: every change of one row, in order of time.

use std::collections::BTreeMap;

use crdt::{Change, Row, RowChanges, Timestamp, Value};
use rusqlite::Connection;

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::exception::{self, Kind};
use crate::log::Log;
use crate::replica::Replica;
use crate::state::RowId;
use crate::table::Table;
use crate::value::{literal, literals};

/// One change of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The message.
    pub timestamp: Timestamp,
    /// The device's name, or its node's digits.
    pub device: String,
    /// The primary key, as SQL literals.
    pub key: String,
    /// Whether the row was deleted, rather than written.
    pub deleted: bool,
    /// What was written.
    pub cells: Vec<HistoryCell>,
    /// Whether it decides that the row is there, or is not.
    pub shown: bool,
}

/// One cell of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryCell {
    /// Its column.
    pub column: String,
    /// Its value, as an SQL literal.
    pub value: String,
    /// Whether it is what the cell is now.
    pub shown: bool,
}

impl Replica {
    /// Every change of a row until the last sync, oldest first. The parts of the key are SQL
    /// literals, or texts as they are.
    pub fn history(&self, table: &str, key: &[String]) -> Result<Vec<HistoryEntry>> {
        self.snapshot(|db| {
            let Some((key, changes)) = find(db, table, key)? else {
                return if is_known(db, table)? {
                    Ok(Vec::new())
                } else {
                    Err(Error::NoTable { table: table.to_owned() })
                };
            };
            let devices = Devices::load(db)?;
            let newest = Newest::of(&changes, exception_of(db, table, &key)?);
            let entries = changes.iter().map(|(timestamp, change)| {
                newest.entry(*timestamp, change, literals(&key), devices.name(timestamp.node()))
            });
            Ok(entries.collect())
        })
    }
}

/// Whether the table is or was tracked, here or on another device.
fn is_known(db: &Connection, table: &str) -> Result<bool> {
    let sql = "SELECT count(*) FROM warren_table WHERE name = ?1";
    Ok(db.query_row(sql, [table], |row| row.get::<_, i64>(0))? == 1)
}

/// The changes of the row that `words` name. Where `5` could be a number and a text, it is the
/// number if there is such a row.
pub(crate) fn find(
    db: &Connection,
    table: &str,
    words: &[String],
) -> Result<Option<(Vec<Value>, RowChanges)>> {
    let is_text = |value: &Value, word: &String| matches!(value, Value::Text(text) if text == word);
    let mut rows: BTreeMap<Vec<u8>, (Vec<Value>, RowChanges)> = BTreeMap::new();
    Log::open(db)?.for_each_change(|timestamp, change| {
        let (Change::Write { table: name, key, .. } | Change::Delete { table: name, key, .. }) =
            &change
        else {
            return Ok(());
        };
        let pairs = || key.iter().zip(words);
        let fits = key.len() == words.len()
            && name.eq_ignore_ascii_case(table)
            && pairs().all(|(value, word)| is_text(value, word) || literal(value) == *word);
        if fits {
            let row = rows.entry(Value::encode_key(key));
            let row = row.or_insert_with(|| (key.clone(), RowChanges::new()));
            row.1.insert(timestamp, change);
        }
        Ok(())
    })?;
    let texts = |key: &[Value]| key.iter().zip(words).filter(|(v, word)| is_text(v, word)).count();
    Ok(rows.into_values().min_by_key(|(key, _)| texts(key)))
}

/// What the row is an exception for, if it is one.
pub(crate) fn exception_of(db: &Connection, table: &str, key: &[Value]) -> Result<Option<Kind>> {
    let tables = Table::all(db)?;
    let found = tables.iter().find(|known| known.name.eq_ignore_ascii_case(table));
    let Some(table) = found else { return Ok(None) };
    let id = RowId::new(table.id, key);
    Ok(exception::all(db)?.into_iter().find(|(known, _)| *known == id).map(|(_, kind)| kind))
}

/// What of a row is shown.
pub(crate) struct Newest {
    row: Row,
    is_visible: bool,
    /// The newest write, by name in lower case, and how many writes there are.
    columns: BTreeMap<String, (Timestamp, usize)>,
}

impl Newest {
    pub(crate) fn of(changes: &RowChanges, exception: Option<Kind>) -> Self {
        let (mut row, mut columns) = (Row::default(), BTreeMap::new());
        for (timestamp, change) in changes {
            match change {
                Change::Write { cells, .. } => {
                    row.write(*timestamp);
                    for cell in cells {
                        let entry = columns.entry(cell.column.to_ascii_lowercase());
                        let (newest, count) = entry.or_insert((*timestamp, 0));
                        (*newest, *count) = (*timestamp, *count + 1);
                    }
                }
                Change::Delete { .. } => row.delete(*timestamp),
                Change::Schema { .. } | Change::Part { .. } | Change::Erased => {}
            }
        }
        let is_visible = exception.map_or(row.is_live(), Kind::is_visible);
        Self { row, is_visible, columns }
    }

    /// The message whose value a cell shows.
    pub(crate) fn shown_cell(&self, column: &str) -> Option<Timestamp> {
        let newest = self.columns.get(&column.to_ascii_lowercase());
        newest.filter(|_| self.is_visible).map(|(newest, _)| *newest)
    }

    /// How many messages wrote a cell.
    pub(crate) fn writes_count(&self, column: &str) -> usize {
        self.columns.get(&column.to_ascii_lowercase()).map_or(0, |(_, count)| *count)
    }

    /// The newest write of the row, if it is shown.
    pub(crate) fn shown_row(&self) -> Option<Timestamp> {
        self.is_visible.then(|| self.row.written())
    }

    fn entry(
        &self,
        timestamp: Timestamp,
        change: &Change,
        key: String,
        device: String,
    ) -> HistoryEntry {
        let cells = match change {
            Change::Write { cells, .. } => &cells[..],
            Change::Delete { .. }
            | Change::Schema { .. }
            | Change::Part { .. }
            | Change::Erased => &[],
        };
        let is_newest = |name: &str| {
            let newest = self.columns.get(&name.to_ascii_lowercase());
            newest.is_some_and(|(newest, _)| *newest == timestamp)
        };
        let cells = cells.iter().map(|cell| HistoryCell {
            column: cell.column.clone(),
            value: literal(&cell.value),
            shown: self.is_visible && is_newest(&cell.column),
        });
        let deleted = matches!(change, Change::Delete { .. });
        let decides = if deleted { self.row.deleted() } else { self.row.written() };
        HistoryEntry {
            timestamp,
            device,
            key,
            deleted,
            cells: cells.collect(),
            shown: decides == timestamp && self.is_visible != deleted,
        }
    }
}
