//! Vaults as rows of a PostgreSQL database (`docs/reference/formats/10-postgres.md`).
//!
//! Each call is one call of one PL/pgSQL function, which is one transaction; the functions are in
//! `schema/`. No other SQL is sent to PostgreSQL, so a router that forwards such calls to the
//! machine with the vault can be used: PL/Proxy, Citus, SPQR.
//!
//! # Invariants
//! - Only timestamps, sizes, hashes and the progress that devices report are readable in the
//!   database: contents, names, gateways' states and chunks are sealed with the vault's key.
//! - No lock is held while a response is on its way, and none beyond a transaction.
//! - Acknowledged data is as durable as PostgreSQL's `synchronous_commit` specifies; only records
//!   about devices are written with less.

mod columns;
mod gateway;
mod install;
mod pool;
mod rows;
mod sealing;
mod store;
mod vault_locks;
mod verification;

use std::ops::Range;
use std::sync::Arc;

use accounts::DeviceId;
use async_trait::async_trait;
use crdt::{Fingerprint, FingerprintWindow, Message, NodeId, Timestamp};
use tokio_postgres::types::Type;

use self::columns::MessageColumns;
pub use self::install::{plproxy_sql, schema_sql};
pub use self::pool::PostgresDatabase;
use self::rows::{bigint, fingerprint, summary};
use self::sealing::VaultSealKeys;
use self::store::PostgresStore;
use crate::error::Result;
use crate::vault::batch::MessageBatch;
use crate::vault::device::{DeviceActivity, VaultDevice};
use crate::vault::{
    FingerprintCheck, MessageEntry, MessageErasure, MessagePage, Quota, RangeBucket, StoreOutcome,
    SyncStore, VaultLocation, VaultStatus, VaultSummary,
};

/// Returns the index of the range to which a row belongs.
fn place(row: &tokio_postgres::Row) -> Result<usize> {
    let place: i32 = row.try_get(0)?;
    Ok(usize::try_from(place - 1).expect("the function counts from 1"))
}

#[async_trait]
impl SyncStore for PostgresStore {
    async fn store(
        &self,
        batch: MessageBatch,
        quota: Quota,
        seen: Option<DeviceActivity>,
    ) -> Result<StoreOutcome> {
        let sent = (batch.sum.count + batch.repeated, batch.expected_cursor);
        let keys = Arc::clone(&self.keys);
        let seal = move || MessageColumns::new(&batch.entries.iter().collect::<Vec<_>>(), &keys);
        let columns = engine::run_blocking(seal).await?;
        let (stored, is_stale) = self.insert(&columns, sent, quota, seen.as_ref()).await?;
        // Reading the summary rebuilds it.
        let after = if is_stale { self.summary().await? } else { stored.after };
        Ok(StoreOutcome { after, ..stored })
    }

    async fn erase(&self, erasures: Vec<MessageErasure>, quota: Quota) -> Result<StoreOutcome> {
        verification::erase(self, erasures, quota).await
    }

    async fn page(
        &self,
        cursor: u64,
        count_max: usize,
        bytes_max: usize,
        seen: Option<DeviceActivity>,
    ) -> Result<MessagePage> {
        let node_id =
            seen.as_ref().and_then(|seen| seen.node_id).map(|node_id| node_id.0.cast_signed());
        let unsent_count = seen.as_ref().and_then(|seen| seen.unsent_count).map(bigint);
        let row = self
            .postgres
            .query_one(
                "SELECT * FROM warren.messages_after($1, $2, $3, $4, $5, $6, $7, $8)",
                &[
                    self.vault(),
                    (&bigint(cursor), Type::INT8),
                    (&i32::try_from(count_max).unwrap_or(i32::MAX), Type::INT4),
                    (&bigint(bytes_max as u64), Type::INT8),
                    (&seen.as_ref().map(|seen| seen.device.as_str()), Type::TEXT),
                    (&bigint(seen.as_ref().map_or(0, |seen| seen.now_ms)), Type::INT8),
                    (&node_id, Type::INT8),
                    (&unsent_count, Type::INT8),
                ],
            )
            .await?;
        let keys = Arc::clone(&self.keys);
        engine::run_blocking(move || {
            let list: &[u8] = row.try_get(0)?;
            let timestamps: Vec<_> = list.chunks(Timestamp::BYTES).map(rows::timestamp).collect();
            let cursor = row.try_get::<_, i64>(3)?.cast_unsigned();
            let newest = row.try_get::<_, i64>(4)?.cast_unsigned();
            let messages = messages(&row, 1, &timestamps, &keys)?;
            let fingerprint = fingerprint(&row, 5)?;
            Ok(MessagePage { messages, cursor, more: cursor < newest, fingerprint, loss: None })
        })
        .await?
    }

    async fn summary(&self) -> Result<VaultSummary> {
        let row =
            self.postgres.query_one("SELECT * FROM warren.summary($1)", &[self.vault()]).await?;
        summary(&row, 0)
    }

    async fn windows(&self) -> Result<Vec<(FingerprintWindow, Fingerprint)>> {
        let rows =
            self.postgres.query_all("SELECT * FROM warren.windows($1)", &[self.vault()]).await?;
        let window = |row: &tokio_postgres::Row| {
            Ok((FingerprintWindow(row.try_get::<_, i32>(0)?.cast_unsigned()), fingerprint(row, 1)?))
        };
        rows.iter().map(window).collect()
    }

