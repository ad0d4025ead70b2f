//! Finds conflicts, which are edits lost to others that had not seen them, and restores them.
//!
//! `crdt::lost_edits` finds them for one row. It needs all of the row's messages at once, and the
//! log has them in another order. So a first pass over the log finds the rows that more than one
//! device wrote to, and further passes collect their messages, as many at once as memory allows.
//!
//! # Invariants
//! - Devices with the same messages and tables have the same conflicts, under the same ids.
//! - An edit that is visible again, or was decided again in a later change, is not listed.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crdt::{Change, LostEdit, NodeId, RowChanges, Timestamp, Value, lost_edits};
use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use super::change_origin::ChangeOrigin;
use super::devices::DeviceNames;
use super::short_id;
use crate::apply::row_state::{self, NameResolver};
use crate::apply::row_writer::{self, RowValues, WriteOutcome};
use crate::apply::unseen;
use crate::capture::timestamping::{self, CorrectedClock};
use crate::connection_flags::{ConnectionFlags, set_triggers};
use crate::error::{Error, Result};
use crate::log::message_log::MessageLog;
use crate::log::value_chunks;
use crate::replica::Replica;
use crate::row_id::RowId;
use crate::schema::tracked_table::{self, TrackedTable};
use crate::sql_value::{key_to_literals, to_literal};
use crate::tracking::schema_change;

/// An edit that was overwritten by a concurrent edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Conflict {
    /// The id of the conflict: hex digits, which are the same on all devices.
    pub id: String,
    /// The name of the table.
    pub table: String,
    /// The primary key of the row, as SQL literals.
    pub key: String,
    /// The name of the column; null if the conflict concerns the row as a whole.
    pub column: Option<String>,
    /// The edit that was overwritten.
    pub lost: ConflictEdit,
    /// The edit that is shown instead of the overwritten one.
    pub winner: ConflictEdit,
}

/// An edit of a cell or a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ConflictEdit {
    /// The time of the edit, and the device that made it.
    #[serde(flatten)]
    pub origin: ChangeOrigin,
    /// Whether the edit deleted the row.
    pub deleted: bool,
    /// The new value of the cell as an SQL literal; null if the edit concerns the row as a whole.
    pub value: Option<String>,
}

/// The minimum number of digits of an id that people see; more are used if ids would be equal.
const ID_DIGITS_MIN: usize = 8;

impl Replica {
    /// Returns the lost edits among all messages of the last sync, oldest first.
    pub fn conflicts(&self) -> Result<Vec<Conflict>> {
        let found = self.snapshot(find)?;
        Ok(found.into_iter().map(|found| found.conflict).collect())
    }

    /// Writes a lost edit to the table again, as any program would: the next sync turns it into a
    /// change, which wins. `id` may be shortened.
    pub fn restore(&self, id: &str, now_ms: u64) -> Result<Conflict> {
        // Foreign keys are enforced, because this is a user's write.
        self.transaction_with_flags(ConnectionFlags { triggers: false, foreign_keys: true }, |db| {
            schema_change::follow_schema_changes(db, now_ms)?;
            let found = short_id::resolve(find(db)?, id, |one| &one.digest)?;
            set_triggers(db, true)?;
            let written = write(db, &found);
            set_triggers(db, false)?;
            written.map(|()| found.conflict)
        })
    }
}

impl Replica {
    /// Dismisses a lost edit: from the next sync on, no device lists it. `id` may be shortened.
    ///
    /// A message records that a user has seen the edit and keeps the visible value.
    pub fn dismiss(&self, id: &str, now_ms: u64) -> Result<Conflict> {
        self.transaction(|db| {
            schema_change::follow_schema_changes(db, now_ms)?;
            let now = CorrectedClock { device_ms: now_ms, offset_ms: 0 };
            timestamping::timestamp_pending(db, &TrackedTable::all(db)?, now)?;
            let found = short_id::resolve(find(db)?, id, |one| &one.digest)?;
            timestamping::append_change(db, now, &dismissal_change(db, &found)?)?;
            Ok(found.conflict)
        })
    }
}

