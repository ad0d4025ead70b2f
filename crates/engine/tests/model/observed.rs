//! Values that differ between the orders of a model; if all of them were seen, loom reached those
//! orders.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

pub(crate) struct ObservedValues<T>(Arc<Mutex<BTreeSet<T>>>);

impl<T> Default for ObservedValues<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Ord + Clone> ObservedValues<T> {
    /// Returns the function with which a model records a value.
    pub(crate) fn recorder(&self) -> impl Fn(T) + use<T> {
        let seen = Arc::clone(&self.0);
        move |value| {
            seen.lock().unwrap().insert(value);
        }
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.0.lock().unwrap().iter().cloned().collect()
    }
}
