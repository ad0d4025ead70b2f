//! Erases the content of messages permanently, from the vault and from every device's file.
//!
//! ```text
//!  this device                    server                     other devices
//!  erasure_requests ── password ─► replaces the contents,
//!                                  writes its file anew ──── fingerprints differ: the comparison
//!  next sync: the same ◄──────────────────────────────────── brings the contents that say less
//! ```
//! A device accepts another content for a known message only if less is left in it
//! (`crdt::Change::common_rest`), and with a recovery phrase only if it is sealed with that. So a
//! server cannot erase any content of an end-to-end encrypted account.
//!
//! # Invariants
//! - A visible value is never erased: the row must be changed or deleted first.
//! - Row states follow from the remaining messages alone, without any trace of erased content.
//!
//! # Not here
//! - Sending the request → `cli` (it needs the account's password).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use bytes::Bytes;
use crdt::{Change, ChunkDigest, Fingerprint, Message, Timestamp, Value};
use protocol::{EraseRequest, WireErasure};
use rusqlite::Connection;
use sqlite_schema::{TableEntry, TableKind};

use super::history::{self, NewestWrites};
use crate::apply::row_state::{self, NameResolver};
use crate::apply::{merge, unseen};
use crate::error::{Error, Result};
use crate::log::message_log::{self, ErasedMessage, MessageLog};
use crate::log::value_chunks;
use crate::meta::{self, ReplicaMetaKey};
use crate::replica::{BUSY_TIMEOUT, Replica};
use crate::row_id::RowId;
use crate::schema::declaration;
use crate::schema::tracked_table::is_internal;
use crate::sql_value::{self, key_to_literals};
use crate::sync::account_encryption;

/// The content to erase.
#[derive(Clone, Copy, Debug)]
pub enum ErasureTarget<'a> {
    /// All earlier values of a cell, except the visible one. Column and key as in
    /// [`Replica::history`].
    Cell {
        /// The row's table.
        table: &'a str,
        /// The parts of the row's primary key: SQL literals, or texts without quotes.
        key: &'a [String],
        /// The cell's column.
        column: &'a str,
    },
    /// All messages of a deleted row, including its key.
    Row {
        /// The row's table.
        table: &'a str,
        /// The parts of the row's primary key.
        key: &'a [String],
    },
    /// Messages that cannot be read here ([`crate::RejectedMessages`]).
    Rejected,
    /// Content that was erased before and that the server has again, after a restored backup.
    Again,
}

/// The maximum bytes of the contents of one request, which must fit the server's limit on bodies.
const REQUEST_BYTES_MAX: usize = protocol::PAGE_BYTES_MAX;
const REQUEST_COUNT_MAX: usize = 10_000;

impl Replica {
    /// Returns the requests that erase this content from the vault (`POST /v1/sync/erase`), or none
    /// if there is nothing to erase. They lack the account's password. The next sync erases the
    /// content here.
    ///
    /// The caller must sync first: the server rejects the request (`stale_cursor`) if its messages
    /// differ from this file's.
    ///
    /// # Errors
    /// [`Error::StillShown`] if the content to erase is visible in the table.
    pub fn erasure_requests(&self, target: ErasureTarget<'_>) -> Result<Vec<EraseRequest>> {
        self.snapshot(|db| {
            let log = MessageLog::open(db)?;
            let erasures = match target {
                ErasureTarget::Again => repeated_erasures(db)?,
                ErasureTarget::Rejected => rejected_erasures(db, &log)?,
                ErasureTarget::Cell { table, key, column } => {
                    row_erasures(db, &log, (table, key), Some(column))?
                }
                ErasureTarget::Row { table, key } => row_erasures(db, &log, (table, key), None)?,
            };
            erase_requests(db, erasures)
        })
    }
}

fn erase_requests(db: &Connection, erasures: Vec<WireErasure>) -> Result<Vec<EraseRequest>> {
    let form =
        account_encryption::account_encryption_mode(db)?.unwrap_or(crdt::EncryptionMode::Plain);
    let mut requests: Vec<EraseRequest> = Vec::new();
    let mut bytes = 0;
    for erasure in erasures {
        bytes += erasure.content.len();
        let is_full = bytes > REQUEST_BYTES_MAX
            || requests.last().is_none_or(|last| last.erasures.len() == REQUEST_COUNT_MAX);
        if is_full {
            bytes = erasure.content.len();
            let key_id = Bytes::copy_from_slice(form.as_bytes());
            requests.push(EraseRequest { key_id, ..EraseRequest::default() });
        }
        requests.last_mut().expect("one was pushed").erasures.push(erasure);
    }
    Ok(requests)
}

