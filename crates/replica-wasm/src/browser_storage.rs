//! Stores a database's file in a pool of files in the origin's private file system, or in memory.
//!
//! Each pool has its own directory, so that databases do not wait for each other. In addition to
//! the database it holds one small file: the database's identity, which is not included in copies.
//!
//! # Invariants
//! - A replacement of the database is complete, and opens, before the database is removed; a worker
//!   that finds no database uses the replacement. So a worker that ends at any moment leaves one or
//!   the other.

use std::cell::RefCell;
use std::fmt::Write;

use protocol::ErrorCode;
use replica::FileAccount;
use rsqlite_vfs::VfsFilesManager;
use rsqlite_vfs::transfer::DbTransfer;
use rusqlite::{Connection, OpenFlags};
use sqlite_wasm_rs::WasmOsCallback;
use sqlite_wasm_vfs::sahpool::{OpfsSAHPoolCfgBuilder, OpfsSAHPoolUtil, install};
use zeroize::Zeroizing;

use crate::wasm_error::{Result, WasmError};

const VFS: &std::ffi::CStr = c"warren";
/// The name of the database within its pool.
const FILE: &str = "database";
const IDENTITY: &str = "identity";
/// A file that will replace the database.
const IMPORTED: &str = "arrived";
/// The number of files in a pool: database, WAL, journal, identity, imported file, and a spare one.
const POOL_FILES_COUNT: usize = 6;

/// The key of an encrypted file.
#[derive(PartialEq, Eq)]
pub(crate) enum StorageKey {
    Raw(Zeroizing<[u8; 32]>),
    Passphrase(Zeroizing<String>),
}

pub(crate) struct BrowserStorage {
    /// The pool of files, or `None` if the database is in memory.
    pool: Option<OpfsSAHPoolUtil>,
    key: RefCell<Option<StorageKey>>,
}

impl BrowserStorage {
    pub(crate) fn in_memory() -> Self {
        Self { pool: None, key: RefCell::new(None) }
    }

    /// Acquires the pool of this name; only one worker can have it at a time.
    pub(crate) async fn acquire(name: &str, key: Option<StorageKey>) -> Result<Self> {
        let vfs = VFS.to_str().expect("it is ASCII");
        let options = OpfsSAHPoolCfgBuilder::new()
            .vfs_name(vfs)
            .directory(&format!("warren/{name}"))
            .initial_capacity(POOL_FILES_COUNT)
            .build();
        let pool = install::<WasmOsCallback>(&options, true).await?;
        if pool.is_paused() {
            pool.resume().await?;
        } else {
            sqlite3mc_sys::register_encrypted_vfs(VFS)?;
        }
        Ok(Self { pool: Some(pool), key: RefCell::new(key) })
    }

    /// Opens a connection to the file.
    pub(crate) fn connect(&self) -> Result<Connection> {
        let Some(pool) = &self.pool else { return Ok(Connection::open_in_memory()?) };
        finish_replacing(pool)?;
        connect_to(FILE, self.key.borrow().as_ref())
    }

