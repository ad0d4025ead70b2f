//! Represents a change that a trigger has recorded and that has no timestamp yet.

use crdt::Value;

/// A row of the outbox, except those that announce a key.
pub(crate) struct PendingChange {
    pub(crate) seq: i64,
    pub(crate) at_ms: u64,
    pub(crate) table: i64,
    pub(crate) changed_columns: String,
    pub(crate) key: Vec<Value>,
    /// The outbox row that announced the key, if this is a new row whose key SQLite chose.
    pub(crate) announced: Option<i64>,
}

impl PendingChange {
    /// Returns whether the change inserted a row whose key SQLite chose.
    pub(crate) fn has_auto_key(&self) -> bool {
        self.announced.is_some()
    }

    /// Returns whether the whole row was written.
    pub(crate) fn is_whole(&self) -> bool {
        self.changed_columns == "*"
    }

    /// Returns whether the captured column at this position was written.
    pub(crate) fn has_written(&self, position: usize) -> bool {
        self.is_whole()
            || self.changed_columns.as_bytes().get(position).is_some_and(|bit| *bit != b'0')
    }
}
