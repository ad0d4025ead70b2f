//! Gives other keys to new rows whose keys belong to other rows. SQLite chooses a key by the rows
//! in the table, but a hidden or deleted row keeps its key, too. So the new row gets the first key
//! above all known ones, before a message mentions it, and its references follow.
//!
//! The row is rekeyed in its table like by a program, and the user's triggers fire. Its pending
//! changes are changed as if it had always had that key. A new row that was deleted again is no
//! longer in the table, but in the pending changes, which must not delete the other row.
//!
//! # Invariants
//! - Foreign keys are not enforced during this: references to the other row's key stay unchanged.
//! - Pending changes from before the new row are about the other one.
//!
//! # Not here
//! - New rows whose keys another device takes → `renumber`.

use std::collections::{BTreeMap, HashMap};

use crdt::Value;
use rusqlite::Connection;

use super::outbox::OutboxReader;
use crate::apply::row_state;
use crate::apply::row_writer::{self, WriteOutcome};
use crate::capture::pending_change::PendingChange;
use crate::capture::provisional_keys::{FreeKeys, raise_sequence};
use crate::capture::renumber::RenumberedRow;
use crate::capture::triggers;
use crate::connection_flags::set_triggers;
use crate::error::Result;
use crate::row_id::RowId;
use crate::schema::references::{KeyReferences, NewKeys, update_untracked_tables};
use crate::schema::tracked_table::TrackedTable;

/// Gives other keys to new rows whose keys SQLite chose and that belong to other rows.
pub(crate) fn move_from_known_keys(
    db: &Connection,
    tables: &[TrackedTable],
) -> Result<Vec<RenumberedRow>> {
    let KnownKeys { holders, largest } = KnownKeys::read(db, tables)?;
    if holders.is_empty() {
        return Ok(Vec::new());
    }
    let follower = NewRowTracer {
        db,
        tables,
        references: KeyReferences::new(tables),
        holders,
        largest,
        rekeyed: HashMap::new(),
        cells: BTreeMap::new(),
    };
    set_triggers(db, true)?;
    let moved = follower.run();
    set_triggers(db, false)?;
    let moved = moved?;
    let mut new_keys = NewKeys::new();
    for (id, RenumberedRow { old_key: from, new_key: to, .. }) in &moved {
        new_keys.entry(id.table).or_default().insert(*from, *to);
    }
    // The user's triggers do not fire here: one that fails would stop every sync.
    update_untracked_tables(db, tables, &new_keys)?;
    Ok(moved.into_values().collect())
}

/// The rows that have held one key since timestamping last ran, in order.
type KeyHolders = Vec<KeyHolder>;

/// A row that holds a key, from the outbox row of its insertion on.
struct KeyHolder {
    since: i64,
    row: KeyHolderKind,
}

enum KeyHolderKind {
    /// A row to which SQLite assigned the key, and its new key (zero until it is chosen).
    New { key: i64, is_gone: bool },
    /// The row of the row state, written again by a program, or a row that cannot get another key.
    Known,
}

/// The keys in the outbox that SQLite assigned to new rows, by table.
#[derive(Default)]
struct KnownKeys {
    /// The holders of those keys that a row state has, by key.
    holders: HashMap<i64, BTreeMap<i64, KeyHolders>>,
    /// The largest key in the outbox.
    largest: HashMap<i64, i64>,
}

impl KnownKeys {
    fn read(db: &Connection, tables: &[TrackedTable]) -> Result<Self> {
        let mut found = Self::default();
        let mut outbox = OutboxReader::for_tables(tables.iter().filter(|table| table.has_auto_key));
        while let Some(notes) = outbox.read(db)? {
            notes.iter().try_for_each(|noted| found.add(db, noted))?;
        }
        Ok(found)
    }

