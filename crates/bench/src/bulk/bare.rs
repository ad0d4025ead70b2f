//! Measures the bare loop: SQLite called directly.

use std::path::Path;
use std::time::Duration;

use crdt::Message;
use engine::{Cipher, DatabaseKey, FileEncryption, Profile};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::measure::time;
use crate::report_setting::ReportSetting;

const SCHEMA: &str = "CREATE TABLE message (seq INTEGER PRIMARY KEY, \
    timestamp BLOB NOT NULL UNIQUE, content BLOB NOT NULL)";

/// Stores the messages in a fresh file, with an fsync per page.
pub(super) fn store(
    path: &Path,
    encryption: &FileEncryption,
    messages: &[Message],
    page: usize,
) -> anyhow::Result<Duration> {
    let db = open(path, encryption)?.0;
    let ((), took) = time(|| insert(&db, messages, page))?;
    Ok(took)
}

fn open(path: &Path, encryption: &FileEncryption) -> anyhow::Result<(Connection, Option<Cipher>)> {
    let opened = engine::open_connection(path, encryption, Profile::SERVER, false, true)?;
    opened.0.pragma_update(None, "synchronous", "FULL")?;
    opened.0.execute_batch(SCHEMA)?;
    Ok(opened)
}

fn insert(db: &Connection, messages: &[Message], page: usize) -> anyhow::Result<()> {
    let sql = "INSERT INTO message (timestamp, content) VALUES (?1, ?2)";
    let mut statement = db.prepare(sql)?;
    for page in messages.chunks(page) {
        db.execute_batch("BEGIN IMMEDIATE")?;
        for message in page {
            statement.execute((message.timestamp.to_bytes(), &message.content[..]))?;
        }
        db.execute_batch("COMMIT")?;
    }
    Ok(())
}

/// Returns the settings that decide the cost of a commit, as read back. The server acknowledges
/// with the same settings.
pub(super) fn settings(path: &Path) -> anyhow::Result<Vec<ReportSetting>> {
    let encryption = FileEncryption::Key { key: DatabaseKey::generate(), cipher: None };
    let (db, cipher) = open(path, &encryption)?;
    let cipher = cipher.map_or("none", Cipher::name);
    let mut settings = vec![ReportSetting::new("cipher", cipher)];
    for name in ["journal_mode", "synchronous", "page_size"] {
        let value = db.query_row(&format!("PRAGMA {name}"), [], |row| {
            Ok(match row.get(0)? {
                Value::Integer(value) => value.to_string(),
                Value::Text(text) => text,
                other => format!("{other:?}"),
            })
        })?;
        settings.push(ReportSetting::new(name, value));
    }
    Ok(settings)
}
