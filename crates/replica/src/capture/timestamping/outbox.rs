//! Reads the rows of the outbox, in the order in which the triggers wrote them.

use std::collections::HashMap;

use crdt::Value;
use rusqlite::Connection;

use crate::capture::pending_change::PendingChange;
use crate::capture::triggers::NEXT_KEY_AUTO_ASSIGNED;
use crate::error::Result;
use crate::schema::tracked_table::TrackedTable;
use crate::sql_value::read;

/// The maximum number of rows that are read together: bounds memory after a large offline import.
const CHUNK_COUNT_MAX: usize = 50_000;

/// A reader of the outbox rows of some tables.
pub(super) struct OutboxReader {
    key_lengths: HashMap<i64, usize>,
    /// An SQL condition that selects the tables.
    about: String,
    /// The number of the last row that was read.
    last: i64,
    announced: AnnouncedKeys,
}

impl OutboxReader {
    pub(super) fn for_tables<'a>(tables: impl Iterator<Item = &'a TrackedTable>) -> Self {
        let key_lengths: HashMap<_, _> = tables.map(|table| (table.id, table.key.len())).collect();
        let mut ids: Vec<_> = key_lengths.keys().map(ToString::to_string).collect();
        // One set of tables has one text, so the statement stays prepared.
        ids.sort_unstable();
        let about = format!("table_id IN ({})", ids.join(", "));
        Self { key_lengths, about, last: i64::MIN, announced: AnnouncedKeys::default() }
    }

    /// Returns the next changes, or `None` if there are no more.
    pub(super) fn read(&mut self, db: &Connection) -> Result<Option<Vec<PendingChange>>> {
        let widest = self.key_lengths.values().copied().max().unwrap_or(1);
        let key_columns: Vec<_> = (1..=widest).map(|number| format!("key{number}")).collect();
        let sql = format!(
            "SELECT seq, at_ms, table_id, changed_columns, {} FROM warren_outbox
             WHERE {} AND seq > ?1 ORDER BY seq LIMIT {CHUNK_COUNT_MAX}",
            key_columns.join(", "),
            self.about,
        );
        let mut statement = db.prepare_cached(&sql)?;
        let mut rows = statement.query([self.last])?;
        let (mut notes, mut has_read) = (Vec::new(), false);
        while let Some(row) = rows.next()? {
            has_read = true;
            let (seq, table) = (row.get(0)?, row.get(2)?);
            self.last = seq;
            let key = read(row, 4, self.key_lengths.get(&table).copied().unwrap_or(0))?;
            let at_ms = row.get::<_, i64>(1)?.max(0).cast_unsigned();
            let changed_columns = row.get(3)?;
            let mut noted =
                PendingChange { seq, at_ms, table, changed_columns, key, announced: None };
            if noted.changed_columns == NEXT_KEY_AUTO_ASSIGNED {
                self.announced.add(&noted);
            } else {
                if noted.is_whole() {
                    noted.announced = self.announced.take(&noted);
                }
                notes.push(noted);
            }
        }
        Ok(has_read.then_some(notes))
    }

    /// Deletes the rows that were read.
    pub(super) fn delete_read(&self, db: &Connection) -> Result<()> {
        let sql = format!("DELETE FROM warren_outbox WHERE seq <= ?1 AND {}", self.about);
        db.prepare_cached(&sql)?.execute([self.last])?;
        Ok(())
    }
}

/// The keys that SQLite was about to choose: the last announced ones of each table.
#[derive(Default)]
struct AnnouncedKeys {
    by_table: HashMap<i64, AnnouncedKeyRange>,
}

/// Keys that were announced at one time. A statement that leaves rows out (OR IGNORE) skips keys,
/// so the first announced key may be followed by as many as were announced.
struct AnnouncedKeyRange {
    at_ms: u64,
    first: i64,
    last: i64,
    count: i64,
    /// The number of the last outbox row.
    seq: i64,
}

impl AnnouncedKeys {
    fn add(&mut self, noted: &PendingChange) {
        let [Value::Integer(key)] = noted.key[..] else { return };
        let (at_ms, seq) = (noted.at_ms, noted.seq);
        match self.by_table.get_mut(&noted.table) {
            Some(keys) if keys.at_ms == at_ms => {
                *keys = AnnouncedKeyRange { last: key, count: keys.count + 1, seq, ..*keys };
            }
            _ => {
                let keys = AnnouncedKeyRange { at_ms, first: key, last: key, count: 1, seq };
                self.by_table.insert(noted.table, keys);
            }
        }
    }

    /// Returns the outbox row that announced the key of a new row, if there is one.
    fn take(&mut self, noted: &PendingChange) -> Option<i64> {
        let [Value::Integer(key)] = noted.key[..] else { return None };
        let AnnouncedKeyRange { first, last, count, seq, .. } = *self.by_table.get(&noted.table)?;
        let is_it = key == last || (first..first.saturating_add(count)).contains(&key);
        is_it.then(|| self.by_table.remove(&noted.table)).map(|_| seq)
    }
}
