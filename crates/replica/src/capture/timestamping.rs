//! Turns the pending changes that the triggers recorded into messages.
//!
//! Each pending change becomes a message with the time when it was made and the values that its
//! cells have now. A cell that changed several times is sent once, with its last change; a row that
//! no longer exists is sent as one delete.
//!
//! # Invariants
//! - Timestamping runs before anything remote is merged, in the same transaction.
//! - A change is never timestamped later than now, and never before a change that its author saw.

mod last_changes;
mod new_rows;
mod outbox;

use std::collections::HashMap;

use crdt::{Change, ColumnId, Fingerprint, HybridLogicalClock, RowState, Timestamp, Value};
use rusqlite::{CachedStatement, Connection};
use sqlite_schema::quote_identifier;

use self::last_changes::LastChanges;
pub(crate) use self::new_rows::move_from_known_keys;
use self::outbox::OutboxReader;
use super::pending_change::PendingChange;
use super::provisional_keys;
use super::renumber::RenumberedRow;
use crate::apply::merge::{merge_change, record_own_unseen, unseen_writes};
use crate::apply::row_state::{self, NameResolver};
use crate::apply::visibility_override::{self, VisibilityOverrideKind};
use crate::error::Result;
use crate::log::message_log::MessageLog;
use crate::log::value_chunks;
use crate::meta;
use crate::row_id::RowId;
use crate::schema::declaration;
use crate::schema::tracked_table::{DeclaredTable, TrackedTable, check_not_shadowed};
use crate::sql_value::{BoundValue, read};

/// The time of this device's clock, with its correction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CorrectedClock {
    /// The device's clock, in milliseconds since 1970.
    pub(crate) device_ms: u64,
    /// The server's clock minus the device's, if the difference is large enough to matter.
    pub(crate) offset_ms: i64,
}

impl CorrectedClock {
    fn ms(self) -> u64 {
        self.correct(self.device_ms)
    }

    /// Converts a time of the device's clock to the server's clock, limited to the present.
    fn correct(self, device_ms: u64) -> u64 {
        device_ms.min(self.device_ms).saturating_add_signed(self.offset_ms)
    }
}

/// A cell whose author saw another value than the present one.
pub(crate) struct SeenCell {
    pub(crate) row: RowId,
    pub(crate) column: ColumnId,
    /// The message whose value the author saw, if any.
    pub(crate) message: Option<Timestamp>,
}

/// Timestamps the pending changes of these tables. Returns the new rows that got another key first.
pub(crate) fn timestamp_pending(
    db: &Connection,
    tables: &[TrackedTable],
    now: CorrectedClock,
) -> Result<Vec<RenumberedRow>> {
    check_not_shadowed(db, tables)?;
    let renumbered = move_from_known_keys(db, tables)?;
    Timestamper::new(db, tables, now)?.run()?;
    Ok(renumbered)
}

/// Timestamps an edit whose author saw another value in that cell.
pub(crate) fn timestamp_as_seeing(
    db: &Connection,
    tables: &[TrackedTable],
    now: CorrectedClock,
    seen: SeenCell,
) -> Result<()> {
    let mut stamper = Timestamper::new(db, tables, now)?;
    stamper.seen = Some(seen);
    stamper.run()
}

/// Adds a change that no table shows, and that other devices must receive.
pub(crate) fn append_change(db: &Connection, now: CorrectedClock, change: &Change) -> Result<()> {
    let (mut clock, mut fingerprint) = (meta::clock(db)?, meta::fingerprint(db)?);
    let timestamp = clock.next_timestamp(now.ms());
    MessageLog::open(db)?.add_local(timestamp, change, &mut fingerprint)?;
    merge_change(&mut NameResolver::new(db)?, timestamp, change)?;
    meta::set_clock(db, &clock)?;
    meta::set_fingerprint(db, &fingerprint)
}

struct Timestamper<'a> {
    db: &'a Connection,
    log: MessageLog<'a>,
    tables: HashMap<i64, CapturedTable<'a>>,
    now: CorrectedClock,
    clock: HybridLogicalClock,
    fingerprint: Fingerprint,
    count: u64,
    /// Rows whose visibility differs from their liveness, and that were not written here since.
    overrides: HashMap<RowId, VisibilityOverrideKind>,
    /// Whether any table has foreign keys: then a changed row may affect the visibility of others.
    has_references: bool,
    seen: Option<SeenCell>,
}

