//! Implements Actual Budget's sync protocol on Warren's vaults.
//!
//! ```text
//! gateway ─► gateway_state · trie · content · since · wire
//! import  ─┤
//! inventory┤
//! export  ─┘
//! ```
//! The gateway answers requests, the import copies the data of another server, the inventory lists
//! the budgets, and the export turns a budget into an archive that apps import. The other modules
//! are plain functions and values, which do no I/O, read no clock and draw no random numbers.
//!
//! # Invariants
//! - Everything that an app compares matches the published server byte for byte: the trie's JSON
//!   and the protobuf messages. The published packages created `vectors/actual/published.json`.
//! - Decoders return an error for damaged bytes (`docs/reference/formats/15-actual.md`).
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
