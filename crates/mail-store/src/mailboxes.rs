//! Mailboxes: their names, and the numbers that they give to messages.
//!
//! A mailbox has a path, such as `Archive/2026`. INBOX is a mailbox of that name in any case of its
//! letters.
//!
//! # Invariants
//! - A UIDVALIDITY is given once in the life of a vault, so a mailbox that is created again never
//!   has one that it had before.

use std::collections::HashMap;

use engine::{StaticStatement, Transaction};
use rusqlite::{OptionalExtension, params};
use unicode_normalization::UnicodeNormalization;

use crate::error::{Error, Result};
use crate::limits::{MAILBOX_NAME_BYTES_MAX, MAILBOXES_COUNT_MAX, MAILBOXES_DEPTH_MAX};
use crate::schema::ROOT_ID;

/// The path of the mailbox into which mail is delivered.
pub const INBOX: &str = "INBOX";

/// The id of a mailbox. It is not used again after the mailbox is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MailboxId(pub(crate) i64);

/// A mailbox and its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    pub id: MailboxId,
    /// The names of its levels, with `/` between them.
    pub path: String,
    pub uid_validity: u32,
    pub uid_next: u32,
    /// Such as `\Sent` (RFC 6154).
    pub special_use: Option<String>,
    pub messages_count: u64,
    pub unseen_count: u64,
    /// The sum of the sizes of its messages.
    pub messages_bytes: u64,
}

/// Returns all mailboxes in the order of their creation.
pub(crate) fn list(db: &Transaction<'_>) -> Result<Vec<Mailbox>> {
    static LIST: StaticStatement = StaticStatement::new(
        "SELECT id, parent_id, name, uid_validity, uid_next, special_use, messages_count,
             unseen_count, messages_bytes
         FROM mailbox WHERE id <> 0 ORDER BY id",
    );
    let mut statement = db.statement(&LIST)?;
    let mut rows = statement.query([])?;
    let mut paths: HashMap<i64, String> = HashMap::new();
    let mut mailboxes = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, parent_id, name): (i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        // A mailbox is created after its parent.
        let path =
            paths.get(&parent_id).map_or_else(|| name.clone(), |path| format!("{path}/{name}"));
        paths.insert(id, path.clone());
        mailboxes.push(Mailbox {
            id: MailboxId(id),
            path,
            uid_validity: row.get(3)?,
            uid_next: row.get(4)?,
            special_use: row.get(5)?,
            messages_count: row.get::<_, i64>(6)?.cast_unsigned(),
            unseen_count: row.get::<_, i64>(7)?.cast_unsigned(),
            messages_bytes: row.get::<_, i64>(8)?.cast_unsigned(),
        });
    }
    Ok(mailboxes)
}

/// Returns the mailbox with this path.
pub(crate) fn find(db: &Transaction<'_>, path: &str) -> Result<MailboxId> {
    let not_found = || Error::MailboxNotFound { path: path.to_owned() };
    let mut id = ROOT_ID;
    let Ok(names) = levels(path) else { return Err(not_found()) };
    for name in names {
        id = find_in(db, id, &name)?.ok_or_else(not_found)?;
    }
    Ok(MailboxId(id))
}

/// Returns the mailbox with this path, which is created if it is missing.
pub(crate) fn find_or_create(db: &Transaction<'_>, path: &str) -> Result<MailboxId> {
    let mut id = ROOT_ID;
    for name in levels(path)? {
        id = match find_in(db, id, &name)? {
            Some(found) => found,
            None => create(db, id, &name)?,
        };
    }
    Ok(MailboxId(id))
}

