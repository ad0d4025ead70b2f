//! PostgreSQL servers for tests and benchmarks, and reserved ports for other servers. A PostgreSQL
//! server is started from the installed package, and ends with the process that started it.
//!
//! # Not here
//! - Storing vaults in PostgreSQL → `sync-store`.
#![forbid(unsafe_code)]

mod reserved_port;
mod server;

pub use reserved_port::ReservedPort;
pub use server::{MAX_WAL_BYTES, PostgresServer};
