//! What an account may hold, where that is not what the server gives to all.
//!
//! # Not here
//! - The server's defaults, but for devices → its configuration. Refusing messages → the vault.

use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use crate::accounts::Accounts;
use crate::error::{Error, Result};
use crate::login::Login;
use crate::schema;

/// An account's own limits; `None` is the server's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountLimits {
    /// Messages in the vault.
    pub messages_max: Option<u64>,
    /// Bytes of their contents.
    pub bytes_max: Option<u64>,
    /// Devices; at most [`crate::DEVICES_COUNT_MAX`].
    pub devices_max: Option<u32>,
}

impl Accounts {
    /// Changes an account's own limits; returns what they are then.
    pub fn change_limits(
        &self,
        login: &Login,
        change: impl Fn(&mut AccountLimits) + Send + 'static,
    ) -> Result<AccountLimits> {
        let login = login.clone();
        schema::write(&self.database, move |db| {
            let mut limits = read(db, &login)?;
            change(&mut limits);
            write(db, &login, limits)?;
            Ok(limits)
        })
    }
}

/// The columns that [`from_row`] reads.
pub(crate) const COLUMNS: &str = "messages_max, bytes_max, clients_max";

/// Reads [`COLUMNS`], the first of which is column number `first`.
pub(crate) fn from_row(row: &SqlRow<'_>, first: usize) -> rusqlite::Result<AccountLimits> {
    let (messages_max, bytes_max): (Option<i64>, Option<i64>) =
        (row.get(first)?, row.get(first + 1)?);
    Ok(AccountLimits {
        messages_max: messages_max.map(i64::cast_unsigned),
        bytes_max: bytes_max.map(i64::cast_unsigned),
        devices_max: row.get(first + 2)?,
    })
}

fn read(db: &Connection, login: &Login) -> Result<AccountLimits> {
    let mut statement =
        db.prepare_cached(&format!("SELECT {COLUMNS} FROM account WHERE login = ?1"))?;
    let limits = statement.query_row([login.as_str()], |row| from_row(row, 0)).optional()?;
    limits.ok_or(Error::NotFound)
}

fn write(db: &Connection, login: &Login, limits: AccountLimits) -> Result<()> {
    // What is more than SQLite's integers hold is no limit that anybody reaches.
    let column = |limit: Option<u64>| limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let AccountLimits { messages_max, bytes_max, devices_max } = limits;
    let mut statement = db.prepare_cached(
        "UPDATE account SET messages_max = ?2, bytes_max = ?3, clients_max = ?4 WHERE login = ?1",
    )?;
    let (messages_max, bytes_max) = (column(messages_max), column(bytes_max));
    statement.execute(params![login.as_str(), messages_max, bytes_max, devices_max])?;
    Ok(())
}