/// Returns the number of restores of this vault that it knows of.
pub(crate) fn restores_count(db: &Transaction<'_>) -> Result<u64> {
    static COUNT: StaticStatement = StaticStatement::new("SELECT restores_count FROM mail_state");
    let count: i64 = db.statement(&COUNT)?.query_row([], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

/// Gives every mailbox a new UIDVALIDITY if the vault knows of fewer restores than these.
pub(crate) fn record_restores(db: &Transaction<'_>, restored_count: u64) -> Result<()> {
    static RECORD: StaticStatement =
        StaticStatement::new("UPDATE mail_state SET restores_count = ?1");
    if restores_count(db)? < restored_count {
        renew_uid_validities(db, 0)?;
        db.statement(&RECORD)?.execute([restored_count.cast_signed()])?;
    }
    Ok(())
}

/// Gives every mailbox a new UIDVALIDITY, because the file is older than what was done with it:
/// UIDs that were given since can then be given again. The new modseq is higher than
/// `known_modseq`.
pub(crate) fn renew_uid_validities(db: &Transaction<'_>, known_modseq: i64) -> Result<()> {
    static IDS: StaticStatement =
        StaticStatement::new("SELECT id FROM mailbox WHERE id <> 0 ORDER BY id");
    static NUMBERS: StaticStatement = StaticStatement::new(
        "UPDATE mail_state SET modseq = max(modseq, ?1) + 1,
             uid_validity = max(uid_validity, unixepoch()) + ?2
         RETURNING modseq, uid_validity - ?2 + 1",
    );
    static RENEW: StaticStatement =
        StaticStatement::new("UPDATE mailbox SET uid_validity = ?2, modseq = ?3 WHERE id = ?1");
    let mut statement = db.statement(&IDS)?;
    let ids = statement.query_map([], |row| row.get(0))?;
    let ids: Vec<i64> = ids.collect::<rusqlite::Result<_>>()?;
    let count = i64::try_from(ids.len()).unwrap_or(i64::MAX);
    let (modseq, first): (i64, i64) = db
        .statement(&NUMBERS)?
        .query_row((known_modseq, count), |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (id, uid_validity) in ids.into_iter().zip(first..) {
        let uid_validity = uid_validity_column(uid_validity, id)?;
        db.statement(&RENEW)?.execute((id, uid_validity, modseq))?;
    }
    Ok(())
}

/// Returns a UIDVALIDITY, which has 32 bits.
fn uid_validity_column(number: i64, mailbox: i64) -> Result<u32> {
    u32::try_from(number).or(Err(Error::UidsUsedUp { mailbox }))
}

fn find_in(db: &Transaction<'_>, parent: i64, name: &str) -> Result<Option<i64>> {
    static FIND: StaticStatement = StaticStatement::new(
        "SELECT id FROM mailbox WHERE parent_id = ?1 AND name = ?2 AND id <> 0",
    );
    Ok(db.statement(&FIND)?.query_row(params![parent, name], |row| row.get(0)).optional()?)
}

fn create(db: &Transaction<'_>, parent: i64, name: &str) -> Result<i64> {
    static COUNT: StaticStatement = StaticStatement::new("SELECT count(*) FROM mailbox");
    static NUMBERS: StaticStatement = StaticStatement::new(
        "UPDATE mail_state SET modseq = modseq + 1,
             uid_validity = max(uid_validity + 1, unixepoch())
         RETURNING modseq, uid_validity",
    );
    static INSERT: StaticStatement = StaticStatement::new(
        "INSERT INTO mailbox (parent_id, name, uid_validity, modseq) VALUES (?1, ?2, ?3, ?4)
         RETURNING id",
    );
    let count: u32 = db.statement(&COUNT)?.query_row([], |row| row.get(0))?;
    if count > MAILBOXES_COUNT_MAX {
        return Err(Error::TooManyMailboxes);
    }
    let numbers = db.statement(&NUMBERS)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)));
    let (modseq, uid_validity): (i64, i64) = numbers?;
    let uid_validity = uid_validity_column(uid_validity, parent)?;
    let columns = params![parent, name, uid_validity, modseq];
    Ok(db.statement(&INSERT)?.query_row(columns, |row| row.get(0))?)
}

/// Splits a path into the names of its levels, in Unicode's form NFC.
fn levels(path: &str) -> Result<Vec<String>> {
    let invalid = |reason| Error::InvalidMailboxName { name: path.to_owned(), reason };
    let mut names: Vec<String> = path.split('/').map(|name| name.nfc().collect()).collect();
    if names.len() > MAILBOXES_DEPTH_MAX {
        return Err(invalid("it has too many levels"));
    }
    for name in &names {
        if name.is_empty() {
            return Err(invalid("a level is empty"));
        }
        if name.len() > MAILBOX_NAME_BYTES_MAX {
            return Err(invalid("a level is too long"));
        }
        if name.contains(is_forbidden) {
            return Err(invalid("it contains '%', '*' or a control character"));
        }
    }
    if let Some(first) = names.first_mut().filter(|name| name.eq_ignore_ascii_case(INBOX)) {
        INBOX.clone_into(first);
    }
    Ok(names)
}

/// Whether a character cannot be in a mailbox's name. `%` and `*` are IMAP's wildcards.
fn is_forbidden(char: char) -> bool {
    matches!(char, '/' | '%' | '*') || char.is_control()
}

/// Makes a name from another mail program valid, except for its length.
pub(crate) fn valid_name(name: &str) -> String {
    if name.is_empty() { "_".to_owned() } else { name.replace(is_forbidden, "_") }
}
