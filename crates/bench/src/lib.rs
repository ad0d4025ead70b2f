//! Compares Warren with the bare cost of the work, in one run on one machine.
//!
//! # Invariants
//! - Candidates run in alternating order, each on fresh files, with the same durability, which is
//!   read back and reported.
//! - A report contains machine, commit and settings, and gives ratios with their spread; a figure
//!   of one machine alone proves nothing.
//!
//! # Not here
//! - Flags and printing → `cli`.
#![forbid(unsafe_code)]

pub mod actual;
pub mod bulk;
mod compare;
mod competitors;
mod confidence_interval;
mod curve_point;
mod disk;
mod format;
mod goals;
mod html_report;
mod http;
mod machine;
pub mod mail;
mod matrix;
mod measure;
mod message_generator;
mod output;
mod postgres;
mod processes;
pub mod reconcile;
mod report;
mod report_setting;
mod server_process;
mod service;
pub mod sqlite_bench;
mod suite;
mod summary;
pub mod sync;
mod text_report;
pub mod tps;
pub mod tune;

pub use compare::{ReportComparison, ReportSource, RowComparison, TableComparison, compare};
pub use matrix::{MatrixColumn, MatrixRow, ReportMatrix};
pub use output::BenchOutput;
pub use processes::memory_peak_bytes;
pub use report::BenchReport;
pub use report_setting::ReportSetting;
