//! The files that `cargo xtask web` made, in the binary: `target/web/site` and `target/web/actual` of
//! this workspace.
//!
//! # Invariants
//! - Without these folders the tables are empty, and everything else builds and works.
//! - The folders' files are embedded as they are, each with the Brotli form that lies beside it
//!   (`X.br` beside `X`), if that is smaller.
//!
//! # Not here
//! - Making the files → `xtask/src/web`. Serving them → `crates/server/src/http/site.rs`.
#![forbid(unsafe_code)]

use server::Asset;

/// Warren's pages, in order of their paths.
pub static SITE: &[Asset] = include!(concat!(env!("OUT_DIR"), "/site.rs"));

/// What `actualpy` asks an Actual server for: an empty budget, and the migrations of older ones.
/// From the npm package `@actual-app/web` (MIT licence, copyright James Long).
pub static ACTUAL_DATA: &[Asset] = include!(concat!(env!("OUT_DIR"), "/actual.rs"));
