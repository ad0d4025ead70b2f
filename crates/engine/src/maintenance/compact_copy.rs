//! Creates a compact copy of a database file, with `VACUUM INTO` next to it, and checks it by the
//! number of rows in each table.
//!
//! SQLite's own VACUUM writes every page three times (a temporary file, the WAL, the file), first
//! in a temporary directory that may be too small; and SQLite3MC before 2.6 writes that file in
//! plaintext. `VACUUM INTO` writes each page once, with the original's key and cipher, and takes a
//! half to a third of the time.
//!
//! # Invariants
//! - A copy that is returned opens with the original's key, has its settings, its schema and as
//!   many rows in every table, passes `quick_check`, and is on the disk.
//! - A copy that does not replace the original is removed: when it is dropped, when a signal ends
//!   the program (`system/scratch.rs`), or, after a `kill -9`, when the original is opened next. A
//!   copy in progress is left alone: its process holds a lock on it.
//!
//! # Not here
//! - Replacing the original by the copy → `replace_file.rs`.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::error::{Error, Result, io, sqlite};
use crate::open::cipher::Cipher;
use crate::open::profile::{self, Profile};
use crate::open::{self, FileEncryption};
use crate::system::directory::directory_of;
use crate::system::fs_type::free_bytes;
use crate::system::scratch;
use crate::system::side_files::{
    COPY_FILES, COPY_SUFFIX, bytes_with_wal, open_regular, remove_copy, remove_if_there,
    side_file_path,
};

/// The free disk space that a copy needs, in multiples of the size of the file and its WAL.
const ROOM_FACTOR: u64 = 2;

/// A profile that changes no settings, for files that are not Warren's to configure.
pub(crate) const AS_IS: &Profile =
    &Profile { name: "as-is", about: "what the file and SQLite have", base: &[], changes: &[] };

/// The settings that the copy must share with the original.
const SETTINGS: &[&str] =
    &["user_version", "application_id", "auto_vacuum", "page_size", "encoding"];

/// A finished copy, which is removed when it is dropped.
pub(crate) struct CompactCopy {
    path: PathBuf,
    original: PathBuf,
    /// The file of the copy, locked while the copy is worked on. Closing it drops the locks that
    /// SQLite's connections in this process hold on the same file, so none may be open then.
    file: Option<File>,
}

/// The path, encryption and cipher with which a file is opened.
#[derive(Clone, Copy)]
pub(crate) struct OpenParams<'a> {
    pub(crate) path: &'a Path,
    pub(crate) encryption: &'a FileEncryption,
    pub(crate) cipher: Option<Cipher>,
}

impl CompactCopy {
    /// Creates a copy of the content that `source` reads, on the same file system. `watch` is
    /// called with the connection that checks the copy, so that the caller can interrupt it.
    ///
    /// Returns [`Error::NotEnoughSpace`], [`Error::Busy`] if another process copies the file, or
    /// [`Error::CopyDiffers`].
    pub(crate) fn make(
        source: &Connection,
        original: OpenParams<'_>,
        watch: impl FnOnce(&mut Connection) -> rusqlite::Result<()>,
    ) -> Result<Self> {
        let path = original.path;
        let metadata = path.metadata().map_err(io(path))?;
        if metadata.nlink() > 1 {
            let source = std::io::Error::new(ErrorKind::TooManyLinks, "the file has hard links");
            return Err(io(path)(source));
        }
        check_free_space(path)?;
        let (copy, ()) = Self::fill(path, &metadata, |made| {
            let name = made
                .to_str()
                .ok_or_else(|| io(path)(std::io::Error::other("the path must be valid UTF-8")))?;
            source.execute("VACUUM INTO ?1", [name]).map_err(sqlite("VACUUM INTO"))?;
            check(source, OpenParams { path: made, ..original }, watch)
        })?;
        Ok(copy)
    }

