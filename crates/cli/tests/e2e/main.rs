//! End-to-end tests of the shipped binary: real files, real processes, real sockets, and SQLite's
//! own shell as "any program".
//!
//! Random values come from a seed that the test prints; `WARREN_E2E_SEED` runs it again.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod account_changes;
mod account_recovery;
mod actual;
mod at_rest;
mod bench;
mod bench_actual;
mod bench_browser;
mod bench_mail;
mod bench_runtime;
mod certificates;
mod check;
mod commands;
mod compare;
mod copies;
mod cutting_proxy;
mod doctor;
mod documents;
mod e2ee;
mod emit;
mod encrypted;
mod erasures;
mod file_modes;
mod fixture;
mod fleet;
mod frameworks;
mod guide;
mod heal;
mod hex;
mod housekeeping;
mod http_proxy;
mod intermediary;
mod json_outputs;
mod kill_client;
mod kill_server;
mod lab;
mod live;
mod lmtp_client;
mod lost_edits;
mod mail;
mod mail_delivery;
mod mail_input;
mod mail_passwords;
mod manuals;
mod memory;
mod one_code;
mod operating;
mod output_schema;
mod postgres;
mod processes;
mod python;
mod queries;
mod random;
mod recover;
mod scratch;
mod settings;
#[path = "../faults/shim.rs"]
#[expect(dead_code, reason = "these tests do not use all of it")]
mod shim;
mod story;
mod sync_status;
mod terminal;
mod tls;
mod tune;
mod vacuum;
