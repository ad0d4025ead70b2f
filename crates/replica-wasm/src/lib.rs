//! Exports the replica to a browser: `web/client`'s worker calls it
//! (`client/src/shared/wasm-engine.ts`).
//!
//! One worker owns a database: SQLite in this module, its files in the origin's private file system
//! (`browser_storage.rs`) or in memory. There is one connection, on which the page's statements and
//! the sync take turns.
//!
//! # Invariants
//! - Nothing is decided here: the rules of the sync are in `replica`, and the worker decides who
//!   may call when.
//! - Every failure is a JavaScript `Error` with a `code` (`wasm_error.rs`).
#![cfg(target_family = "wasm")]

mod browser_storage;
mod fetch_transport;
mod js_parameters;
mod packed_rows;
mod table_watcher;
mod wasm_error;
mod wasm_replica;

pub use crate::wasm_replica::{WasmReplica, open_replica};
