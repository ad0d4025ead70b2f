//! Counts the memory of all page caches, which is compared with the budget of `databases.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::Connection;

/// The bytes that the page caches of all open connections hold, as last measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct CacheTotal(Arc<AtomicUsize>);

/// The share of one connection in the total; dropping it subtracts the share.
#[derive(Debug)]
pub(crate) struct CacheShare {
    total: CacheTotal,
    bytes: usize,
}

impl CacheTotal {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn share(&self) -> CacheShare {
        CacheShare { total: self.clone(), bytes: 0 }
    }
}

impl CacheShare {
    /// Measures the connection's page cache and updates the share.
    pub(crate) fn measure(&mut self, connection: &Connection) {
        let bytes =
            sqlite3mc_sys::cache_bytes(connection).expect("an open connection has a status");
        self.set(bytes);
    }

    fn set(&mut self, bytes: usize) {
        self.total.0.fetch_add(bytes, Ordering::Relaxed);
        self.total.0.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for CacheShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_the_sum_of_the_shares_that_live() {
        let total = CacheTotal::default();
        let mut one = total.share();
        let mut two = total.share();
        one.set(10);
        two.set(5);
        one.set(7);
        assert_eq!(total.bytes(), 12);
        drop(one);
        assert_eq!(total.bytes(), 5);
    }
}
