//! Plans and answers, as they are written (`docs/reference/formats/12-lab-plan.md`).

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What to do with a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LabPlan {
    pub(crate) database: PathBuf,
    /// By the name that `PRAGMA cipher` takes.
    pub(crate) cipher: Option<String>,
    /// 64 hexadecimal digits.
    pub(crate) key: Option<String>,
    /// PRAGMAs and values, in order.
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) rows: i64,
    pub(crate) body_bytes: usize,
    pub(crate) seed: u32,
    pub(crate) samples: BTreeMap<String, Vec<SampleValue>>,
    pub(crate) operations: BTreeMap<String, Vec<LabStatement>>,
    pub(crate) steps: Vec<LabStep>,
    pub(crate) clean: Vec<String>,
}

/// A statement and what its question marks stand for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LabStatement {
    pub(crate) sql: String,
    pub(crate) bind: Vec<String>,
}

/// What is measured by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LabStep {
    pub(crate) name: String,
    /// Names of operations.
    pub(crate) cycle: Vec<String>,
    /// Operations of one transaction; 1 for none of its own.
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

/// Who carries plans out (`docs/reference/formats/12-lab-plan.md`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct LabDriverInfo {
    /// The library.
    pub(crate) driver: String,
    /// The library's version.
    pub(crate) version: String,
    /// The version of the SQLite that the library brings.
    pub(crate) sqlite: String,
    /// What compiles or interprets the driver, with its version.
    pub(crate) runtime: String,
    /// The ciphers that it opens files with; empty if it opens no encrypted files.
    pub(crate) ciphers: Vec<String>,
    /// How its SQLite was compiled, as SQLite says itself, sorted.
    pub(crate) compile_options: Vec<String>,
}

/// As a row of a table is called.
impl fmt::Display for LabDriverInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} on {}", self.driver, self.version, self.runtime)
    }
}

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LabResult {
    #[serde(flatten)]
    pub(crate) about: LabDriverInfo,
    /// What SQLite says of each PRAGMA of the plan.
    pub(crate) settings: BTreeMap<String, SampleValue>,
    pub(crate) steps: Vec<StepTiming>,
}

/// One step, measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StepTiming {
    pub(crate) name: String,
    pub(crate) operations: u64,
    pub(crate) seconds: f64,
    /// Processor time, user and system, if the driver can tell.
    pub(crate) cpu_seconds: Option<f64>,
    /// The longest transaction.
    pub(crate) slowest_us: f64,
}