    fn add(&mut self, db: &Connection, noted: &PendingChange) -> Result<()> {
        let [Value::Integer(key)] = noted.key[..] else { return Ok(()) };
        let largest = self.largest.entry(noted.table).or_insert(key);
        *largest = key.max(*largest);
        let holders = self.holders.get_mut(&noted.table).and_then(|holders| holders.get_mut(&key));
        let last = holders.and_then(|holders| holders.last_mut()).map(|holder| &mut holder.row);
        let is_there = matches!(last, Some(KeyHolderKind::New { is_gone: false, .. }));
        let row = match (noted.changed_columns.as_str(), last) {
            ("-", Some(KeyHolderKind::New { is_gone, .. })) => {
                *is_gone = true;
                return Ok(());
            }
            ("*", _) if is_there => return Ok(()),
            ("*", _) if noted.has_auto_key() => KeyHolderKind::New { key: 0, is_gone: false },
            ("*", Some(_)) => KeyHolderKind::Known,
            _ => return Ok(()),
        };
        if row_state::is_known(db, &RowId::new(noted.table, &noted.key))? {
            let holders = self.holders.entry(noted.table).or_default().entry(key).or_default();
            holders.push(KeyHolder { since: noted.seq, row });
        }
        Ok(())
    }
}

/// Reads the outbox again, in order, and lets each row follow that refers to a new row.
struct NewRowTracer<'a> {
    db: &'a Connection,
    tables: &'a [TrackedTable],
    references: KeyReferences,
    holders: HashMap<i64, BTreeMap<i64, KeyHolders>>,
    largest: HashMap<i64, i64>,
    /// Rows whose key contains a new row's key, under their last recorded id, with their new id.
    rekeyed: HashMap<RowId, RowId>,
    /// Cells that may hold a new row's key, by row and position, with their last outbox row.
    cells: BTreeMap<(RowId, usize), i64>,
}

