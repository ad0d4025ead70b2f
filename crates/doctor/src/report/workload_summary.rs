//! Defines the summary of the statements that a program ran on the file, according to its log.

use serde::Serialize;
use utoipa::ToSchema;

/// What a program asked of the file.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct WorkloadSummary {
    /// How many statements read or write rows.
    pub statements_count: u64,
    /// How many statements do not: BEGIN, PRAGMA, CREATE.
    pub others_count: u64,
    /// How many lines of the log belong to no statement.
    pub unread_lines_count: u64,
    /// How many statements there are without their values.
    pub shapes_count: usize,
    /// Whether the log says how long the statements took.
    pub timed: bool,
    /// The statements by shape, the heaviest first.
    pub queries: Vec<WorkloadQuery>,
    /// Statements that cannot be run on this file.
    pub rejected: Vec<RejectedStatement>,
    /// Indexes that no statement uses, of the tables that the statements read.
    pub unused_indexes: Vec<String>,
}

/// The statements of one shape.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WorkloadQuery {
    /// The statement with `?` for each value.
    pub shape: String,
    /// One of the statements.
    pub example: String,
    /// How many statements there were.
    pub calls_count: u64,
    /// How long all of them took by the log, in microseconds; null if the log does not say.
    pub logged_us: Option<f64>,
    /// The share of the time of the whole workload, by the log or else as measured: 0 to 1; null
    /// if neither is known.
    pub time_ratio: Option<f64>,
    /// The lines of EXPLAIN QUERY PLAN.
    pub plan: Vec<String>,
    /// How long the example takes, in microseconds; null if it could not be run.
    pub measured_before_us: Option<f64>,
    /// How long the example takes with the advised indexes, in microseconds; null if it could not
    /// be run.
    pub measured_after_us: Option<f64>,
    /// How many steps of SQLite's virtual machine the example takes; null if it could not be run.
    pub before_steps_count: Option<i32>,
    /// How many steps the example takes with the advised indexes; null if it could not be run.
    pub after_steps_count: Option<i32>,
    /// The advised indexes that it uses.
    pub indexes: Vec<String>,
}

/// A statement that cannot be run on this file.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RejectedStatement {
    /// The statement with `?` for each value.
    pub shape: String,
    /// How many statements of this shape there were.
    pub calls_count: u64,
    /// The error of SQLite.
    pub message: String,
}
