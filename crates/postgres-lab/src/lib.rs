//! PostgreSQL servers for tests and benchmarks: started from the installed package, ended with
//! whoever started them.
//!
//! # Not here
//! - How Warren keeps vaults in PostgreSQL → `sync-store`.
#![forbid(unsafe_code)]

mod server;

pub use server::{MAX_WAL_BYTES, Server};
