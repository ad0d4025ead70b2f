//! Measuring Warren beside the bare cost of the work, in one run on one machine.
//!
//! # Invariants
//! - Candidates run in alternating order, each on fresh files, with the same durability, which is
//!   read back and reported.
//! - A report says machine, commit and settings, and gives ratios with their spread; a figure of
//!   one machine alone is no claim.
//!
//! # Not here
//! - Flags and printing → `cli`.
#![forbid(unsafe_code)]

pub mod actual;
mod aims;
pub mod bulk;
mod changes;
mod compare;
mod disk;
mod figures;
mod html;
mod http;
mod interval;
pub mod lab;
mod machine;
mod matrix;
mod measure;
mod postgres;
mod processes;
pub mod reconcile;
mod report;
mod rivals;
mod served;
mod service;
mod suite;
mod summary;
pub mod sync;
mod text;
pub mod tps;
pub mod tune;

pub use compare::{Compared, ComparedRow, Comparison, Source, compare};
pub use matrix::{Matrix, MatrixColumn, MatrixRow};
pub use processes::memory_peak_bytes;
pub use report::Report;