    /// Creates an empty file next to the original, which `fill` turns into a database. Returns it
    /// once it is on the disk.
    pub(crate) fn fill<T>(
        original: &Path,
        metadata: &Metadata,
        fill: impl FnOnce(&Path) -> Result<T>,
    ) -> Result<(Self, T)> {
        check_names(original)?;
        remove_abandoned_copy(original)?;
        let copy = Self::create(original, metadata)?;
        let filled = fill(&copy.path)?;
        let file = copy.file.as_ref().expect("only `finish` takes it");
        file.sync_all().map_err(io(&copy.path))?;
        Ok((copy, filled))
    }

    pub(crate) fn original(&self) -> &Path {
        &self.original
    }

    /// Releases the lock, and leaves the file to the caller.
    pub(crate) fn finish(mut self) -> PathBuf {
        // From here on, no signal removes the file.
        scratch::temporary().copies.retain(|path| *path != self.path);
        // The file is closed before a connection can have locks on it.
        drop(self.file.take());
        std::mem::take(&mut self.path)
    }

    /// Creates an empty file with the original's owner and permissions.
    fn create(original: &Path, metadata: &Metadata) -> Result<Self> {
        let path = side_file_path(original, COPY_SUFFIX);
        let mut options = OpenOptions::new();
        // The list is locked until the copy is in it, so that a signal finds the copy there.
        let mut temporary = scratch::temporary();
        // Other users cannot open the file before it has the original's owner.
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path);
        let file = match file {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(Error::Busy);
            }
            file => file.map_err(io(&path))?,
        };
        temporary.copies.push(path.clone());
        drop(temporary);
        let copy = Self { path, original: original.to_owned(), file: Some(file) };
        let file = copy.file.as_ref().expect("just set");
        if file.try_lock().is_err() {
            return Err(Error::Busy);
        }
        let made = file.metadata().map_err(io(&copy.path))?;
        if (made.uid(), made.gid()) != (metadata.uid(), metadata.gid()) {
            chown(&copy.path, Some(metadata.uid()), Some(metadata.gid())).map_err(io(original))?;
        }
        file.set_permissions(metadata.permissions()).map_err(io(&copy.path))?;
        Ok(copy)
    }
}

impl Drop for CompactCopy {
    fn drop(&mut self) {
        if self.path.as_os_str().is_empty() {
            return;
        }
        // The list is locked until the copy is removed: another process may then create one under
        // the same name.
        let mut temporary = scratch::temporary();
        temporary.copies.retain(|path| *path != self.path);
        if let Err(error) = remove_copy(&self.path) {
            tracing::warn!(%error, "cannot remove a compact copy now; the next open removes it");
        }
    }
}

/// Removes the copy that a killed process has left. A copy in progress stays, and so does anything
/// that is not a copy ([`check_names`]).
pub(crate) fn remove_abandoned_copy(original: &Path) -> Result<()> {
    if let Err(error) = check_names(original) {
        tracing::warn!(%error, "cannot create a compact copy");
        return Ok(());
    }
    let path = side_file_path(original, COPY_SUFFIX);
    let file = match open_regular(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file.map_err(io(&path))?,
    };
    if file.try_lock().is_ok() {
        tracing::info!(path = %path.display(), "removing the compact copy of a killed process");
        for suffix in COPY_FILES {
            remove_if_there(&side_file_path(&path, suffix))?;
        }
    }
    Ok(())
}

/// Returns [`Error::Io`] if something other than a regular file has a name that a copy would take:
/// a link, a FIFO, a folder. Warren creates none of these, so the user must remove it.
pub(crate) fn check_names(original: &Path) -> Result<()> {
    let copy = side_file_path(original, COPY_SUFFIX);
    for path in COPY_FILES.map(|suffix| side_file_path(&copy, suffix)) {
        let is_free = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => true,
            found => found.map_err(io(&path))?.is_file(),
        };
        if !is_free {
            let why = "not a regular file; remove it, because a compact copy needs this name";
            return Err(io(&path)(std::io::Error::new(ErrorKind::AlreadyExists, why)));
        }
    }
    Ok(())
}

