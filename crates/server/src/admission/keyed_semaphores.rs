//! Semaphores per key, so that no key can use all of a resource.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::Semaphore;

/// Semaphores of the same size, kept as long as a permit or handle of them exists.
pub(crate) struct KeyedSemaphores<K> {
    pub(crate) size: usize,
    by_key: Mutex<HashMap<K, Weak<Semaphore>>>,
}

impl<K: Eq + Hash> KeyedSemaphores<K> {
    pub(crate) fn new(size: usize) -> Self {
        Self { size, by_key: Mutex::default() }
    }

    /// Returns the semaphore of a key.
    pub(crate) fn for_key(&self, key: K) -> Arc<Semaphore> {
        let mut by_key = self.by_key.lock().expect("no code panics while it holds this lock");
        if let Some(share) = by_key.get(&key).and_then(Weak::upgrade) {
            return share;
        }
        if by_key.len() == by_key.capacity() {
            // Clean up before the map grows: most entries may belong to clients that have gone.
            by_key.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new(self.size));
        by_key.insert(key, Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_one_s_own_and_forgotten_when_it_is_given_back() {
        let shares = KeyedSemaphores::new(2);
        let held: Vec<_> = (0..2).map(|_| shares.for_key(1).try_acquire_owned().unwrap()).collect();
        assert!(shares.for_key(1).try_acquire_owned().is_err());
        assert!(shares.for_key(2).try_acquire_owned().is_ok());
        drop(held);
        assert!(shares.for_key(1).try_acquire_owned().is_ok());
        for key in 0..10_000 {
            drop(shares.for_key(key));
        }
        assert!(shares.by_key.lock().unwrap().capacity() < 100);
    }
}
