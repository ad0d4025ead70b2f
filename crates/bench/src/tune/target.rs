//! Prepares the measured file: a copy of the person's file, or a new file for a named workload.
//!
//! The person's file is read through a connection that changes nothing, and copied with `VACUUM
//! INTO`: this is a consistent snapshot, even if other programs write to the file. The copy has
//! its own random key, so that key and passphrase are used only to open the file.
//!
//! # Invariants
//! - The person's file is never opened for writing, and no file is created next to it.
//! - An encrypted file stays encrypted in the copy.
//! - Only users who may read the file may read the copy: it has the file's mode, in a folder that
//!   only its owner can enter, and which is removed with the process (`engine::ScratchFolder`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use engine::{
    Cipher, DatabaseKey, FileEncryption, Profile, ReadOnlyMode, ScratchFolder, side_file_path,
    wal_bytes,
};
use rusqlite::Connection;

use super::candidate::{CONVERTED_BYTES_MAX, TuneCondition};
use super::settings::PragmaSettings;
use super::shape;
use super::tune_load::{self, TuneLoad, TuneWorkload};
use crate::disk;
use crate::measure::time;
use crate::sqlite_bench::{CipherAndKey, unlock};

/// How long a snapshot waits for another program's write.
const BUSY_TIME: Duration = Duration::from_secs(10);
/// The most bytes that the load adds to a file while it runs.
const GROWTH_BYTES: u64 = 64 << 20;
/// The offset in page 1 of the read version, which is 2 if the journal is a WAL
/// (<https://sqlite.org/fileformat2.html>, 1.3.3).
const HEADER_READ_VERSION: usize = 19;
/// The profile for a copy, which changes no settings.
const NO_SETTINGS: Profile =
    Profile { name: "none", about: "no settings", base: &[], changes: &[] };

/// The file that is measured, with its load.
pub(crate) struct TuneTarget {
    folder: ScratchFolder,
    base: PathBuf,
    pub(crate) encryption: CipherAndKey,
    /// The size of the copy.
    pub(crate) bytes: u64,
    /// A connection's settings today.
    pub(crate) today: PragmaSettings,
    pub(crate) load: TuneLoad,
    /// How long the copy took.
    pub(crate) copied_in: Option<Duration>,
    /// Variants of the file, by page size and auto-vacuum.
    variants: RefCell<BTreeMap<(String, String), PathBuf>>,
}

/// The person's file.
#[derive(Clone, Debug)]
pub struct TuneSource {
    /// The path of the file.
    pub path: PathBuf,
    /// The key or passphrase of the file, if it has one.
    pub encryption: FileEncryption,
}

impl TuneTarget {
    /// Copies the file, or creates one.
    pub(crate) fn prepare(
        source: Option<&TuneSource>,
        workload: TuneWorkload,
        folder: &Path,
        set_today: &[(String, String)],
    ) -> anyhow::Result<Self> {
        let folder = ScratchFolder::new(folder, "tune").context("cannot use the work directory")?;
        let base = folder.path().join("copy.sqlite");
        let mut journal = None;
        let (mut encryption, mut copied_in) = (None, None);
        if let Some(source) = source {
            let copy = || copy(source, &base, folder.path());
            let (copied, elapsed) = time(copy)?;
            (journal, encryption) = (Some(copied.journal), copied.encryption);
            copied_in = Some(elapsed);
        }
        let load = match workload {
            TuneWorkload::Mail => tune_load::mail(&base)?,
            TuneWorkload::Sync => tune_load::sync(&base)?,
            _ => {
                if source.is_none() {
                    tune_load::plain(&base)?;
                }
                shape::shape(&base, &encryption, workload)?
            }
        };
        let today = today(&base, &encryption, journal, set_today)?;
        let bytes = std::fs::metadata(&base)?.len();
        let variants = RefCell::default();
        Ok(Self { folder, base, encryption, bytes, today, load, copied_in, variants })
    }

