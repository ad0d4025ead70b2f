//! Actual Budget's sync protocol on Warren's vaults.
//!
//! ```text
//! gateway ─► record · trie · content · since · wire
//! import  ─┤
//! inventory┤
//! export  ─┘
//! ```
//! The gateway answers requests, the import takes over what another server has, the inventory says
//! what there is, the export makes of a budget what apps import; the other modules are plain
//! functions and values, which do no I/O, read no clock and draw no random numbers.
//!
//! # Invariants
//! - What an app compares is byte for byte what the published server answers: the trie's JSON, the
//!   protobuf messages. `vectors/actual/published.json` was made by the published packages.
//! - A decoder answers damaged bytes with an error (`docs/reference/formats/15-actual.md`).
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod content;
pub mod export;
mod gateway;
pub mod gateway_state;
pub mod import;
pub mod inventory;
pub mod since;
#[cfg(test)]
mod test_vectors;
pub mod trie;
pub mod wire;

pub use gateway::state::GatewaySettings;
pub use gateway::{IDLE_MAX, router};
pub use gateway_state::repair_gateway_state;
