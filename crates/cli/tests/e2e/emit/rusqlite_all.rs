// A power loss may undo the last commits, but does not corrupt the file.
// Run once per file, not per connection, while no other program has it open:
//   sqlite3 app.db "PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = INCREMENTAL; VACUUM;"
use std::path::Path;

use rusqlite::{Connection, Result};

pub fn open(path: &Path) -> Result<Connection> {
    let db = Connection::open(path)?;
    db.pragma_update(None, "busy_timeout", 60_000)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.pragma_update(None, "secure_delete", "ON")?;
    db.pragma_update(None, "foreign_keys", "ON")?;
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.pragma_update(None, "cache_size", -64_000)?;
    db.pragma_update(None, "mmap_size", 268_435_456)?;
    db.pragma_update(None, "wal_autocheckpoint", 1_000)?;
    db.pragma_update(None, "analysis_limit", 1_000)?;
    Ok(db)
}
