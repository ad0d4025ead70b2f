//! Defines the table that the published benchmark measures: messages of a mailbox, each with its
//! body.

use std::path::Path;

use anyhow::Context;
use rusqlite::Connection;

use super::execute_plan::{body, set, unlock};
use super::plan::{LabPlan, LabStatement, LabStep, SampleValue};

/// The place of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLayout {
    /// The last column.
    Last,
    /// The first column after the key.
    First,
    /// A separate table.
    Apart,
}

/// A table of messages.
#[derive(Clone, Debug)]
pub(crate) struct MailboxTable {
    pub(crate) layout: BodyLayout,
    pub(crate) rows: i64,
    pub(crate) body_bytes: usize,
}

/// A file's encryption: the cipher's name and the key as 64 hexadecimal digits.
pub(crate) type CipherAndKey = Option<(String, String)>;

/// Returns the encryption with a fixed key, for files without real data.
pub(crate) fn encryption(cipher: Option<&str>) -> CipherAndKey {
    cipher.map(|cipher| (cipher.to_owned(), "07".repeat(32)))
}

/// The number of rows that one transaction loads.
const ROWS_LOADED: i64 = 10_000;
/// The cycle of the step `mixed`: mostly reads, and the table keeps its size.
const MIXED: [&str; 10] =
    ["list", "read", "read", "update", "insert", "read", "list", "update", "read", "delete"];

impl MailboxTable {
    /// Returns the plan of these steps on a file.
    pub(crate) fn plan(
        &self,
        database: &Path,
        settings: &[(String, String)],
        encryption: &CipherAndKey,
        steps: Vec<LabStep>,
    ) -> LabPlan {
        let flags = (0..8).map(SampleValue::Integer).collect();
        LabPlan {
            database: database.to_owned(),
            cipher: encryption.as_ref().map(|(cipher, _)| cipher.clone()),
            key: encryption.as_ref().map(|(_, key)| key.clone()),
            settings: settings.to_vec(),
            rows: self.rows,
            body_bytes: self.body_bytes,
            seed: 7,
            samples: [("flags".to_owned(), flags)].into(),
            operations: self.operations(),
            steps,
            clean: self.clean(),
        }
    }

    /// Returns an upper bound for the size of a file and its WAL, for any page size: a row and its
    /// index entry, and a page where two rows do not fit.
    pub(crate) fn disk_bytes(&self) -> u64 {
        const ROW_BYTES: u64 = 250;
        const WAL_BYTES: u64 = 16 << 20;
        let body = self.body_bytes as u64;
        let row = (body + body / 4).saturating_add(ROW_BYTES);
        self.rows.unsigned_abs().saturating_mul(row).saturating_add(WAL_BYTES)
    }

    /// Creates the file, which must not exist, with those settings that a file stores.
    pub(crate) fn make(
        &self,
        path: &Path,
        settings: &[(String, String)],
        encryption: &CipherAndKey,
    ) -> anyhow::Result<()> {
        let db = create(path, settings, encryption)?;
        db.execute_batch("PRAGMA synchronous = OFF")?;
        db.execute_batch(self.schema())?;
        let body = body(self.body_bytes);
        let inserts = self.operations().remove("insert").context("every layout has inserts")?;
        for first in (1..=self.rows).step_by(usize::try_from(ROWS_LOADED)?) {
            let transaction = db.unchecked_transaction()?;
            for LabStatement { sql, bind } in &inserts {
                let mut insert = transaction.prepare_cached(sql)?;
                for id in first..=self.rows.min(first + ROWS_LOADED - 1) {
                    for (index, name) in bind.iter().enumerate() {
                        match name.as_str() {
                            "new" | "row" => insert.raw_bind_parameter(index + 1, id)?,
                            "flags" => insert.raw_bind_parameter(index + 1, id % 8)?,
                            _ => insert.raw_bind_parameter(index + 1, &body)?,
                        }
                    }
                    insert.raw_execute()?;
                }
            }
            transaction.commit()?;
        }
        db.execute_batch("ANALYZE")?;
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        db.close().map_err(|(_, error)| error)?;
        std::fs::File::open(path)?.sync_all()?;
        Ok(())
    }

    /// Creates a file with the tables and no rows, with all settings, and closes it.
    pub(crate) fn set_up(
        &self,
        path: &Path,
        settings: &[(String, String)],
        encryption: &CipherAndKey,
    ) -> anyhow::Result<()> {
        let db = create(path, settings, encryption)?;
        db.execute_batch(self.schema())?;
        db.close().map_err(|(_, error)| error.into())
    }