/// Returns the change that keeps the visible value, by an author who has seen the lost edit.
fn dismissal_change(db: &Connection, found: &RestorableConflict) -> Result<Change> {
    let (lost, winner) =
        (found.conflict.lost.origin.timestamp, found.conflict.winner.origin.timestamp);
    let (table, key) = (found.conflict.table.clone(), found.key.clone());
    let winning = MessageLog::open(db)?.change(winner)?;
    Ok(match (&found.lost, winning) {
        (_, Change::Delete { .. }) => {
            Change::Delete { table, key, replaced: [winner, lost].into() }
        }
        (LostContent::Cell(column, _), Change::Write { cells, .. }) => {
            let mut cells = cells;
            cells.retain(|cell| cell.column.eq_ignore_ascii_case(column));
            for cell in &mut cells {
                cell.replaced = Some(lost);
            }
            Change::Write { table, key, cells, replaced_tombstone: None }
        }
        _ => Change::Write { table, key, cells: Vec::new(), replaced_tombstone: Some(lost) },
    })
}

/// A conflict with the data for restoring it.
struct RestorableConflict {
    conflict: Conflict,
    key: Vec<Value>,
    lost: LostContent,
    digest: String,
}

enum LostContent {
    Cell(String, Value),
    Row,
    Delete,
}

/// Returns the number of lost edits in these rows.
pub(crate) fn count(db: &Connection, rows: &HashSet<RowId>) -> Result<u64> {
    if rows.is_empty() {
        return Ok(0);
    }
    let tables = TrackedTable::all(db)?;
    let wanted: HashSet<RowName> = rows
        .iter()
        .filter_map(|row| {
            let table = tables.iter().find(|table| table.id == row.table)?;
            Some((table.name.to_ascii_lowercase(), row.key.clone()))
        })
        .collect();
    let found = find_in(db, &|row| wanted.contains(row))?;
    Ok(found.len() as u64)
}

fn find(db: &Connection) -> Result<Vec<RestorableConflict>> {
    find_in(db, &|_| true)
}

/// Returns the conflicts of the wanted rows.
fn find_in(
    db: &Connection,
    is_wanted: &dyn Fn(&RowName) -> bool,
) -> Result<Vec<RestorableConflict>> {
    let (tables, devices) = (TrackedTable::all(db)?, DeviceNames::load(db)?);
    let mut found = Vec::new();
    for_each_contested_row(db, is_wanted, |changes| {
        for lost in lost_edits(changes) {
            let one = describe(changes, &lost, &devices);
            if !is_shown_now(db, &tables, &one)? {
                found.push(one);
            }
        }
        Ok(())
    })?;
    // A message concerns one row, and each of its columns once.
    found.sort_by(|a, b| {
        let order = |found: &RestorableConflict| found.conflict.lost.origin.timestamp;
        order(a).cmp(&order(b)).then_with(|| a.conflict.column.cmp(&b.conflict.column))
    });
    shorten_ids(&mut found);
    Ok(found)
}

/// A table's name in lower case, and an encoded key.
type RowName = (String, Vec<u8>);

/// Returns the row of a change, whatever the spelling of the table's name.
fn row_of(change: &Change) -> Option<RowName> {
    let (Change::Write { table, key, .. } | Change::Delete { table, key, .. }) = change else {
        return None;
    };
    Some((table.to_ascii_lowercase(), Value::encode_key(key)))
}

/// The maximum number of messages of contested rows that are in memory at once.
const CHUNK_COUNT_MAX: u64 = 100_000;

