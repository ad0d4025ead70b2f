//! Queries for operators over many accounts: totals and sorted pages.
//!
//! # Not here
//! - Sizes of vaults → the caller that has their files. It passes sizes, by which accounts are
//!   sorted here.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use crate::accounts::{AccountSummary, Accounts, SUMMARY, summary};
use crate::error::Result;
use crate::id::{VaultId, vault_of_column};

/// The numbers of accounts, devices and vaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountTotals {
    pub accounts: u64,
    pub devices: u64,
    /// The vaults of all accounts: their own ones and their sub-vaults.
    pub vaults: u64,
}

/// The sort key of accounts. Equal accounts are sorted by login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccountSortBy {
    #[default]
    Login,
    Created,
    /// The number of an account's devices.
    Devices,
}

/// A selection of accounts and a page of their list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountPageQuery {
    /// A text in lower case that the logins contain; if it is empty, all accounts match.
    pub search: String,
    pub is_descending: bool,
    /// The number of accounts to skip.
    pub offset: u64,
    pub count_max: u64,
}

/// A condition for accounts whose login contains parameter 1.
const SELECTED: &str = "instr(login, ?1) > 0";

impl Accounts {
    /// Returns the numbers of accounts, devices and vaults.
    pub fn totals(&self) -> Result<AccountTotals> {
        self.database.read(|db| {
            let mut statement = db.prepare_cached(
                "SELECT (SELECT count(*) FROM account), (SELECT count(*) FROM device),
                     (SELECT count(*) FROM sub_vault)",
            )?;
            let number = i64::cast_unsigned;
            let [accounts, devices, sub_vaults] = statement.query_row([], |row| {
                Ok([number(row.get(0)?), number(row.get(1)?), number(row.get(2)?)])
            })?;
            Ok(AccountTotals { accounts, devices, vaults: accounts + sub_vaults })
        })
    }

    /// Returns the number of accounts whose login contains this text.
    pub fn count_matching(&self, search: &str) -> Result<u64> {
        self.database.read(|db| {
            let sql = format!("SELECT count(*) FROM account WHERE {SELECTED}");
            let count: i64 = db.prepare_cached(&sql)?.query_row([search], |row| row.get(0))?;
            Ok(count.cast_unsigned())
        })
    }

    /// Returns a page of the list of accounts. Reads all matching accounts.
    pub fn list_page(
        &self,
        selection: &AccountPageQuery,
        order: AccountSortBy,
    ) -> Result<Vec<AccountSummary>> {
        let AccountPageQuery { search, is_descending, offset, count_max } = selection;
        let column = match order {
            AccountSortBy::Login => "login",
            AccountSortBy::Created => "created_ms",
            // The number of the column in [`SUMMARY`].
            AccountSortBy::Devices => "5",
        };
        let direction = if *is_descending { "DESC" } else { "ASC" };
        let sql = format!(
            "{SUMMARY} WHERE {SELECTED} ORDER BY {column} {direction}, login LIMIT ?2 OFFSET ?3"
        );
        self.database.read(|db| {
            let mut statement = db.prepare_cached(&sql)?;
            let part = params![search, to_integer(*count_max), to_integer(*offset)];
            statement.query_and_then(part, summary)?.collect()
        })
    }

    /// Returns a page of the list of accounts, sorted by the total size of each account's vaults.
    /// Needs a few bytes of memory for each matching account.
    pub fn list_page_by_size(
        &self,
        selection: &AccountPageQuery,
        weight: impl Fn(&VaultId) -> u64,
    ) -> Result<Vec<AccountSummary>> {
        let AccountPageQuery { search, is_descending, offset, count_max } = selection;
        self.database.read(|db| {
            let mut weights: Vec<(i64, u64)> = weights(db, search, weight)?.into_iter().collect();
            // Sort by id last, so that equal accounts keep their order from one page to the next.
            weights.sort_unstable_by_key(|&(id, weight)| {
                (if *is_descending { u64::MAX - weight } else { weight }, id)
            });
            let [offset, count_max] =
                [offset, count_max].map(|&number| usize::try_from(number).unwrap_or(usize::MAX));
            let mut statement = db.prepare_cached(&format!("{SUMMARY} WHERE id = ?1"))?;
            let part = weights.iter().skip(offset).take(count_max);
            part.map(|&(id, _)| statement.query_one([id], |row| Ok(summary(row)))?).collect()
        })
    }
}

fn weights(
    db: &Connection,
    search: &str,
    weight: impl Fn(&VaultId) -> u64,
) -> Result<HashMap<i64, u64>> {
    let sql = format!(
        "SELECT id, vault_id FROM account WHERE {SELECTED}
         UNION ALL
         SELECT id, sub_vault.vault_id
         FROM sub_vault JOIN account ON id = account_id WHERE {SELECTED}"
    );
    let mut statement = db.prepare_cached(&sql)?;
    let mut rows = statement.query([search])?;
    let mut weights = HashMap::new();
    while let Some(row) = rows.next()? {
        let vault = vault_of_column(&row.get::<_, String>(1)?)?;
        *weights.entry(row.get(0)?).or_default() += weight(&vault);
    }
    Ok(weights)
}

/// Converts a number to SQLite's integer type. No list is longer than its maximum.
fn to_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
