//! Opening a file: which cipher, the right key, the profile's settings.
//!
//! A connection with a wrong key is dangerous: it sees a WAL whose checksums are all wrong, takes
//! it for empty, and deletes it when it closes, with all that was acknowledged into it. So the key
//! is tried first on an *immutable* connection, which reads page 1 of the main file and looks at no
//! WAL, journal or lock. Only a key that has shown itself right opens the file for real.
//!
//! A power loss in a checkpoint can tear page 1 of the main file, which the WAL then holds whole.
//! Only where page 1 alone opens with no key and there is a WAL, the key is tried on both together:
//! exclusively, and without the checkpoint at closing that deletes the WAL.
//!
//! # Invariants
//! - No connection with an unproven key can change or delete the WAL of a file that has content.
//! - A wrong key is [`Error::WrongKey`], a missing one [`Error::NotADatabase`]; SQLite's "file is not
//!   a database" does not leave this file.
//! - The directory of a new file is on the disk before anything is stored in the file.
//! - From the moment that a connection has the file until it has SQLite's lock on it, no other file
//!   takes the name (`maintenance/replace_file.rs`).
//!
//! # Not here
//! - What a writer's connection needs besides → `open/writable.rs`. A file that is damaged →
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

/// Statements that a connection keeps prepared. Ours are about fifty per database; one costs a few
/// KB.
const STATEMENTS_CACHED_MAX: usize = 128;

const PROBE_FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY
    .union(OpenFlags::SQLITE_OPEN_NO_MUTEX)
    .union(OpenFlags::SQLITE_OPEN_URI);
/// A page that is being written when it is read is whole the next time.
const PROBES_BESIDE_WAL: usize = 3;

/// How long the creation of a file waits for others in the same directory that open theirs.
const CREATORS_WAIT_MAX: Duration = Duration::from_secs(10);

/// Opens one connection, for tools: keyed, and with the profile's settings read back. Returns the
/// cipher in use.
///
/// A `read_only` connection never creates the file and sets nothing that lives in it.
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

/// A name that no swap gives to another file, from the first look at it until a connection has its
/// lock on the file; and that nobody else creates meanwhile.
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
        // Another process may have created it meanwhile.
        Ok(Self { is_empty: is_missing_or_empty(path, create)?, _lock: Some(lock) })
    }
}

/// Where an untouched file's committed pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOnlyMode {
    /// In the main file alone, which nobody changes meanwhile: no locks, no other file looked at.
    Immutable,
    /// Other connections may be at work: their locks are respected, and the WAL's index is read and
    /// not written, which needs that it is there. (Connections of one process share the index: where
    /// another of them has it open for writing, this one's read mark is in it, too.)
    Shared,
    /// Where a writer would find them: a hot journal is rolled back, a WAL is read, and whatever is
    /// written stays in memory until the connection is closed, up to 512 MiB (`SQLITE_FULL`). Takes
    /// no locks; nobody may write to the file meanwhile.
    Overlay,
}

/// Opens one connection that creates, writes and deletes nothing on the disk, for looking at files:
/// with no profile. Returns the cipher in use.
///
/// Of a key that only the WAL could prove (see the header of this file), it says
/// [`Error::WrongKey`], but for [`ReadOnlyMode::Overlay`].
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

/// Where page 1 of the main file does not prove the key, the recovered one may: a kill in the middle
/// of a write can tear it. On an overlay, a wrong key does no harm.
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

/// Opens one connection whose cipher is known and whose key has been proven, as for a further
/// reader.
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

/// Opens the connection of a file that is being made, while nobody else opens one in its directory.
pub(crate) fn connect_locked(
    path: &Path,
    encryption: &FileEncryption,
    cipher: Option<Cipher>,
    profile: &Profile,
    _directory: &DirectoryLock,
) -> Result<Connection> {
    connect_named(path, encryption, cipher, profile, false)
}

/// Opens a file alone, of which some pages may be damaged, for reading. [`Error::Busy`] if another
/// connection has it open.
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
    // The first read takes the file.
    match db.query_row("PRAGMA schema_version", [], |_| Ok(())) {
        Ok(()) => Ok(db),
        Err(error) if is_busy(&error) => Err(Error::Busy),
        Err(error) => Err(sqlite("first read")(error)),
    }
}

/// The same, under a lock that is held already.
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
    // Otherwise a statement whose plan looked at a bound value, and every `LIMIT ?` does, is
    // planned anew whenever that is bound: some 20 µs, each time.
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

/// Asks the directory, not the file: closing a descriptor of our own would drop the POSIX locks
/// that SQLite's connections in this process hold on it.
fn is_missing_or_empty(path: &Path, create: bool) -> Result<bool> {
    match path.metadata() {
        Ok(metadata) => Ok(metadata.len() == 0),
        Err(error) if create && error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(io(path)(error)),
    }
}

/// The cipher by which the key opens a file that has content. [`Error::WrongKey`] if none does.
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

/// The cipher by which the key opens page 1 of the main file.
fn find_cipher_of_page_1(path: &Path, encryption: &FileEncryption) -> Result<Option<Cipher>> {
    let Some((secret, cipher)) = encryption.secret() else {
        let not_a_database = || Error::NotADatabase { path: path.to_owned() };
        return if opens(path, None)? { Ok(None) } else { Err(not_a_database()) };
    };
    // Beside a WAL, another connection may just have been writing page 1.
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

/// Does this key open page 1? Reads nothing but the main file (see the header of this file).
fn opens(path: &Path, secret: Option<(KeyOrPassphrase<'_>, Cipher)>) -> Result<bool> {
    let uri = uri(path.as_os_str().as_encoded_bytes(), "immutable=1");
    let probe = Connection::open_with_flags(uri, PROBE_FLAGS).map_err(sqlite("open"))?;
    if let Some((secret, cipher)) = secret {
        unlock(&probe, secret, cipher).map_err(sqlite("key"))?;
    }
    reads(&probe)
}

/// Does this key open page 1 as the WAL has it? See the header of this file.
fn opens_with_wal(path: &Path, secret: KeyOrPassphrase<'_>, cipher: Cipher) -> Result<bool> {
    let probe = open_exclusive(path)?;
    let no_checkpoint = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    probe.set_db_config(no_checkpoint, true).map_err(sqlite("open"))?;
    unlock(&probe, secret, cipher).map_err(sqlite("key"))?;
    reads(&probe)
}

/// A connection that takes the file for itself with its first read, and keeps what it makes of the
/// WAL in its own memory.
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
        // Page 1 is readable, and tells of more pages than the file has: a checkpoint was killed,
        // and the rest of them is in the WAL. Each cipher says NotADatabase of a page 1 that it
        // cannot read.
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