/// Returns the erasure of a message in the log, with the rest of it that stays.
fn erasure(log: &MessageLog<'_>, timestamp: Timestamp, rest: &Change) -> Result<WireErasure> {
    let before = message_log::content(log.db, timestamp)?.unwrap_or_default();
    let hash = Fingerprint::from_message(timestamp, &before).digest_bytes();
    Ok(to_wire(&log.encode(timestamp, rest), hash))
}

fn to_wire(message: &Message, hash: [u8; 16]) -> WireErasure {
    WireErasure {
        timestamp: Bytes::copy_from_slice(&message.timestamp.to_bytes()),
        content: message.content.clone(),
        hash: Bytes::copy_from_slice(&hash),
    }
}

fn repeated_erasures(db: &Connection) -> Result<Vec<WireErasure>> {
    let sql = "SELECT u.timestamp, u.hash, m.content FROM warren_unerased u
               JOIN warren_message m ON m.timestamp = u.timestamp ORDER BY u.timestamp";
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut erasures = Vec::new();
    while let Some(row) = rows.next()? {
        let timestamp = sql_value::timestamp(row, 0)?;
        let content: Vec<u8> = row.get(2)?;
        erasures.push(to_wire(&Message { timestamp, content: content.into() }, row.get(1)?));
    }
    Ok(erasures)
}

fn rejected_erasures(db: &Connection, log: &MessageLog<'_>) -> Result<Vec<WireErasure>> {
    let timestamps = message_log::refused(db)?;
    timestamps.into_iter().map(|timestamp| erasure(log, timestamp, &Change::Erased)).collect()
}

/// Returns the erasures of a column in the messages of a row, or of the whole row if `column` is
/// `None`, and of the chunks of large values that nothing else needs.
fn row_erasures(
    db: &Connection,
    log: &MessageLog<'_>,
    (table, words): (&str, &[String]),
    column: Option<&str>,
) -> Result<Vec<WireErasure>> {
    let Some((key, changes)) = history::find(db, table, words)? else { return Ok(Vec::new()) };
    let newest = NewestWrites::from_changes(&changes, history::override_of(db, table, &key)?);
    let shown = column.map_or_else(|| newest.shown_row(), |column| newest.shown_cell(column));
    let is_shown_alone = match column {
        None => shown.is_some(),
        Some(column) => shown.is_some() && newest.writes_count(column) == 1,
    };
    if is_shown_alone {
        return Err(Error::StillShown { table: table.to_owned(), key: key_to_literals(&key) });
    }
    let mut rests = BTreeMap::new();
    for (&timestamp, change) in changes.iter().filter(|(at, _)| Some(**at) != shown) {
        let rest = match column {
            Some(column) => change.without_value(column),
            None => Some(Change::Erased),
        };
        rests.extend(rest.map(|rest| (timestamp, rest)));
    }
    let erased = rests.keys().filter_map(|timestamp| changes.get(timestamp));
    let gone = erased.flat_map(|change| parts_of(change, column)).collect();
    for timestamp in unneeded_parts(log, &gone, &rests)? {
        rests.insert(timestamp, Change::Erased);
    }
    rests.into_iter().map(|(timestamp, rest)| erasure(log, timestamp, &rest)).collect()
}

/// Returns the chunks that a change names, in one column or in all.
fn parts_of<'a>(
    change: &'a Change,
    column: Option<&'a str>,
) -> impl Iterator<Item = ChunkDigest> + use<'a> {
    let cells = if let Change::Write { cells, .. } = change { &cells[..] } else { &[] };
    let is_meant = move |name: &str| column.is_none_or(|column| name.eq_ignore_ascii_case(column));
    cells.iter().filter(move |cell| is_meant(&cell.column)).flat_map(|cell| match &cell.value {
        Value::Large(large) => large.chunks.clone(),
        _ => Vec::new(),
    })
}

