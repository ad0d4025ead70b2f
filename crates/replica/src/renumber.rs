//! Renumbering: two devices have given one counted key to a new row each. The row that the server
//! does not have yet, which is this device's, gets the next free key, and what refers to it follows.
//!
//! Nobody else has seen the row, so its messages and those that refer to it are changed as if it had
//! had the other key from the beginning; nothing tells that it ever had the first.
//!
//! # Invariants
//! - Runs after local changes are stamped and before remote ones are merged, in the same transaction:
//!   whatever refers to the key in this file means this file's row.
//! - Only messages of this device change, and only while no server has them.
//! - A push of counted rows is stored only if the device has everything that the server has
//!   (`protocol::PushRequest::after`), so no two devices send one counted key.
//!
//! # Not here
//! - References that no foreign key declares: the report names both keys.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crdt::{Change, Timestamp, Value};
use rusqlite::Connection;

use crate::error::Result;
use crate::merge::{merge_one, rebuild, row_of};
use crate::state::{self, Names, RowId};
use crate::table::{self, ForeignKey, Table, quote};
use crate::{counted, log, meta};

/// A new row that got another key, since another device was first to take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renumbered {
    /// The row's table.
    pub table: String,
    /// The key that it had on this device until now.
    pub from: i64,
    /// The key that it has.
    pub to: i64,
}

/// Keys that are given in the place of others, by table and old key.
type Moves = HashMap<i64, BTreeMap<i64, Move>>;

struct Move {
    new: i64,
    /// The message that made the row. SQLite tells a key that it counted to nobody before, so what is
    /// older is about another row.
    since: Timestamp,
}

/// Gives other keys to this device's new rows whose keys received messages name.
pub(crate) fn renumber(db: &Connection, tables: &[Table]) -> Result<Vec<Renumbered>> {
    if !counted::is_any(db)? {
        return Ok(Vec::new());
    }
    let mut names = Names::new(db)?;
    let references = References::new(tables);
    let moves = moves(db, &mut names, tables, &references)?;
    if moves.is_empty() {
        return Ok(Vec::new());
    }
    follow_in_messages(db, &mut names, tables, &references, &moves)?;
    follow_in_other_tables(db, tables, &moves)?;
    let mut done = Vec::new();
    for table in tables {
        for (&from, to) in moves.get(&table.id).into_iter().flatten() {
            done.push(Renumbered { table: table.name.clone(), from, to: to.new });
        }
    }
    Ok(done)
}

/// A row of this device whose key a received message names.
struct Taken {
    /// The message that made it.
    since: Timestamp,
    /// Its change, if the received one is the same of the same moment: this very row, from a file
    /// that is a copy of this one, or that this one is a copy of.
    twin: Option<Change>,
}

fn moves(
    db: &Connection,
    names: &mut Names<'_>,
    tables: &[Table],
    references: &References,
) -> Result<Moves> {
    let mut taken: BTreeMap<(i64, i64), Taken> = BTreeMap::new();
    let mut largest: HashMap<i64, i64> = HashMap::new();
    log::for_each_unmerged(db, |message| {
        let Ok(change) = names.log.decode(message) else { return Ok(()) };
        let (Change::Write { table, key, .. } | Change::Delete { table, key, .. }) = &change else {
            return Ok(());
        };
        let [Value::Integer(number)] = key[..] else { return Ok(()) };
        let id = RowId::new(names.table(table)?, key);
        let largest = largest.entry(id.table).or_insert(number);
        *largest = number.max(*largest);
        let Some(since) = counted::find(db, &id)? else { return Ok(()) };
        let is_of_the_moment = message.timestamp.with_node(since.node()) == since;
        let entry = taken.entry((id.table, number)).or_insert(Taken { since, twin: None });
        if is_of_the_moment && names.log.change(since)? == change {
            entry.twin = Some(change);
        }
        Ok(())
    })?;
    loop {
        let moves = move_all(db, tables, &taken, &largest)?;
        // Two rows that look the same, and refer to rows that are not, are two.
        let before = taken.values().filter(|taken| taken.twin.is_some()).count();
        for ((id, _), Taken { since, twin }) in &mut taken {
            let table = tables.iter().find(|table| table.id == *id);
            let refers = |mut twin: Change| {
                table.is_none_or(|table| references.follow(table, (*since, &mut twin), &moves))
            };
            if twin.clone().is_some_and(refers) {
                *twin = None;
            }
        }
        if taken.values().filter(|taken| taken.twin.is_some()).count() == before {
            return Ok(moves);
        }
    }
}

