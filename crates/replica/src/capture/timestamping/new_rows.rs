//! New rows whose keys name other rows. SQLite chooses a key by the rows that the table shows; a row
//! that is hidden, or was deleted, has its key all the same. So the new row gets the first key
//! above all that are known, before a message says anything of it, and what refers to it follows.
//!
//! The row is rekeyed in its table as a program would do it, and the user's triggers fire; what was
//! noted of it is changed as if it had had that key from the beginning. A new row that is gone again
//! is no longer in the table, but in the notes: they are not to delete the other row.
//!
//! # Invariants
//! - Foreign keys are not enforced meanwhile: those of the other row's key stay as they are.
//! - What was noted before the new row is about the other one.
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

/// Gives other keys to new rows whose keys SQLite chose and that name other rows.
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
    // No trigger of the user's fires here: one that refuses would stop every sync.
    update_untracked_tables(db, tables, &new_keys)?;
    Ok(moved.into_values().collect())
}

/// The rows that have held one key since timestamping ran last, in order.
type KeyHolders = Vec<KeyHolder>;

/// A row that holds a key from the note that it was inserted.
struct KeyHolder {
    since: i64,
    row: KeyHolderKind,
}

enum KeyHolderKind {
    /// A row that SQLite gave the key; it gets this one (zero until that is known).
    New { key: i64, is_gone: bool },
    /// The row that the state knows, which a program wrote again, or one that can have no other key.
    Known,
}

/// What the outbox says of keys that SQLite gave to new rows, by table.
#[derive(Default)]
struct KnownKeys {
    /// Of those that the state knows, by key.
    holders: HashMap<i64, BTreeMap<i64, KeyHolders>>,
    /// The largest key that is noted.
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

/// Goes through the notes once more, in their order, and lets each row follow that means a new one.
struct NewRowTracer<'a> {
    db: &'a Connection,
    tables: &'a [TrackedTable],
    references: KeyReferences,
    holders: HashMap<i64, BTreeMap<i64, KeyHolders>>,
    largest: HashMap<i64, i64>,
    /// Rows that have a new row's key in their own, as they were noted last, and what they are now.
    rekeyed: HashMap<RowId, RowId>,
    /// Cells that may hold a new row's key, by row and position, with the last note of them.
    cells: BTreeMap<(RowId, usize), i64>,
}

impl NewRowTracer<'_> {
    fn run(mut self) -> Result<BTreeMap<RowId, RenumberedRow>> {
        let last = triggers::last_note(self.db)?;
        let moved = self.move_new_rows()?;
        let mut outbox = OutboxReader::for_tables(self.tables.iter());
        while let Some(notes) = outbox.read(self.db)? {
            // What comes after these is about the rows as they are now.
            for noted in notes.iter().take_while(|noted| noted.seq <= last) {
                self.trace(noted)?;
            }
        }
        self.rekey_others(&moved)?;
        self.follow_in_cells()?;
        Ok(moved)
    }

    /// Gives the new rows their keys, by what they were.
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
                // After the last number there is none: the row stays what its key says.
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
            // All that are gone get one key, which no other row has.
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

    /// The key that the row gets, if its own has a new row's.
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

    /// What becomes of a key of that table that was written by that note.
    fn new_value(&self, target: i64, value: &Value, seq: i64) -> Option<Value> {
        let Value::Integer(old) = value else { return None };
        let holders = self.holders.get(&target)?.get(old)?;
        let holder = &holders[..holders.partition_point(|holder| holder.since <= seq)].last()?;
        match holder.row {
            KeyHolderKind::New { key, .. } => Some(Value::Integer(key)),
            KeyHolderKind::Known => None,
        }
    }

    /// Gives other keys to rows that have a new row's key in their own.
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
                // What SQLite refuses stays as it is.
                row_writer::write_cell(self.db, table, id, (column, &new))?;
            }
        }
        Ok(())
    }
}

/// Gives a row another key in its table, if it is there; whether SQLite did.
fn rekey_row(db: &Connection, table: &TrackedTable, old: &RowId, new: &[Value]) -> Result<bool> {
    let last = triggers::last_note(db)?;
    let mut shown = row_writer::rekey(db, table, old, new)?;
    if let WriteOutcome::Rejected(_) = shown {
        // A trigger of the user's may be what keeps it.
        set_triggers(db, false)?;
        shown = row_writer::rekey(db, table, old, new)?;
        set_triggers(db, true)?;
    }
    triggers::forget_key_update(db, table, (&old.key_values()?, new), last)?;
    if row_state::is_known(db, old)? {
        // REPLACE may have put the row into the place of the one that the state knows.
        row_state::mark_dirty(db, old, true)?;
    }
    Ok(matches!(shown, WriteOutcome::Written))
}
