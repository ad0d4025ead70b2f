//! Defines all output of `warren bench --json`.

use serde::Serialize;
use utoipa::ToSchema;

use crate::actual::CompetitorInstallation;
use crate::compare::ReportComparison;
use crate::report::BenchReport;
use crate::sqlite_bench::LabDrivers;
use crate::sqlite_bench::pragma::BenchChoice;

/// The output of a subcommand of `warren bench`, in one of these shapes.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum BenchOutput {
    /// The report of a benchmark.
    Report(Box<BenchReport>),
    /// The output of `bench compare`: the differences between two reports of one benchmark.
    Comparison(Box<ReportComparison>),
    /// The output of `bench pragma --list`: the names that `--only` accepts.
    Choices(Vec<BenchChoice>),
    /// The output of `bench runtime --setup` and `bench browser --setup`: the drivers of the lab.
    Drivers(LabDrivers),
    /// The output of `bench actual --setup`: the published server.
    Server(CompetitorInstallation),
}
