//! Inserts messages with each method, statement by statement.

use std::fmt::Write;

use crdt::{Message, Timestamp};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::bulk::trie::JsonTrie;

const GROUP: &str = "group";
const INSERT_ONE: &str = "INSERT INTO messages VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
const INSERT_ARRAYS: &str = "INSERT INTO messages \
    SELECT $1, * FROM unnest($2::TEXT[], $3::BYTEA[]) ON CONFLICT DO NOTHING RETURNING timestamp";
const READ_TRIE: &str = "SELECT merkle FROM merkles WHERE group_id = $1";
const WRITE_TRIE: &str = "INSERT INTO merkles VALUES ($1, $2) \
    ON CONFLICT (group_id) DO UPDATE SET merkle = excluded.merkle";

/// Inserts all rows at once and does nothing else: this is PostgreSQL's cost of the rows.
pub(super) async fn arrays(client: &Client, messages: &[Message]) -> anyhow::Result<usize> {
    let timestamps: Vec<String> = messages.iter().map(|m| m.timestamp.to_string()).collect();
    let contents: Vec<&[u8]> = messages.iter().map(|m| &m.content[..]).collect();
    Ok(client.query(INSERT_ARRAYS, &[&GROUP, &timestamps, &contents]).await?.len())
}

/// Inserts each message in its own round trip, in one transaction with a prepared statement.
pub(super) async fn one(client: &mut Client, messages: &[Message]) -> anyhow::Result<usize> {
    let transaction = client.transaction().await?;
    let insert = transaction.prepare(INSERT_ONE).await?;
    let mut new = Vec::new();
    for message in messages {
        let text = message.timestamp.to_string();
        let values: [&(dyn ToSql + Sync); 3] = [&GROUP, &text, &&message.content[..]];
        if transaction.execute(&insert, &values).await? == 1 {
            new.push((message.timestamp.millis(), text));
        }
    }
    let row = transaction.query_opt(READ_TRIE, &[&GROUP]).await?;
    let document: Option<String> = row.map(|row| row.try_get(0)).transpose()?;
    let document = changed(document.as_deref(), &new)?;
    transaction.execute(WRITE_TRIE, &[&GROUP, &document]).await?;
    transaction.commit().await?;
    Ok(new.len())
}

/// Inserts all messages with the values in the statement's text, in one transaction.
pub(super) async fn text(client: &Client, messages: &[Message]) -> anyhow::Result<usize> {
    client.batch_execute("BEGIN").await?;
    let mut new = Vec::new();
    for answer in client.simple_query(&insert_text(messages)).await? {
        let SimpleQueryMessage::Row(row) = answer else { continue };
        let text = row.get(0).unwrap_or_default();
        new.push((text.parse::<Timestamp>()?.millis(), text.to_owned()));
    }
    let row = client.query_opt(READ_TRIE, &[&GROUP]).await?;
    let document: Option<String> = row.map(|row| row.try_get(0)).transpose()?;
    let document = changed(document.as_deref(), &new)?;
    client.execute(WRITE_TRIE, &[&GROUP, &document]).await?;
    client.batch_execute("COMMIT").await?;
    Ok(new.len())
}

fn insert_text(messages: &[Message]) -> String {
    let mut sql = "INSERT INTO messages VALUES ".to_owned();
    for (index, message) in messages.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        // Neither a timestamp nor a hexadecimal number contains a quote.
        write!(sql, "{comma}('{GROUP}','{}','\\x", message.timestamp).expect("a string");
        for byte in &message.content {
            write!(sql, "{byte:02x}").expect("a string");
        }
        sql.push_str("')");
    }
    sql.push_str(" ON CONFLICT DO NOTHING RETURNING timestamp");
    sql
}

/// Adds new timestamps to the group's trie and returns the document.
pub(crate) fn changed(document: Option<&str>, new: &[(u64, String)]) -> anyhow::Result<String> {
    let mut trie: JsonTrie =
        document.map_or_else(|| Ok(JsonTrie::default()), serde_json::from_str)?;
    for (millis, text) in new {
        trie.insert(*millis, text);
    }
    Ok(serde_json::to_string(&trie)?)
}
