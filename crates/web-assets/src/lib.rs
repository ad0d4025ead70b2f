//! The site that `cargo xtask web` built, in the binary: `target/web/site` of this workspace.
//!
//! # Invariants
//! - Without that folder the table is empty, and everything else builds and works.
//! - The folder's files are embedded as they are, each with the Brotli form that lies beside it
//!   (`X.br` beside `X`), if that is smaller.
//!
//! # Not here
//! - Making the site → `xtask/src/web`. Serving it → `crates/server/src/site.rs`.
#![forbid(unsafe_code)]

use server::Asset;

/// The site's files, in order of their paths.
pub static SITE: &[Asset] = include!(concat!(env!("OUT_DIR"), "/site.rs"));
