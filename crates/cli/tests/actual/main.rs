//! Actual Budget's published sync server and Warren in its place: both are started as their users
//! start them, and asked the same.
//!
//! `WARREN_RECORD=1` makes the published server's answers those that are expected.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod answer;
mod answers;
mod cases;
mod client;
mod compare;
mod damage;
mod export;
mod flows;
#[path = "../e2e/hex.rs"]
mod hex;
mod import;
mod kills;
mod layout;
mod messages;
mod names;
mod operator;
mod play;
#[path = "../e2e/proxy.rs"]
#[expect(dead_code, reason = "the other tests record what passes, and watch a process")]
mod proxy;
mod recorded;
mod report;
mod restarted;
#[path = "../faults/spoil.rs"]
mod spoil;
mod switch;
mod target;
mod undelete;
mod web;