/// A table with the statement that reads one row of it.
struct CapturedTable<'a> {
    table: &'a TrackedTable,
    select: CachedStatement<'a>,
}

impl<'a> Timestamper<'a> {
    fn new(db: &'a Connection, tables: &'a [TrackedTable], now: CorrectedClock) -> Result<Self> {
        let mut captures = HashMap::new();
        for table in tables {
            // The constant comes first, so that a table that consists only of its key has something
            // to select.
            let columns = table.columns.iter().map(|column| quote_identifier(&column.name));
            let columns: Vec<_> = std::iter::once("1".to_owned()).chain(columns).collect();
            let columns = columns.join(", ");
            let (name, key) = (quote_identifier(&table.name), table.key_condition());
            let select = db.prepare_cached(&format!("SELECT {columns} FROM {name} WHERE {key}"))?;
            captures.insert(table.id, CapturedTable { table, select });
        }
        let (clock, fingerprint) = (meta::clock(db)?, meta::fingerprint(db)?);
        let has_references = tables.iter().any(|table| !table.foreign_keys.is_empty());
        let (log, overrides) =
            (MessageLog::open(db)?, visibility_override::all(db)?.into_iter().collect());
        Ok(Self {
            db,
            log,
            tables: captures,
            now,
            clock,
            fingerprint,
            count: 0,
            has_references,
            overrides,
            seen: None,
        })
    }

    fn run(mut self) -> Result<()> {
        let mut outbox =
            OutboxReader::for_tables(self.tables.values().map(|capture| capture.table));
        while let Some(notes) = outbox.read(self.db)? {
            self.timestamp_chunk(notes)?;
            outbox.delete_read(self.db)?;
        }
        // Declarations follow the changes, because their time is now, later than all changes.
        self.append_declarations()?;
        self.finish()
    }

