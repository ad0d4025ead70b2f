//! One user's vault: stores messages, hands them out in order of arrival, knows its fingerprint.
//!
//! # Invariants
//! - What `store` answered is on the disk: it asks for `Durability::Disk`.
//! - The arrival number of the newest message equals the count of messages (asserted in `store`).
//! - A page and the fingerprint that comes with it are of one moment: one read transaction.
//!
//! # Not here
//! - Opening and removing → `vaults.rs`. Statements about devices → `clients.rs`.

use std::sync::Arc;

use accounts::ClientId;
use bytes::Bytes;
use crdt::{Fingerprint, Message, Timestamp};
use engine::{Database, Durability, Pending, Transaction};
use rusqlite::{CachedStatement, Connection, Row};

use crate::clients::{self, Client, Seen};
use crate::error::{Error, Result, TIMESTAMPS_NAMED_MAX};
use crate::schema::to_column;

/// An open vault. Cheap to clone; the file stays open while a clone is held.
#[derive(Clone)]
pub struct Vault {
    database: Arc<Database>,
}

/// The set of messages at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The newest arrival number; 0 if there is none.
    pub cursor: u64,
    pub fingerprint: Fingerprint,
}

/// What became of messages that were to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Messages that were new.
    pub stored: u64,
    /// Messages that were there already.
    pub known: u64,
    /// The set afterwards; the new messages have its newest arrival numbers, without gaps.
    pub after: State,
}

/// Messages in order of arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub messages: Vec<Message>,
    /// The arrival number of the last of them, or the vault's newest if there are none.
    pub cursor: u64,
    /// Whether messages follow.
    pub more: bool,
    /// The whole set.
    pub fingerprint: Fingerprint,
}

/// What is in a vault, for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    pub state: State,
    pub clients_count: u64,
    /// The size of the database file, without its WAL.
    pub file_bytes: u64,
    /// Pages of the file that hold nothing.
    pub free_bytes: u64,
}

/// The recorded state, and the same computed from the messages themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verification {
    pub recorded: State,
    pub computed: State,
}

impl Verification {
    pub fn is_equal(&self) -> bool {
        self.recorded == self.computed
    }
}

impl Vault {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        Self { database }
    }

    /// The database, for statistics and maintenance.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Stores what is new, all or nothing; [`Error::TimestampConflict`] if a timestamp has another
    /// content already, in the vault or among these messages.
    ///
    /// Sorts and hashes on the calling thread: some milliseconds for a full request.
    pub fn store(&self, mut messages: Vec<Message>, seen: Option<Seen>) -> Pending<Stored, Error> {
        // In the order of the index on timestamps neighbouring inserts touch the same page.
        messages.sort_unstable_by_key(|message| message.timestamp);
        let mut sum = Fingerprint::default();
        for message in &messages {
            sum += Fingerprint::of(message.timestamp, &message.content);
        }
        let durability = if messages.is_empty() { Durability::Os } else { Durability::Disk };
        self.database.write(durability, move |db| store(db, &messages, sum, seen.as_ref()))
    }

    /// What arrived after `cursor`: at most `count_max` messages, and no more after `bytes_max` of
    /// contents.
    pub fn page(&self, cursor: u64, count_max: usize, bytes_max: usize) -> Result<Page> {
        self.database.read(|db| page(db, cursor, count_max, bytes_max))
    }

    /// The set as it is.
    pub fn state(&self) -> Result<State> {
        self.database.read(|db| state(db))
    }

    /// Registers a device's name.
    pub fn add_client(&self, client: Client) -> Pending<(), Error> {
        self.database.write(Durability::Disk, move |db| clients::add(db, &client))
    }

    /// The devices, in order of registration.
    pub fn clients(&self) -> Result<Vec<Client>> {
        self.database.read(|db| clients::list(db))
    }

    /// Forgets devices; those that are not there are no error.
    pub fn remove_clients(&self, ids: Vec<ClientId>) -> Pending<(), Error> {
        self.database.write(Durability::Disk, move |db| clients::remove(db, &ids))
    }

    /// Notes that a device was answered up to `cursor`. `None` if that is known, or nearly: nothing
    /// to write.
    pub fn seen(&self, seen: Seen, cursor: u64) -> Result<Option<Pending<(), Error>>> {
        if !self.database.read(|db| clients::is_stale(db, &seen, cursor))? {
            return Ok(None);
        }
        let write = move |db: &Transaction<'_>| clients::pulled(db, &seen, cursor);
        Ok(Some(self.database.write(Durability::Os, write)))
    }

    /// Sizes and counts.
    pub fn status(&self) -> Result<Status> {
        self.database.read(|db| status(db))
    }

    /// Computes the state from every message. Reads the whole vault.
    pub fn verify(&self) -> Result<Verification> {
        self.database.read(|db| verify(db))
    }
}

fn store(
    db: &Connection,
    messages: &[Message],
    sum: Fingerprint,
    seen: Option<&Seen>,
) -> Result<Stored> {
    let before = state(db)?;
    let known = insert_all(db, messages)?;
    let mut new = sum;
    new -= known;
    let mut after = before;
    if new.count > 0 {
        after.cursor += new.count;
        after.fingerprint += new;
        let newest = db.last_insert_rowid();
        assert_eq!(newest, to_column(after.cursor), "arrival numbers have no gaps");
        write_fingerprint(db, after.fingerprint)?;
    }
    if let Some(seen) = seen {
        clients::pushed(db, seen, before.cursor, after.cursor)?;
    }
    Ok(Stored { stored: new.count, known: known.count, after })
}

