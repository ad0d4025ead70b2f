//! Services under load: how each is started and spoken to, and callers that ask it.
//!
//! # Invariants
//! - Every service is asked by the same callers over the same kind of connections, and stands on
//!   the same disk; only starting and saying differ.
//!
//! # Not here
//! - What is compared with what → `sync.rs`, `actual.rs`. How rivals are installed → `rivals.rs`.

pub(crate) mod actual;
pub(crate) mod dialect;
pub(crate) mod load;
pub(crate) mod peers;
mod plan_service;
mod tally;
pub(crate) mod warren;