/// Visits the changes of each wanted row in which an edit may be lost.
fn for_each_contested_row(
    db: &Connection,
    is_wanted: &dyn Fn(&RowName) -> bool,
    mut visit: impl FnMut(&RowChanges) -> Result<()>,
) -> Result<()> {
    let log = MessageLog::open(db)?;
    let unseen = unseen::all(db)?.iter().map(row_hash).collect();
    let count_by_row = contested_rows(&log, is_wanted, &unseen)?;
    let chunks = count_by_row.values().sum::<u64>().div_ceil(CHUNK_COUNT_MAX);
    for chunk in 0..chunks {
        let is_in_chunk = |row: &RowName| {
            let number = row_hash(row);
            is_wanted(row) && number % chunks == chunk && count_by_row.contains_key(&number)
        };
        let mut rows: HashMap<_, RowChanges> = HashMap::new();
        log.for_each_change(|timestamp, change| {
            if let Some(row) = row_of(&change).filter(is_in_chunk) {
                rows.entry(row).or_default().insert(timestamp, change);
            }
            Ok(())
        })?;
        rows.values().try_for_each(&mut visit)?;
    }
    Ok(())
}

/// Returns the number of messages for each row that several devices wrote to, or one device without
/// having seen its own change, by the hash of the row.
fn contested_rows(
    log: &MessageLog<'_>,
    is_wanted: &dyn Fn(&RowName) -> bool,
    unseen: &HashSet<u64>,
) -> Result<HashMap<u64, u64>> {
    let mut rows: HashMap<u64, (Option<NodeId>, u64)> = HashMap::new();
    log.for_each_change(|timestamp, change| {
        if let Some(row) = row_of(&change).filter(is_wanted) {
            let node = Some(timestamp.node_id());
            let (only, count) = rows.entry(row_hash(&row)).or_insert((node, 0));
            if *only != node {
                *only = None;
            }
            *count += 1;
        }
        Ok(())
    })?;
    let contested = rows.into_iter();
    let contested = contested.filter(|(row, (only, _))| only.is_none() || unseen.contains(row));
    Ok(contested.map(|(row, (_, count))| (row, count)).collect())
}

/// Returns a hash in place of a row's name: a million rows take some 50 MB. If two rows have the
/// same hash, the only cost is that both are examined.
fn row_hash(row: &RowName) -> u64 {
    let mut hasher = DefaultHasher::new();
    row.hash(&mut hasher);
    hasher.finish()
}

fn describe(changes: &RowChanges, edit: &LostEdit, devices: &DeviceNames) -> RestorableConflict {
    let column = edit.column.as_deref();
    let value = |timestamp| match &changes[&timestamp] {
        Change::Write { cells, .. } => {
            let is_it = |name: &str| column.is_some_and(|column| name.eq_ignore_ascii_case(column));
            match cells.iter().find(|cell| is_it(&cell.column)) {
                Some(cell) => LostContent::Cell(cell.column.clone(), cell.value.clone()),
                None => LostContent::Row,
            }
        }
        Change::Delete { .. }
        | Change::TableDeclaration { .. }
        | Change::Chunk { .. }
        | Change::Erased => LostContent::Delete,
    };
    let describe = |timestamp: Timestamp| ConflictEdit {
        origin: ChangeOrigin::new(timestamp, devices),
        deleted: matches!(value(timestamp), LostContent::Delete),
        value: match value(timestamp) {
            LostContent::Cell(_, value) => Some(to_literal(&value)),
            LostContent::Row | LostContent::Delete => None,
        },
    };
    let change = &changes[&edit.lost];
    let (Change::Write { table, key, .. } | Change::Delete { table, key, .. }) = change else {
        unreachable!("only changes of rows are lost");
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(&edit.lost.to_bytes()).update(table.as_bytes()).update(&[0]);
    hasher.update(&Value::encode_key(key)).update(column.unwrap_or_default().as_bytes());
    RestorableConflict {
        conflict: Conflict {
            id: String::new(),
            table: table.clone(),
            key: key_to_literals(key),
            column: edit.column.clone(),
            lost: describe(edit.lost),
            winner: describe(edit.winner),
        },
        key: key.clone(),
        lost: value(edit.lost),
        digest: hasher.finalize().to_hex().to_string(),
    }
}

fn shorten_ids(found: &mut [RestorableConflict]) {
    let mut digits = ID_DIGITS_MIN;
    let is_unique = |digits: usize| {
        let mut seen = HashSet::new();
        found.iter().all(|one| seen.insert(&one.digest[..digits]))
    };
    while digits < 64 && !is_unique(digits) {
        digits += 1;
    }
    for one in found {
        one.conflict.id = one.digest[..digits].to_owned();
    }
}

/// Returns the row in this file, if its table is tracked here.
fn locate<'a>(
    tables: &'a [TrackedTable],
    found: &RestorableConflict,
) -> Option<(&'a TrackedTable, RowId)> {
    let name = &found.conflict.table;
    let table = tables.iter().find(|table| table.name.eq_ignore_ascii_case(name))?;
    let id = RowId::new(table.id, &found.key);
    (table.key.len() == found.key.len()).then_some((table, id))
}

