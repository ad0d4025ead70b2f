//! Identifies a row by the number of its table and the bytes of its key.

use crdt::Value;

use crate::error::{Error, Result};

/// The id of a row: its table's number and its encoded primary key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RowId {
    pub(crate) table: i64,
    pub(crate) key: Vec<u8>,
}

impl RowId {
    pub(crate) fn new(table: i64, key: &[Value]) -> Self {
        Self { table, key: Value::encode_key(key) }
    }

    pub(crate) fn key_values(&self) -> Result<Vec<Value>> {
        Value::decode_key(&self.key).map_err(|source| Error::CorruptMessage {
            timestamp: format!("key {:02x?}", self.key),
            reason: source.to_string(),
        })
    }
}