    pub(crate) fn character(&self) -> TuneCondition {
        TuneCondition { bytes: self.bytes, is_encrypted: self.encryption.is_some() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns whether a table of the person's file declares a foreign key.
    pub(crate) fn declares_references(&self) -> anyhow::Result<bool> {
        if self.copied_in.is_none() {
            return Ok(false);
        }
        let db = Connection::open(&self.base)?;
        if let Some((cipher, key)) = &self.encryption {
            unlock(&db, cipher, key)?;
        }
        let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema, pragma_foreign_key_list(name)
                                  WHERE type = 'table')";
        Ok(db.query_row(sql, [], |row| row.get(0))?)
    }

    /// Returns the file with these page size and auto-vacuum settings, which is created on first
    /// use.
    pub(crate) fn file(&self, settings: &PragmaSettings) -> anyhow::Result<PathBuf> {
        let of = |settings: &PragmaSettings| {
            let value = |name: &str| settings.get(name).to_owned();
            (value("page_size"), value("auto_vacuum"))
        };
        let wanted = of(settings);
        if wanted == of(&self.today) {
            return Ok(self.base.clone());
        }
        let mut variants = self.variants.borrow_mut();
        if let Some(path) = variants.get(&wanted) {
            return Ok(path.clone());
        }
        ensure!(
            self.encryption.is_none() && self.bytes <= CONVERTED_BYTES_MAX,
            "the file cannot be converted"
        );
        let (page_size, auto_vacuum) = &wanted;
        let path = self.folder.path().join(format!("{page_size}-{auto_vacuum}.sqlite"));
        disk::check(self.folder.path(), 2 * self.bytes + GROWTH_BYTES, "copies of the file")?;
        let db = Connection::open(&self.base)?;
        db.execute_batch(&format!(
            "PRAGMA page_size = {page_size}; PRAGMA auto_vacuum = {auto_vacuum}"
        ))?;
        make_like(&self.base, &path)?;
        vacuum_into(&db, &path)?;
        let found = PragmaSettings::read(&Connection::open(&path)?)?;
        ensure!(
            of(&found) == wanted,
            "SQLite did not apply page_size {page_size} and auto_vacuum {auto_vacuum}"
        );
        variants.insert(wanted, path.clone());
        Ok(path)
    }
}

struct TuneCopy {
    /// The journal mode that the file stores.
    journal: &'static str,
    encryption: CipherAndKey,
}

fn copy(source: &TuneSource, to: &Path, folder: &Path) -> anyhow::Result<TuneCopy> {
    let path = &source.path;
    let name = path.display();
    let metadata = path.metadata().with_context(|| name.to_string())?;
    let unusable = |kind, what| io::Error::new(kind, format!("{name} {what}"));
    ensure!(metadata.is_file(), unusable(ErrorKind::IsADirectory, "is not a file"));
    ensure!(metadata.len() > 0, unusable(ErrorKind::InvalidData, "is empty"));
    let wal = wal_bytes(path);
    let needed = 2 * (metadata.len() + wal) + GROWTH_BYTES;
    disk::check(folder, needed, "a copy of the file and the writes to it")?;
    let journal = side_file_path(path, "-journal").metadata().map_or(0, |it| it.len());
    let is_served = side_file_path(path, "-shm").exists();
    let left: Vec<&str> = match journal {
        0 if wal == 0 || is_served => Vec::new(),
        0 => vec!["-wal"],
        _ => vec!["-journal"],
    };
    if !left.is_empty() {
        // A crashed program left these files behind. SQLite would recover the file in place, so
        // the recovery works on a copy in another folder.
        let recovered = folder.join("recovered.sqlite");
        std::fs::copy(path, &recovered)?;
        for ending in left {
            std::fs::copy(side_file_path(path, ending), side_file_path(&recovered, ending))?;
        }
        let opened =
            engine::open_connection(&recovered, &source.encryption, &NO_SETTINGS, false, false);
        return take(opened?, source, to);
    }
    let before = size_and_mtime(path)?;
    let open = |how| engine::open_read_only(path, &source.encryption, how);
    // A missing WAL index could only be created by writing. If it is missing, no other program
    // writes either.
    let is_immutable = is_wal(&open(ReadOnlyMode::Immutable)?.0)? && !is_served;
    let how = if is_immutable { ReadOnlyMode::Immutable } else { ReadOnlyMode::Shared };
    let copied = take(open(how)?, source, to)?;
    let is_changed = is_immutable && size_and_mtime(path)? != before;
    let what = "was modified while it was being copied; try again";
    ensure!(!is_changed, unusable(ErrorKind::ResourceBusy, what));
    Ok(copied)
}

/// Reads the journal mode from the header, because an immutable connection ignores the WAL.
fn is_wal(db: &Connection) -> anyhow::Result<bool> {
    let sql = "SELECT data FROM sqlite_dbpage WHERE pgno = 1";
    let page: Vec<u8> =
        db.query_row(sql, [], |row| row.get(0)).context("cannot read the first page")?;
    Ok(page.get(HEADER_READ_VERSION) == Some(&2))
}

/// Copies an open database, with its own key for the copy.
fn take(
    (db, cipher): (Connection, Option<Cipher>),
    source: &TuneSource,
    to: &Path,
) -> anyhow::Result<TuneCopy> {
    db.busy_timeout(BUSY_TIME)?;
    // No temporary files may contain plaintext of an encrypted file.
    db.execute_batch("PRAGMA temp_store = MEMORY")?;
    let journal = if is_wal(&db)? { "WAL" } else { "DELETE" };
    make_like(&source.path, to)?;
    vacuum_into(&db, to)?;
    drop(db);
    let Some(cipher) = cipher else { return Ok(TuneCopy { journal, encryption: None }) };
    let (copy, _) = engine::open_connection(to, &source.encryption, &NO_SETTINGS, false, false)?;
    let key = DatabaseKey::generate();
    sqlite3mc_sys::rekey(&copy, key.as_bytes()).context("cannot set a key for the copy")?;
    let key = key.as_bytes().iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    Ok(TuneCopy { journal, encryption: Some((cipher.to_string(), key)) })
}

/// Creates an empty file, for SQLite to fill, with the mode of another file; its owner may write
/// to it.
fn make_like(original: &Path, to: &Path) -> anyhow::Result<()> {
    let mode = original.metadata()?.permissions().mode() & 0o777 | 0o600;
    let file = File::options().write(true).create_new(true).mode(0o600).open(to)?;
    Ok(file.set_permissions(Permissions::from_mode(mode))?)
}

fn vacuum_into(db: &Connection, to: &Path) -> anyhow::Result<()> {
    let to = to.to_str().context("the path of the copy is not UTF-8")?;
    db.execute("VACUUM INTO ?1", [to]).context("cannot copy the file with VACUUM INTO")?;
    Ok(())
}

fn today(
    base: &Path,
    encryption: &CipherAndKey,
    journal: Option<&str>,
    set: &[(String, String)],
) -> anyhow::Result<PragmaSettings> {
    let db = Connection::open(base)?;
    if let Some((cipher, key)) = encryption {
        unlock(&db, cipher, key)?;
    }
    if let Some(journal) = journal {
        db.execute_batch(&format!("PRAGMA journal_mode = {journal}"))?;
    }
    // rusqlite sets a busy timeout; SQLite has none.
    db.busy_timeout(Duration::ZERO)?;
    for (name, value) in set {
        let sql = format!("PRAGMA {name} = {value}");
        db.execute_batch(&sql).with_context(|| sql.clone())?;
    }
    PragmaSettings::read(&db)
}

fn size_and_mtime(path: &Path) -> anyhow::Result<(u64, SystemTime)> {
    let metadata = path.metadata()?;
    Ok((metadata.len(), metadata.modified()?))
}
