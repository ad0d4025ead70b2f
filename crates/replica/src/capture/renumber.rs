//! Gives another key to a new row if two devices have assigned the same auto key. The row that the
//! server does not have yet, which is this device's, gets the next free key, and its references
//! follow. A row that a copy of this file has sent under another key gets that key. A row that
//! equals another device's except for its key, where only one of them can be visible (two people
//! add the tag "urgent"), becomes that row.
//!
//! No other device has seen the row, so its messages and those that refer to it are changed as if
//! it had always had the new key; no trace of the first key remains.
//!
//! # Invariants
//! - Renumbering runs after local changes are timestamped and before remote ones are merged, in the
//!   same transaction: every reference to the key in this file means this file's row.
//! - Only messages of this device change, and only while no server has them.
//! - A push of rows with provisional keys is stored only if the device has everything that the
//!   server has (`protocol::PushRequest::expected_cursor`), so no two devices send one auto key.
//!
//! # Not here
//! - References that no foreign key declares: the report names both keys.
//! - New rows whose keys this device knows from other rows → `timestamping/new_rows.rs`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crdt::{Change, Timestamp, Value};
use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use super::provisional_keys::{self, FreeKeys};
use crate::apply::materialize::EqualRows;
use crate::apply::merge::{merge_change, rebuild, row_of};
use crate::apply::row_state::{self, NameResolver};
use crate::error::Result;
use crate::log::message_log;
use crate::meta;
use crate::row_id::RowId;
use crate::schema::references::{KeyReferences, NewKeys, update_untracked_tables};
use crate::schema::tracked_table::TrackedTable;

/// A new row that got a new key, because another row has its old key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RenumberedRow {
    /// The name of the row's table.
    pub table: String,
    /// The key that the row had on this device until now.
    pub old_key: i64,
    /// The key that the row has now.
    pub new_key: i64,
}

/// The moves to new keys, by table and old key.
type KeyMoves = HashMap<i64, BTreeMap<i64, KeyMove>>;

struct KeyMove {
    new: i64,
    /// The message that inserted the row. An auto key is unknown before its row exists, so older
    /// messages with that key are about another row.
    since: Timestamp,
    /// Whether the new key is that of an equal row.
    is_merge: bool,
}

/// Gives other keys to this device's new rows whose keys occur in received messages.
pub(crate) fn renumber_conflicting_rows(
    db: &Connection,
    tables: &[TrackedTable],
) -> Result<Vec<RenumberedRow>> {
    if !provisional_keys::is_any(db)? {
        return Ok(Vec::new());
    }
    let mut names = NameResolver::new(db)?;
    let references = KeyReferences::new(tables);
    let moves = plan_key_moves(db, &mut names, tables, &references)?;
    if moves.is_empty() {
        return Ok(Vec::new());
    }
    carry_out(db, &mut names, tables, &references, &moves)
}

/// Merges new rows of this device with equal rows of other devices.
pub(crate) fn merge(
    db: &Connection,
    tables: &[TrackedTable],
    equal: &[EqualRows],
) -> Result<Vec<RenumberedRow>> {
    let mut moves = KeyMoves::new();
    for EqualRows { own, other } in equal {
        let since = provisional_keys::find(db, own)?;
        provisional_keys::forget(db, own)?;
        if let (Some(since), [Value::Integer(old)], [Value::Integer(new)]) =
            (since, &own.key_values()?[..], &other.key_values()?[..])
        {
            let to = KeyMove { new: *new, since, is_merge: true };
            moves.entry(own.table).or_default().insert(*old, to);
        }
    }
    carry_out(db, &mut NameResolver::new(db)?, tables, &KeyReferences::new(tables), &moves)
}

fn carry_out(
    db: &Connection,
    names: &mut NameResolver<'_>,
    tables: &[TrackedTable],
    references: &KeyReferences,
    moves: &KeyMoves,
) -> Result<Vec<RenumberedRow>> {
    rewrite_messages(db, names, tables, references, moves)?;
    let mut new_keys = NewKeys::new();
    let mut done = Vec::new();
    for table in tables {
        for (&from, &KeyMove { new: to, .. }) in moves.get(&table.id).into_iter().flatten() {
            new_keys.entry(table.id).or_default().insert(from, to);
            done.push(RenumberedRow { table: table.name.clone(), old_key: from, new_key: to });
        }
    }
    update_untracked_tables(db, tables, &new_keys)?;
    Ok(done)
}

