//! Measures services under load: starts each one, speaks its API, and runs the callers.
//!
//! # Invariants
//! - All services have the same callers, the same kind of connections and the same disk; only the
//!   start and the API differ.
//!
//! # Not here
//! - Comparisons → `sync.rs`, `actual.rs`. Installation of competitors → `competitors.rs`.

pub(crate) mod actual;
pub(crate) mod device;
pub(crate) mod load;
pub(crate) mod load_stats;
mod plan_service;
pub(crate) mod service_api;
pub(crate) mod systems_under_test;
pub(crate) mod warren;