    async fn buckets(&self, ranges: Vec<Range<u64>>, count: u64) -> Result<Vec<Vec<RangeBucket>>> {
        let sql = "SELECT * FROM warren.buckets($1, $2, $3, $4)";
        let rows = self.query_ranges(sql, &ranges, count).await?;
        let mut buckets = vec![Vec::new(); ranges.len()];
        for row in rows {
            let end: &[u8] = row.try_get(1)?;
            let end = u64::from_be_bytes(end.try_into().expect("a moment has 8 bytes"));
            buckets[place(&row)?].push(RangeBucket { end, fingerprint: fingerprint(&row, 2)? });
        }
        Ok(buckets)
    }

    async fn entries(
        &self,
        ranges: Vec<Range<u64>>,
        count_max: usize,
    ) -> Result<Vec<Vec<MessageEntry>>> {
        let sql = "SELECT * FROM warren.entries($1, $2, $3, $4)";
        let rows = self.query_ranges(sql, &ranges, count_max as u64).await?;
        rows.iter().map(entries).collect()
    }

    async fn messages(&self, timestamps: Vec<Timestamp>, bytes_max: usize) -> Result<Vec<Message>> {
        let list: Vec<u8> = timestamps.iter().flat_map(|timestamp| timestamp.to_bytes()).collect();
        let bytes_max = bigint(bytes_max as u64);
        let parameters = [self.vault(), (&list as _, Type::BYTEA), (&bytes_max as _, Type::INT8)];
        let sql = "SELECT * FROM warren.messages($1, $2, $3)";
        let row = self.postgres.query_one(sql, &parameters).await?;
        let keys = Arc::clone(&self.keys);
        engine::run_blocking(move || messages(&row, 0, &timestamps, &keys)).await?
    }

    async fn add_device(&self, device: VaultDevice) -> Result<()> {
        let name = self.keys.seal_name(&device.id, &device.name);
        let sql = "SELECT warren.add_device($1, $2, $3, $4, $5, $6, $7, $8)";
        self.postgres
            .query_all(
                sql,
                &[
                    self.vault(),
                    (&device.id.as_str(), Type::TEXT),
                    (&&name[..], Type::BYTEA),
                    (&device.node_id.map(|node_id| node_id.0.cast_signed()), Type::INT8),
                    (&bigint(device.cursor), Type::INT8),
                    (&bigint(device.unsent_count), Type::INT8),
                    (&bigint(device.last_seen_ms), Type::INT8),
                    (&bigint(device.created_ms), Type::INT8),
                ],
            )
            .await
            .map(drop)
    }

    async fn devices(&self) -> Result<Vec<VaultDevice>> {
        let rows =
            self.postgres.query_all("SELECT * FROM warren.devices($1)", &[self.vault()]).await?;
        let device = |row: &tokio_postgres::Row| {
            let number = |column| row.try_get::<_, i64>(column).map(i64::cast_unsigned);
            let id: DeviceId =
                row.try_get::<_, &str>(0)?.parse().expect("only `add_device` writes ids");
            let name = self.keys.open_name(&id, row.try_get(1)?)?;
            let node_id =
                row.try_get::<_, Option<i64>>(2)?.map(|node_id| NodeId(node_id.cast_unsigned()));
            let (cursor, unsent_count) = (number(3)?, number(4)?);
            let (last_seen_ms, created_ms) = (number(5)?, number(6)?);
            Ok(VaultDevice { id, name, node_id, cursor, unsent_count, last_seen_ms, created_ms })
        };
        rows.iter().map(device).collect()
    }

    async fn remove_devices(&self, ids: Vec<DeviceId>) -> Result<()> {
        let ids: Vec<_> = ids.iter().map(DeviceId::as_str).collect();
        let ids = (&ids as _, Type::TEXT_ARRAY);
        let sql = "SELECT warren.remove_devices($1, $2)";
        self.postgres.query_all(sql, &[self.vault(), ids]).await.map(drop)
    }

    async fn status(&self) -> Result<VaultStatus> {
        let row =
            self.postgres.query_one("SELECT * FROM warren.status($1)", &[self.vault()]).await?;
        Ok(VaultStatus {
            state: summary(&row, 0)?,
            devices_count: row.try_get::<_, i64>(4)?.cast_unsigned(),
            storage: VaultLocation::Postgres {
                address: self.postgres.name().to_owned(),
                database: row.try_get(5)?,
                version: row.try_get(6)?,
                tables_bytes: row.try_get::<_, i64>(7)?.cast_unsigned(),
            },
        })
    }

    async fn verify(&self) -> Result<FingerprintCheck> {
        verification::verify(self).await
    }

    async fn rebuild(&self) -> Result<()> {
        verification::rebuild(self).await
    }
}

/// Reads the column `list`: timestamps and hashes, 16 bytes each.
fn entries(row: &tokio_postgres::Row) -> Result<Vec<MessageEntry>> {
    let (list, []) = row.try_get::<_, &[u8]>(0)?.as_chunks::<32>() else {
        unreachable!("an entry has 32 bytes")
    };
    let entry = |entry: &[u8; 32]| {
        let (timestamp, hash) = entry.split_at(Timestamp::BYTES);
        let hash = u128::from_be_bytes(hash.try_into().expect("the other 16"));
        MessageEntry { timestamp: rows::timestamp(timestamp), hash }
    };
    Ok(list.iter().map(entry).collect())
}

/// Reads the columns `places, contents`: messages of a list, by their places in it.
fn messages(
    row: &tokio_postgres::Row,
    first: usize,
    timestamps: &[Timestamp],
    keys: &VaultSealKeys,
) -> Result<Vec<Message>> {
    let places: Vec<i32> = row.try_get(first)?;
    let contents: Vec<&[u8]> = row.try_get(first + 1)?;
    let open = |(place, content): (i32, &[u8])| {
        let timestamp = timestamps[usize::try_from(place).expect("places count from 0")];
        Ok(Message { timestamp, content: keys.open(timestamp, content)? })
    };
    places.into_iter().zip(contents).map(open).collect()
}
