//! Locks within this process: only one task computes a vault's gateway state at a time.

use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};

use crate::postgres::rows::SqlUuid;

/// The number of vaults that can change at the same time. A mutex has about 50 bytes; vaults that
/// share one by chance wait for each other.
const TURNS_COUNT: usize = 1_024;

/// Locks for changes of vaults' gateway states.
#[derive(Clone)]
pub(crate) struct VaultLocks(Arc<[Mutex<()>]>);

impl VaultLocks {
    pub(super) fn new() -> Self {
        Self((0..TURNS_COUNT).map(|_| Mutex::default()).collect())
    }

    pub(crate) async fn lock(&self, vault: SqlUuid) -> MutexGuard<'_, ()> {
        // An id is random, so vaults spread evenly.
        let place = vault.0 % self.0.len() as u128;
        self.0[usize::try_from(place).expect("below the count")].lock().await
    }
}
