//! What differs between the orders of a model: that all of it was seen shows that loom got there.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

pub(crate) struct ObservedValues<T>(Arc<Mutex<BTreeSet<T>>>);

impl<T> Default for ObservedValues<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Ord + Clone> ObservedValues<T> {
    /// For the model to call.
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
