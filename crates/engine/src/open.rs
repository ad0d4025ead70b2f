//! Opens a file: finds its cipher, proves its key and applies the profile's settings.
//!
//! A connection with a wrong key is dangerous: all checksums of the WAL are wrong to it, so it
//! takes the WAL for empty and deletes it when it closes, with every acknowledged write in it. So
//! the key is first tried on an *immutable* connection, which reads page 1 of the main file and
//! ignores WAL, journal and locks. Only a proven key opens the file for real.
//!
//! A power loss in a checkpoint can tear page 1 of the main file, while the WAL has it whole. Only
//! if the key does not open page 1 alone and a WAL exists, it is tried on both together:
//! exclusively, and without the checkpoint on close that deletes the WAL.
//!
//! # Invariants
//! - No connection with an unproven key can change or delete the WAL of a file that has content.
//! - A wrong key is [`Error::WrongKey`], a missing one [`Error::NotADatabase`]; SQLite's own "file
//!   is not a database" does not leave this file.
//! - The directory of a new file is flushed before anything is stored in the file.
//! - From the moment a connection opens the file until it holds SQLite's lock on it, no other file
//!   takes its name (`maintenance/replace_file.rs`).
//!
//! # Not here
//! - Further requirements of a writer's connection → `open/writable.rs`. Damaged files →
//!   `open/recovery.rs`. Migrations → `open/migrate.rs`. Many files → `databases.rs`.

pub(crate) mod cipher;
mod encryption;
pub(crate) mod key;
pub(crate) mod migrate;
pub(crate) mod page_cache;
pub(crate) mod prepared_connection;
pub(crate) mod profile;
mod recovery;
pub(crate) mod transaction;
mod writable;

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use self::cipher::Cipher;
pub use self::encryption::FileEncryption;
use self::encryption::{DEFAULT_CIPHERS, KeyOrPassphrase};
use self::profile::{Profile, ProfileTarget};
pub use self::recovery::{RecoverySource, open_for_recovery};
pub(crate) use self::writable::{
    WalRecovery, WritableConnection, check_writable, copy_wal, open_writable, recover_abandoned_wal,
};
use crate::error::{Error, Result, io, is_busy, sqlite};
use crate::system::clock;
use crate::system::directory::{directory_of, sync_directory};
use crate::system::directory_lock::DirectoryLock;
use crate::system::side_files::wal_bytes;

/// The number of statements that a connection keeps prepared. Warren has about fifty per database;
/// each costs a few KB.
const STATEMENTS_CACHED_MAX: usize = 128;

const PROBE_FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY
    .union(OpenFlags::SQLITE_OPEN_NO_MUTEX)
    .union(OpenFlags::SQLITE_OPEN_URI);
/// The number of probes next to a WAL: a page that is being written during one is whole in the
/// next.
const PROBES_BESIDE_WAL: usize = 3;

/// The time that creating a file waits for others that open files in the same directory.
const CREATORS_WAIT_MAX: Duration = Duration::from_secs(10);

/// Opens one connection for tools, with the key and the profile's settings, which are read back.
/// Returns the connection and its cipher.
///
/// A `read_only` connection never creates the file, and changes no setting that is stored in it.
pub fn open_connection(
    path: &Path,
    encryption: &FileEncryption,
    profile: &Profile,
    read_only: bool,
    create: bool,
) -> Result<(Connection, Option<Cipher>)> {
    if encryption.secret().is_some() {
        profile::check_encryptable(profile)?;
    }
    let NamedFile { is_empty, _lock } = NamedFile::look(path, create && !read_only)?;
    let cipher =
        if is_empty { encryption.default_cipher() } else { find_cipher(path, encryption)? };
    let connection = connect_named(path, encryption, cipher, profile, read_only)?;
    if is_empty && !read_only {
        sync_directory(directory_of(path))?;
    }
    Ok((connection, cipher))
}

/// A file whose name is locked: from the first check until a connection holds SQLite's lock on it,
/// no other file replaces it, and no other process creates it.
struct NamedFile {
    is_empty: bool,
    _lock: Option<DirectoryLock>,
}

