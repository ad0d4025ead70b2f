//! Messages as the arrays that `warren.store` and `warren.exchange` take.

use crdt::Timestamp;
use tokio_postgres::types::Type;

use crate::batch::Entry;
use crate::postgres::pool::Parameter;
use crate::postgres::rows::{Binary, halves};
use crate::postgres::sealed::Keys;

/// One element each for every message, in order of timestamp.
pub(super) struct Columns {
    stamps: Vec<Binary<[u8; Timestamp::BYTES]>>,
    highs: Vec<i64>,
    lows: Vec<i64>,
    /// Of the contents before they were sealed.
    sizes: Vec<i32>,
    contents: Vec<Binary<bytes::Bytes>>,
}

impl Columns {
    /// Seals the contents.
    pub(super) fn new(entries: &[&Entry], keys: &Keys) -> Self {
        let stamp = |entry: &&Entry| Binary(entry.message.timestamp.to_bytes());
        let halves = |entry: &&Entry| halves(entry.fingerprint.digest);
        let size = |entry: &&Entry| i32::try_from(entry.message.content.len());
        let (highs, lows) = entries.iter().map(halves).unzip();
        let sizes = entries.iter().map(size).collect::<Result<_, _>>();
        let sealed = keys.seal_all(entries);
        Self {
            stamps: entries.iter().map(stamp).collect(),
            highs,
            lows,
            sizes: sizes.expect("a body is smaller"),
            contents: sealed.into_iter().map(Binary).collect(),
        }
    }

    /// How many messages they are of.
    pub(super) fn count(&self) -> u64 {
        self.stamps.len() as u64
    }

    /// The arrays, in the order that the functions have them.
    pub(super) fn parameters(&self) -> [Parameter<'_>; 5] {
        [
            (&self.stamps, Type::BYTEA_ARRAY),
            (&self.highs, Type::INT8_ARRAY),
            (&self.lows, Type::INT8_ARRAY),
            (&self.sizes, Type::INT4_ARRAY),
            (&self.contents, Type::BYTEA_ARRAY),
        ]
    }
}
