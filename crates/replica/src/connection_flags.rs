//! What SQLite does on a connection besides what a statement says: triggers, foreign keys.
//!
//! Messages arrive in any order, and what triggers and foreign keys do comes as messages of its own:
//! while Warren writes, both are off, and `materialize` sees to them. On a connection that a program
//! uses, too, its rules are put back afterwards.

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::error::Result;

/// Changing either makes SQLite prepare all statements anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionFlags {
    pub(crate) triggers: bool,
    pub(crate) foreign_keys: bool,
}

impl ConnectionFlags {
    /// Warren's own.
    pub(crate) const DURING_SYNC: Self = Self { triggers: false, foreign_keys: false };

    pub(crate) fn from_connection(db: &Connection) -> Result<Self> {
        Ok(Self {
            triggers: db.db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER)?,
            foreign_keys: db.db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY)?,
        })
    }

    /// Puts these in the place of `others`. Foreign keys stay as they are within a transaction.
    pub(crate) fn apply(self, others: Self, db: &Connection) -> Result<()> {
        if self.triggers != others.triggers {
            set_triggers(db, self.triggers)?;
        }
        if self.foreign_keys != others.foreign_keys {
            db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, self.foreign_keys)?;
        }
        Ok(())
    }
}

/// Lets triggers fire, or not, from here on.
pub(crate) fn set_triggers(db: &Connection, on: bool) -> Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, on)?;
    Ok(())
}
