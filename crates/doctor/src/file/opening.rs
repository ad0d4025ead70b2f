//! Opens a file so that nothing in it changes and no process has to wait: see `opened_file.rs`.

use std::time::Duration;

use engine::{Cipher, FileEncryption, ReadOnlyMode};
use indicatif::DecimalBytes;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::environment::file_environment::FileEnvironment;
use crate::error::{Error, Result, sqlite};
use crate::format::round_to_u64;
use crate::time_limit::ExaminationBudget;

/// The time to wait for a lock of another process.
const BUSY_TIME: Duration = Duration::from_millis(250);
/// The divisor for the share of the remaining time to roll back a journal or read a WAL, which
/// cannot be interrupted.
const RECOVERY_SHARE: u32 = 2;
/// The bytes of a journal or WAL that a slow disk reads per second.
const RECOVERED_BYTES_PER_SECOND: f64 = 1e8;

/// Returns the reason why the content cannot be checked, if there is one.
pub(crate) fn why_closed(
    environment: &FileEnvironment,
    budget: &ExaminationBudget,
) -> Option<String> {
    if environment.stamp.bytes == 0 {
        return Some("the file is empty".to_owned());
    }
    if environment.is_hot && environment.may_be_in_use() {
        return Some("an unfinished transaction must be rolled back first".to_owned());
    }
    if environment.other_names.iter().any(|name| name.has_journal) {
        return Some("a journal or WAL is next to another name of the file (hard link)".to_owned());
    }
    let time = budget.remaining() / RECOVERY_SHARE;
    let readable = round_to_u64(time.as_secs_f64() * RECOVERED_BYTES_PER_SECOND);
    let unread = environment.recovery_bytes();
    let is_long = !environment.may_be_in_use() && unread > readable;
    is_long.then(|| format!("not enough time to read {} of journal or WAL", DecimalBytes(unread)))
}

/// Decides how to open a file that a process may have open.
pub(crate) fn how(environment: &FileEnvironment, is_wal: bool) -> ReadOnlyMode {
    let is_served = environment.has_shm && environment.wal.is_some();
    if is_wal && !is_served { ReadOnlyMode::Overlay } else { ReadOnlyMode::Shared }
}

pub(crate) fn open(
    environment: &FileEnvironment,
    encryption: &FileEncryption,
    how: ReadOnlyMode,
    budget: &ExaminationBudget,
) -> Result<(Connection, Option<Cipher>)> {
    let opened = engine::open_read_only(&environment.path, encryption, how);
    let (mut db, cipher) = opened.map_err(|error| match error {
        engine::Error::NotADatabase { path } => Error::NotADatabase(path),
        engine::Error::WrongKey { .. } | engine::Error::NotEncrypted { .. } => {
            Error::WrongKey(error)
        }
        error => Error::Engine(error),
    })?;
    set_up(&mut db, budget).map_err(sqlite("setting up the connection"))?;
    Ok((db, cipher))
}

/// Configures the connection so that the file cannot make it do anything: functions in its schema
/// are not trusted.
fn set_up(db: &mut Connection, budget: &ExaminationBudget) -> rusqlite::Result<()> {
    db.busy_timeout(BUSY_TIME)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    db.collation_needed(sqlite3mc_sys::stand_in_collation)?;
    db.execute_batch("PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0")?;
    budget.guard(db)
}
