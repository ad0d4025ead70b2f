//! Opens a replica, detects copies, and runs transactions on it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::capture::provisional_keys;
use crate::connection_flags::ConnectionFlags;
use crate::error::{Error, Result};
use crate::file_identity;
use crate::file_key::{FileKey, check_key};
use crate::log::message_log::rewrite::reassign_node_id;
use crate::meta::{self, ReplicaMetaKey};

/// The maximum wait for another program's lock on the file.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of statements kept prepared: a handful per table, for files with some hundred tables.
const STATEMENTS_COUNT_MAX: usize = 512;
/// The page cache while Warren works on the file, in SQLite's notation: 64 MiB. An initial sync
/// touches the indexes of the log and the row states everywhere; with SQLite's 2 MiB it would read
/// and write them again and again.
const CACHE_KIB_NEGATIVE: i32 = -65_536;

/// An open replica. Other programs may use the file at the same time.
#[derive(Debug)]
pub struct Replica {
    pub(crate) db: Connection,
    path: PathBuf,
}

impl Replica {
    /// Opens a tracked file.
    ///
    /// # Errors
    /// [`Error::NotTracked`] if the file is not tracked.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_encrypted(path, None)
    }

    /// Opens a tracked file that may be encrypted.
    ///
    /// # Errors
    /// [`Error::NotADatabase`] if the file is encrypted and `key` is `None`.
    pub fn open_encrypted(path: &Path, key: Option<&FileKey>) -> Result<Self> {
        let replica = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, key)?;
        if !replica.has_tables()? {
            return Err(Error::NotTracked { path: path.display().to_string() });
        }
        replica.check_format()?;
        replica.detect_copy(file_identity::file_identity(path))?;
        Ok(replica)
    }

    /// Opens an SQLite file and prepares it for tracking, if it is not prepared yet.
    pub fn prepare(path: &Path) -> Result<Self> {
        Self::prepare_encrypted(path, None)
    }

    /// Opens an SQLite file that may be encrypted, and prepares it for tracking.
    pub fn prepare_encrypted(path: &Path, key: Option<&FileKey>) -> Result<Self> {
        let replica = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, key)?;
        replica.create_tables(file_identity::file_identity(path))?;
        drop(replica);
        Self::open_encrypted(path, key)
    }

    /// Creates a replica in a new file, which adopts the tables of the other devices at every sync.
    pub fn create(path: &Path) -> Result<Self> {
        Self::create_encrypted(path, None)
    }

    /// Creates a replica in a new file, which is encrypted if there is a key.
    pub fn create_encrypted(path: &Path, key: Option<&FileKey>) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        drop(Self::connect(path, flags, key)?);
        let replica = Self::prepare_encrypted(path, key)?;
        replica.transaction(|db| meta::set(db, ReplicaMetaKey::CreateMissing, true))?;
        Ok(replica)
    }

    /// Resumes a file that [`Self::create_encrypted`] created and no sync has completed, for
    /// example after a kill. The device stays the registered one. Returns `None` if the file holds
    /// anything else.
    pub fn resume_encrypted(path: &Path, key: Option<&FileKey>) -> Result<Option<Self>> {
        let replica = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, key)?;
        // A sync applies everything at once: before the first, there are only Warren's tables.
        let sql = r"SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'warren\_%' ESCAPE '\'
                    AND name NOT LIKE 'sqlite\_%' ESCAPE '\'";
        let others: i64 = replica.db.query_row(sql, [], |row| row.get(0))?;
        let is_synced =
            replica.has_tables()? && meta::number(&replica.db, ReplicaMetaKey::LastSyncedMs)? > 0;
        drop(replica);
        if others > 0 || is_synced {
            return Ok(None);
        }
        Self::create_encrypted(path, key).map(Some)
    }

    /// Creates a replica on a connection that its program uses, too: a browser has only one
    /// connection to a file. Between calls the connection has the program's flags (triggers,
    /// foreign keys).
    ///
    /// `identity` must differ in a copy of the file.
    pub fn on_shared_connection(db: Connection, name: &str, identity: &str) -> Result<Self> {
        db.set_prepared_statement_cache_capacity(STATEMENTS_COUNT_MAX);
        let replica = Self { db, path: name.into() };
        replica.create_tables(Some(identity.into()))?;
        replica.check_format()?;
        replica.detect_copy(Some(identity.into()))?;
        Ok(replica)
    }

    /// Returns the connection, for the program's own statements.
    pub fn connection(&self) -> &Connection {
        &self.db
    }

    fn connect(path: &Path, flags: OpenFlags, key: Option<&FileKey>) -> Result<Self> {
        if !flags.contains(OpenFlags::SQLITE_OPEN_CREATE) && !path.exists() {
            return Err(Error::FileNotFound { path: path.display().to_string() });
        }
        let db = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        key.map_or(Ok(()), |key| key.apply_to(&db))?;
        check_key(&db, key.is_some())?;
        db.busy_timeout(BUSY_TIMEOUT)?;
        db.set_prepared_statement_cache_capacity(STATEMENTS_COUNT_MAX);
        db.pragma_update(None, "cache_size", CACHE_KIB_NEGATIVE)?;
        ConnectionFlags::DURING_SYNC.apply(ConnectionFlags::from_connection(&db)?, &db)?;
        Ok(Self { db, path: path.to_owned() })
    }

    /// Checks whether the file is prepared. A user's table with the same name is an error.
    fn has_tables(&self) -> Result<bool> {
        let sql = "SELECT count(*), coalesce(sum(name IN ('key', 'value')), 0)
                   FROM pragma_table_info('warren_meta')";
        let counts: (i64, i64) =
            self.db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        match counts {
            (0, _) => Ok(false),
            (2, 2) => Ok(true),
            _ => Err(Error::Untrackable {
                table: "warren_meta".into(),
                reason: "this name is reserved for a table of Warren: rename your table".into(),
            }),
        }
    }

    fn check_format(&self) -> Result<()> {
        let found = meta::get(&self.db, ReplicaMetaKey::Format)?.unwrap_or(meta::FORMAT);
        if found > meta::FORMAT {
            return Err(Error::FormatTooNew { found, known: meta::FORMAT });
        }
        if found < meta::FORMAT {
            return Err(Error::FormatTooOld { found, oldest: meta::FORMAT });
        }
        Ok(())
    }

    fn create_tables(&self, identity: Option<String>) -> Result<()> {
        if self.has_tables()? {
            return Ok(());
        }
        self.transaction(|db| {
            db.execute_batch(include_str!("schema.sql"))?;
            meta::set(db, ReplicaMetaKey::Format, meta::FORMAT)?;
            meta::draw_node_id(db)?;
            meta::set(db, ReplicaMetaKey::Identity, identity)
        })
    }

    /// Makes a copied file a device of its own: it gets a new node id now, and registers itself at
    /// the next sync.
    fn detect_copy(&self, found: Option<String>) -> Result<()> {
        let known = meta::get::<String>(&self.db, ReplicaMetaKey::Identity)?;
        if known == found || found.is_none() {
            return Ok(());
        }
        self.transaction(|db| {
            meta::set(db, ReplicaMetaKey::Identity, found)?;
            if known.is_some() && provisional_keys::is_any(db)? {
                // The messages that inserted such rows change, differently in each of the files.
                reassign_node_id(db)?;
            } else {
                meta::draw_node_id(db)?;
            }
            meta::set(db, ReplicaMetaKey::RegisterCopy, known.is_some())
        })
    }

    /// Runs `work` in one write transaction, without triggers and foreign key actions.
    pub(crate) fn transaction<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.transaction_with_flags(ConnectionFlags::DURING_SYNC, work)
    }

    /// Runs `work` in one write transaction, with these flags from before its beginning.
    pub(crate) fn transaction_with_flags<T>(
        &self,
        rules: ConnectionFlags,
        work: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T> {
        self.under(rules, |transaction| {
            let result = work(&transaction)?;
            transaction.commit()?;
            Ok(result)
        })
    }

    /// Runs `work` in a write transaction that is rolled back.
    pub(crate) fn undone<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.under(ConnectionFlags::DURING_SYNC, |transaction| work(&transaction))
    }

    fn under<T>(
        &self,
        rules: ConnectionFlags,
        work: impl FnOnce(rusqlite::Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let before = ConnectionFlags::from_connection(&self.db)?;
        rules.apply(before, &self.db)?;
        let behavior = TransactionBehavior::Immediate;
        let transaction = rusqlite::Transaction::new_unchecked(&self.db, behavior);
        let result = transaction.map_err(Error::from).and_then(work);
        before.apply(rules, &self.db)?;
        result
    }

    /// Runs `work` on one snapshot of the file, which the writes of other programs do not change.
    pub(crate) fn snapshot<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let behavior = TransactionBehavior::Deferred;
        work(&*rusqlite::Transaction::new_unchecked(&self.db, behavior)?)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