fn move_all(
    db: &Connection,
    tables: &[Table],
    taken: &BTreeMap<(i64, i64), Taken>,
    largest: &HashMap<i64, i64>,
) -> Result<Moves> {
    let mut moves = Moves::new();
    for table in tables {
        let mut last = None;
        let rows = taken.range((table.id, i64::MIN)..=(table.id, i64::MAX));
        for (&(_, old), &Taken { since, .. }) in rows.filter(|(_, taken)| taken.twin.is_none()) {
            let received = largest.get(&table.id).copied().unwrap_or(old);
            let before = last.map_or_else(|| largest_key(db, table, received), Ok)?;
            // After the last number there is none, as for SQLite: the newest write is shown.
            let Some(new) = i64::checked_add(before, 1) else { break };
            moves.entry(table.id).or_default().insert(old, Move { new, since });
            last = Some(new);
        }
    }
    Ok(moves)
}

/// The largest key that the table ever had, or will have when everything is merged.
fn largest_key(db: &Connection, table: &Table, received: i64) -> Result<i64> {
    let sql = format!("SELECT max({}) FROM {}", quote(&table.key[0]), quote(&table.name));
    let shown: Option<i64> = db.query_row(&sql, [], |row| row.get(0))?;
    let mut largest = received.max(shown.unwrap_or(received));
    let mut statement = db.prepare("SELECT key FROM warren_row WHERE table_id = ?1")?;
    let mut rows = statement.query([table.id])?;
    while let Some(row) = rows.next()? {
        let id = RowId { table: table.id, key: row.get(0)? };
        if let [Value::Integer(number)] = id.key_values()?[..] {
            largest = largest.max(number);
        }
    }
    Ok(largest)
}

/// Which columns hold keys of which counting table, whether directly or of a table whose own key
/// does.
struct References {
    targets: HashMap<(i64, String), i64>,
}

impl References {
    fn new(tables: &[Table]) -> Self {
        let mut references = Self { targets: HashMap::new() };
        // Each round follows one more link of a chain of tables.
        while tables.iter().any(|table| references.add(table, tables)) {}
        references
    }

    /// Whether one was found that was not known.
    fn add(&mut self, table: &Table, tables: &[Table]) -> bool {
        let before = self.targets.len();
        for ForeignKey { columns, parent, parent_columns, .. } in &table.foreign_keys {
            let parent = tables.iter().find(|table| table.name.eq_ignore_ascii_case(parent));
            let Some(parent) = parent else { continue };
            for (column, parent_column) in columns.iter().zip(parent_columns) {
                let is_key = parent.counts && parent.key[0].eq_ignore_ascii_case(parent_column);
                let target = self.target(parent.id, parent_column);
                if let Some(target) = target.or(is_key.then_some(parent.id)) {
                    self.targets.insert((table.id, column.to_ascii_lowercase()), target);
                }
            }
        }
        self.targets.len() > before
    }

    fn target(&self, table: i64, column: &str) -> Option<i64> {
        self.targets.get(&(table, column.to_ascii_lowercase())).copied()
    }

