//! How large the vaults' files are: looked at when somebody asks.
//!
//! # Invariants
//! - Looking at all files takes at most a twentieth of the time: what took 50 ms is told for a
//!   second. Those that are open, which are the ones that change, are looked at every time.
//! - No vault is opened for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use accounts::VaultId;
use engine::clock;
use sync_store::{VaultFileSizes, Vaults};

use crate::error::ApiError;

/// How many times longer a look is told than it took.
const KEPT_TIMES: u32 = 20;

/// The last look at all files. Asking blocks.
#[derive(Default)]
pub(crate) struct VaultSizeCache {
    last: Mutex<Option<Arc<SizeScan>>>,
}

struct SizeScan {
    files: HashMap<VaultId, VaultFileSizes>,
    /// Of all of them.
    sum: VaultFileSizes,
    at_ms: u64,
    ended: Instant,
    took: Duration,
}

/// All vaults' files: the open ones as they are, the others as they were at the last look.
pub(crate) struct VaultSizes {
    scan: Arc<SizeScan>,
    open: HashMap<VaultId, VaultFileSizes>,
}

impl VaultSizeCache {
    /// `None` if vaults have no files of their own. Who asks while another looks waits for them.
    pub(crate) fn sizes<'a>(
        &self,
        vaults: &Vaults,
        open: impl Iterator<Item = &'a VaultId>,
    ) -> Result<Option<VaultSizes>, ApiError> {
        let Some(look) = self.scan(vaults)? else { return Ok(None) };
        let sizes = |vault: &VaultId| Some((vault.clone(), vaults.file_sizes(vault)?));
        Ok(Some(VaultSizes { scan: look, open: open.filter_map(sizes).collect() }))
    }

    fn scan(&self, vaults: &Vaults) -> Result<Option<Arc<SizeScan>>, ApiError> {
        let mut last = self.last.lock().expect("looking does not panic");
        if let Some(last) = &*last
            && last.ended.elapsed() < last.took * KEPT_TIMES
        {
            return Ok(Some(Arc::clone(last)));
        }
        let (began, at_ms) = (clock::now(), clock::now_ms());
        let Some(files) = vaults.sizes()? else { return Ok(None) };
        let sum = sum(files.iter().map(|(_, sizes)| sizes));
        let (files, ended) = (HashMap::from_iter(files), clock::now());
        *last = Some(Arc::new(SizeScan { files, sum, at_ms, ended, took: ended - began }));
        Ok(last.clone())
    }
}

impl VaultSizes {
    /// `None` for a vault that is not open and was not there at the last look.
    pub(crate) fn get(&self, vault: &VaultId) -> Option<VaultFileSizes> {
        self.open.get(vault).or_else(|| self.scan.files.get(vault)).copied()
    }

    pub(crate) fn count(&self) -> usize {
        let are_new = self.open.keys().filter(|vault| !self.scan.files.contains_key(*vault));
        self.scan.files.len() + are_new.count()
    }

    pub(crate) fn sum(&self) -> VaultFileSizes {
        let (all, now) = (self.scan.sum, sum(self.open.values()));
        let then = sum(self.open.keys().filter_map(|vault| self.scan.files.get(vault)));
        VaultFileSizes {
            file_bytes: all.file_bytes - then.file_bytes + now.file_bytes,
            wal_bytes: all.wal_bytes - then.wal_bytes + now.wal_bytes,
            changed_ms: all.changed_ms.max(now.changed_ms),
        }
    }

    /// When the closed ones were looked at, milliseconds since 1970.
    pub(crate) fn at_ms(&self) -> u64 {
        self.scan.at_ms
    }
}

/// Of files together: their bytes, and the last change.
pub(crate) fn sum<'a>(sizes: impl Iterator<Item = &'a VaultFileSizes>) -> VaultFileSizes {
    sizes.fold(VaultFileSizes::default(), |sum, sizes| VaultFileSizes {
        file_bytes: sum.file_bytes + sizes.file_bytes,
        wal_bytes: sum.wal_bytes + sizes.wal_bytes,
        changed_ms: sum.changed_ms.max(sizes.changed_ms),
    })
}