/// The keys in received messages that concern this device's rows that no server has.
#[derive(Default)]
struct ReceivedKeys {
    /// Rows whose keys occur in messages, with the messages that inserted the rows.
    used_keys: BTreeMap<(i64, i64), Timestamp>,
    /// Rows that the server already has, from a file that is a copy of this one, or that this one
    /// is a copy of.
    twins: BTreeMap<(i64, i64), SimilarRow>,
    /// The largest key in a message, by table.
    largest: HashMap<i64, i64>,
}

/// Two messages of the same hybrid time in the same table: one of this device, one received.
struct SimilarRow {
    key: i64,
    since: Timestamp,
    own: Change,
    received: Change,
}

impl ReceivedKeys {
    fn read(
        db: &Connection,
        names: &mut NameResolver<'_>,
        (tables, references): (&[TrackedTable], &KeyReferences),
    ) -> Result<Self> {
        let node = meta::node_id(db)?;
        let mut received = Self::default();
        message_log::for_each_unmerged(db, |message| {
            let Ok(change) = names.log.decode(message) else { return Ok(()) };
            let own = message.timestamp.with_node_id(node);
            let Some((id, key)) = received.add_key(db, names, &change)? else { return Ok(()) };
            let Some(row) = provisional_keys::made_by(db, own)?.filter(|row| row.table == id)
            else {
                return Ok(());
            };
            let table = tables.iter().find(|table| table.id == id);
            let similar =
                SimilarRow { key, since: own, own: names.log.change(own)?, received: change };
            if let [Value::Integer(old)] = row.key_values()?[..]
                && table.is_some_and(|table| similar.is_same_row(table, references))
            {
                received.twins.insert((id, old), similar);
            }
            Ok(())
        })?;
        Ok(received)
    }

    /// Adds the key of a change. Returns it with the table's number, if SQLite may have chosen it.
    fn add_key(
        &mut self,
        db: &Connection,
        names: &mut NameResolver<'_>,
        change: &Change,
    ) -> Result<Option<(i64, i64)>> {
        let (Change::Write { table, key, .. } | Change::Delete { table, key, .. }) = change else {
            return Ok(None);
        };
        let [Value::Integer(key)] = key[..] else { return Ok(None) };
        let id = RowId::new(names.table(table)?, &[Value::Integer(key)]);
        let largest = self.largest.entry(id.table).or_insert(key);
        *largest = key.max(*largest);
        if let Some(since) = provisional_keys::find(db, &id)? {
            self.used_keys.insert((id.table, key), since);
        }
        Ok(Some((id.table, key)))
    }
}

impl SimilarRow {
    /// Returns whether both messages wrote the same values, apart from keys that SQLite chose.
    fn is_same_row(&self, table: &TrackedTable, references: &KeyReferences) -> bool {
        let (Change::Write { cells: own, .. }, Change::Write { cells: received, .. }) =
            (&self.own, &self.received)
        else {
            return false;
        };
        own.len() == received.len()
            && own.iter().zip(received).all(|(own, received)| {
                own.column == received.column
                    && (own.value == received.value
                        || references.target(table.id, &own.column).is_some())
            })
    }
}

fn plan_key_moves(
    db: &Connection,
    names: &mut NameResolver<'_>,
    tables: &[TrackedTable],
    references: &KeyReferences,
) -> Result<KeyMoves> {
    let mut received = ReceivedKeys::read(db, names, (tables, references))?;
    loop {
        let moves = assign_new_keys(db, tables, &received)?;
        // Two rows that look the same but refer to different rows are different rows.
        let before = received.twins.len();
        received.twins.retain(|(id, _), similar| {
            let mut own = similar.own.clone();
            if let Some(table) = tables.iter().find(|table| table.id == *id) {
                follow(references, table, (similar.since, &mut own), &moves);
            }
            own == similar.received
        });
        if received.twins.len() == before {
            // The server has these rows, so their keys are no longer provisional.
            for &(table, key) in received.twins.keys() {
                provisional_keys::forget(db, &RowId::new(table, &[Value::Integer(key)]))?;
            }
            return Ok(moves);
        }
    }
}

fn assign_new_keys(
    db: &Connection,
    tables: &[TrackedTable],
    received: &ReceivedKeys,
) -> Result<KeyMoves> {
    let mut moves = KeyMoves::new();
    for table in tables {
        let of_table = || (table.id, i64::MIN)..=(table.id, i64::MAX);
        for (&(_, old), &SimilarRow { key: new, since, .. }) in received.twins.range(of_table()) {
            if new != old {
                moves
                    .entry(table.id)
                    .or_default()
                    .insert(old, KeyMove { new, since, is_merge: false });
            }
        }
        let taken = received.used_keys.range(of_table());
        let mut free = None;
        for (name, &since) in taken.filter(|(name, _)| !received.twins.contains_key(name)) {
            let largest = received.largest.get(&table.id).copied().unwrap_or(name.1);
            let free = match &mut free {
                Some(free) => free,
                none => none.insert(FreeKeys::above_all(db, table, largest)?),
            };
            // No key follows the largest integer, as in SQLite: then the newest write is visible.
            let Some(new) = free.draw() else { break };
            moves
                .entry(table.id)
                .or_default()
                .insert(name.1, KeyMove { new, since, is_merge: false });
        }
    }
    Ok(moves)
}

