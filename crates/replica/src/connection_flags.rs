//! Switches triggers and foreign keys of a connection off while Warren writes.
//!
//! Messages arrive in any order, and the effects of triggers and foreign keys arrive as messages of
//! their own. So both are off while Warren writes, and `materialize` handles them. On a connection
//! that a program uses, too, its flags are restored afterwards.

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::error::Result;

/// Whether triggers fire and foreign keys are enforced on a connection. Changing either makes
/// SQLite prepare all statements again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionFlags {
    pub(crate) triggers: bool,
    pub(crate) foreign_keys: bool,
}

impl ConnectionFlags {
    /// The flags while Warren writes.
    pub(crate) const DURING_SYNC: Self = Self { triggers: false, foreign_keys: false };

    pub(crate) fn from_connection(db: &Connection) -> Result<Self> {
        Ok(Self {
            triggers: db.db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER)?,
            foreign_keys: db.db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY)?,
        })
    }

    /// Replaces the connection's flags `others` by these. Within a transaction, SQLite does not
    /// change the enforcement of foreign keys.
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

/// Switches triggers on or off.
pub(crate) fn set_triggers(db: &Connection, on: bool) -> Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, on)?;
    Ok(())
}