impl NamedFile {
    fn look(path: &Path, create: bool) -> Result<Self> {
        let lock = DirectoryLock::shared(path)?;
        let is_empty = is_missing_or_empty(path, create)?;
        if !create || !is_empty || lock.is_none() {
            return Ok(Self { is_empty, _lock: lock });
        }
        drop(lock);
        let lock = DirectoryLock::exclusive(path, clock::now() + CREATORS_WAIT_MAX)?;
        // Another process may have created the file between the two locks.
        Ok(Self { is_empty: is_missing_or_empty(path, create)?, _lock: Some(lock) })
    }
}

/// The way in which a read-only connection finds a file's committed pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOnlyMode {
    /// Reads only the main file, and takes no locks. No process may change the file at the same
    /// time.
    Immutable,
    /// Respects the locks of other connections, and reads the WAL's index without writing it, so
    /// the index must exist. (Connections of one process share the index: if another of them has it
    /// open for writing, this one's read mark is in it, too.)
    Shared,
    /// Reads as a writer would: rolls back a hot journal and reads a WAL. Writes stay in memory
    /// until the connection is closed, up to 512 MiB (`SQLITE_FULL`). Takes no locks, so no process
    /// may write to the file at the same time.
    Overlay,
}

/// Opens one connection to inspect a file, without a profile. It creates, writes and deletes
/// nothing on the disk. Returns the connection and its cipher.
///
/// A key that only the WAL could prove (see the header of this file) is [`Error::WrongKey`], except
/// with [`ReadOnlyMode::Overlay`].
pub fn open_read_only(
    path: &Path,
    encryption: &FileEncryption,
    how: ReadOnlyMode,
) -> Result<(Connection, Option<Cipher>)> {
    let parameter = match how {
        ReadOnlyMode::Immutable => "immutable=1",
        ReadOnlyMode::Shared => "readonly_shm=1",
        ReadOnlyMode::Overlay => return open_overlay(path, encryption),
    };
    let cipher = find_cipher_of_page_1(path, encryption)?;
    let uri = uri(path.as_os_str().as_encoded_bytes(), parameter);
    let connection = Connection::open_with_flags(uri, PROBE_FLAGS).map_err(sqlite("open"))?;
    if let (Some((secret, _)), Some(cipher)) = (encryption.secret(), cipher) {
        unlock(&connection, secret, cipher).map_err(sqlite("key"))?;
    }
    Ok((connection, cipher))
}

/// Opens a file on an overlay. If page 1 of the main file does not prove the key, the recovered
/// page 1 may: a kill in the middle of a write can tear it. On an overlay, a wrong key does no
/// harm.
fn open_overlay(path: &Path, encryption: &FileEncryption) -> Result<(Connection, Option<Cipher>)> {
    let path = path.canonicalize().map_err(io(path))?;
    match (find_cipher_of_page_1(&path, encryption), encryption.secret()) {
        (Ok(cipher), secret) => {
            let secret = secret.zip(cipher).map(|((secret, _), cipher)| (secret, cipher));
            Ok((connect_overlay(&path, secret)?, cipher))
        }
        (Err(Error::WrongKey { path }), Some((secret, named))) => {
            for cipher in candidates(named.as_ref()) {
                let db = connect_overlay(&path, Some((secret, *cipher)))?;
                if db.query_row("PRAGMA schema_version", [], |_| Ok(())).is_ok() {
                    return Ok((db, Some(*cipher)));
                }
            }
            Err(Error::WrongKey { path })
        }
        (Err(error), _) => Err(error),
    }
}

