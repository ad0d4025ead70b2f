//! Watches which tables are read and written, for live queries.

use std::collections::BTreeSet;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use crate::wasm_error::Result;

/// The prefix of Warren's own tables.
const OWN_PREFIX: &str = "warren_";

/// A watcher of a connection.
#[derive(Default)]
pub(crate) struct TableWatcher {
    read: Arc<Mutex<TableSet>>,
    written: Arc<Mutex<TableSet>>,
}

#[derive(Default)]
struct TableSet {
    all: BTreeSet<String>,
    /// The table that was written last: consecutive rows are mostly written to the same table.
    last: String,
}

impl TableSet {
    fn add(&mut self, table: &str) {
        if self.last != table {
            table.clone_into(&mut self.last);
            if !table.starts_with(OWN_PREFIX) {
                self.all.insert(table.to_owned());
            }
        }
    }
}

impl TableWatcher {
    /// Starts watching. SQLite reports reads when a statement is prepared, and writes row by row,
    /// including those of triggers, of foreign keys and of the sync.
    pub(crate) fn start(db: &mut Connection) -> Result<Self> {
        let watch = Self::default();
        let read = Arc::clone(&watch.read);
        db.authorizer(Some(move |context: AuthContext<'_>| {
            if let AuthAction::Read { table_name, .. } = context.action {
                lock(&read).add(table_name);
            }
            Authorization::Allow
        }))?;
        let written = Arc::clone(&watch.written);
        db.preupdate_hook(Some(move |_, _: &str, table: &str, _: &_| lock(&written).add(table)))?;
        Ok(watch)
    }

    /// Returns the tables that a statement reads.
    pub(crate) fn tables_read(&self, db: &Connection, sql: &str) -> Result<Vec<String>> {
        take(&mut *lock(&self.read));
        db.prepare(sql)?;
        Ok(take(&mut *lock(&self.read)).all.into_iter().collect())
    }

    /// Returns the tables that were written to since the last call.
    pub(crate) fn take_written(&self) -> Vec<String> {
        take(&mut *lock(&self.written)).all.into_iter().collect()
    }
}

fn lock(tables: &Mutex<TableSet>) -> MutexGuard<'_, TableSet> {
    tables.lock().unwrap_or_else(PoisonError::into_inner)
}
