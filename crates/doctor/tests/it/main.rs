//! The doctor on files that these tests make, one per finding, with and without the fault; and what
//! it does to files in use: nothing.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bed;
mod encrypted;
mod findings;
mod in_use;
mod queries;
mod refused;
mod untouched;