fn column_of<'a>(table: &'a TrackedTable, name: &str) -> Option<&'a String> {
    let mut columns = table.columns.iter();
    columns.find(|column| column.name.eq_ignore_ascii_case(name)).map(|column| &column.name)
}

/// Returns whether the table shows the lost edit anyway: it was restored since the last sync, or is
/// in a resurrected row.
fn is_shown_now(
    db: &Connection,
    tables: &[TrackedTable],
    found: &RestorableConflict,
) -> Result<bool> {
    let Some((table, id)) = locate(tables, found) else { return Ok(false) };
    match &found.lost {
        LostContent::Cell(name, value) => match column_of(table, name) {
            Some(column) => {
                let shown = row_writer::cell(db, table, &id, column)?;
                Ok(shown.is_some_and(|shown| value_chunks::is_same_value(&shown, value)))
            }
            None => Ok(false),
        },
        LostContent::Row => tracked_table::row_exists(db, table, &id),
        LostContent::Delete => Ok(!tracked_table::row_exists(db, table, &id)?),
    }
}

fn write(db: &Connection, found: &RestorableConflict) -> Result<()> {
    let untracked = || Error::Untrackable {
        table: found.conflict.table.clone(),
        reason: "the table is not tracked here, or the edited column is missing".into(),
    };
    let tables = TrackedTable::all(db)?;
    let (table, id) = locate(&tables, found).ok_or_else(untracked)?;
    let cell = match &found.lost {
        LostContent::Delete => return check_restored(row_writer::delete_row(db, table, &id)?),
        LostContent::Row => None,
        LostContent::Cell(name, value) => {
            let missing =
                || Error::ConstraintViolated { reason: value_chunks::CHUNK_MISSING.to_owned() };
            let value = value_chunks::assemble_value(db, value)?.ok_or_else(missing)?;
            Some((column_of(table, name).ok_or_else(untracked)?, value))
        }
    };
    if let Some((column, value)) = &cell
        && tracked_table::row_exists(db, table, &id)?
    {
        return check_restored(row_writer::write_cell(db, table, &id, (column, value))?);
    }
    // The row gets its last known values, except for this cell.
    let row = row_state::load(db, &id)?.unwrap_or_default();
    let values = RowValues::load(&mut NameResolver::new(db)?, table, &id, &row)?;
    let mut values = values.map_err(|unfit| Error::ConstraintViolated { reason: unfit.reason })?;
    if let Some((column, value)) = cell {
        values.set(column, value);
    }
    check_restored(row_writer::upsert_row(db, table, &values)?)
}

fn check_restored(shown: WriteOutcome) -> Result<()> {
    match shown {
        WriteOutcome::Written => Ok(()),
        WriteOutcome::Rejected(reason) => Err(Error::ConstraintViolated { reason }),
    }
}