    fn timestamp_chunk(&mut self, notes: Vec<PendingChange>) -> Result<()> {
        let mut last_by_row: HashMap<RowId, LastChanges> = HashMap::new();
        for (index, noted) in notes.iter().enumerate() {
            let id = RowId::new(noted.table, &noted.key);
            last_by_row.entry(id).or_default().add(index, noted);
        }
        for (index, noted) in notes.into_iter().enumerate() {
            let id = RowId::new(noted.table, &noted.key);
            let last = &last_by_row[&id];
            let capture = self.tables.get_mut(&noted.table).expect("only these tables are read");
            let change = match capture.read(&noted.key)? {
                Some(values) => last.write(index, capture.table, &noted.key, values),
                None => last.delete(index, capture.table, &noted.key),
            };
            if let Some(mut change) = change {
                for chunk in value_chunks::extract_chunks(self.db, &mut change)? {
                    let timestamp = self.clock.next_timestamp(self.now.correct(noted.at_ms));
                    value_chunks::add(&self.log, timestamp, chunk, &mut self.fingerprint)?;
                    self.count += 1;
                }
                let timestamp = self.clock.next_timestamp(self.now.correct(noted.at_ms));
                self.add(timestamp, change, &id, last, index)?;
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        timestamp: Timestamp,
        mut change: Change,
        id: &RowId,
        last: &LastChanges,
        index: usize,
    ) -> Result<()> {
        let known = row_state::load(self.db, id)?;
        if known.is_none() && matches!(change, Change::Delete { .. }) {
            // The row was inserted and deleted since the last sync. Another device may have one of
            // that key.
            return Ok(());
        }
        if known.is_none() && last.inserts_auto_key(index) {
            provisional_keys::record(self.db, id, timestamp)?;
        }
        let mut row = known.unwrap_or_default();
        let visibility_override = self.overrides.remove(id);
        self.record_replaced(&mut change, &row, visibility_override, (id, last));
        self.log.add_local(timestamp, &change, &mut self.fingerprint)?;
        let mut wins = true;
        match &change {
            Change::Write { cells, .. } => {
                let columns = &self.tables[&id.table].table.columns;
                let written = cells.iter().map(|cell| {
                    let column = columns.iter().find(|column| column.name == cell.column);
                    (column.expect("read from these columns").id, cell.replaced)
                });
                let written: Vec<_> = written.collect();
                record_own_unseen(self.db, id, timestamp, &unseen_writes(&row, &written))?;
                row.write(timestamp);
                wins = row.is_live();
                for (column, _) in written {
                    wins &= row.write_cell(column, timestamp);
                }
            }
            Change::Delete { .. } => {
                row.delete(timestamp);
                wins = !row.is_live();
            }
            Change::TableDeclaration { .. } | Change::Chunk { .. } | Change::Erased => {}
        }
        row_state::save(self.db, id, &row)?;
        if !wins {
            // A newer timestamp, which the clock does not follow, wins over the table's value.
            row_state::mark_dirty(self.db, id, true)?;
        }
        if self.has_references {
            row_state::mark_dirty(self.db, id, false)?;
        }
        self.count += 1;
        Ok(())
    }

    /// Records what the author saw in the row: they did not see anything that is merged later.
    fn record_replaced(
        &self,
        change: &mut Change,
        row: &RowState,
        visibility_override: Option<VisibilityOverrideKind>,
        (id, last): (&RowId, &LastChanges),
    ) {
        let shown = visibility_override.map_or(row.is_live(), VisibilityOverrideKind::is_visible);
        let is_dead = !row.is_live() && row.tombstone() != Timestamp::ZERO;
        let seen_delete = is_dead.then(|| row.tombstone());
        match change {
            Change::Write { cells, replaced_tombstone: deleted, .. } => {
                *deleted = seen_delete;
                let columns = &self.tables[&id.table].table.columns;
                for cell in cells.iter_mut().filter(|_| shown) {
                    let position = columns.iter().position(|column| column.name == cell.column);
                    let position = position.expect("read from these columns");
                    if last.unseen().contains(&position) {
                        continue;
                    }
                    let column = columns[position].id;
                    let seen = self.seen.as_ref();
                    let seen = seen.filter(|seen| seen.row == *id && seen.column == column);
                    cell.replaced = seen.map_or_else(|| row.cell(column), |seen| seen.message);
                }
            }
            Change::Delete { replaced: seen, .. } => {
                seen.extend(seen_delete);
                if shown {
                    let cells = row.cells().iter().map(|cell| cell.1);
                    let written = Some(row.newest_write()).filter(|t| *t != Timestamp::ZERO);
                    seen.extend(cells.chain(written));
                }
            }
            Change::TableDeclaration { .. } | Change::Chunk { .. } | Change::Erased => {}
        }
    }

    /// Sends the declarations of tables that were tracked or got columns since the last run.
    fn append_declarations(&mut self) -> Result<()> {
        let sql = "SELECT id, name FROM warren_table WHERE tracked = 1 AND declaration_pending = 1";
        let mut statement = self.db.prepare_cached(sql)?;
        let tables = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let tables: Vec<(i64, String)> = tables.collect::<rusqlite::Result<_>>()?;
        for (id, table) in tables {
            let Some(declared) = DeclaredTable::read(self.db, &table)? else { continue };
            let declaration = declaration::read(self.db, &declared)?;
            if declaration::newest(&self.log, id)?.as_ref() != Some(&declaration) {
                let timestamp = self.clock.next_timestamp(self.now.ms());
                let mut names = NameResolver::new(self.db)?;
                declaration::record_declaration(&mut names, &table, timestamp, &declaration)?;
                let change = Change::TableDeclaration { table, declaration };
                self.log.add_local(timestamp, &change, &mut self.fingerprint)?;
                self.count += 1;
            }
            self.db
                .execute("UPDATE warren_table SET declaration_pending = 0 WHERE id = ?1", [id])?;
        }
        Ok(())
    }

    fn finish(self) -> Result<()> {
        if self.count > 0 {
            meta::set_clock(self.db, &self.clock)?;
            meta::set_fingerprint(self.db, &self.fingerprint)?;
        }
        Ok(())
    }
}

impl CapturedTable<'_> {
    /// Returns the captured values of the row, or `None` if it does not exist.
    fn read(&mut self, key: &[Value]) -> Result<Option<Vec<Value>>> {
        let mut rows = self.select.query(rusqlite::params_from_iter(key.iter().map(BoundValue)))?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(read(row, 1, self.table.columns.len())?))
    }
}
