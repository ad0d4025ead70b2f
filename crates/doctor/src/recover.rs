//! Implements `warren recover`: saves the readable content of a damaged file into a new one,
//! encrypted or not.
//!
//! First, each page is read once to find the pages that the disk or the cipher cannot return:
//! SQLite's recovery extension sees them as zeros. The extension reads the other pages without the
//! layer that fails on a damaged tree, and returns statements, which run on the new file. In
//! addition, the trees are walked page by page, to report what must have been lost. At the end,
//! SQLite checks the new file.
//!
//! # Invariants
//! - The damaged file and its directory are not changed: the file is read on an overlay. If a
//!   process wrote to it during the recovery, no new file is created.
//! - The new file gets its name when it is complete and on the disk, and never replaces another
//!   file. Until then it is in a directory that only this user can enter, and that is removed when
//!   the process ends.
//!
//! # Not here
//! - Opening the damaged file → `engine::open_for_recovery`. The vaults of a server, whose devices
//!   have their rows, repair themselves → `engine::Database::repair_damage`.

mod losses;
mod output;
mod report;

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use engine::{
    Cipher, FileEncryption, RecoverySource, ScratchFolder, directory_of, side_file_path,
    sync_directory,
};
use rusqlite::{Connection, ErrorCode};
use rustix::fs::RenameFlags;
use rustix::io::Errno;
use sqlite3mc_sys::{DatabaseRecovery, RecoveryOptions};

use self::losses::{FoundSchema, TreeLosses};
use self::output::RecoveryOutput;
pub use self::report::{
    LostAndFound, MissingObject, RecoverReport, RecoveredPages, RecoveredTable, RejectedRows,
};
use crate::error::{Error, Result, io, sqlite};
use crate::file::database_header::DatabaseHeader;
use crate::file::opened_file::cipher_name;
use crate::fix::check_unused;

/// The options of a recovery.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoverOptions {
    /// Recovers rows from free pages, too: most of them were deleted.
    pub includes_free_pages: bool,
    /// Writes the new file without encryption.
    pub decrypts: bool,
}

/// The progress of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoverProgress {
    /// The recovery reads each page once.
    Reading {
        /// The number of the page.
        page: u32,
        /// The number of all pages.
        pages_count: u32,
    },
    /// The recovery writes rows into the new file.
    Saving {
        /// The number of rows written so far.
        rows_count: u64,
    },
    /// SQLite checks the new file.
    Checking,
}

/// The number of the extension's steps between two progress reports: each step handles one value.
const STEPS_PER_WORD: u32 = 20_000;
const PAGES_PER_WORD: u32 = 512;

/// Saves the readable content of `path` in `target`, which must not exist.
///
/// # Errors
/// [`Error::InUse`] if a program has the file open, [`Error::Exists`], [`Error::WrongKey`],
/// [`Error::NothingRecovered`].
pub fn recover(
    path: &Path,
    encryption: &FileEncryption,
    target: &Path,
    options: RecoverOptions,
    mut progress: impl FnMut(RecoverProgress),
) -> Result<RecoverReport> {
    let path = path.canonicalize().map_err(io(path))?;
    if !path.metadata().map_err(io(&path))?.is_file() {
        return Err(Error::NotAFile(path));
    }
    check_free(target)?;
    check_unused(&path)?;
    let before = stamps(&path);
    let source = engine::open_for_recovery(&path, encryption).map_err(|error| match error {
        engine::Error::WrongKey { .. } => Error::NothingReadable(path.clone()),
        engine::Error::NotEncrypted { .. } => Error::WrongKey(error),
        error => Error::Engine(error),
    })?;
    let header = survey(&source, &mut progress);
    let parent = directory_of(target);
    let folder = ScratchFolder::new(parent, "recover")?;
    let made = folder.path().join("recovered.sqlite");
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&made);
    drop(new.map_err(io(&made))?);
    let new_encryption = encryption_of_new(encryption, source.cipher, options);

    let output = RecoveryOutput::open(&made, &new_encryption)?;
    let (output, schema, losses) =
        run(&source, output, options, &mut progress).map_err(|error| {
            if is_no_database(&error) { Error::NothingRecovered(path.clone()) } else { error }
        })?;
    progress(RecoverProgress::Checking);
    let is_wal = header.as_ref().is_some_and(|header| header.is_wal);
    let content = output.finish(&made, &new_encryption, &schema, is_wal)?;
    let pages = pages(&source, header.as_ref())?;
    if header.is_none() && source.has_page_1 && !losses.has_tree_page {
        return Err(Error::NothingRecovered(path));
    }
    drop(source.database);
    if stamps(&path) != before {
        return Err(Error::InUse("a program that wrote to it during the recovery".to_owned()));
    }
    File::open(&made).and_then(|file| file.sync_all()).map_err(io(&made))?;
    publish(&made, target)?;
    sync_directory(parent)?;
    let cipher = |encryption: &FileEncryption| match encryption {
        FileEncryption::None => None,
        _ => source.cipher,
    };
    let report = RecoverReport {
        path: path.display().to_string(),
        target_path: target.display().to_string(),
        cipher: cipher_name(source.cipher),
        target_cipher: cipher_name(cipher(&new_encryption)),
        pages,
        ..content.report(&schema, &losses)
    };
    Ok(report.with_totals())
}

