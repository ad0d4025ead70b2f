//! Lists every change of one row, in order of time.

use std::collections::BTreeMap;

use crdt::{Change, RowChanges, RowState, Timestamp, Value};
use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use super::change_origin::ChangeOrigin;
use super::devices::DeviceNames;
use crate::apply::visibility_override::{self, VisibilityOverrideKind};
use crate::error::{Error, Result};
use crate::log::message_log::MessageLog;
use crate::replica::Replica;
use crate::row_id::RowId;
use crate::schema::tracked_table::TrackedTable;
use crate::sql_value::{key_to_literals, to_literal};

/// One change of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct HistoryEntry {
    /// The time of the change, and the device that made it.
    #[serde(flatten)]
    pub origin: ChangeOrigin,
    /// The primary key of the row, as SQL literals.
    pub key: String,
    /// Whether the row was deleted instead of written.
    pub deleted: bool,
    /// The values that the change wrote; empty for a deletion.
    pub cells: Vec<HistoryCell>,
    /// Whether this change determines if the row exists.
    pub visible: bool,
}

/// The value of one cell that a change wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct HistoryCell {
    /// The name of the column.
    pub column: String,
    /// The value as an SQL literal.
    pub value: String,
    /// Whether this is the current value of the cell.
    pub visible: bool,
}

impl Replica {
    /// Returns every change of a row until the last sync, oldest first. The parts of the key are
    /// SQL literals, or texts without quotes.
    pub fn history(&self, table: &str, key: &[String]) -> Result<Vec<HistoryEntry>> {
        self.snapshot(|db| {
            let Some((key, changes)) = find(db, table, key)? else {
                return if is_known(db, table)? {
                    Ok(Vec::new())
                } else {
                    Err(Error::TableNotFound { table: table.to_owned() })
                };
            };
            let devices = DeviceNames::load(db)?;
            let newest = NewestWrites::from_changes(&changes, override_of(db, table, &key)?);
            let entries = changes.iter().map(|(timestamp, change)| {
                let origin = ChangeOrigin::new(*timestamp, &devices);
                newest.entry(origin, change, key_to_literals(&key))
            });
            Ok(entries.collect())
        })
    }
}

/// Returns whether the table is or was tracked, here or on another device.
fn is_known(db: &Connection, table: &str) -> Result<bool> {
    let sql = "SELECT count(*) FROM warren_table WHERE name = ?1";
    Ok(db.query_row(sql, [table], |row| row.get::<_, i64>(0))? == 1)
}

/// Returns the changes of the row with the key `words`. If `5` could be a number and a text, it is
/// the number if there is such a row.
pub(crate) fn find(
    db: &Connection,
    table: &str,
    words: &[String],
) -> Result<Option<(Vec<Value>, RowChanges)>> {
    let is_text = |value: &Value, word: &String| matches!(value, Value::Text(text) if text == word);
    let mut rows: BTreeMap<Vec<u8>, (Vec<Value>, RowChanges)> = BTreeMap::new();
    MessageLog::open(db)?.for_each_change(|timestamp, change| {
        let (Change::Write { table: name, key, .. } | Change::Delete { table: name, key, .. }) =
            &change
        else {
            return Ok(());
        };
        let pairs = || key.iter().zip(words);
        let fits = key.len() == words.len()
            && name.eq_ignore_ascii_case(table)
            && pairs().all(|(value, word)| is_text(value, word) || to_literal(value) == *word);
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

/// Returns the visibility override of the row, if it has one.
pub(crate) fn override_of(
    db: &Connection,
    table: &str,
    key: &[Value],
) -> Result<Option<VisibilityOverrideKind>> {
    let tables = TrackedTable::all(db)?;
    let found = tables.iter().find(|known| known.name.eq_ignore_ascii_case(table));
    let Some(table) = found else { return Ok(None) };
    let id = RowId::new(table.id, key);
    Ok(visibility_override::all(db)?
        .into_iter()
        .find(|(known, _)| *known == id)
        .map(|(_, kind)| kind))
}

/// The newest write of a row and of each of its cells.
pub(crate) struct NewestWrites {
    row: RowState,
    is_visible: bool,
    /// The newest write and the number of writes, by column name in lower case.
    columns: BTreeMap<String, (Timestamp, usize)>,
}

impl NewestWrites {
    pub(crate) fn from_changes(
        changes: &RowChanges,
        visibility_override: Option<VisibilityOverrideKind>,
    ) -> Self {
        let (mut row, mut columns) = (RowState::default(), BTreeMap::new());
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
                Change::TableDeclaration { .. } | Change::Chunk { .. } | Change::Erased => {}
            }
        }
        let is_visible =
            visibility_override.map_or(row.is_live(), VisibilityOverrideKind::is_visible);
        Self { row, is_visible, columns }
    }

    /// Returns the message whose value a cell shows.
    pub(crate) fn shown_cell(&self, column: &str) -> Option<Timestamp> {
        let newest = self.columns.get(&column.to_ascii_lowercase());
        newest.filter(|_| self.is_visible).map(|(newest, _)| *newest)
    }

    /// Returns the number of messages that wrote a cell.
    pub(crate) fn writes_count(&self, column: &str) -> usize {
        self.columns.get(&column.to_ascii_lowercase()).map_or(0, |(_, count)| *count)
    }

    /// Returns the newest write of the row, if the row is visible.
    pub(crate) fn shown_row(&self) -> Option<Timestamp> {
        self.is_visible.then(|| self.row.newest_write())
    }

    fn entry(&self, origin: ChangeOrigin, change: &Change, key: String) -> HistoryEntry {
        let timestamp = origin.timestamp;
        let cells = match change {
            Change::Write { cells, .. } => &cells[..],
            Change::Delete { .. }
            | Change::TableDeclaration { .. }
            | Change::Chunk { .. }
            | Change::Erased => &[],
        };
        let is_newest = |name: &str| {
            let newest = self.columns.get(&name.to_ascii_lowercase());
            newest.is_some_and(|(newest, _)| *newest == timestamp)
        };
        let cells = cells.iter().map(|cell| HistoryCell {
            column: cell.column.clone(),
            value: to_literal(&cell.value),
            visible: self.is_visible && is_newest(&cell.column),
        });
        let deleted = matches!(change, Change::Delete { .. });
        let decides = if deleted { self.row.tombstone() } else { self.row.newest_write() };
        HistoryEntry {
            origin,
            key,
            deleted,
            cells: cells.collect(),
            visible: decides == timestamp && self.is_visible != deleted,
        }
    }
}