/// Returns [`Error::NotEnoughSpace`] unless twice the size of the file and its WAL is free.
pub(crate) fn check_free_space(path: &Path) -> Result<()> {
    let needed = bytes_with_wal(path)?.saturating_mul(ROOM_FACTOR);
    let directory = directory_of(path);
    let free = free_bytes(directory)?;
    if free >= needed {
        Ok(())
    } else {
        Err(Error::NotEnoughSpace { path: directory.to_owned(), needed, free })
    }
}

/// Compares the copy with the content that `source` reads, and gives it the original's journal
/// mode.
fn check(
    source: &Connection,
    copy: OpenParams<'_>,
    watch: impl FnOnce(&mut Connection) -> rusqlite::Result<()>,
) -> Result<()> {
    let OpenParams { path, encryption, cipher } = copy;
    let mut made = open::connect(path, encryption, cipher, AS_IS, false)?;
    watch(&mut made).map_err(sqlite("watch"))?;
    let differs = |what: String| Error::CopyDiffers { path: path.to_owned(), what };
    let found = quick_check(&made)?;
    if found != "ok" {
        return Err(differs(found));
    }
    for &name in SETTINGS {
        let (old, new) = (read(source, name)?, read(&made, name)?);
        if old != new {
            return Err(differs(format!("{name} is {new}, not {old}")));
        }
    }
    let (old, new) = (schema_objects(source)?, schema_objects(&made)?);
    if let Some((old, new)) = old.iter().zip(&new).find(|(old, new)| old != new) {
        return Err(differs(format!("{new:?}, not {old:?}")));
    }
    if old.len() != new.len() {
        return Err(differs(format!("{} schema objects, not {}", new.len(), old.len())));
    }
    let journal_mode = read(source, "journal_mode")?;
    if journal_mode == "wal" {
        let set = "PRAGMA journal_mode = WAL";
        made.query_row(set, [], |_| Ok(())).map_err(sqlite("journal_mode"))?;
        if read(&made, "journal_mode")? != "wal" {
            return Err(differs("not in WAL mode".to_owned()));
        }
    }
    made.close().map_err(|(_, source)| Error::Sqlite { context: "close", source })
}

/// Runs SQLite's own check of a file's structure. Returns `ok`, or the first error.
pub(crate) fn quick_check(db: &Connection) -> Result<String> {
    db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(sqlite("quick_check"))
}

/// The type, name and SQL of a table, index, view or trigger, and the number of rows of a table.
pub(crate) type SchemaObject = (String, String, Option<String>, Option<i64>);

/// Returns each object of the schema, with the number of its rows if it is a table.
pub(crate) fn schema_objects(db: &Connection) -> Result<Vec<SchemaObject>> {
    let sql = "SELECT type, name, sql, type = 'table' AND rootpage > 0 FROM sqlite_schema
               ORDER BY type, name";
    let mut statement = db.prepare(sql).map_err(sqlite("schema"))?;
    let parts = statement.query_map([], |row| {
        Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?, row.get::<_, bool>(3)?))
    });
    let parts = parts.map_err(sqlite("schema"))?;
    parts
        .map(|part| {
            let (kind, name, sql, has_rows) = part.map_err(sqlite("schema"))?;
            let rows = if has_rows { Some(count(db, &name)?) } else { None };
            Ok((kind, name, sql, rows))
        })
        .collect()
}

fn count(db: &Connection, table: &str) -> Result<i64> {
    let sql = format!("SELECT count(*) FROM \"{}\"", table.replace('"', "\"\""));
    db.query_row(&sql, [], |row| row.get(0)).map_err(sqlite("count"))
}

fn read(db: &Connection, name: &'static str) -> Result<String> {
    profile::read(db, name).map_err(sqlite(name))
}