/// Reads each page, so that the filter records those that cannot be read. Returns the header, if
/// page 1 has one.
fn survey(
    source: &RecoverySource,
    progress: &mut impl FnMut(RecoverProgress),
) -> Option<DatabaseHeader> {
    let db = source.database.connection();
    let count = db.query_row("PRAGMA page_count", [], |row| row.get(0));
    let pages_count: u32 = count.unwrap_or(0);
    for page in 1..=pages_count {
        if page % PAGES_PER_WORD == 1 {
            progress(RecoverProgress::Reading { page, pages_count });
        }
        // The filter has recorded the error.
        drop(read_page(db, page));
    }
    let header = read_page(db, 1).ok().and_then(|page| DatabaseHeader::parse(&page));
    header.filter(|_| source.has_page_1)
}

fn read_page(db: &Connection, number: u32) -> rusqlite::Result<Vec<u8>> {
    let mut statement = db.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
    statement.query_row([number], |row| row.get(0))
}

fn pages(source: &RecoverySource, header: Option<&DatabaseHeader>) -> Result<RecoveredPages> {
    let db = source.database.connection();
    let count = db.query_row("PRAGMA page_count", [], |row| row.get::<_, u32>(0));
    let count = match (count, header) {
        (Ok(count), _) => u64::from(count),
        // Without a header, SQLite cannot determine the page count.
        (Err(_), None) => 0,
        (Err(error), Some(_)) => return Err(sqlite("PRAGMA page_count")(error)),
    };
    let expected = header.filter(|header| header.has_valid_page_count());
    let expected = expected.map_or(0, |header| u64::from(header.pages_count));
    Ok(RecoveredPages::new(
        count,
        expected.saturating_sub(count),
        source.database.unreadable(),
        source.has_page_1,
    ))
}

/// Runs the extension, and walks the trees as soon as it has found the schema.
fn run(
    source: &RecoverySource,
    output: RecoveryOutput,
    options: RecoverOptions,
    progress: &mut impl FnMut(RecoverProgress),
) -> Result<(RecoveryOutput, FoundSchema, TreeLosses)> {
    let output = RefCell::new(output);
    let recovery_options = RecoveryOptions {
        lost_and_found: Some(output::LOST_AND_FOUND),
        includes_free_pages: options.includes_free_pages,
    };
    let db = source.database.connection();
    let mut recovery = DatabaseRecovery::new(db, recovery_options, |sql, values| {
        output.borrow_mut().run_statement(sql, values)
    })
    .map_err(sqlite("recovering the content"))?;
    let mut is_done = step_of(&mut recovery, &output)?;
    let (schema, losses) = match recovery.workspace() {
        Some(workspace) => {
            let schema =
                FoundSchema::read(workspace).map_err(sqlite("reading the recovered schema"))?;
            let losses = TreeLosses::find(workspace, &source.database.unreadable(), &schema)
                .map_err(sqlite("walking the trees"))?;
            (schema, losses)
        }
        None => (FoundSchema::default(), TreeLosses::default()),
    };
    let mut steps: u32 = 0;
    while !is_done {
        is_done = step_of(&mut recovery, &output)?;
        steps = steps.wrapping_add(1);
        if steps.is_multiple_of(STEPS_PER_WORD) {
            progress(RecoverProgress::Saving { rows_count: output.borrow().rows_count() });
        }
    }
    drop(recovery);
    Ok((output.into_inner(), schema, losses))
}

/// Runs one step. An error of the new file takes precedence, because it is the cause.
fn step_of(recovery: &mut DatabaseRecovery<'_>, output: &RefCell<RecoveryOutput>) -> Result<bool> {
    let stepped = recovery.step();
    match output.borrow_mut().take_error() {
        Some(error) => Err(sqlite("writing the new file")(error)),
        None => stepped.map_err(sqlite("recovering the content")),
    }
}

/// Checks whether the extension found neither a header nor a page that reveals the page size.
fn is_no_database(error: &Error) -> bool {
    let Error::Sqlite { source, .. } = error else { return false };
    source.sqlite_error_code() == Some(ErrorCode::NotADatabase)
}

/// Returns the encryption of the new file: the same key, and the cipher that was found.
fn encryption_of_new(
    encryption: &FileEncryption,
    cipher: Option<Cipher>,
    options: RecoverOptions,
) -> FileEncryption {
    match encryption {
        _ if options.decrypts => FileEncryption::None,
        FileEncryption::None => FileEncryption::None,
        FileEncryption::Key { key, .. } => FileEncryption::Key { key: key.clone(), cipher },
        FileEncryption::Passphrase { passphrase, .. } => {
            FileEncryption::Passphrase { passphrase: passphrase.clone(), cipher }
        }
    }
}

/// Returns sizes and times that change when a process writes to the file, its WAL or its journal.
fn stamps(path: &Path) -> Vec<Option<(u64, i64, i64)>> {
    let of = |suffix| {
        let metadata = side_file_path(path, suffix).metadata().ok()?;
        Some((metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
    };
    ["", "-wal", "-journal"].into_iter().map(of).collect()
}

fn check_free(target: &Path) -> Result<()> {
    let names = ["", "-wal", "-journal"].map(|suffix| side_file_path(target, suffix));
    match names.into_iter().find(|name| name.symlink_metadata().is_ok()) {
        Some(name) => Err(Error::Exists(name)),
        None => Ok(()),
    }
}

/// Gives the new file its name, unless another file has this name by now.
fn publish(made: &Path, target: &Path) -> Result<()> {
    let cwd = rustix::fs::CWD;
    match rustix::fs::renameat_with(cwd, made, cwd, target, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(Error::Exists(PathBuf::from(target))),
        // Not every file system supports this flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            check_free(target)?;
            std::fs::rename(made, target).map_err(io(target))
        }
        Err(error) => Err(io(target)(error.into())),
    }
}
