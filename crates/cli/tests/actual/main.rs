//! Runs Actual Budget's published sync server and Warren in its place: both are started as their
//! users start them, and get the same requests.
//!
//! `WARREN_RECORD=1` records the published server's answers as the expected ones.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod actual_server;
mod answer;
mod budget_client;
mod cases;
mod compare;
mod damage;
mod export;
mod flows;
mod guide;
#[path = "../e2e/hex.rs"]
mod hex;
mod import;
mod intended_deviations;
mod kills;
mod layout;
mod messages;
mod operator;
#[path = "../e2e/output_schema.rs"]
mod output_schema;
mod placeholders;
#[path = "../e2e/cutting_proxy.rs"]
#[expect(dead_code, reason = "the other tests record what passes, and watch a process")]
mod proxy;
mod recorded;
mod report;
mod restarted;
mod restore;
mod scenario_player;
#[path = "../faults/spoil.rs"]
mod spoil;
mod switch;
mod web;
