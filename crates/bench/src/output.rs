//! Everything that `warren bench` prints with `--json`.

use serde::Serialize;
use utoipa::ToSchema;

use crate::actual::CompetitorInstallation;
use crate::compare::ReportComparison;
use crate::report::BenchReport;
use crate::sqlite_bench::LabDrivers;
use crate::sqlite_bench::pragma::BenchChoice;

/// What a subcommand of `warren bench` prints: one of these shapes.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum BenchOutput {
    /// A benchmark that was run.
    Report(Box<BenchReport>),
    /// `bench compare`: two reports of one benchmark.
    Comparison(Box<ReportComparison>),
    /// `bench pragma --list`: what `--only` can name.
    Choices(Vec<BenchChoice>),
    /// `bench runtime --setup` and `bench browser --setup`: the drivers of the lab.
    Drivers(LabDrivers),
    /// `bench actual --setup`: the published server.
    Server(CompetitorInstallation),
}
