//! Defines the changes in a file since earlier examinations of it.
//!
//! # Not here
//! - Storing the findings of earlier runs → `cli`, `--history`.

use serde::Serialize;
use utoipa::ToSchema;

/// The figures of a file at one moment.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct HistoryFigures {
    /// The size of the main file.
    pub file_bytes: u64,
    /// The size of the `-wal` file; 0 without one.
    pub wal_bytes: u64,
    /// The share of all pages that are free, 0 to 1; null if no page could be read.
    pub free_ratio: Option<f64>,
}

/// What has changed in a file since earlier examinations of it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct HistoryTrend {
    /// When the earlier figures are from, in milliseconds since 1970.
    pub since_ms: u64,
    /// The earlier figures: of the oldest run of the last eight days, or else of the last run.
    pub before: HistoryFigures,
    /// The figures of this run.
    pub now: HistoryFigures,
    /// Findings that the last run did not have, as `code: summary`.
    pub new: Vec<String>,
    /// Findings that only the last run had, as `code: summary`.
    pub gone: Vec<String>,
    /// How many lines of the history could not be read.
    pub unread_lines_count: usize,
}
