//! Vacuums one unused file, for tools, and keeps all its settings.
//!
//! # Invariants
//! - The file has the same content afterwards: the same schema, as many rows in every table, sound
//!   by `quick_check`; otherwise there is an error.
//!
//! # Not here
//! - Vacuuming the files of a running program → `database/replace_file.rs`.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::compact_copy::{
    AS_IS, CompactCopy, OpenParams, check_free_space, check_names, quick_check,
    remove_abandoned_copy, schema_objects,
};
use super::replace_file::ExclusiveLock;
use crate::checkpoint;
use crate::error::{Error, Result, io, sqlite};
use crate::open::{self, FileEncryption, profile};
use crate::system::clock;
use crate::system::directory_lock::DirectoryLock;
use crate::system::side_files::bytes_with_wal;

/// The method by which a file is vacuumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VacuumMethod {
    /// The file is replaced by a copy, which `VACUUM INTO` writes next to it.
    Copy,
    /// SQLite's own `VACUUM` moves everything into a temporary file and back.
    InPlace {
        /// Whether the temporary file is in memory.
        in_memory: bool,
    },
}

/// The result of a vacuum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VacuumReport {
    /// The size of the file and its WAL before the vacuum.
    pub bytes_before: u64,
    /// The size of the file and its WAL after the vacuum.
    pub bytes_after: u64,
    /// The number of rows in all tables.
    pub rows: u64,
}

/// The time that a replacement waits for others that open databases in the same directory.
const OPENERS_WAIT_MAX: Duration = Duration::from_secs(10);

/// Vacuums a file. `check_unused` is called right before the file is replaced, while no other
/// connection can read it.
///
/// Returns [`Error::Busy`] if another connection, in any process, has the file open or locked,
/// [`Error::NotEnoughSpace`], [`Error::WrongKey`] or [`Error::CopyDiffers`]. With
/// [`VacuumMethod::Copy`], the file is then unchanged.
pub fn vacuum(
    path: &Path,
    encryption: &FileEncryption,
    way: VacuumMethod,
    check_unused: impl FnOnce() -> Result<()>,
) -> Result<VacuumReport> {
    let path = &path.canonicalize().map_err(io(path))?;
    if way == VacuumMethod::Copy {
        check_names(path)?;
    }
    remove_abandoned_copy(path)?;
    let bytes_before = bytes_with_wal(path)?;
    check_free_space(path)?;
    let rows = match way {
        VacuumMethod::Copy => replace(path, encryption, check_unused)?,
        VacuumMethod::InPlace { in_memory } => in_place(path, encryption, in_memory)?,
    };
    Ok(VacuumReport { bytes_before, bytes_after: bytes_with_wal(path)?, rows })
}

fn replace(
    path: &Path,
    encryption: &FileEncryption,
    check_unused: impl FnOnce() -> Result<()>,
) -> Result<u64> {
    let (db, cipher) = open::open_connection(path, encryption, AS_IS, false, false)?;
    // From here on, no other connection reads or writes the file, so the copy is not made in vain.
    let alone = ExclusiveLock::acquire(&db, clock::now())?;
    alone.empty_wal()?;
    let copy = CompactCopy::make(&db, OpenParams { path, encryption, cipher }, |_| Ok(()))?;
    let rows = count_rows(&db)?;
    let directory = DirectoryLock::exclusive(path, clock::now() + OPENERS_WAIT_MAX)?;
    check_unused()?;
    alone.replace_by(copy, &directory)?;
    Ok(rows)
}

fn in_place(path: &Path, encryption: &FileEncryption, in_memory: bool) -> Result<u64> {
    let (db, _) = open::open_connection(path, encryption, AS_IS, false, false)?;
    let temp_store = if in_memory { "MEMORY" } else { "FILE" };
    db.pragma_update(None, "temp_store", temp_store).map_err(sqlite("temp_store"))?;
    let before = schema_objects(&db)?;
    db.execute_batch("VACUUM").map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy,
        _ => sqlite("VACUUM")(error),
    })?;
    if profile::read(&db, "journal_mode").map_err(sqlite("journal_mode"))? == "wal"
        && !checkpoint::truncate_wal(&db)?
    {
        return Err(Error::Busy);
    }
    let differs = |what| Error::CopyDiffers { path: path.to_owned(), what };
    let found = quick_check(&db)?;
    if found != "ok" {
        return Err(differs(found));
    }
    if schema_objects(&db)? != before {
        return Err(differs("the tables have changed".to_owned()));
    }
    count_rows(&db)
}

fn count_rows(db: &Connection) -> Result<u64> {
    let rows = schema_objects(db)?.into_iter().filter_map(|(_, _, _, rows)| rows);
    Ok(rows.map(i64::cast_unsigned).sum())
}
