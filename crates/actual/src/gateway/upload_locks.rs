//! Serializes the uploads to one budget.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use accounts::VaultId;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

use crate::gateway::error::ActualError;

/// The longest wait of an upload for another one of the same budget.
const TURN_WAIT_MAX: Duration = Duration::from_secs(20);

/// The locks of the running uploads, by vault.
#[derive(Default)]
pub(crate) struct UploadLocks(Mutex<HashMap<VaultId, Weak<Turn<()>>>>);

impl UploadLocks {
    /// Waits for the lock of a vault, which is held until the guard is dropped.
    pub(crate) async fn lock(&self, vault: &VaultId) -> Result<OwnedMutexGuard<()>, ActualError> {
        let permit = {
            let mut turns = self.0.lock().expect("no code panics while it holds this lock");
            turns.retain(|_, permit| permit.strong_count() > 0);
            turns.get(vault).and_then(Weak::upgrade).unwrap_or_else(|| {
                let permit = Arc::new(Turn::new(()));
                turns.insert(vault.clone(), Arc::downgrade(&permit));
                permit
            })
        };
        let permit = tokio::time::timeout(TURN_WAIT_MAX, permit.lock_owned()).await;
        permit.map_err(|_elapsed| ActualError::Busy)
    }
}
