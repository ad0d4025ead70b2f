//! Uploads to one budget follow each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use accounts::VaultId;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

use crate::gateway::error::ActualError;

/// How long an upload waits for another one of the same budget.
const TURN_WAIT_MAX: Duration = Duration::from_secs(20);

/// Whose turn it is to upload, by vault.
#[derive(Default)]
pub(crate) struct UploadLocks(Mutex<HashMap<VaultId, Weak<Turn<()>>>>);

impl UploadLocks {
    /// Waits for one's turn, which lasts until it is dropped.
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
