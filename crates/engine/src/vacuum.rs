//! Shrinking one file that nobody uses, for tools: whatever its settings, they stay.
//!
//! # Invariants
//! - The file's content afterwards is what it was before: the same schema, as many rows in every
//!   table, sound by `quick_check`; else there is an error.
//!
//! # Not here
//! - Shrinking the files of a running program → `database/shrink.rs`.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use crate::compact::{
    AS_IS, Copy, Opening, bytes_of, check_names, check_room, quick_check, remove_left_over, tables,
};
use crate::error::{Error, Result, io, sqlite};
use crate::open::{self, Encryption};
use crate::swap::{self, Alone, DirectoryLock};
use crate::{clock, profile};

/// How a file is shrunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vacuum {
    /// `VACUUM INTO` a file beside it, which then takes its place.
    Copy,
    /// SQLite's own `VACUUM`, which moves everything into a temporary file and back.
    InPlace {
        /// The temporary file is memory.
        in_memory: bool,
    },
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vacuumed {
    /// The size of the file and its WAL before.
    pub bytes_before: u64,
    /// And after.
    pub bytes_after: u64,
    /// Rows of all tables.
    pub rows: u64,
}

/// While others open databases in the same directory, a swap waits this long.
const OPENERS_WAIT_MAX: Duration = Duration::from_secs(10);

/// Shrinks the file. `check_unused` is called right before the file is replaced, while nobody can
/// read it.
///
/// [`Error::Busy`] if another connection, in any process, has the file open or locked,
/// [`Error::NoRoom`], [`Error::WrongKey`], [`Error::CopyDiffers`]. The file is then as it was.
pub fn vacuum(
    path: &Path,
    encryption: &Encryption,
    way: Vacuum,
    check_unused: impl FnOnce() -> Result<()>,
) -> Result<Vacuumed> {
    let path = &path.canonicalize().map_err(io(path))?;
    if way == Vacuum::Copy {
        check_names(path)?;
    }
    remove_left_over(path)?;
    let bytes_before = bytes_of(path)?;
    check_room(path)?;
    let rows = match way {
        Vacuum::Copy => replace(path, encryption, check_unused)?,
        Vacuum::InPlace { in_memory } => in_place(path, encryption, in_memory)?,
    };
    Ok(Vacuumed { bytes_before, bytes_after: bytes_of(path)?, rows })
}

fn replace(
    path: &Path,
    encryption: &Encryption,
    check_unused: impl FnOnce() -> Result<()>,
) -> Result<u64> {
    let (db, cipher) = open::open_connection(path, encryption, AS_IS, false, false)?;
    // From here on nobody reads or writes it, so that nothing is copied in vain.
    let alone = Alone::take(&db, clock::now())?;
    alone.empty_wal()?;
    let copy = Copy::make(&db, Opening { path, encryption, cipher }, |_| Ok(()))?;
    let rows = rows_of(&db)?;
    let directory = DirectoryLock::alone(path, clock::now() + OPENERS_WAIT_MAX)?;
    check_unused()?;
    alone.replace_by(copy, &directory)?;
    Ok(rows)
}

fn in_place(path: &Path, encryption: &Encryption, in_memory: bool) -> Result<u64> {
    let (db, _) = open::open_connection(path, encryption, AS_IS, false, false)?;
    let temp_store = if in_memory { "MEMORY" } else { "FILE" };
    db.pragma_update(None, "temp_store", temp_store).map_err(sqlite("temp_store"))?;
    let before = tables(&db)?;
    db.execute_batch("VACUUM").map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy,
        _ => sqlite("VACUUM")(error),
    })?;
    if profile::read(&db, "journal_mode").map_err(sqlite("journal_mode"))? == "wal"
        && !swap::truncate(&db)?
    {
        return Err(Error::Busy);
    }
    let differs = |what| Error::CopyDiffers { path: path.to_owned(), what };
    let found = quick_check(&db)?;
    if found != "ok" {
        return Err(differs(found));
    }
    if tables(&db)? != before {
        return Err(differs("the tables are not as they were".to_owned()));
    }
    rows_of(&db)
}

fn rows_of(db: &Connection) -> Result<u64> {
    let rows = tables(db)?.into_iter().filter_map(|(_, _, _, rows)| rows);
    Ok(rows.map(i64::cast_unsigned).sum())
}
