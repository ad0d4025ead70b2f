// A power loss may undo the last commits, but does not corrupt the file.
// Run once per file, not per connection, while no other program has it open:
//   sqlite3 app.db "PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = INCREMENTAL; VACUUM;"
use std::path::Path;

use rusqlite::{Connection, Result};

pub fn open(path: &Path) -> Result<Connection> {
    let db = Connection::open(path)?;
    db.pragma_update(None, "busy_timeout", 5_000)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.pragma_update(None, "journal_size_limit", 67_108_864)?;
    db.pragma_update(None, "foreign_keys", "ON")?;
    db.pragma_update(None, "cache_size", -8_000)?;
    Ok(db)
}
