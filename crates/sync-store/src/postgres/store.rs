//! The rows of one vault, and the keys that unseal their values.
//!
//! # Not here
//! - The operations of a vault → `postgres.rs`, `gateway.rs`, `verification.rs`.

use std::ops::Range;
use std::sync::Arc;

use accounts::VaultId;
use engine::DatabaseKey;
use tokio_postgres::types::Type;

use crate::error::Result;
use crate::postgres::columns::MessageColumns;
use crate::postgres::pool::PostgresDatabase;
use crate::postgres::rows::{SqlUuid, bigint, bounds, summary};
use crate::postgres::sealing::VaultSealKeys;
use crate::postgres::{pool, rows};
use crate::vault::device::DeviceActivity;
use crate::vault::{Quota, StoreOutcome, Vault};

/// A vault, and the keys that unseal its values.
pub(crate) struct PostgresStore {
    pub(crate) postgres: PostgresDatabase,
    pub(crate) vault: SqlUuid,
    pub(crate) keys: Arc<VaultSealKeys>,
}

impl PostgresDatabase {
    pub(crate) fn open(&self, vault: &VaultId, key: &DatabaseKey) -> Vault {
        let keys = Arc::new(VaultSealKeys::from_vault_key(key));
        Arc::new(PostgresStore { postgres: self.clone(), vault: vault.into(), keys })
    }

    /// Removes a vault: [`crate::Vaults::remove`].
    pub(crate) async fn remove(&self, vault: &VaultId) -> Result<()> {
        let vault = (&SqlUuid::from(vault) as _, Type::UUID);
        self.query_all("SELECT warren.remove_vault($1)", &[vault]).await.map(drop)
    }
}

pub(crate) fn slices<T: AsRef<[u8]>>(values: &[T]) -> Vec<&[u8]> {
    values.iter().map(AsRef::as_ref).collect()
}

impl PostgresStore {
    pub(crate) fn vault(&self) -> pool::PostgresParameter<'_> {
        (&self.vault, Type::UUID)
    }

    pub(crate) async fn insert(
        &self,
        columns: &MessageColumns,
        (sent, after): (u64, Option<u64>),
        quota: Quota,
        seen: Option<&DeviceActivity>,
    ) -> Result<(StoreOutcome, bool)> {
        let device = seen.map(|seen| seen.device.as_str());
        let (now_ms, unsent_count) =
            (seen.map_or(0, |seen| seen.now_ms), seen.and_then(|seen| seen.unsent_count));
        let (messages_max, bytes_max) = (bigint(quota.messages_max), bigint(quota.bytes_max));
        let (now_ms, unsent_count, all) = (bigint(now_ms), unsent_count.map(bigint), bigint(sent));
        let after = after.map(bigint);
        let rest: [pool::PostgresParameter<'_>; 7] = [
            (&messages_max, Type::INT8),
            (&bytes_max, Type::INT8),
            (&device, Type::TEXT),
            (&now_ms, Type::INT8),
            (&all, Type::INT8),
            (&unsent_count, Type::INT8),
            (&after, Type::INT8),
        ];
        let parameters = [&[self.vault()], &columns.parameters()[..], &rest].concat();
        let sql =
            "SELECT * FROM warren.store($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
        let limits = (quota.messages_max, quota.bytes_max);
        let stored = self.postgres.query_one(sql, &parameters).await;
        let row = stored.map_err(|error| rows::stored_error(error, limits))?;
        let stored = row.try_get::<_, i64>(0)?.cast_unsigned();
        Ok((
            StoreOutcome { stored, known: sent - stored, after: summary(&row, 1)? },
            row.try_get(5)?,
        ))
    }

    /// Calls a function with a vault, time ranges and a count.
    pub(crate) async fn query_ranges(
        &self,
        sql: &str,
        ranges: &[Range<u64>],
        count: u64,
    ) -> Result<Vec<tokio_postgres::Row>> {
        let (starts, ends) = bounds(ranges);
        let (starts, ends, count) = (slices(&starts), slices(&ends), bigint(count));
        let parameters = [
            self.vault(),
            (&starts as _, Type::BYTEA_ARRAY),
            (&ends as _, Type::BYTEA_ARRAY),
            (&count as _, Type::INT8),
        ];
        self.postgres.query_all(sql, &parameters).await
    }
}
