//! Re-exports the primitives for the hand-off between threads. The model checker's tests replace
//! this module by `loom`'s (`tests/model`).

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