fn connect_overlay(
    path: &Path,
    secret: Option<(KeyOrPassphrase<'_>, Cipher)>,
) -> Result<Connection> {
    let (name, vfs) = sqlite3mc_sys::overlay(path).map_err(sqlite("overlay"))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let uri = uri(&name, &format!("vfs={vfs}"));
    let db = Connection::open_with_flags(uri, flags).map_err(sqlite("open"))?;
    db.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(sqlite("open"))?;
    db.pragma_update(None, "temp_store", "MEMORY").map_err(sqlite("open"))?;
    if let Some((secret, cipher)) = secret {
        unlock(&db, secret, cipher).map_err(sqlite("key"))?;
    }
    Ok(db)
}

/// Opens one connection with a known cipher and a proven key, such as a further reader.
pub(crate) fn connect(
    path: &Path,
    encryption: &FileEncryption,
    cipher: Option<Cipher>,
    profile: &Profile,
    read_only: bool,
) -> Result<Connection> {
    let _no_swap = DirectoryLock::shared(path)?;
    connect_named(path, encryption, cipher, profile, read_only)
}

/// Opens the connection of a new file, while the lock keeps others from opening files next to it.
pub(crate) fn connect_locked(
    path: &Path,
    encryption: &FileEncryption,
    cipher: Option<Cipher>,
    profile: &Profile,
    _directory: &DirectoryLock,
) -> Result<Connection> {
    connect_named(path, encryption, cipher, profile, false)
}

/// Opens a file for exclusive reading, some pages of which may be damaged. Returns [`Error::Busy`]
/// if another connection has it open.
pub(crate) fn open_damaged(
    path: &Path,
    encryption: &FileEncryption,
    cipher: Option<Cipher>,
) -> Result<Connection> {
    let db = open_exclusive(path)?;
    let no_checkpoint = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    db.set_db_config(no_checkpoint, true).map_err(sqlite("open"))?;
    if let (Some((secret, _)), Some(cipher)) = (encryption.secret(), cipher) {
        unlock(&db, secret, cipher).map_err(sqlite("key"))?;
    }
    db.busy_timeout(Duration::ZERO).map_err(sqlite("busy_timeout"))?;
    // The first read takes the exclusive lock.
    match db.query_row("PRAGMA schema_version", [], |_| Ok(())) {
        Ok(()) => Ok(db),
        Err(error) if is_busy(&error) => Err(Error::Busy),
        Err(error) => Err(sqlite("first read")(error)),
    }
}

/// Opens one connection under a directory lock that the caller holds.
fn connect_named(
    path: &Path,
    encryption: &FileEncryption,
    cipher: Option<Cipher>,
    profile: &Profile,
    read_only: bool,
) -> Result<Connection> {
    let access = if read_only {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    } else {
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
    };
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(sqlite("open"))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED_MAX);
    // Otherwise a statement whose plan depends on a bound value, such as every `LIMIT ?`, is
    // planned again whenever that value is bound, which takes some 20 µs each time.
    let stable_plans = DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG;
    connection.set_db_config(stable_plans, true).map_err(sqlite("open"))?;
    if let (Some((secret, _)), Some(cipher)) = (encryption.secret(), cipher) {
        unlock(&connection, secret, cipher).map_err(sqlite("key"))?;
    }
    let target = ProfileTarget {
        is_encrypted: cipher.is_some(),
        is_read_only: read_only,
        is_empty: has_no_pages(&connection)?,
    };
    profile::apply(profile, &connection, target)?;
    Ok(connection)
}

/// Checks whether a file is missing or empty, without opening it: closing a descriptor of our own
/// would drop the POSIX locks that SQLite's connections in this process hold on it.
fn is_missing_or_empty(path: &Path, create: bool) -> Result<bool> {
    match path.metadata() {
        Ok(metadata) => Ok(metadata.len() == 0),
        Err(error) if create && error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(io(path)(error)),
    }
}

/// Returns the cipher with which the key opens a file that has content, or [`Error::WrongKey`].
pub(crate) fn find_cipher(path: &Path, encryption: &FileEncryption) -> Result<Option<Cipher>> {
    let found = find_cipher_of_page_1(path, encryption);
    if let (Err(Error::WrongKey { .. }), Some((secret, cipher))) = (&found, encryption.secret())
        && wal_bytes(path) > 0
    {
        for cipher in candidates(cipher.as_ref()) {
            if opens_with_wal(path, secret, *cipher)? {
                return Ok(Some(*cipher));
            }
        }
    }
    found
}

fn candidates(cipher: Option<&Cipher>) -> &[Cipher] {
    cipher.map_or(DEFAULT_CIPHERS, std::slice::from_ref)
}

