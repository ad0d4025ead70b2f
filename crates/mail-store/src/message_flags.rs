//! The flags of a message in a mailbox: IMAP's five system flags, and keywords.
//!
//! In the vault they are the bits of one number. Bits 0 to 4 are the system flags; the bits above
//! are keywords, each with a row that gives it a name.

use std::collections::BTreeSet;

use engine::{StaticStatement, Transaction};
use rusqlite::OptionalExtension;

use crate::error::{Error, Result};
use crate::limits::KEYWORDS_COUNT_MAX;

/// The flag of a message that was read.
pub const SEEN: &str = "\\Seen";
/// The flag of a message that was answered.
pub const ANSWERED: &str = "\\Answered";
/// The flag of a message that is marked as important.
pub const FLAGGED: &str = "\\Flagged";
/// The flag of a message that the next EXPUNGE removes.
pub const DELETED: &str = "\\Deleted";
/// The flag of a message that is not finished.
pub const DRAFT: &str = "\\Draft";
/// The keyword of a message that was forwarded.
pub const FORWARDED: &str = "$Forwarded";

/// The system flags in the order of their bits.
const SYSTEM_FLAGS: [&str; 5] = [SEEN, ANSWERED, FLAGGED, DELETED, DRAFT];

/// The first bit of keywords.
const FIRST_KEYWORD_BIT: u32 = 5;

/// The names of flags, such as `\Seen` and `$Forwarded`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageFlags(BTreeSet<String>);

impl MessageFlags {
    pub fn insert(&mut self, name: &str) {
        self.0.insert(name.to_owned());
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns the flags as bits. Keywords that are new to the vault get a bit.
    pub(crate) fn to_bits(&self, db: &Transaction<'_>) -> Result<i64> {
        let mut bits = 0;
        for name in self.names() {
            let system = (0..).zip(SYSTEM_FLAGS).find(|(_, flag)| *flag == name);
            let bit = system.map_or_else(|| keyword_bit(db, name), |(bit, _)| Ok(bit))?;
            bits |= 1 << bit;
        }
        Ok(bits)
    }

    pub(crate) fn from_bits(bits: i64, keywords: &[(u32, String)]) -> Self {
        let is_set = |bit: u32| bits & (1 << bit) != 0;
        let system = (0..).zip(SYSTEM_FLAGS).filter(|(bit, _)| is_set(*bit));
        let keywords = keywords.iter().filter(|(bit, _)| is_set(*bit));
        let system = system.map(|(_, name)| name.to_owned());
        Self(system.chain(keywords.map(|(_, name)| name.clone())).collect())
    }
}

/// Returns the bits of all keywords, with their names.
pub(crate) fn keywords(db: &Transaction<'_>) -> Result<Vec<(u32, String)>> {
    static LIST: StaticStatement = StaticStatement::new("SELECT id, name FROM keyword");
    let mut statement = db.statement(&LIST)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let keywords: Vec<(u32, String)> = rows.collect::<rusqlite::Result<_>>()?;
    let is_valid =
        |bit: u32| (FIRST_KEYWORD_BIT..FIRST_KEYWORD_BIT + KEYWORDS_COUNT_MAX).contains(&bit);
    if keywords.iter().all(|(bit, _)| is_valid(*bit)) {
        Ok(keywords)
    } else {
        Err(Error::Damaged { what: "the bit of a keyword" })
    }
}

fn keyword_bit(db: &Transaction<'_>, name: &str) -> Result<u32> {
    static FIND: StaticStatement = StaticStatement::new("SELECT id FROM keyword WHERE name = ?1");
    static INSERT: StaticStatement = StaticStatement::new(
        "INSERT INTO keyword (id, name) SELECT coalesce(max(id) + 1, 5), ?1 FROM keyword
         HAVING coalesce(max(id) + 1, 5) < ?2 RETURNING id",
    );
    let found = db.statement(&FIND)?.query_row([name], |row| row.get(0)).optional()?;
    if let Some(bit) = found {
        return Ok(bit);
    }
    let end = FIRST_KEYWORD_BIT + KEYWORDS_COUNT_MAX;
    let added = db.statement(&INSERT)?.query_row((name, end), |row| row.get(0)).optional()?;
    added.ok_or(Error::TooManyKeywords)
}
