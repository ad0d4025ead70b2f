//! Converts between SQLite's values and the values of messages.

use crdt::{LargeValue, Timestamp, Value};
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

use crate::error::{Error, Result};

/// A value that can be bound to a statement's parameter.
pub(crate) struct BoundValue<'a>(pub(crate) &'a Value);

impl ToSql for BoundValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            // An erased value is stored as NULL, like a cell that was never filled in.
            Value::Null | Value::Erased => ValueRef::Null,
            Value::Integer(integer) => ValueRef::Integer(*integer),
            Value::Real(real) => ValueRef::Real(*real),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::TextBytes(text) => ValueRef::Text(text),
            Value::Blob(blob) => ValueRef::Blob(blob),
            Value::Large(_) => {
                return Err(rusqlite::Error::ToSqlConversionFailure(
                    "only the whole of a value can be bound".into(),
                ));
            }
        }))
    }
}

/// Reads `count` values of a row, from column `first` on.
pub(crate) fn read(
    row: &rusqlite::Row<'_>,
    first: usize,
    count: usize,
) -> rusqlite::Result<Vec<Value>> {
    (first..first + count).map(|column| read_one(row, column)).collect()
}

/// Formats a value as an SQL literal, for people and for generated SQL.
pub(crate) fn to_literal(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(integer) => integer.to_string(),
        Value::Real(real) if real.is_nan() => "NULL".to_owned(),
        // This literal exceeds every real, so SQLite reads it as infinity.
        Value::Real(real) if real.is_infinite() => {
            format!("{}9e999", if *real < 0.0 { "-" } else { "" })
        }
        Value::Real(real) => format!("{real:?}"),
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::TextBytes(text) => format!("CAST({} AS TEXT)", hex(text)),
        Value::Blob(blob) => hex(blob),
        Value::Erased => "'(erased)'".to_owned(),
        Value::Large(LargeValue { is_text, length, .. }) => {
            format!("'({} of {length} bytes)'", if *is_text { "TEXT" } else { "BLOB" })
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("x'{}'", digits.concat())
}

/// Formats a key as SQL literals, for people.
pub(crate) fn key_to_literals(key: &[Value]) -> String {
    key.iter().map(to_literal).collect::<Vec<_>>().join(", ")
}

fn read_one(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Value> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => Value::Integer(integer),
        ValueRef::Real(real) => Value::Real(real),
        ValueRef::Text(text) => Value::from_text_bytes(text),
        ValueRef::Blob(blob) => Value::Blob(blob.to_vec()),
    })
}

pub(crate) fn timestamp(row: &rusqlite::Row<'_>, column: usize) -> Result<Timestamp> {
    let bytes = row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)?;
    Timestamp::from_bytes(bytes).map_err(|source| Error::CorruptMessage {
        timestamp: format!("{bytes:02x?}"),
        reason: source.to_string(),
    })
}
