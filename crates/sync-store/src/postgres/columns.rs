//! Messages as arrays, in the form that `warren.store` and `warren.exchange` require.

use crdt::Timestamp;
use tokio_postgres::types::Type;

use crate::postgres::pool::PostgresParameter;
use crate::postgres::rows::{SqlBytes, halves};
use crate::postgres::sealing::VaultSealKeys;
use crate::vault::batch::BatchEntry;

/// Columns with one element for every message, in order of timestamp.
pub(super) struct MessageColumns {
    stamps: Vec<SqlBytes<[u8; Timestamp::BYTES]>>,
    highs: Vec<i64>,
    lows: Vec<i64>,
    /// The sizes of the contents before they were sealed.
    sizes: Vec<i32>,
    contents: Vec<SqlBytes<bytes::Bytes>>,
}

impl MessageColumns {
    /// Seals the contents and builds the columns.
    pub(super) fn new(entries: &[&BatchEntry], keys: &VaultSealKeys) -> Self {
        let stamp = |entry: &&BatchEntry| SqlBytes(entry.message.timestamp.to_bytes());
        let halves = |entry: &&BatchEntry| halves(entry.fingerprint.digest);
        let size = |entry: &&BatchEntry| i32::try_from(entry.message.content.len());
        let (highs, lows) = entries.iter().map(halves).unzip();
        let sizes = entries.iter().map(size).collect::<Result<_, _>>();
        let sealed = keys.seal_all(entries);
        Self {
            stamps: entries.iter().map(stamp).collect(),
            highs,
            lows,
            sizes: sizes.expect("a body is smaller"),
            contents: sealed.into_iter().map(SqlBytes).collect(),
        }
    }

    /// Returns the number of messages.
    pub(super) fn count(&self) -> u64 {
        self.stamps.len() as u64
    }

    /// Returns the arrays in the order of the functions' parameters.
    pub(super) fn parameters(&self) -> [PostgresParameter<'_>; 5] {
        [
            (&self.stamps, Type::BYTEA_ARRAY),
            (&self.highs, Type::INT8_ARRAY),
            (&self.lows, Type::INT8_ARRAY),
            (&self.sizes, Type::INT4_ARRAY),
            (&self.contents, Type::BYTEA_ARRAY),
        ]
    }
}
