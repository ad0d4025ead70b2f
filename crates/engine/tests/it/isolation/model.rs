//! The content of the test's tables as plain values.

use std::collections::BTreeSet;

use rusqlite::Connection;

use crate::number;

pub(super) const ACCOUNTS: u8 = 8;
/// Number of tables that are created and dropped, and of bytes of the BLOB.
pub(super) const SLOTS: usize = 3;
const BALANCE: i64 = 1_000;

pub(super) const SCHEMA: engine::Migration = engine::Migration {
    version: 1,
    sql: "CREATE TABLE account (id INTEGER PRIMARY KEY, balance);
          INSERT INTO account VALUES (0, 1000), (1, 1000), (2, 1000), (3, 1000),
                                     (4, 1000), (5, 1000), (6, 1000), (7, 1000);
          CREATE TABLE page (bytes);
          INSERT INTO page VALUES (zeroblob(3));
          CREATE TABLE parent (id INTEGER PRIMARY KEY);
          CREATE TABLE child (id REFERENCES parent DEFERRABLE INITIALLY DEFERRED)",
};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct TableModel {
    pub(super) balances: [i64; ACCOUNTS as usize],
    pub(super) has_table: [bool; SLOTS],
    pub(super) bytes: [u8; SLOTS],
    pub(super) user_version: i64,
    pub(super) families: BTreeSet<i64>,
}

impl TableModel {
    /// Returns the content that `SCHEMA` creates.
    pub(super) fn new() -> Self {
        Self {
            balances: [BALANCE; ACCOUNTS as usize],
            has_table: [false; SLOTS],
            bytes: [0; SLOTS],
            user_version: 1,
            families: BTreeSet::new(),
        }
    }

    /// Reads the stored content.
    pub(super) fn read(db: &Connection) -> Self {
        let balance = |id| number(db, &format!("SELECT balance FROM account WHERE id = {id}"));
        let count = |slot| {
            let sql = format!("SELECT count(*) FROM sqlite_schema WHERE name = 'made_{slot}'");
            number(db, &sql)
        };
        let ids = |table| {
            let mut statement = db.prepare(&format!("SELECT id FROM {table}")).unwrap();
            let ids = statement.query_map([], |row| row.get(0)).unwrap();
            ids.collect::<rusqlite::Result<BTreeSet<i64>>>().unwrap()
        };
        assert_eq!(ids("parent"), ids("child"));
        let bytes: Vec<u8> = db.query_row("SELECT bytes FROM page", [], |row| row.get(0)).unwrap();
        Self {
            balances: std::array::from_fn(balance),
            has_table: std::array::from_fn(|slot| count(slot) == 1),
            bytes: bytes.try_into().unwrap(),
            user_version: number(db, "PRAGMA user_version"),
            families: ids("child"),
        }
    }
}
