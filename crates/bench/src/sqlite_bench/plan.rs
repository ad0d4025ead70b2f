//! Defines plans and answers as they are written (`docs/reference/formats/12-lab-plan.md`).

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The plan for one file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LabPlan {
    pub(crate) database: PathBuf,
    /// The name that `PRAGMA cipher` accepts.
    pub(crate) cipher: Option<String>,
    /// The key as 64 hexadecimal digits.
    pub(crate) key: Option<String>,
    /// PRAGMAs and their values, in order.
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) rows: i64,
    pub(crate) body_bytes: usize,
    pub(crate) seed: u32,
    pub(crate) samples: BTreeMap<String, Vec<SampleValue>>,
    pub(crate) operations: BTreeMap<String, Vec<LabStatement>>,
    pub(crate) steps: Vec<LabStep>,
    pub(crate) clean: Vec<String>,
}

/// A statement and the names of its bound values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LabStatement {
    pub(crate) sql: String,
    pub(crate) bind: Vec<String>,
}

/// A part of a plan that is measured separately.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LabStep {
    pub(crate) name: String,
    /// Names of operations, which are repeated in this order.
    pub(crate) cycle: Vec<String>,
    /// Operations per transaction; 1 for no explicit transaction.
    pub(crate) transaction: usize,
    pub(crate) warmup_seconds: f64,
    pub(crate) seconds: f64,
}

/// A value of a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum SampleValue {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
}

impl ToSql for SampleValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Value::Null),
            Self::Integer(value) => ToSqlOutput::from(*value),
            Self::Real(value) => ToSqlOutput::from(*value),
            Self::Text(value) => ToSqlOutput::from(value.as_str()),
        })
    }
}

/// The identity of a driver, which carries out plans
/// (`docs/reference/formats/12-lab-plan.md`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct LabDriverInfo {
    /// The name of the library that the driver uses.
    pub(crate) driver: String,
    /// The library's version.
    pub(crate) version: String,
    /// The version of the SQLite that the library contains.
    pub(crate) sqlite: String,
    /// The compiler or interpreter of the driver, with its version.
    pub(crate) runtime: String,
    /// The ciphers of the files that the driver can open; empty if it cannot open encrypted files.
    pub(crate) ciphers: Vec<String>,
    /// The compile options that the library's SQLite reports, sorted.
    pub(crate) compile_options: Vec<String>,
}

/// Formats the name of the driver's row in a table.
impl fmt::Display for LabDriverInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} on {}", self.driver, self.version, self.runtime)
    }
}

/// The answer to a plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LabResult {
    #[serde(flatten)]
    pub(crate) about: LabDriverInfo,
    /// The value that SQLite returns for each PRAGMA of the plan.
    pub(crate) settings: BTreeMap<String, SampleValue>,
    pub(crate) steps: Vec<StepTiming>,
}

/// The measurement of one step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StepTiming {
    pub(crate) name: String,
    pub(crate) operations: u64,
    pub(crate) seconds: f64,
    /// The processor time, user and system, if the driver can measure it.
    pub(crate) cpu_seconds: Option<f64>,
    /// The duration of the longest transaction.
    pub(crate) slowest_us: f64,
}
