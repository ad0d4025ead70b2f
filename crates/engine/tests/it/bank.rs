//! Accounts, and a ledger from which their balances follow: a transfer that is lost, doubled or
//! half done shows.

use std::collections::BTreeSet;
use std::path::PathBuf;

use engine::{
    Database, Durability, Error, Migration, PragmaScope, PragmaSetting, Profile, StaticStatement,
    WriteFuture,
};
use rand::RngExt;
use rand::rngs::StdRng;
use rusqlite::Connection;

use crate::number;

pub(crate) const SCHEMA: &[Migration] = &[Migration {
    version: 1,
    sql: "CREATE TABLE account (id INTEGER PRIMARY KEY, balance);
          WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 15)
              INSERT INTO account SELECT i, 1000 FROM n;
          CREATE TABLE ledger (id, source, target, amount, padding)",
}];

pub(crate) const ACCOUNTS: i64 = 16;
const BALANCE: i64 = 1_000;

/// WAL limit in pages, so small that the WAL is checkpointed all the time.
pub(crate) const WAL_LIMIT: u32 = 40;
pub(crate) const SMALL_WAL: &Profile = &Profile {
    name: "small-wal",
    about: "",
    base: Profile::SERVER.changes,
    changes: &[PragmaSetting {
        name: "wal_autocheckpoint",
        value: "40",
        read_back: "40",
        scope: PragmaScope::Writing,
    }],
};

#[derive(Clone, Copy, Debug)]
pub(crate) struct BankTransfer {
    pub(crate) id: i64,
    source: i64,
    target: i64,
    amount: i64,
    /// Number of additional bytes in the ledger.
    pub(crate) padding: u32,
    /// Whether the transfer fails after it wrote.
    pub(crate) fails: bool,
}

static ADD: StaticStatement =
    StaticStatement::new("UPDATE account SET balance = balance + ?2 WHERE id = ?1");
static ENTER: StaticStatement =
    StaticStatement::new("INSERT INTO ledger VALUES (?1, ?2, ?3, ?4, zeroblob(?5))");

impl BankTransfer {
    pub(crate) fn random(id: i64, random: &mut StdRng) -> Self {
        let account = 0..ACCOUNTS;
        let (source, target) = (random.random_range(account.clone()), random.random_range(account));
        Self { id, source, target, amount: random.random_range(1..50), padding: 0, fails: false }
    }

    /// Queues the transfer, whose result is its id.
    pub(crate) fn submit(
        self,
        database: &Database,
        durability: Durability,
    ) -> WriteFuture<i64, Error> {
        database.write(durability, move |db| {
            db.statement(&ADD)?.execute((self.source, -self.amount))?;
            let entry = (self.id, self.source, self.target, self.amount, self.padding);
            db.statement(&ENTER)?.execute(entry)?;
            db.statement(&ADD)?.execute((self.target, self.amount))?;
            let Self { id, fails, .. } = self;
            if fails { Err(Error::NotEncrypted { path: failure(id) }) } else { Ok(id) }
        })
    }
}

/// Returns the path in the error with which a transfer fails: no write fails with this error of the
/// engine otherwise, and its path names the transfer.
pub(crate) fn failure(id: i64) -> PathBuf {
    PathBuf::from(id.to_string())
}

/// Checks that the sum of all balances is unchanged, as it must be in every snapshot.
pub(crate) fn is_balanced(db: &Connection) -> bool {
    number(db, "SELECT sum(balance) FROM account") == ACCOUNTS * BALANCE
}

/// Checks that the file is undamaged, and that each transfer is stored completely or not at all,
/// and none twice. Returns the ids of the stored transfers.
pub(crate) fn check(db: &Connection) -> BTreeSet<i64> {
    let integrity: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    for account in 0..ACCOUNTS {
        let [balance, spent, got] = [
            format!("SELECT balance FROM account WHERE id = {account}"),
            format!("SELECT coalesce(sum(amount), 0) FROM ledger WHERE source = {account}"),
            format!("SELECT coalesce(sum(amount), 0) FROM ledger WHERE target = {account}"),
        ]
        .map(|sql| number(db, &sql));
        assert_eq!(balance, BALANCE - spent + got, "account {account}");
    }
    let mut ids = db.prepare("SELECT id FROM ledger").unwrap();
    let ids: Vec<i64> = ids.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let unique: BTreeSet<i64> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "none twice");
    unique
}