    /// Returns whether the file is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.key.borrow().is_some()
    }

    /// Returns whether this key opens the file; `None` stands for no key. A database in memory
    /// accepts every key.
    pub(crate) fn has_key(&self, key: Option<&StorageKey>) -> bool {
        self.pool.is_none() || self.key.borrow().as_ref() == key
    }

    /// Encrypts the file with another key, or decrypts it. Its connection must be closed.
    pub(crate) fn rekey(&self, key: Option<StorageKey>) -> Result<()> {
        let pool = self.pool()?;
        let made = self.encrypt_copy(pool, key.as_ref());
        if made.is_err() {
            remove(pool, IMPORTED)?;
            return made;
        }
        remove(pool, FILE)?;
        self.key.replace(key);
        Ok(())
    }

    fn encrypt_copy(&self, pool: &OpfsSAHPoolUtil, key: Option<&StorageKey>) -> Result<()> {
        remove(pool, IMPORTED)?;
        pool.import_db_unchecked(IMPORTED, &pool.export_db(FILE)?)?;
        let copy = connect_to(IMPORTED, self.key.borrow().as_ref())?;
        // A VACUUM reserves the space that a cipher needs in each page. WAL mode forbids it, and
        // its temporary database is not encrypted.
        copy.pragma_update(None, "journal_mode", "delete")?;
        copy.pragma_update(None, "temp_store", "memory")?;
        match key {
            None => sqlite3mc_sys::remove_key(&copy)?,
            Some(StorageKey::Raw(key)) => sqlite3mc_sys::rekey(&copy, key)?,
            Some(StorageKey::Passphrase(words)) => {
                sqlite3mc_sys::rekey_passphrase(&copy, words.as_bytes())?;
            }
        }
        close(copy)?;
        let copy = connect_to(IMPORTED, key)?;
        let found: String = copy.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if found != "ok" {
            return Err(WasmError::new(ErrorCode::CorruptDatabase, found));
        }
        close(copy)
    }

    /// Returns the identity that distinguishes this file from its copies.
    pub(crate) fn identity(&self) -> Result<String> {
        let Some(pool) = &self.pool else { return Ok(random_identity()) };
        if pool.contains(IDENTITY)? {
            let bytes = pool.export_db(IDENTITY)?;
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        let identity = random_identity();
        pool.import_db_unchecked(IDENTITY, identity.as_bytes())?;
        Ok(identity)
    }

    /// Returns the file's bytes. Its connection must be closed.
    pub(crate) fn export(&self) -> Result<Vec<u8>> {
        Ok(self.pool()?.export_db(FILE)?)
    }

    /// Replaces the database by another file, if that opens and belongs to no other account than
    /// `own`. The connection must be closed.
    pub(crate) fn import(&self, bytes: &[u8], own: Option<&FileAccount>) -> Result<()> {
        let pool = self.pool()?;
        remove(pool, IMPORTED)?;
        pool.import_db_unchecked(IMPORTED, bytes)?;
        let checked = connect_to(IMPORTED, self.key.borrow().as_ref())
            .and_then(|db| check_account(own, &db).and(close(db)));
        if checked.is_err() {
            remove(pool, IMPORTED)?;
            return checked;
        }
        for file in [FILE, IDENTITY] {
            remove(pool, file)?;
        }
        Ok(())
    }

    pub(crate) fn release(&self) -> Result<()> {
        self.pool.as_ref().map_or(Ok(()), |pool| Ok(pool.pause()?))
    }

    fn pool(&self) -> Result<&OpfsSAHPoolUtil> {
        let none =
            || WasmError::new(ErrorCode::StorageUnavailable, "this database is in memory only");
        self.pool.as_ref().ok_or_else(none)
    }
}

/// Opens a connection. There is no other one to the file, so the WAL needs no shared memory.
fn connect_to(file: &str, key: Option<&StorageKey>) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let db = Connection::open_with_flags_and_vfs(file, flags, c"multipleciphers-warren")?;
    match key {
        None => {}
        Some(StorageKey::Raw(key)) => sqlite3mc_sys::set_key(&db, key)?,
        Some(StorageKey::Passphrase(words)) => {
            sqlite3mc_sys::set_passphrase(&db, words.as_bytes())?
        }
    }
    db.pragma_update(None, "locking_mode", "exclusive")?;
    // The file is always Warren's, so a failure means that the key is wrong or missing.
    replica::check_key(&db, true)?;
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "synchronous", "normal")?;
    Ok(db)
}

fn check_account(own: Option<&FileAccount>, imported: &Connection) -> Result<()> {
    Ok(own.map_or(Ok(()), |own| own.check_replacement(imported))?)
}

fn close(db: Connection) -> Result<()> {
    Ok(db.close().map_err(|(_, error)| error)?)
}

/// Completes an interrupted replacement: an imported file, which was found to open, replaces a
/// database that was removed for it.
fn finish_replacing(pool: &OpfsSAHPoolUtil) -> Result<()> {
    if !pool.contains(FILE)? && pool.contains(IMPORTED)? {
        pool.import_db_unchecked(FILE, &pool.export_db(IMPORTED)?)?;
    }
    remove(pool, IMPORTED)
}

fn remove(pool: &OpfsSAHPoolUtil, file: &str) -> Result<()> {
    for end in ["", "-journal", "-wal"] {
        pool.remove(&format!("{file}{end}"))?;
    }
    Ok(())
}

fn random_identity() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("a browser gives random numbers");
    bytes.iter().fold(String::from("browser:"), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes all");
        text
    })
}