/// Returns the messages with chunks that no change needs once only these rests remain.
fn unneeded_parts(
    log: &MessageLog<'_>,
    gone: &HashSet<ChunkDigest>,
    rests: &BTreeMap<Timestamp, Change>,
) -> Result<Vec<Timestamp>> {
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    let (mut messages, mut needed) = (Vec::new(), HashSet::new());
    log.for_each_change(|timestamp, change| {
        match rests.get(&timestamp).unwrap_or(&change) {
            Change::Chunk { bytes } => messages.push((timestamp, crdt::chunk_digest(bytes))),
            rest => needed.extend(parts_of(rest, None)),
        }
        Ok(())
    })?;
    messages.retain(|(_, digest)| gone.contains(digest) && !needed.contains(digest));
    Ok(messages.into_iter().map(|(timestamp, _)| timestamp).collect())
}

/// Updates the row states after contents were erased.
pub(crate) fn apply_erasures(db: &Connection, erased: &[ErasedMessage]) -> Result<()> {
    let mut names = NameResolver::new(db)?;
    let mut rows = BTreeSet::new();
    for ErasedMessage { timestamp, before, is_whole } in erased {
        match before {
            Change::Write { table, key, .. } | Change::Delete { table, key, .. } => {
                let row = RowId::new(names.table(table)?, key);
                row_state::mark_dirty(db, &row, true)?;
                if *is_whole {
                    rows.insert(row);
                }
            }
            Change::TableDeclaration { .. } => declaration::forget(db, *timestamp)?,
            Change::Chunk { .. } => value_chunks::forget(db, *timestamp)?,
            Change::Erased => {}
        }
    }
    merge::rebuild(&mut names, &rows)?;
    for row in &rows {
        if row_state::load(db, row)?.is_some() {
            // The erased messages no longer show which edits their authors had seen.
            unseen::record_unseen(db, row)?;
        }
    }
    meta::set(db, ReplicaMetaKey::Scrub, true)
}

/// Returns the number of messages from which content was erased here, but not on the server; none
/// if both sides are in sync.
pub(crate) fn unerased(db: &Connection, is_equal: bool) -> Result<u64> {
    if is_equal {
        db.execute("DELETE FROM warren_unerased", [])?;
    }
    let count: i64 = db.query_row("SELECT count(*) FROM warren_unerased", [], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

impl Replica {
    /// Rewrites the file by VACUUM if something was erased, so that none of its pages contains it.
    /// Returns the reason if this is impossible now, for example because another program has the
    /// file open. The next sync tries again.
    pub(crate) fn scrub(&self) -> Result<Option<String>> {
        if !meta::get(&self.db, ReplicaMetaKey::Scrub)?.unwrap_or(false) {
            return Ok(None);
        }
        if let Some(table) = table_with_loose_rowids(&self.db)? {
            return Ok(Some(format!(
                "VACUUM may change the rowids in table {table}: VACUUM the file yourself"
            )));
        }
        self.db.busy_timeout(SCRUB_WAIT_MAX)?;
        let scrubbed = self.db.execute_batch("VACUUM").and_then(|()| {
            self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        });
        self.db.busy_timeout(BUSY_TIMEOUT)?;
        match scrubbed {
            Ok(0) => {
                self.transaction(|db| meta::set(db, ReplicaMetaKey::Scrub, false)).map(|()| None)
            }
            Ok(_) => Ok(Some(
                "another program is reading the file; the next sync tries again".to_owned(),
            )),
            Err(error) => Ok(Some(format!("{error}; the next sync tries again"))),
        }
    }
}

/// The maximum wait for another program's read to end, since each sync may have to wait.
const SCRUB_WAIT_MAX: Duration = Duration::from_secs(2);

/// Returns a table whose rowids VACUUM may change, if something may refer to them: it has neither
/// an INTEGER PRIMARY KEY nor an index (`https://sqlite.org/lang_vacuum.html`).
fn table_with_loose_rowids(db: &Connection) -> Result<Option<String>> {
    let tables = sqlite_schema::tables(db)?;
    if !tables.iter().any(|table| table.kind == TableKind::Virtual) {
        return Ok(None);
    }
    let is_candidate = |table: &TableEntry| {
        table.kind == TableKind::Ordinary && table.has_rowid && !is_internal(&table.name)
    };
    for table in tables.into_iter().filter(is_candidate) {
        let table = table.read(db)?;
        if table.rowid_alias().is_none() && table.indexes.is_empty() {
            return Ok(Some(table.name));
        }
    }
    Ok(None)
}
