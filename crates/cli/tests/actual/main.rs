//! Actual Budget's published sync server and Warren in its place: both are started as their users
//! start them, and asked the same.
//!
//! `WARREN_RECORD=1` makes the published server's answers those that are expected.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod answer;
mod cases;
mod client;
mod compare;
mod flows;
#[path = "../e2e/hex.rs"]
mod hex;
mod import;
mod layout;
mod messages;
mod names;
mod play;
mod recorded;
mod report;
mod restarted;
mod target;
