//! Defines the plan and the answer: Warren's Format 7.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

/// The work to do: a database, the requests, and for how long to run them.
#[derive(Debug, Deserialize)]
pub struct Plan {
    pub database: PathBuf,
    /// Little-endian pairs of 64-bit account numbers: credit, debit.
    pub pairs: PathBuf,
    pub warmup_seconds: f64,
    pub seconds: f64,
    /// Callers, each of which waits for its transaction before it asks for the next.
    pub concurrency: usize,
    pub synchronous: Synchronous,
    pub cache_kib: u32,
    /// The number of times to read the credit's balance before each transaction, one statement
    /// each time.
    pub reads: usize,
}

/// A value of `PRAGMA synchronous`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Synchronous {
    Normal,
    Full,
}

/// One transaction that a caller runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub credit: i64,
    pub debit: i64,
    /// The number of times to read the credit's balance first.
    pub reads: usize,
}

/// The identification of a driver.
#[derive(Debug, Serialize)]
pub struct About {
    pub driver: &'static str,
    pub version: String,
    pub sqlite: String,
    pub runtime: String,
    /// Whether the plan's concurrency applies.
    pub concurrent: bool,
}

/// The settings as SQLite returns them for the PRAGMAs of these names.
#[derive(Debug, Serialize)]
pub struct Settings {
    pub journal_mode: String,
    pub synchronous: i64,
    pub cache_size: i64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    #[serde(flatten)]
    pub(crate) about: About,
    pub(crate) transactions: usize,
    pub(crate) seconds: f64,
    pub(crate) latency_us: Latency,
    pub(crate) settings: Settings,
}

#[derive(Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Plan {
    /// Returns the value for `PRAGMA cache_size`: negative means KiB.
    pub fn cache_size(&self) -> i64 {
        -i64::from(self.cache_kib)
    }

    /// Reads the pairs and returns one request for each.
    pub(crate) fn read_requests(&self) -> anyhow::Result<Vec<Request>> {
        let bytes = std::fs::read(&self.pairs)
            .with_context(|| format!("reading {}", self.pairs.display()))?;
        let (numbers, rest) = bytes.as_chunks();
        let (pairs, odd) = numbers.as_chunks();
        let is_pairs = rest.is_empty() && odd.is_empty() && !pairs.is_empty();
        ensure!(is_pairs, "{}: not pairs of 64-bit numbers", self.pairs.display());
        let number = i64::from_le_bytes;
        let request = |&[credit, debit]: &[_; 2]| Request {
            credit: number(credit),
            debit: number(debit),
            reads: self.reads,
        };
        Ok(pairs.iter().map(request).collect())
    }
}
