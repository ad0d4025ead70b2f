//! Actual Budget's sync protocol on Warren's vaults: the parts that are plain functions and values.
//!
//! # Invariants
//! - Nothing in these modules does I/O, reads a clock or draws random numbers.
//! - What an app compares is byte for byte what the published server answers: the trie's JSON, the
//!   protobuf messages. `vectors/actual/published.json` was made by the published packages.
//! - A decoder answers damaged bytes with an error (`docs/formats/15-actual.md`).
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod content;
#[cfg(test)]
mod published;
pub mod record;
pub mod since;
pub mod trie;
pub mod wire;
