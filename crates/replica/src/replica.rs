//! One replica: the file, open, and what can be done with it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::{Error, Result};
use crate::key::{FileKey, check_key};
use crate::meta::{self, Key};
use crate::receive::become_device;
use crate::rules::Rules;
use crate::stamp::{self, Now};
use crate::table::Table;
use crate::track::{self, Tracked};
use crate::{candidates, capture, counted, identity, log, schema_change};

/// How long to wait for another program's lock on the file.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// Statements kept prepared: a handful per table, for files of some hundred tables.
const STATEMENTS_COUNT_MAX: usize = 512;
/// Page cache while Warren works on the file, in SQLite's spelling: 64 MiB. A first sync touches
/// the log's and the state's indexes all over; with SQLite's 2 MiB it would read and write them
/// again and again.
const CACHE_KIB_NEGATIVE: i32 = -65_536;

/// An open replica. Other programs may use the file at the same time.
#[derive(Debug)]
pub struct Replica {
    pub(crate) db: Connection,
    path: PathBuf,
}

impl Replica {
    /// Opens a file that is tracked; [`Error::NotTracked`] if it is not.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_encrypted(path, None)
    }

    /// The same with a file that may be encrypted; [`Error::WrongKey`] if it is, otherwise.
    pub fn open_encrypted(path: &Path, key: Option<&FileKey>) -> Result<Self> {
        let replica = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, key)?;
        if !replica.has_tables()? {
            return Err(Error::NotTracked { path: path.display().to_string() });
        }
        replica.check_format()?;
        replica.notice_copy(identity::of(path))?;
        Ok(replica)
    }

    /// Opens an SQLite file and prepares it for tracking, if it is not yet.
    pub fn prepare(path: &Path) -> Result<Self> {
        Self::prepare_encrypted(path, None)
    }

    /// The same with a file that may be encrypted.
    pub fn prepare_encrypted(path: &Path, key: Option<&FileKey>) -> Result<Self> {
        let replica = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, key)?;
        replica.install(identity::of(path))?;
        drop(replica);
        Self::open_encrypted(path, key)
    }

    /// A replica in a new file, which adopts the tables of the other devices at every sync.
    pub fn create(path: &Path) -> Result<Self> {
        Self::create_encrypted(path, None)
    }

    /// The same, encrypted if there is a key.
    pub fn create_encrypted(path: &Path, key: Option<&FileKey>) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        drop(Self::connect(path, flags, key)?);
        let replica = Self::prepare_encrypted(path, key)?;
        replica.transaction(|db| meta::set(db, Key::Adopt, true))?;
        Ok(replica)
    }

    /// Goes on with what [`Self::create_encrypted`] began in that file and no sync has completed, as
    /// after a kill; the device is the one that was registered. `None`: something else is in it.
    pub fn resume_encrypted(path: &Path, key: Option<&FileKey>) -> Result<Option<Self>> {
        let replica = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, key)?;
        // A sync shows all at once: before the first there is no table but those of the replica.
        let sql = r"SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'warren\_%' ESCAPE '\'
                    AND name NOT LIKE 'sqlite\_%' ESCAPE '\'";
        let others: i64 = replica.db.query_row(sql, [], |row| row.get(0))?;
        let is_synced = replica.has_tables()? && meta::number(&replica.db, Key::SyncedMs)? > 0;
        drop(replica);
        if others > 0 || is_synced {
            return Ok(None);
        }
        Self::create_encrypted(path, key).map(Some)
    }

    /// A replica on a connection that its program uses, too: a browser has one connection to a file,
    /// and no other. Between calls the connection's rules (triggers, foreign keys) are the program's.
    ///
    /// `identity` is another one in a copy of the file.
    pub fn shared(db: Connection, name: &str, identity: &str) -> Result<Self> {
        db.set_prepared_statement_cache_capacity(STATEMENTS_COUNT_MAX);
        let replica = Self { db, path: name.into() };
        replica.install(Some(identity.into()))?;
        replica.check_format()?;
        replica.notice_copy(Some(identity.into()))?;
        Ok(replica)
    }

    /// The connection, for the program's own statements.
    pub fn connection(&self) -> &Connection {
        &self.db
    }

    fn connect(path: &Path, flags: OpenFlags, key: Option<&FileKey>) -> Result<Self> {
        if !flags.contains(OpenFlags::SQLITE_OPEN_CREATE) && !path.exists() {
            return Err(Error::NoFile { path: path.display().to_string() });
        }
        let db = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        key.map_or(Ok(()), |key| key.unlock(&db))?;
        check_key(&db)?;
        db.busy_timeout(BUSY_TIMEOUT)?;
        db.set_prepared_statement_cache_capacity(STATEMENTS_COUNT_MAX);
        db.pragma_update(None, "cache_size", CACHE_KIB_NEGATIVE)?;
        Rules::OWN.replace(Rules::of(&db)?, &db)?;
        Ok(Self { db, path: path.to_owned() })
    }

    /// Whether the file is prepared. A table of somebody else's that has the name is an error.
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
                why: "Warren keeps a table of its own under this name: rename yours".into(),
            }),
        }
    }

    fn check_format(&self) -> Result<()> {
        let found = meta::get(&self.db, Key::Format)?.unwrap_or(meta::FORMAT);
        if found > meta::FORMAT {
            return Err(Error::TooNew { found, known: meta::FORMAT });
        }
        Ok(())
    }

    fn install(&self, identity: Option<String>) -> Result<()> {
        if self.has_tables()? {
            return Ok(());
        }
        self.transaction(|db| {
            db.execute_batch(include_str!("schema.sql"))?;
            meta::set(db, Key::Format, meta::FORMAT)?;
            meta::new_node(db)?;
            meta::set(db, Key::Identity, identity)
        })
    }

    /// A copy becomes a device of its own: another node id at once, another registration at the
    /// next sync.
    fn notice_copy(&self, found: Option<String>) -> Result<()> {
        let known = meta::get::<String>(&self.db, Key::Identity)?;
        if known == found || found.is_none() {
            return Ok(());
        }
        self.transaction(|db| {
            meta::set(db, Key::Identity, found)?;
            if known.is_some() && counted::is_any(db)? {
                // The messages that made such rows change, in each of the files in another way.
                become_device(db)?;
            } else {
                meta::new_node(db)?;
            }
            meta::set(db, Key::Enrol, known.is_some())
        })
    }

    /// Runs `work` in one write transaction, in which nothing is done but what it says.
    pub(crate) fn transaction<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.transaction_under(Rules::OWN, work)
    }

    /// Runs `work` in one write transaction, under these rules from before its beginning.
    pub(crate) fn transaction_under<T>(
        &self,
        rules: Rules,
        work: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T> {
        self.under(rules, |transaction| {
            let result = work(&transaction)?;
            transaction.commit()?;
            Ok(result)
        })
    }

    /// Runs `work` in a write transaction of which nothing stays.
    pub(crate) fn undone<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.under(Rules::OWN, |transaction| work(&transaction))
    }

    fn under<T>(
        &self,
        rules: Rules,
        work: impl FnOnce(rusqlite::Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let before = Rules::of(&self.db)?;
        rules.replace(before, &self.db)?;
        let behavior = TransactionBehavior::Immediate;
        let transaction = rusqlite::Transaction::new_unchecked(&self.db, behavior);
        let result = transaction.map_err(Error::from).and_then(work);
        before.replace(rules, &self.db)?;
        result
    }

    /// Runs `work` on one state of the file, whatever other programs write meanwhile.
    pub(crate) fn snapshot<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let behavior = TransactionBehavior::Deferred;
        work(&*rusqlite::Transaction::new_unchecked(&self.db, behavior)?)
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins to track these tables, all or none.
    pub fn track(&self, tables: &[String]) -> Result<Vec<Tracked>> {
        self.transaction(|db| {
            // What is in these tables refers to new rows by the keys that they will have.
            stamp::move_from_known_keys(db, &Table::all(db)?)?;
            let mut tracked = Vec::new();
            for name in tables {
                tracked.push(track::track(db, &candidates::trackable(db, name)?)?);
            }
            Ok(tracked)
        })
    }

    /// Begins to track every table that can be; the others come back with the reason.
    pub fn track_all(&self) -> Result<(Vec<Tracked>, Vec<Error>)> {
        let (can, cannot) = candidates::all(&self.db)?;
        Ok((self.track(&can)?, cannot))
    }

    /// Stops tracking these tables. Changes that were made until now are still sent, but for those of
    /// a table that lost what they are about.
    pub fn untrack(&self, tables: &[String], now_ms: u64) -> Result<()> {
        self.transaction(|db| {
            let mut readable = Vec::new();
            for table in Table::all(db)? {
                if schema_change::what_went_away(db, &table)?.is_none() {
                    schema_change::follow_table(db, &table, now_ms)?;
                    readable.push(track::find(db, table.id)?);
                }
            }
            stamp::stamp(db, &readable, Now { device_ms: now_ms, offset_ms: 0 })?;
            tables.iter().try_for_each(|name| track::untrack(db, name))
        })
    }

    /// Takes everything of Warren's out of the file. Refused while there are changes that no server
    /// has, unless `force`.
    pub fn untrack_all(self, force: bool) -> Result<()> {
        self.transaction(|db| {
            let noted = capture::noted_count(db)?;
            let signed_in = meta::get::<String>(db, Key::Token)?.is_some();
            let count = noted + log::unsent_count(db)?;
            if count > 0 && signed_in && !force {
                return Err(Error::Unsent { count });
            }
            track::remove_all(db)
        })
    }
}
