//! The sizes of the vaults' files, which are read when they are requested.
//!
//! # Invariants
//! - A scan's result is cached for 20 × its duration, so scanning uses at most 5 % of the time.
//!   The sizes of open files, which are the ones that change, are read every time.
//! - No vault is opened for a scan.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use accounts::VaultId;
use engine::clock;
use sync_store::{VaultFileSizes, Vaults};

use crate::error::ApiError;

/// The time for which a scan is cached, as a multiple of its duration.
const KEPT_TIMES: u32 = 20;

/// A cache of the last scan of all files. Reading it blocks.
#[derive(Default)]
pub(crate) struct VaultSizeCache {
    last: Mutex<Option<Arc<SizeScan>>>,
}

struct SizeScan {
    files: HashMap<VaultId, VaultFileSizes>,
    /// The sum of all files' sizes.
    sum: VaultFileSizes,
    at_ms: u64,
    ended: Instant,
    took: Duration,
}

/// The sizes of all vaults' files: current for open ones, from the last scan for the others.
pub(crate) struct VaultSizes {
    scan: Arc<SizeScan>,
    open: HashMap<VaultId, VaultFileSizes>,
}

impl VaultSizeCache {
    /// Returns `None` if vaults have no files of their own. Calls during a scan wait for its
    /// result.
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
    /// Returns `None` for a vault that is not open and did not exist at the last scan.
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

    /// The time of the last scan, in milliseconds since 1970.
    pub(crate) fn at_ms(&self) -> u64 {
        self.scan.at_ms
    }
}

/// Sums up the sizes of files; the time is that of the last change.
pub(crate) fn sum<'a>(sizes: impl Iterator<Item = &'a VaultFileSizes>) -> VaultFileSizes {
    sizes.fold(VaultFileSizes::default(), |sum, sizes| VaultFileSizes {
        file_bytes: sum.file_bytes + sizes.file_bytes,
        wal_bytes: sum.wal_bytes + sizes.wal_bytes,
        changed_ms: sum.changed_ms.max(sizes.changed_ms),
    })
}