/// Replaces keys in a change of this time. Returns whether there was any to replace.
fn follow(
    references: &KeyReferences,
    table: &TrackedTable,
    (at, change): (Timestamp, &mut Change),
    moves: &KeyMoves,
) -> bool {
    let mut has_changed = false;
    let mut replace = |target: Option<i64>, value: &mut Value| {
        let Value::Integer(old) = *value else { return false };
        let to = target.and_then(|target| moves.get(&target)?.get(&old));
        // A backfilled row has no time of its own: it was read while the other row existed.
        let Some(to) = to.filter(|to| at >= to.since || at.is_backfill()) else { return false };
        *value = Value::Integer(to.new);
        has_changed = true;
        true
    };
    let (key, cells) = match change {
        Change::Write { key, cells, .. } => (key, &mut cells[..]),
        Change::Delete { key, .. } => (key, &mut [][..]),
        Change::TableDeclaration { .. } | Change::Chunk { .. } | Change::Erased => return false,
    };
    for (column, value) in table.key.iter().zip(key) {
        if !replace(table.has_auto_key.then_some(table.id), value) {
            replace(references.target(table.id, column), value);
        }
    }
    for cell in cells {
        replace(references.target(table.id, &cell.column), &mut cell.value);
    }
    has_changed
}

fn rewrite_messages(
    db: &Connection,
    names: &mut NameResolver<'_>,
    tables: &[TrackedTable],
    references: &KeyReferences,
    moves: &KeyMoves,
) -> Result<()> {
    let node = meta::node_id(db)?;
    // The messages that were about a row under its old key.
    let mut left: BTreeMap<RowId, BTreeSet<Timestamp>> = BTreeMap::new();
    message_log::rewrite_unsent(db, node, |timestamp, change| {
        let Some(before) = row_of(names, change)? else { return Ok(false) };
        let Some(table) = tables.iter().find(|table| table.id == before.table) else {
            return Ok(false);
        };
        if !follow(references, table, (timestamp, change), moves) {
            return Ok(false);
        }
        let after = row_of(names, change)?.expect("it stays what it is");
        if let Change::Write { cells, .. } = change
            && after != before
            && is_merged(moves, &before)?
        {
            // The other row has these values; the message only states that the row exists.
            cells.clear();
        }
        row_state::mark_dirty(db, &after, true)?;
        if after != before {
            merge_change(names, timestamp, change)?;
            provisional_keys::update_key(db, &before, &after)?;
            left.entry(before).or_default().insert(timestamp);
        }
        Ok(true)
    })?;
    detach_messages(db, names, &left)
}

/// Returns whether the row is merged with another device's.
fn is_merged(moves: &KeyMoves, id: &RowId) -> Result<bool> {
    let [Value::Integer(old)] = id.key_values()?[..] else { return Ok(false) };
    let to = moves.get(&id.table).and_then(|moves| moves.get(&old));
    Ok(to.is_some_and(|to| to.is_merge))
}

/// Removes messages from the states of rows that they no longer concern.
fn detach_messages(
    db: &Connection,
    names: &mut NameResolver<'_>,
    left: &BTreeMap<RowId, BTreeSet<Timestamp>>,
) -> Result<()> {
    // These rows existed before, and are rebuilt from their remaining messages.
    let mut others = BTreeSet::new();
    for (id, gone) in left {
        let row = row_state::load(db, id)?.unwrap_or_default();
        let cells = row.cells().iter().map(|cell| cell.1);
        let all = cells.chain([row.newest_write(), row.tombstone()]);
        if all.filter(|timestamp| *timestamp != Timestamp::ZERO).any(|t| !gone.contains(&t)) {
            others.insert(id.clone());
        }
        row_state::remove(db, id)?;
    }
    rebuild(names, &others)?;
    // The table's row under such a key is the one that has another key now. It must be removed
    // before another row is written there, including columns that the other row may not have.
    left.keys().try_for_each(|id| row_state::mark_dirty_under_other(db, id))
}
