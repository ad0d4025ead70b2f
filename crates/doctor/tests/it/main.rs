//! Tests the doctor on files that these tests create, one per finding, with and without the fault,
//! and checks that it does not change files in use.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod connection;
mod encrypted;
mod expert;
mod findings;
mod fixes;
mod fixture;
mod in_use;
mod integrity;
mod load;
mod profiles;
mod queries;
mod recover;
mod refused;
mod untouched;
mod watch;
