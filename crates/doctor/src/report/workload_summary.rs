//! Defines the summary of the statements that a program ran on the file, according to its log.

use serde::Serialize;
use utoipa::ToSchema;

/// The summary of the statements that a program ran on the file, according to its log.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct WorkloadSummary {
    /// The number of statements that read or write rows.
    pub statements_count: u64,
    /// The number of other statements, such as BEGIN, PRAGMA and CREATE.
    pub others_count: u64,
    /// The number of lines in the log that belong to no statement.
    pub unread_lines_count: u64,
    /// The number of different statements, not counting differences in their values.
    pub shapes_count: usize,
    /// Whether the log contains durations of statements.
    pub timed: bool,
    /// The statements by shape, those that take the most time first.
    pub queries: Vec<WorkloadQuery>,
    /// The statements that cannot be run on this file.
    pub rejected: Vec<RejectedStatement>,
    /// The indexes that no statement uses, on tables that the statements read.
    pub unused_indexes: Vec<String>,
}

/// The statements of one shape: they differ only in their values.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WorkloadQuery {
    /// The statement with `?` in place of each value.
    pub shape: String,
    /// An example: one of the statements with its values.
    pub example: String,
    /// The number of statements of this shape in the log.
    pub calls_count: u64,
    /// The total duration of these statements according to the log, in microseconds; null if the
    /// log does not contain it.
    pub logged_us: Option<f64>,
    /// The share of the duration of the whole workload, according to the log or, without it, as
    /// measured: 0 to 1; null if neither is known.
    pub time_ratio: Option<f64>,
    /// The query plan of the example: the lines of EXPLAIN QUERY PLAN.
    pub plan: Vec<String>,
    /// The measured duration of the example, in microseconds; null if it could not be run.
    pub measured_before_us: Option<f64>,
    /// The measured duration of the example with the recommended indexes, in microseconds; null if
    /// it could not be run.
    pub measured_after_us: Option<f64>,
    /// The number of steps that SQLite's virtual machine takes for the example; null if it could
    /// not be run.
    pub before_steps_count: Option<i32>,
    /// The number of steps that SQLite's virtual machine takes for the example with the recommended
    /// indexes; null if it could not be run.
    pub after_steps_count: Option<i32>,
    /// The names of the recommended indexes that the statement uses.
    pub indexes: Vec<String>,
}

/// A statement that cannot be run on this file.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RejectedStatement {
    /// The statement with `?` in place of each value.
    pub shape: String,
    /// The number of statements of this shape in the log.
    pub calls_count: u64,
    /// The error message from SQLite.
    pub message: String,
}
