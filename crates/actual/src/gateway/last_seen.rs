//! When each token was last seen, so that not every request writes it.

use std::num::NonZeroUsize;
use std::sync::Mutex;

use accounts::DeviceId;
use lru::LruCache;

/// How often a device's last sync is noted: often enough for a list of devices.
const NOTE_INTERVAL_MS: u64 = 10 * 60 * 1_000;

/// Devices whose notes are remembered.
const NOTED_COUNT_MAX: NonZeroUsize = NonZeroUsize::new(10_000).expect("not zero");

/// When each device was last noted to be here.
pub(crate) struct LastSeenCache(Mutex<LruCache<DeviceId, u64>>);

impl Default for LastSeenCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(NOTED_COUNT_MAX)))
    }
}

impl LastSeenCache {
    /// Whether it is time for another note; if so, it counts as made.
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
