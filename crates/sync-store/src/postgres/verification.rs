//! Verifies a vault in PostgreSQL and corrects it.
//!
//! PostgreSQL computes the sums from the recorded hashes; only this program has the key and can
//! check that they are the hashes of the contents. So it reads all contents, a page at a time, and
//! pushes can continue in the meantime.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crdt::{Fingerprint, FingerprintWindow, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::Result;
use crate::postgres::columns::MessageColumns;
use crate::postgres::pool::PostgresParameter;
use crate::postgres::rows::{bigint, halves, hash_of, stored_error, summary, timestamp};
use crate::postgres::sealing::VaultSealKeys;
use crate::postgres::store::{PostgresStore, slices};
use crate::vault::batch::MessageBatch;
use crate::vault::{FingerprintCheck, MessageErasure, Quota, StoreOutcome};

/// The limits of messages, and of bytes of their contents, that one call reads.
const SCAN_COUNT_MAX: i32 = 10_000;
const SCAN_BYTES_MAX: i64 = 8 << 20;

/// A message that differs from its recorded values.
struct MessageMismatch {
    timestamp: Timestamp,
    recorded: Fingerprint,
    recorded_size: u64,
    /// The fingerprint and size of its content; `None` if it does not unseal.
    found: Option<(Fingerprint, u64)>,
}

pub(super) async fn verify(store: &PostgresStore) -> Result<FingerprintCheck> {
    let sql = "SELECT * FROM warren.verify($1)";
    let row = store.postgres.query_one(sql, &[store.vault()]).await?;
    let (recorded, mut computed) = (summary(&row, 0)?, summary(&row, 4)?);
    let windows: Vec<i32> = row.try_get(8)?;
    let mut windows: BTreeSet<_> = windows.into_iter().map(i32::cast_unsigned).collect();
    for wrong in scan(store).await? {
        computed.fingerprint -= wrong.recorded;
        computed.bytes = computed.bytes.saturating_sub(wrong.recorded_size);
        if let Some((fingerprint, size)) = wrong.found {
            computed.fingerprint += fingerprint;
            computed.bytes += size;
        }
        windows.insert(FingerprintWindow::for_timestamp(wrong.timestamp).0);
    }
    Ok(FingerprintCheck { recorded, computed, windows_wrong: windows.len() as u64 })
}

pub(super) async fn rebuild(store: &PostgresStore) -> Result<()> {
    let (mut stamps, mut lost) = (Vec::new(), Vec::new());
    let (mut highs, mut lows, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for wrong in scan(store).await? {
        let Some((fingerprint, size)) = wrong.found else {
            lost.push(wrong.timestamp.to_bytes());
            continue;
        };
        stamps.push(wrong.timestamp.to_bytes());
        let (high, low) = halves(fingerprint.digest);
        highs.push(high);
        lows.push(low);
        sizes.push(i32::try_from(size).expect("PostgreSQL holds no larger value"));
    }
    let (stamps, lost) = (slices(&stamps), slices(&lost));
    let parameters = [
        store.vault(),
        (&stamps as _, Type::BYTEA_ARRAY),
        (&highs as _, Type::INT8_ARRAY),
        (&lows as _, Type::INT8_ARRAY),
        (&sizes as _, Type::INT4_ARRAY),
        (&lost as _, Type::BYTEA_ARRAY),
    ];
    let sql = "SELECT warren.rehash($1, $2, $3, $4, $5, $6)";
    store.postgres.query_all(sql, &parameters).await.map(drop)
}

pub(super) async fn erase(
    store: &PostgresStore,
    erasures: Vec<MessageErasure>,
    quota: Quota,
) -> Result<StoreOutcome> {
    let count = erasures.len() as u64;
    let (hashes, messages): (Vec<_>, Vec<_>) = erasures
        .into_iter()
        .map(|MessageErasure { message, hash }| ((message.timestamp, hash), message))
        .unzip();
    let hashes: BTreeMap<_, _> = hashes.into_iter().collect();
    let batch = MessageBatch::new(messages)?;
    let (old_highs, old_lows): (Vec<_>, Vec<_>) =
        batch.timestamps().map(|timestamp| halves(hashes[&timestamp])).unzip();
    let keys = Arc::clone(&store.keys);
    let seal = move || MessageColumns::new(&batch.entries.iter().collect::<Vec<_>>(), &keys);
    let columns = engine::run_blocking(seal).await?;
    let bytes_max = bigint(quota.bytes_max);
    let rest: [PostgresParameter<'_>; 3] =
        [(&old_highs, Type::INT8_ARRAY), (&old_lows, Type::INT8_ARRAY), (&bytes_max, Type::INT8)];
    let parameters = [&[store.vault()], &columns.parameters()[..], &rest].concat();
    let sql = "SELECT * FROM warren.erase($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let limits = (quota.messages_max, quota.bytes_max);
    let erased = store.postgres.query_one(sql, &parameters).await;
    let row = erased.map_err(|error| stored_error(error, limits))?;
    let stored = row.try_get::<_, i64>(0)?.cast_unsigned();
    Ok(StoreOutcome { stored, known: count - stored, after: summary(&row, 1)? })
}

/// Unseals every content and compares it with the recorded values.
async fn scan(store: &PostgresStore) -> Result<Vec<MessageMismatch>> {
    let mut wrong = Vec::new();
    let mut after: Vec<u8> = Vec::new();
    loop {
        let parameters = [
            store.vault(),
            (&after as _, Type::BYTEA),
            (&SCAN_COUNT_MAX as _, Type::INT4),
            (&SCAN_BYTES_MAX as _, Type::INT8),
        ];
        let sql = "SELECT * FROM warren.scan($1, $2, $3, $4)";
        let row = store.postgres.query_one(sql, &parameters).await?;
        let keys = Arc::clone(&store.keys);
        let (last, found) = engine::run_blocking(move || compare(&row, &keys)).await??;
        wrong.extend(found);
        match last {
            Some(last) => after = last.to_bytes().into(),
            None => return Ok(wrong),
        }
    }
}

/// Returns the page's last message, and those that differ.
fn compare(row: &Row, keys: &VaultSealKeys) -> Result<(Option<Timestamp>, Vec<MessageMismatch>)> {
    let stamps: Vec<&[u8]> = row.try_get(0)?;
    let (highs, lows): (Vec<i64>, Vec<i64>) = (row.try_get(1)?, row.try_get(2)?);
    let sizes: Vec<i32> = row.try_get(3)?;
    let contents: Vec<&[u8]> = row.try_get(4)?;
    let mut wrong = Vec::new();
    for (index, stamp) in stamps.iter().enumerate() {
        let timestamp = timestamp(stamp);
        let recorded = Fingerprint { count: 1, digest: hash_of(highs[index], lows[index]) };
        let recorded_size = u64::try_from(sizes[index]).unwrap_or(0);
        let content = keys.open(timestamp, contents[index]).ok();
        let found = content
            .map(|content| (Fingerprint::from_message(timestamp, &content), content.len() as u64));
        if found != Some((recorded, recorded_size)) {
            wrong.push(MessageMismatch { timestamp, recorded, recorded_size, found });
        }
    }
    Ok((stamps.last().map(|stamp| timestamp(stamp)), wrong))
}
