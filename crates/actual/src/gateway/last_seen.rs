//! Remembers when each token was last seen, so that not every request writes it.

use std::num::NonZeroUsize;
use std::sync::Mutex;

use accounts::DeviceId;
use lru::LruCache;

/// The interval at which a device's last sync is recorded: short enough for a list of devices.
const NOTE_INTERVAL_MS: u64 = 10 * 60 * 1_000;

/// The number of devices whose last record is remembered.
const NOTED_COUNT_MAX: NonZeroUsize = NonZeroUsize::new(10_000).expect("not zero");

/// The time at which each device was last recorded.
pub(crate) struct LastSeenCache(Mutex<LruCache<DeviceId, u64>>);

impl Default for LastSeenCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(NOTED_COUNT_MAX)))
    }
}

impl LastSeenCache {
    /// Returns whether the device is due to be recorded again; if so, counts it as recorded.
    pub(crate) fn is_due(&self, client: &DeviceId, now_ms: u64) -> bool {
        let mut noted = self.0.lock().expect("no code panics while it holds this lock");
        let last_ms = noted.get(client).copied().unwrap_or_default();
        let is_due = last_ms + NOTE_INTERVAL_MS <= now_ms;
        if is_due {
            noted.put(client.clone(), now_ms);
        }
        is_due
    }
}
