//! Finds the columns that refer to auto keys, and updates them when rows get new keys.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::Connection;
use sqlite_schema::{ForeignKeySchema, quote_identifier};

use super::tracked_table::{self, TrackedTable};
use crate::error::Result;

/// The new keys of rows, by table and old key.
pub(crate) type NewKeys = HashMap<i64, BTreeMap<i64, i64>>;

/// The columns that hold auto keys, with the table of those keys: directly, or as keys of a table
/// whose own key holds them.
pub(crate) struct KeyReferences {
    targets: HashMap<(i64, String), i64>,
}

impl KeyReferences {
    pub(crate) fn new(tables: &[TrackedTable]) -> Self {
        let mut references = Self { targets: HashMap::new() };
        // Each round follows one more link of a chain of tables.
        while tables.iter().any(|table| references.add(table, tables)) {}
        references
    }

    /// Adds the columns of one table. Returns whether a new one was found.
    fn add(&mut self, table: &TrackedTable, tables: &[TrackedTable]) -> bool {
        let before = self.targets.len();
        for ForeignKeySchema { columns, parent, parent_columns, .. } in &table.foreign_keys {
            let parent = tables.iter().find(|table| table.name.eq_ignore_ascii_case(parent));
            let Some(parent) = parent else { continue };
            for (column, parent_column) in columns.iter().zip(parent_columns) {
                let is_key =
                    parent.has_auto_key && parent.key[0].eq_ignore_ascii_case(parent_column);
                let target = self.target(parent.id, parent_column);
                if let Some(target) = target.or(is_key.then_some(parent.id)) {
                    self.targets.insert((table.id, column.to_ascii_lowercase()), target);
                }
            }
        }
        self.targets.len() > before
    }

    /// Returns the table with auto keys whose keys the column holds.
    pub(crate) fn target(&self, table: i64, column: &str) -> Option<i64> {
        self.targets.get(&(table, column.to_ascii_lowercase())).copied()
    }
}

/// Replaces keys in tables that do not sync; rows for which SQLite rejects the update stay
/// unchanged.
pub(crate) fn update_untracked_tables(
    db: &Connection,
    tables: &[TrackedTable],
    new_keys: &NewKeys,
) -> Result<()> {
    let is_tracked = |name: &str| tables.iter().any(|table| table.name.eq_ignore_ascii_case(name));
    for table in sqlite_schema::tables(db)?.iter().filter(|table| table.is_stored()) {
        let name = &table.name;
        if tracked_table::is_internal(name) || is_tracked(name) {
            continue;
        }
        for key in sqlite_schema::foreign_keys(db, name)? {
            let parent = tables.iter().find(|t| t.name.eq_ignore_ascii_case(&key.parent));
            let Some(moved) = parent.and_then(|parent| new_keys.get(&parent.id)) else { continue };
            let parent = &parent.expect("it has moves").key[0];
            let pairs = key.columns.iter().zip(&key.parent_columns);
            for (column, _) in pairs.filter(|(_, target)| target.eq_ignore_ascii_case(parent)) {
                let (name, column) = (quote_identifier(name), quote_identifier(column));
                let sql =
                    format!("UPDATE OR IGNORE main.{name} SET {column} = ?2 WHERE {column} = ?1");
                let mut update = db.prepare(&sql)?;
                for pair in in_order(moved) {
                    update.execute(pair)?;
                }
            }
        }
    }
    Ok(())
}

/// Orders the moves so that a key is assigned to a row only after its old holder got a new one.
fn in_order(moved: &BTreeMap<i64, i64>) -> Vec<(i64, i64)> {
    let (mut order, mut seen) = (Vec::with_capacity(moved.len()), BTreeSet::new());
    for &first in moved.keys() {
        let start = order.len();
        let mut old = first;
        while let Some(&new) = moved.get(&old).filter(|_| seen.insert(old)) {
            order.push((old, new));
            old = new;
        }
        order[start..].reverse();
    }
    order
}
