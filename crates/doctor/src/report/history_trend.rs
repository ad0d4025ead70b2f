//! Defines the changes in a file since earlier examinations of it.
//!
//! # Not here
//! - Storing the findings of earlier runs → `cli`, `--history`.

use serde::Serialize;
use utoipa::ToSchema;

/// The measurements of a file at one time.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct HistoryFigures {
    /// The size of the main file in bytes.
    pub file_bytes: u64,
    /// The size of the `-wal` file in bytes; 0 if there is none.
    pub wal_bytes: u64,
    /// The share of free pages among all pages: 0 to 1; null if no page could be read.
    pub free_ratio: Option<f64>,
}

/// The changes in a file since earlier examinations of it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct HistoryTrend {
    /// The time of the earlier measurements, in milliseconds since 1970.
    pub since_ms: u64,
    /// The earlier measurements: those of the oldest run in the last eight days or, without one, of
    /// the last run.
    pub before: HistoryFigures,
    /// The measurements of this run.
    pub now: HistoryFigures,
    /// The findings that the last run did not have, as `code: summary`.
    pub new: Vec<String>,
    /// The findings that the last run had and this one does not have, as `code: summary`.
    pub gone: Vec<String>,
    /// The number of lines of the history that could not be read.
    pub unread_lines_count: usize,
}