    fn schema(&self) -> &'static str {
        match self.layout {
            BodyLayout::Last => {
                "CREATE TABLE message (id INTEGER PRIMARY KEY, date INTEGER NOT NULL, \
                 flags INTEGER NOT NULL, sender TEXT NOT NULL, subject TEXT NOT NULL, \
                 body BLOB NOT NULL); CREATE INDEX message_date ON message (date)"
            }
            BodyLayout::First => {
                "CREATE TABLE message (id INTEGER PRIMARY KEY, body BLOB NOT NULL, \
                 date INTEGER NOT NULL, flags INTEGER NOT NULL, sender TEXT NOT NULL, \
                 subject TEXT NOT NULL); CREATE INDEX message_date ON message (date)"
            }
            BodyLayout::Apart => {
                "CREATE TABLE message (id INTEGER PRIMARY KEY, date INTEGER NOT NULL, \
                 flags INTEGER NOT NULL, sender TEXT NOT NULL, subject TEXT NOT NULL); \
                 CREATE INDEX message_date ON message (date); \
                 CREATE TABLE body (id INTEGER PRIMARY KEY, body BLOB NOT NULL)"
            }
        }
    }

    fn operations(&self) -> std::collections::BTreeMap<String, Vec<LabStatement>> {
        let statement = |sql: &str, bind: &[&str]| LabStatement {
            sql: sql.to_owned(),
            bind: bind.iter().map(|name| (*name).to_owned()).collect(),
        };
        let is_apart = self.layout == BodyLayout::Apart;
        let texts = "'somebody@example.org', 'About the meeting of next week'";
        let insert = if is_apart {
            let sql = format!("INSERT INTO message VALUES (?, ?, ?, {texts})");
            vec![
                statement(&sql, &["new", "row", "flags"]),
                statement("INSERT INTO body VALUES (?, ?)", &["new", "body"]),
            ]
        } else {
            let columns = "id, date, flags, body, sender, subject";
            let sql = format!("INSERT INTO message ({columns}) VALUES (?, ?, ?, ?, {texts})");
            vec![statement(&sql, &["new", "row", "flags", "body"])]
        };
        let mut delete = vec![statement("DELETE FROM message WHERE id = ?", &["last"])];
        if is_apart {
            delete.push(statement("DELETE FROM body WHERE id = ?", &["last"]));
        }
        let read = if is_apart {
            "SELECT body FROM body WHERE id = ?"
        } else {
            "SELECT body FROM message WHERE id = ?"
        };
        let list = "SELECT id, date, flags, subject FROM message WHERE date <= ? \
                    ORDER BY date DESC LIMIT 50";
        let update = "UPDATE message SET flags = ? WHERE id = ?";
        let operations = [
            ("insert", insert),
            ("list", vec![statement(list, &["row"])]),
            ("read", vec![statement(read, &["row"])]),
            ("update", vec![statement(update, &["flags", "row"])]),
            ("delete", delete),
        ];
        operations.into_iter().map(|(name, of)| (name.to_owned(), of)).collect()
    }

    fn clean(&self) -> Vec<String> {
        let mut tables = vec!["message"];
        if self.layout == BodyLayout::Apart {
            tables.push("body");
        }
        let rows = self.rows;
        tables.into_iter().map(|table| format!("DELETE FROM {table} WHERE id > {rows}")).collect()
    }
}

/// Creates an empty file with the settings.
fn create(
    path: &Path,
    settings: &[(String, String)],
    encryption: &CipherAndKey,
) -> anyhow::Result<Connection> {
    let db = Connection::open(path).with_context(|| path.display().to_string())?;
    if let Some((cipher, key)) = encryption {
        unlock(&db, cipher, key)?;
    }
    set(&db, settings)?;
    Ok(db)
}

/// Returns the steps: every operation alone and the mix, writes in transactions of each size, each
/// for `seconds`.
pub(crate) fn steps(transactions: &[usize], seconds: f64) -> Vec<LabStep> {
    let step = |name: String, cycle: &[&str], transaction: usize| LabStep {
        name,
        cycle: cycle.iter().map(|name| (*name).to_owned()).collect(),
        transaction,
        warmup_seconds: seconds / 4.0,
        seconds,
    };
    let mut steps = vec![];
    for &size in transactions {
        let name = |what: &str| match size {
            1 => what.to_owned(),
            size => format!("{what}-{size}"),
        };
        steps.push(step(name("insert"), &["insert"], size));
        if size == 1 {
            steps.extend(["list", "read"].map(|what| step(what.to_owned(), &[what], 1)));
        }
        steps.push(step(name("update"), &["update"], size));
        steps.push(step(name("mixed"), &MIXED, size));
        // The inserted rows are soon deleted, so a warm-up would leave none to measure.
        steps.push(LabStep { warmup_seconds: 0.0, ..step(name("delete"), &["delete"], size) });
    }
    steps
}