    /// Puts new keys into a change of this moment; whether there was anything to put.
    fn follow(&self, table: &Table, (at, change): (Timestamp, &mut Change), moves: &Moves) -> bool {
        let mut has_changed = false;
        let mut replace = |target: Option<i64>, value: &mut Value| {
            let Value::Integer(old) = *value else { return };
            let to = target.and_then(|target| moves.get(&target)?.get(&old));
            if let Some(to) = to.filter(|to| at >= to.since) {
                *value = Value::Integer(to.new);
                has_changed = true;
            }
        };
        let (key, cells) = match change {
            Change::Write { key, cells, .. } => (key, &mut cells[..]),
            Change::Delete { key, .. } => (key, &mut [][..]),
            Change::Schema { .. } | Change::Part { .. } | Change::Erased => return false,
        };
        for (column, value) in table.key.iter().zip(key) {
            let own = moves.contains_key(&table.id).then_some(table.id);
            replace(self.target(table.id, column).or(own), value);
        }
        for cell in cells {
            replace(self.target(table.id, &cell.column), &mut cell.value);
        }
        has_changed
    }
}

fn follow_in_messages(
    db: &Connection,
    names: &mut Names<'_>,
    tables: &[Table],
    references: &References,
    moves: &Moves,
) -> Result<()> {
    let node = meta::node(db)?;
    // The messages that were about a row under its old key.
    let mut left: BTreeMap<RowId, BTreeSet<Timestamp>> = BTreeMap::new();
    log::change_unsent(db, node, |timestamp, change| {
        let Some(before) = row_of(names, change)? else { return Ok(false) };
        let Some(table) = tables.iter().find(|table| table.id == before.table) else {
            return Ok(false);
        };
        if !references.follow(table, (timestamp, change), moves) {
            return Ok(false);
        }
        let after = row_of(names, change)?.expect("it stays what it is");
        state::unsettle(db, &after, true)?;
        if after != before {
            merge_one(names, timestamp, change)?;
            counted::rekey(db, &before, &after)?;
            left.entry(before).or_default().insert(timestamp);
        }
        Ok(true)
    })?;
    leave(db, names, &left)
}

/// Takes messages out of the state of rows that they are no longer about.
fn leave(
    db: &Connection,
    names: &mut Names<'_>,
    left: &BTreeMap<RowId, BTreeSet<Timestamp>>,
) -> Result<()> {
    // Those that were there before, and are made from what is left of their messages.
    let mut others = BTreeSet::new();
    for (id, gone) in left {
        let row = state::load(db, id)?.unwrap_or_default();
        let cells = row.cells().iter().map(|cell| cell.1);
        let all = cells.chain([row.written(), row.deleted()]);
        if all.filter(|timestamp| *timestamp != Timestamp::ZERO).any(|t| !gone.contains(&t)) {
            others.insert(id.clone());
        }
        state::remove(db, id)?;
        state::unsettle(db, id, true)?;
    }
    rebuild(names, &others)
}

/// Tables that do not sync follow, too; what SQLite refuses there stays as it is.
fn follow_in_other_tables(db: &Connection, tables: &[Table], moves: &Moves) -> Result<()> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let mut statement = db.prepare_cached(sql)?;
    let names = statement.query_map([], |row| row.get(0))?;
    let names: Vec<String> = names.collect::<rusqlite::Result<_>>()?;
    let is_tracked =
        |name: &String| tables.iter().any(|table| table.name.eq_ignore_ascii_case(name));
    for name in names.iter().filter(|name| !table::is_internal(name) && !is_tracked(name)) {
        for key in table::foreign_keys(db, name)? {
            let parent = tables.iter().find(|t| t.name.eq_ignore_ascii_case(&key.parent));
            let Some(moved) = parent.and_then(|parent| moves.get(&parent.id)) else { continue };
            let parent = &parent.expect("it has moves").key[0];
            let pairs = key.columns.iter().zip(&key.parent_columns);
            for (column, _) in pairs.filter(|(_, target)| target.eq_ignore_ascii_case(parent)) {
                let (name, column) = (quote(name), quote(column));
                let sql = format!("UPDATE OR IGNORE {name} SET {column} = ?2 WHERE {column} = ?1");
                let mut update = db.prepare(&sql)?;
                for (old, to) in moved {
                    update.execute((old, to.new))?;
                }
            }
        }
    }
    Ok(())
}