/// Returns the cipher with which the key opens page 1 of the main file.
fn find_cipher_of_page_1(path: &Path, encryption: &FileEncryption) -> Result<Option<Cipher>> {
    let Some((secret, cipher)) = encryption.secret() else {
        let not_a_database = || Error::NotADatabase { path: path.to_owned() };
        return if opens(path, None)? { Ok(None) } else { Err(not_a_database()) };
    };
    // Next to a WAL, another connection may be writing page 1 at this moment.
    let probes_count = if wal_bytes(path) > 0 { PROBES_BESIDE_WAL } else { 1 };
    for _ in 0..probes_count {
        for cipher in candidates(cipher.as_ref()) {
            if opens(path, Some((secret, *cipher)))? {
                return Ok(Some(*cipher));
            }
        }
    }
    if opens(path, None)? {
        return Err(Error::NotEncrypted { path: path.to_owned() });
    }
    Err(wrong_key(path))
}

/// Checks whether the key opens page 1. Reads only the main file (see the header of this file).
fn opens(path: &Path, secret: Option<(KeyOrPassphrase<'_>, Cipher)>) -> Result<bool> {
    let uri = uri(path.as_os_str().as_encoded_bytes(), "immutable=1");
    let probe = Connection::open_with_flags(uri, PROBE_FLAGS).map_err(sqlite("open"))?;
    if let Some((secret, cipher)) = secret {
        unlock(&probe, secret, cipher).map_err(sqlite("key"))?;
    }
    reads(&probe)
}

/// Checks whether the key opens page 1 with the WAL's changes (see the header of this file).
fn opens_with_wal(path: &Path, secret: KeyOrPassphrase<'_>, cipher: Cipher) -> Result<bool> {
    let probe = open_exclusive(path)?;
    let no_checkpoint = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    probe.set_db_config(no_checkpoint, true).map_err(sqlite("open"))?;
    unlock(&probe, secret, cipher).map_err(sqlite("key"))?;
    reads(&probe)
}

/// Opens a connection that locks the file exclusively with its first read, and keeps the WAL's
/// index in its own memory.
fn open_exclusive(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(sqlite("open"))?;
    db.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(sqlite("open"))?;
    Ok(db)
}

fn reads(probe: &Connection) -> Result<bool> {
    match probe.query_row("PRAGMA schema_version", [], |_| Ok(())) {
        Ok(()) => Ok(true),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => Ok(false),
        // Page 1 is readable, but claims more pages than the file has: a checkpoint was killed, and
        // the WAL has the rest. Every cipher reports NotADatabase for a page 1 that it cannot read.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => Ok(true),
        Err(error) => Err(sqlite("first read")(error)),
    }
}

fn unlock(
    connection: &Connection,
    secret: KeyOrPassphrase<'_>,
    cipher: Cipher,
) -> rusqlite::Result<()> {
    connection.execute_batch(&format!("PRAGMA cipher = '{cipher}'"))?;
    assert_eq!(profile::read(connection, "cipher")?, cipher.name(), "this build knows the cipher");
    match secret {
        KeyOrPassphrase::Key(key) => sqlite3mc_sys::set_key(connection, key.as_bytes()),
        KeyOrPassphrase::Passphrase(passphrase) => {
            sqlite3mc_sys::set_passphrase(connection, passphrase.as_bytes())
        }
    }
}

fn has_no_pages(connection: &Connection) -> Result<bool> {
    let pages: i64 = connection
        .query_row("PRAGMA page_count", [], |row| row.get(0))
        .map_err(sqlite("first read"))?;
    Ok(pages == 0)
}

fn uri(name: &[u8], parameter: &str) -> String {
    use std::fmt::Write;

    let mut uri = String::from("file:");
    for &byte in name {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(byte.into());
            }
            _ => write!(uri, "%{byte:02x}").expect("a String takes all that is written to it"),
        }
    }
    uri + "?" + parameter
}

fn wrong_key(path: &Path) -> Error {
    Error::WrongKey { path: path.to_owned() }
}
