//! A change that a trigger has recorded and that has no timestamp yet.

use crdt::Value;

/// One note: a row of the outbox, but for those that announce a key.
pub(crate) struct PendingChange {
    pub(crate) seq: i64,
    pub(crate) at_ms: u64,
    pub(crate) table: i64,
    pub(crate) changed_columns: String,
    pub(crate) key: Vec<Value>,
    /// The note that announced the key, if it is a new row whose key SQLite chose.
    pub(crate) announced: Option<i64>,
}

impl PendingChange {
    /// Whether it is a new row whose key SQLite chose.
    pub(crate) fn has_auto_key(&self) -> bool {
        self.announced.is_some()
    }

    /// Whether the whole row was written.
    pub(crate) fn is_whole(&self) -> bool {
        self.changed_columns == "*"
    }

    /// Whether the captured column at this position was written.
    pub(crate) fn has_written(&self, position: usize) -> bool {
        self.is_whole()
            || self.changed_columns.as_bytes().get(position).is_some_and(|bit| *bit != b'0')
    }
}
