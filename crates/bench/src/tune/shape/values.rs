//! Reads values from a table, for statements to bind.
//!
//! A plan supports neither BLOBs nor values that belong together
//! (`docs/reference/formats/12-lab-plan.md`): a BLOB is bound as its hexadecimal digits, a key of
//! several columns as a JSON array, and the statement decodes them.

use rusqlite::Connection;
use rusqlite::types::{Value, ValueRef};
use serde_json::json;
use sqlite_schema::quote_identifier;

use super::schema::LoadTable;
use crate::sqlite_bench::{PortableRng, SampleValue};

/// The most rows of a sample. This is a working set of some MB, which is warm after some tenths of
/// a second.
const ROWS_MAX: usize = 2_000;
/// The largest table whose rows are all read.
const SCANNED_MAX: i64 = 100_000;
/// The longest value that is bound; `octet_length` does not read longer ones.
const BYTES_MAX: usize = 1_000;

/// Rows of a table: the key's columns, then the requested columns.
pub(super) struct ValueSample {
    key_columns: usize,
    names: Vec<String>,
    rows: Vec<Vec<Value>>,
}

/// Values, and the form of their parameter in a statement.
pub(super) struct BoundExpression {
    pub(super) values: Vec<SampleValue>,
    is_hex: bool,
}

impl BoundExpression {
    /// Returns the SQL of parameter `number`.
    pub(super) fn parameter(&self, number: usize) -> String {
        if self.is_hex { format!("unhex(?{number})") } else { format!("?{number}") }
    }

    /// Returns whether at least two values differ.
    pub(super) fn differ(&self) -> bool {
        self.values.iter().any(|value| value != &self.values[0])
    }
}

impl ValueSample {
    /// Returns random rows if a rowid finds them, else evenly spread ones among the first rows.
    pub(super) fn of(db: &Connection, table: &LoadTable, columns: &[&str]) -> anyhow::Result<Self> {
        let short = |name: &&str| {
            let name = quote_identifier(name);
            format!("iif(octet_length({name}) <= {BYTES_MAX}, {name}, NULL)")
        };
        let names: Vec<String> = table
            .key
            .iter()
            .cloned()
            .chain(columns.iter().map(|name| (*name).to_owned()))
            .collect();
        let key = table.key.iter().map(|name| quote_identifier(name));
        let all: Vec<String> = key.chain(columns.iter().map(short)).collect();
        let select = format!("SELECT {} FROM {}", all.join(", "), quote_identifier(&table.name));
        let mut rows = Vec::new();
        match &table.rowid {
            Some(rowid) if table.rows > SCANNED_MAX => {
                let rowid = quote_identifier(rowid);
                let ends = format!(
                    "SELECT min({rowid}), max({rowid}) FROM {}",
                    quote_identifier(&table.name)
                );
                let (min, max) = db.query_row(&ends, [], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
                })?;
                let mut one = db.prepare(&format!("{select} WHERE {rowid} >= ? LIMIT 1"))?;
                let mut random = PortableRng::new(7);
                for _ in 0..ROWS_MAX {
                    let number = i128::from(random.next()) << 24 | i128::from(random.next());
                    let at =
                        i128::from(min) + (i128::from(max) - i128::from(min)) * number / (1 << 48);
                    let mut found = one.query([i64::try_from(at)?])?;
                    if let Some(row) = found.next()? {
                        rows.extend(values(row, names.len())?);
                    }
                }
            }
            _ => {
                let step = usize::try_from(table.rows.min(SCANNED_MAX))?.div_ceil(ROWS_MAX).max(1);
                let mut all = db.prepare(&format!("{select} LIMIT {SCANNED_MAX}"))?;
                let mut found = all.query([])?;
                let mut number = 0;
                while let Some(row) = found.next()? {
                    if number % step == 0 {
                        rows.extend(values(row, names.len())?);
                    }
                    number += 1;
                }
            }
        }
        Ok(Self { key_columns: table.key.len(), names, rows })
    }

    /// Returns the values of a column that are not NULL: either the BLOBs or the other values,
    /// whichever are more.
    pub(super) fn column(&self, name: &str) -> Option<BoundExpression> {
        let asked = &self.names[self.key_columns..];
        let at = match asked.iter().position(|of| of == name) {
            Some(at) => self.key_columns + at,
            None => self.names.iter().position(|of| of == name)?,
        };
        bound(self.rows.iter().map(|row| &row[at]))
    }

    /// Returns the keys, and the SQL of each of the key's columns if the key is parameter
    /// `number`.
    pub(super) fn keys(&self, number: usize) -> Option<(Vec<SampleValue>, Vec<String>)> {
        if self.key_columns == 1 {
            let bound = bound(self.rows.iter().map(|row| &row[0]))?;
            let sql = vec![bound.parameter(number)];
            return Some((bound.values, sql));
        }
        let is_hex: Vec<bool> = (0..self.key_columns)
            .map(|at| Some(bound(self.rows.iter().map(|row| &row[at]))?.is_hex))
            .collect::<Option<_>>()?;
        let keys = self.rows.iter().filter_map(|row| {
            let parts = row[..self.key_columns].iter().zip(&is_hex);
            let parts: Option<Vec<_>> = parts
                .map(|(value, is_hex)| match value {
                    Value::Blob(bytes) if *is_hex => Some(json!(hex(bytes))),
                    Value::Integer(number) if !is_hex => Some(json!(number)),
                    Value::Real(number) if !is_hex => Some(json!(number)),
                    Value::Text(text) if !is_hex => Some(json!(text)),
                    _ => None,
                })
                .collect();
            Some(SampleValue::Text(json!(parts?).to_string()))
        });
        let keys: Vec<SampleValue> = keys.collect();
        let sql = is_hex.iter().enumerate().map(|(at, is_hex)| {
            let part = format!("json_extract(?{number}, '$[{at}]')");
            if *is_hex { format!("unhex({part})") } else { part }
        });
        (!keys.is_empty()).then(|| (keys, sql.collect()))
    }
}

/// Returns a row's values, or `None` if a text is not UTF-8; such rows are not used.
fn values(row: &rusqlite::Row<'_>, count: usize) -> rusqlite::Result<Option<Vec<Value>>> {
    let values = (0..count).map(|at| {
        Ok(match row.get_ref(at)? {
            ValueRef::Text(text) => str::from_utf8(text).ok().map(|text| Value::Text(text.into())),
            other => other.try_into().ok(),
        })
    });
    values.collect()
}

fn bound<'a>(values: impl Iterator<Item = &'a Value>) -> Option<BoundExpression> {
    let values: Vec<&Value> = values.filter(|value| **value != Value::Null).collect();
    let blobs = values.iter().filter(|value| matches!(value, Value::Blob(_))).count();
    let is_hex = blobs * 2 > values.len();
    let values = values.into_iter().filter_map(|value| match value {
        Value::Blob(bytes) => is_hex.then(|| SampleValue::Text(hex(bytes))),
        Value::Integer(number) if !is_hex => Some(SampleValue::Integer(*number)),
        Value::Real(number) if !is_hex => Some(SampleValue::Real(*number)),
        Value::Text(text) if !is_hex => Some(SampleValue::Text(text.clone())),
        _ => None,
    });
    let values: Vec<SampleValue> = values.collect();
    (!values.is_empty()).then_some(BoundExpression { values, is_hex })
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}
