//! How a file is opened, so that nothing of it changes and nobody waits: see `subject.rs`.

use std::time::Duration;

use engine::{Cipher, Encryption, Untouched};
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::clock::Budget;
use crate::error::{Error, Result, sqlite};
use crate::figure::{bytes, whole};
use crate::outside::Outside;

/// How long we wait for somebody else's lock.
const BUSY_TIME: Duration = Duration::from_millis(250);
/// Of the time that is left, for playing back a journal or reading a WAL, which nothing interrupts.
const RECOVERY_SHARE: u32 = 2;
/// What of them is read in a second on a slow disk.
const RECOVERED_BYTES_PER_SECOND: f64 = 1e8;

/// Why the content is not looked at, if it is not.
pub(crate) fn why_closed(outside: &Outside, budget: &Budget) -> Option<String> {
    if outside.stamp.bytes == 0 {
        return Some("the file is empty".to_owned());
    }
    if outside.is_hot && outside.may_be_in_use() {
        return Some("an unfinished transaction must be rolled back first".to_owned());
    }
    if outside.other_names.iter().any(|name| name.has_journal) {
        return Some("its journal is beside another of its names".to_owned());
    }
    let time = budget.left() / RECOVERY_SHARE;
    let readable = whole(time.as_secs_f64() * RECOVERED_BYTES_PER_SECOND);
    let unread = outside.recovery_bytes();
    let is_long = !outside.may_be_in_use() && unread > readable;
    is_long.then(|| {
        format!("{} of journal or WAL take too long to read, raise --budget", bytes(unread))
    })
}

/// How a file that somebody may have open is opened.
pub(crate) fn how(outside: &Outside, is_wal: bool) -> Untouched {
    let is_served = outside.has_shm && outside.wal.is_some();
    if is_wal && !is_served { Untouched::Overlay } else { Untouched::Shared }
}

pub(crate) fn open(
    outside: &Outside,
    encryption: &Encryption,
    how: Untouched,
    budget: &Budget,
) -> Result<(Connection, Option<Cipher>)> {
    let is_keyed = !matches!(encryption, Encryption::None);
    let opened = engine::open_untouched(&outside.path, encryption, how);
    let (mut db, cipher) = opened.map_err(|error| match error {
        engine::Error::WrongKey { path } if !is_keyed => Error::NotADatabase(path),
        engine::Error::WrongKey { .. } | engine::Error::NotEncrypted { .. } => {
            Error::WrongKey(error)
        }
        error => Error::Engine(error),
    })?;
    set_up(&mut db, budget).map_err(sqlite("settings"))?;
    Ok((db, cipher))
}

/// Nothing of the file may make us do anything: functions in its schema are not trusted.
fn set_up(db: &mut Connection, budget: &Budget) -> rusqlite::Result<()> {
    db.busy_timeout(BUSY_TIME)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    db.collation_needed(sqlite3mc_sys::stand_in_collation)?;
    db.execute_batch("PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0")?;
    budget.guard(db)
}
