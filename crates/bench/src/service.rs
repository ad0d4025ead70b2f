//! Services under load: how each is started and spoken to, and callers that ask it.
//!
//! # Invariants
//! - Every service is asked by the same callers over the same kind of connections, and stands on
//!   the same disk; only starting and saying differ.
//!
//! # Not here
//! - What is compared with what → `sync.rs`, `actual.rs`. How competitors are installed →
//!   `competitors.rs`.

pub(crate) mod actual;
pub(crate) mod device;
pub(crate) mod load;
pub(crate) mod load_stats;
mod plan_service;
pub(crate) mod service_api;
pub(crate) mod systems_under_test;
pub(crate) mod warren;
