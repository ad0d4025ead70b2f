//! Embeds the files that `cargo xtask web` created into the binary: `target/web/site` and
//! `target/web/actual` of this workspace.
//!
//! # Invariants
//! - Without these folders the tables are empty, and everything else builds and works.
//! - The folders' files are embedded unchanged, each with its Brotli form from the same folder
//!   (`X.br` for `X`), if that is smaller.
//!
//! # Not here
//! - Creating the files → `xtask/src/web`. Serving them → `crates/server/src/http/site.rs`.
#![forbid(unsafe_code)]

use server::Asset;

/// The files of Warren's pages, in order of their paths.
pub static SITE: &[Asset] = include!(concat!(env!("OUT_DIR"), "/site.rs"));

/// The files that `actualpy` requests from an Actual server: an empty budget, and the migrations of
/// older ones. They come from the npm package `@actual-app/web` (MIT licence, copyright James
/// Long).
pub static ACTUAL_DATA: &[Asset] = include!(concat!(env!("OUT_DIR"), "/actual.rs"));
