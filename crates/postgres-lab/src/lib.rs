//! PostgreSQL servers for tests and benchmarks: started from the installed package, ended with
//! whoever started them; and ports for servers that must be given one.
//!
//! # Not here
//! - How Warren keeps vaults in PostgreSQL → `sync-store`.
#![forbid(unsafe_code)]

mod reserved_port;
mod server;

pub use reserved_port::ReservedPort;
pub use server::{MAX_WAL_BYTES, PostgresServer};
