//! Opens the connection that writes, which must be able to write and must not build on data that
//! another process left unflushed.
//!
//! # Invariants
//! - A writer never builds upon a WAL that this process has not written: its pages are first moved
//!   into the file, by a checkpoint with its fsyncs. The kernel considers pages that an earlier
//!   process could not write as written, so a flush of that WAL would prove nothing.
//!
//! # Not here
//! - Recovering a database that is open → `database/recover.rs`.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, MAIN_DB};

use super::{FileEncryption, NamedFile, connect_named, find_cipher, open_exclusive, unlock};
use crate::checkpoint::truncate_wal;
use crate::error::{Error, Result, is_busy, sqlite};
use crate::open::cipher::Cipher;
use crate::open::profile::{self, Profile};
use crate::system::directory::{directory_of, sync_directory};
use crate::system::side_files::wal_bytes;

/// A connection that was found to be able to write.
pub(crate) struct WritableConnection {
    pub(crate) connection: Connection,
    pub(crate) cipher: Option<Cipher>,
    /// The reason why the abandoned WAL could not be moved to the disk, if so: the database can be
    /// read, and must recover before it is written to.
    pub(crate) wal_failure: Option<Error>,
}

/// Opens the connection of a writer.
pub(crate) fn open_writable(
    path: &Path,
    encryption: &FileEncryption,
    profile: &Profile,
    create: bool,
) -> Result<WritableConnection> {
    if encryption.secret().is_some() {
        profile::check_encryptable(profile)?;
    }
    let NamedFile { is_empty, _lock } = NamedFile::look(path, create)?;
    let cipher =
        if is_empty { encryption.default_cipher() } else { find_cipher(path, encryption)? };
    let (left, wal_failure) = match recover_abandoned_wal(path, encryption, cipher) {
        Ok(left) => (left, None),
        Err(error) if error.is_io() || matches!(error, Error::DiskFull { .. }) => {
            (WalRecovery::Recovered, Some(error))
        }
        Err(error) => return Err(error),
    };
    let connection = connect_named(path, encryption, cipher, profile, false)?;
    if left == WalRecovery::InUse {
        // Another connection has the file open and wrote this WAL; it is copied as far as possible.
        copy_wal(&connection)?;
    }
    check_writable(path, &connection)?;
    if is_empty {
        sync_directory(directory_of(path))?;
    }
    Ok(WritableConnection { connection, cipher, wal_failure })
}

/// The outcome of recovering a WAL that this process has not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalRecovery {
    /// No WAL is left: its pages are in the file and on the disk.
    Recovered,
    /// Another connection has the file open.
    InUse,
}

/// Moves an abandoned WAL, of a process that was killed or could not flush it, into the file, and
/// makes both durable. The WAL is recovered by its checksums: exclusively, and with an index in
/// memory, so that no other process's view of it is adopted. A backup that copies both files must
/// start again: it is the one that can wait.
pub(crate) fn recover_abandoned_wal(
    path: &Path,
    encryption: &FileEncryption,
    cipher: Option<Cipher>,
) -> Result<WalRecovery> {
    if wal_bytes(path) == 0 {
        return Ok(WalRecovery::Recovered);
    }
    let db = open_exclusive(path)?;
    if let (Some((secret, _)), Some(cipher)) = (encryption.secret(), cipher) {
        unlock(&db, secret, cipher).map_err(sqlite("key"))?;
    }
    db.busy_timeout(Duration::ZERO).map_err(sqlite("busy_timeout"))?;
    // The first read locks the file and opens the WAL; a checkpoint before it does nothing.
    let read = db.query_row("PRAGMA schema_version", [], |_| Ok(()));
    match read {
        Err(error) if is_busy(&error) => return Ok(WalRecovery::InUse),
        read => read.map_err(sqlite("recovering the WAL"))?,
    }
    db.pragma_update(None, "synchronous", "FULL").map_err(sqlite("synchronous"))?;
    Ok(if truncate_wal(&db)? { WalRecovery::Recovered } else { WalRecovery::InUse })
}

/// Checks whether a connection can write. SQLite opens a file or its WAL read-only if it cannot
/// open it for writing, for whatever reason, such as too few descriptors.
pub(crate) fn check_writable(path: &Path, connection: &Connection) -> Result<()> {
    let read_only = || Error::ReadOnly { path: path.to_owned() };
    // On such a file, BEGIN IMMEDIATE starts a read transaction and returns no error.
    if connection.is_readonly(MAIN_DB).map_err(sqlite("first write lock"))? {
        return Err(read_only());
    }
    match connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK") {
        // The WAL is read-only.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ReadOnly) => Err(read_only()),
        // Another process is writing, so the file can be written to.
        Err(error) if is_busy(&error) => Ok(()),
        done => done.map_err(sqlite("first write lock")),
    }
}

/// Copies the WAL's content into the file, as far as readers allow.
pub(crate) fn copy_wal(db: &Connection) -> Result<()> {
    db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(sqlite("checkpoint"))
}

#[cfg(test)]
mod tests {
    use rusqlite::OpenFlags;

    use super::*;

    #[test]
    fn a_connection_that_only_reads_is_no_writers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let writes = Connection::open(&path).unwrap();
        for journal_mode in ["DELETE", "WAL"] {
            writes.pragma_update(None, "journal_mode", journal_mode).unwrap();
            check_writable(&path, &writes).unwrap();
            // SQLite opens a file like this when the descriptors are used up.
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
            let reads = Connection::open_with_flags(&path, flags).unwrap();
            let refused = check_writable(&path, &reads).unwrap_err();
            assert!(matches!(refused, Error::ReadOnly { .. }), "{journal_mode}: {refused}");
        }
    }
}
