//! The replica in a browser: what `web/client`'s worker calls (`web/client/src/engine.ts`).
//!
//! One worker owns a database: SQLite in this module, its files in the origin's private file system
//! (`storage.rs`) or in memory. There is one connection, which the page's statements and the sync
//! take turns on.
//!
//! # Invariants
//! - Nothing here is decided: rules of the sync are `replica`'s, and who may call when is the
//!   worker's.
//! - Every failure is a JavaScript `Error` with a `code` (`failure.rs`).
#![cfg(target_family = "wasm")]

mod failure;
mod fetch;
mod packed;
mod parameters;
mod replica;
mod storage;
mod watch;

pub use crate::replica::{WasmReplica, open_replica};
