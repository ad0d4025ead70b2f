//! `warren recover`: saves what can be read of a damaged file into a new one, encrypted or not.
//!
//! First each page is read once, so that those which the disk or the cipher refuse are known: for
//! SQLite's recovery extension they are zeros then. The extension reads the others without the layer
//! that a damaged tree stops, and gives statements, which run on the new file. Beside that the trees
//! are walked page by page, to say what must have been lost. At the end SQLite checks the new file.
//!
//! # Invariants
//! - The damaged file and its folder stay as they are: it is read on an overlay. If somebody wrote to
//!   it meanwhile, nothing is given out.
//! - The new file takes its name when it is whole and on the disk; never the name of another file.
//!   Until then it is in a folder that nobody else can enter, and that goes with the process.
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

/// How to recover.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoverOptions {
    /// Takes rows from free pages, too: most of them were deleted.
    pub includes_free_pages: bool,
    /// Leaves the new file without a key.
    pub decrypts: bool,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoverProgress {
    /// Each page is read.
    Reading {
        /// The page's number.
        page: u32,
        /// All of them.
        pages_count: u32,
    },
    /// Rows go into the new file.
    Saving {
        /// So many are there.
        rows_count: u64,
    },
    /// The new file is checked.
    Checking,
}

/// Steps of the extension between two words about the progress: each is about a value.
const STEPS_PER_WORD: u32 = 20_000;
const PAGES_PER_WORD: u32 = 512;

/// Saves what can be read of `path` in `target`, which must not exist.
///
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

/// Touches each page, so that the filter knows those that cannot be read. Returns the header, if
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
        // The filter has seen what is wrong with it.
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
        // Without a header, SQLite does not say.
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

/// Lets the extension work, and looks at the trees meanwhile.
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

/// What the new file says comes first: it is the reason.
fn step_of(recovery: &mut DatabaseRecovery<'_>, output: &RefCell<RecoveryOutput>) -> Result<bool> {
    let stepped = recovery.step();
    match output.borrow_mut().take_error() {
        Some(error) => Err(sqlite("writing the new file")(error)),
        None => stepped.map_err(sqlite("recovering the content")),
    }
}

/// The extension found neither a header nor a page that would tell the size of all.
fn is_no_database(error: &Error) -> bool {
    let Error::Sqlite { source, .. } = error else { return false };
    source.sqlite_error_code() == Some(ErrorCode::NotADatabase)
}

/// The same key, and the cipher that was found.
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

/// What tells that somebody wrote to the file or to what is beside it.
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

/// Gives the new file its name, unless another file has taken it meanwhile.
fn publish(made: &Path, target: &Path) -> Result<()> {
    let cwd = rustix::fs::CWD;
    match rustix::fs::renameat_with(cwd, made, cwd, target, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(Error::Exists(PathBuf::from(target))),
        // Not every file system can refuse.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            check_free(target)?;
            std::fs::rename(made, target).map_err(io(target))
        }
        Err(error) => Err(io(target)(error.into())),
    }
}
