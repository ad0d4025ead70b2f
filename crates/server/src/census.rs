//! How many accounts and vaults there are, and how large: counted when somebody asks.
//!
//! # Invariants
//! - Counting takes at most a hundredth of the time: what was counted in 10 ms is told for a second.
//!   So a small server always tells how it is, and a large one how it was.
//! - No vault is opened for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use accounts::{Count, VaultId};
use sync_store::FileSizes;

use crate::app::App;
use crate::clock;
use crate::error::Refusal;

/// How many times longer a count is told than it took.
const KEPT_TIMES: u32 = 100;

/// The last count. Asking blocks.
#[derive(Default)]
pub(crate) struct Census {
    last: Mutex<Option<Arc<Counted>>>,
}

/// What was counted.
pub(crate) struct Counted {
    pub(crate) count: Count,
    /// The vaults' files; `None` if they have none of their own.
    pub(crate) files: Option<HashMap<VaultId, FileSizes>>,
    /// Milliseconds since 1970.
    pub(crate) at_ms: u64,
    ended: Instant,
    took: Duration,
}

impl Census {
    /// The last count, or if that is too old, a new one. Who asks meanwhile waits for it.
    pub(crate) fn get(&self, app: &App) -> Result<Arc<Counted>, Refusal> {
        let mut last = self.last.lock().expect("counting does not panic");
        if let Some(last) = &*last
            && last.ended.elapsed() < last.took * KEPT_TIMES
        {
            return Ok(Arc::clone(last));
        }
        let counted = Arc::new(Counted::now(app)?);
        *last = Some(Arc::clone(&counted));
        Ok(counted)
    }
}

impl Counted {
    fn now(app: &App) -> Result<Self, Refusal> {
        let (began, at_ms) = (clock::now(), clock::now_ms());
        let count = app.accounts.count()?;
        let files = app.vaults.sizes()?.map(HashMap::from_iter);
        let ended = clock::now();
        Ok(Self { count, files, at_ms, ended, took: ended - began })
    }

    /// Of all files together, without their WALs; and of those.
    pub(crate) fn bytes(&self) -> Option<(u64, u64)> {
        let sum = |of: fn(&FileSizes) -> u64| self.files.as_ref().map(|f| f.values().map(of).sum());
        Some((sum(|sizes| sizes.file_bytes)?, sum(|sizes| sizes.wal_bytes)?))
    }
}