impl NewRowTracer<'_> {
    fn run(mut self) -> Result<BTreeMap<RowId, RenumberedRow>> {
        let last = triggers::last_note(self.db)?;
        let moved = self.move_new_rows()?;
        let mut outbox = OutboxReader::for_tables(self.tables.iter());
        while let Some(notes) = outbox.read(self.db)? {
            // Later outbox rows are about the rows under their new keys.
            for noted in notes.iter().take_while(|noted| noted.seq <= last) {
                self.trace(noted)?;
            }
        }
        self.rekey_others(&moved)?;
        self.follow_in_cells()?;
        Ok(moved)
    }

    /// Gives the new rows their keys. Returns the moves by old id.
    fn move_new_rows(&mut self) -> Result<BTreeMap<RowId, RenumberedRow>> {
        let mut moved = BTreeMap::new();
        for table in self.tables {
            let Some(holders_by_key) = self.holders.get_mut(&table.id) else { continue };
            let largest = self.largest.get(&table.id).copied().unwrap_or(0);
            let mut free = FreeKeys::above_all(self.db, table, largest)?;
            for (&from, holders) in holders_by_key.iter_mut() {
                let Some(KeyHolder {
                    row: row @ KeyHolderKind::New { is_gone: false, .. }, ..
                }) = holders.last_mut()
                else {
                    continue;
                };
                // If no key is left, or SQLite rejects it, the row counts as the known one.
                *row = KeyHolderKind::Known;
                let id = RowId::new(table.id, &[Value::Integer(from)]);
                let Some(to) = free.draw() else { continue };
                if rekey_row(self.db, table, &id, &[Value::Integer(to)])? {
                    *row = KeyHolderKind::New { key: to, is_gone: false };
                    moved.insert(
                        id,
                        RenumberedRow { table: table.name.clone(), old_key: from, new_key: to },
                    );
                }
            }
            // All deleted rows get one key, which no other row has.
            let mut of_gone = None;
            for holder in holders_by_key.values_mut().flatten() {
                if let KeyHolderKind::New { key, is_gone: true } = &mut holder.row {
                    *key = *of_gone.get_or_insert_with(|| free.draw().unwrap_or(i64::MAX));
                }
            }
            raise_sequence(self.db, table, free.last())?;
        }
        Ok(moved)
    }

    fn trace(&mut self, noted: &PendingChange) -> Result<()> {
        let tables = self.tables;
        let table = tables.iter().find(|table| table.id == noted.table);
        let table = table.expect("only of these tables");
        let mut id = RowId::new(table.id, &noted.key);
        if noted.is_whole() {
            match self.new_key(table, noted) {
                Some(key) => drop(self.rekeyed.insert(id.clone(), RowId::new(table.id, &key))),
                None => drop(self.rekeyed.remove(&id)),
            }
        }
        if let Some(new) = self.rekeyed.get(&id) {
            let key = new.key_values()?;
            for seq in noted.announced.into_iter().chain([noted.seq]) {
                triggers::change_key(self.db, table, seq, &key)?;
            }
            id = new.clone();
        }
        for (position, column) in table.columns.iter().enumerate() {
            let target = self.references.target(table.id, &column.name);
            if target.is_some_and(|target| self.holders.contains_key(&target))
                && noted.has_written(position)
            {
                self.cells.insert((id.clone(), position), noted.seq);
            }
        }
        Ok(())
    }

    /// Returns the key that the row gets, if its key contains a new row's.
    fn new_key(&self, table: &TrackedTable, noted: &PendingChange) -> Option<Vec<Value>> {
        let mut key = noted.key.clone();
        for (column, value) in table.key.iter().zip(&mut key) {
            let own = table.has_auto_key.then_some(table.id);
            let target = self.references.target(table.id, column);
            let mut targets = own.into_iter().chain(target);
            if let Some(new) = targets.find_map(|target| self.new_value(target, value, noted.seq)) {
                *value = new;
            }
        }
        (key != noted.key).then_some(key)
    }

    /// Returns the replacement of a key of table `target` that outbox row `seq` has written.
    fn new_value(&self, target: i64, value: &Value, seq: i64) -> Option<Value> {
        let Value::Integer(old) = value else { return None };
        let holders = self.holders.get(&target)?.get(old)?;
        let holder = &holders[..holders.partition_point(|holder| holder.since <= seq)].last()?;
        match holder.row {
            KeyHolderKind::New { key, .. } => Some(Value::Integer(key)),
            KeyHolderKind::Known => None,
        }
    }

    /// Gives other keys to rows whose keys contain a new row's.
    fn rekey_others(&self, moved: &BTreeMap<RowId, RenumberedRow>) -> Result<()> {
        for (old, new) in self.rekeyed.iter().filter(|(old, _)| !moved.contains_key(*old)) {
            let table = self.tables.iter().find(|table| table.id == old.table);
            let table = table.expect("only of these tables");
            let key = new.key_values()?;
            if !rekey_row(self.db, table, old, &key)? {
                triggers::change_key_back(self.db, table, (&old.key_values()?, &key))?;
            }
        }
        Ok(())
    }

    fn follow_in_cells(&self) -> Result<()> {
        for ((id, position), seq) in &self.cells {
            let table = self.tables.iter().find(|table| table.id == id.table);
            let table = table.expect("only of these tables");
            let column = &table.columns[*position].name;
            let target = self.references.target(table.id, column).expect("it refers to one");
            let Some(value) = row_writer::cell(self.db, table, id, column)? else { continue };
            if let Some(new) = self.new_value(target, &value, *seq) {
                // If SQLite rejects the value, the cell stays unchanged.
                row_writer::write_cell(self.db, table, id, (column, &new))?;
            }
        }
        Ok(())
    }
}

/// Gives a row another key in its table, if it exists there. Returns whether SQLite accepted it.
fn rekey_row(db: &Connection, table: &TrackedTable, old: &RowId, new: &[Value]) -> Result<bool> {
    let last = triggers::last_note(db)?;
    let mut shown = row_writer::rekey(db, table, old, new)?;
    if let WriteOutcome::Rejected(_) = shown {
        // A user's trigger may have prevented it.
        set_triggers(db, false)?;
        shown = row_writer::rekey(db, table, old, new)?;
        set_triggers(db, true)?;
    }
    triggers::forget_key_update(db, table, (&old.key_values()?, new), last)?;
    if row_state::is_known(db, old)? {
        // With REPLACE, the new row may have replaced the row of the row state.
        row_state::mark_dirty(db, old, true)?;
    }
    Ok(matches!(shown, WriteOutcome::Written))
}