/// Inserts what is new. Returns the fingerprint of what is not.
fn insert_all(db: &Connection, messages: &[Message]) -> Result<Fingerprint> {
    let mut insert = db.prepare_cached(
        "INSERT INTO message (timestamp, content) VALUES (?1, ?2) ON CONFLICT (timestamp) DO NOTHING",
    )?;
    let mut find = db.prepare_cached("SELECT content FROM message WHERE timestamp = ?1")?;
    let mut known = Fingerprint::default();
    let mut conflicts = Vec::new();
    for Message { timestamp, content } in messages {
        insert.raw_bind_parameter(1, &timestamp.to_bytes()[..])?;
        insert.raw_bind_parameter(2, &content[..])?;
        if insert.raw_execute()? == 1 {
            continue;
        }
        if has_content(&mut find, *timestamp, content)? {
            known += Fingerprint::of(*timestamp, content);
        } else {
            conflicts.push(*timestamp);
            if conflicts.len() == TIMESTAMPS_NAMED_MAX {
                break;
            }
        }
    }
    conflicts.dedup();
    if conflicts.is_empty() {
        Ok(known)
    } else {
        Err(Error::TimestampConflict { timestamps: conflicts })
    }
}

fn has_content(
    find: &mut CachedStatement<'_>,
    timestamp: Timestamp,
    content: &[u8],
) -> rusqlite::Result<bool> {
    find.query_row([&timestamp.to_bytes()[..]], |row| Ok(row.get_ref(0)?.as_blob()? == content))
}

fn state(db: &Connection) -> Result<State> {
    let mut statement = db.prepare_cached(
        "SELECT (SELECT coalesce(max(seq), 0) FROM message), count, digest FROM fingerprint",
    )?;
    let state = statement.query_row([], |row| {
        let fingerprint = Fingerprint {
            count: row.get::<_, i64>(1)?.cast_unsigned(),
            digest: u128::from_be_bytes(row.get(2)?),
        };
        Ok(State { cursor: row.get::<_, i64>(0)?.cast_unsigned(), fingerprint })
    })?;
    Ok(state)
}

fn write_fingerprint(db: &Connection, fingerprint: Fingerprint) -> Result<()> {
    let mut update = db.prepare_cached("UPDATE fingerprint SET count = ?1, digest = ?2")?;
    update.execute((to_column(fingerprint.count), &fingerprint.digest_bytes()[..]))?;
    Ok(())
}

fn page(db: &Connection, cursor: u64, count_max: usize, bytes_max: usize) -> Result<Page> {
    let State { cursor: newest, fingerprint } = state(db)?;
    let mut statement = db.prepare_cached(
        "SELECT seq, timestamp, content FROM message WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    )?;
    let mut rows = statement.query((to_column(cursor), to_column(count_max as u64)))?;
    // One allocation for all contents; the messages are slices of it.
    let mut contents = Vec::new();
    let mut ends = Vec::new();
    let mut last = newest;
    while let Some(row) = rows.next()? {
        last = row.get::<_, i64>(0)?.cast_unsigned();
        contents.extend_from_slice(content(row)?);
        ends.push((timestamp(row)?, contents.len()));
        if contents.len() >= bytes_max {
            break;
        }
    }
    Ok(Page { messages: slices(contents, &ends), cursor: last, more: last < newest, fingerprint })
}

fn slices(contents: Vec<u8>, ends: &[(Timestamp, usize)]) -> Vec<Message> {
    let contents = Bytes::from(contents);
    let mut start = 0;
    let slice = |&(timestamp, end): &(Timestamp, usize)| {
        let content = contents.slice(start..end);
        start = end;
        Message { timestamp, content }
    };
    ends.iter().map(slice).collect()
}

/// Columns of `SELECT seq, timestamp, content`.
fn timestamp(row: &Row<'_>) -> rusqlite::Result<Timestamp> {
    let bytes = row.get_ref(1)?.as_blob()?;
    Ok(Timestamp::from_bytes(bytes).expect("`insert_all` alone writes timestamps"))
}

fn content<'a>(row: &'a Row<'_>) -> rusqlite::Result<&'a [u8]> {
    Ok(row.get_ref(2)?.as_blob()?)
}

fn status(db: &Connection) -> Result<Status> {
    let number =
        |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::cast_unsigned);
    let page_bytes = number("PRAGMA page_size")?;
    Ok(Status {
        state: state(db)?,
        clients_count: number("SELECT count(*) FROM client")?,
        file_bytes: number("PRAGMA page_count")? * page_bytes,
        free_bytes: number("PRAGMA freelist_count")? * page_bytes,
    })
}

fn verify(db: &Connection) -> Result<Verification> {
    let mut computed = State::default();
    let mut statement = db.prepare("SELECT seq, timestamp, content FROM message ORDER BY seq")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        computed.cursor = row.get::<_, i64>(0)?.cast_unsigned();
        computed.fingerprint += Fingerprint::of(timestamp(row)?, content(row)?);
    }
    Ok(Verification { recorded: state(db)?, computed })
}
