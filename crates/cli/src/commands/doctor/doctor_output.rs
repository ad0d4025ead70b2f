//! Defines the JSON output of `warren doctor`.

use doctor::{CatalogueEntry, DoctorReport, FixReport, WatchInterval};
use serde::Serialize;
use utoipa::ToSchema;

use super::fleet_report::FleetReport;

/// The output of `warren doctor`, which depends on the options.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum DoctorOutput {
    /// The report on one file.
    Report(Box<DoctorReport>),
    /// The report on several files or a directory, or on any files with `--baseline`.
    Fleet(FleetReport),
    /// The fixes of one file, with `--fix`.
    Fix(Box<FixReport>),
    /// The undone fix, with `--undo`.
    Undo(UndoReport),
    /// The catalog of all finding codes, with `--list`.
    Catalogue(Vec<CatalogueEntry>),
    /// The catalog entry of one finding code, with `--explain`.
    Entry(CatalogueEntry),
    /// The observations of one interval, with `--watch`; each interval prints one.
    Watch(WatchInterval),
}

/// The output of `warren doctor --undo`: the undone fix.
#[derive(Serialize, ToSchema)]
pub(crate) struct UndoReport {
    /// The path of the restored file.
    pub(super) path: String,
    /// The path of the directory that held the original file; the directory no longer exists.
    pub(super) undo_path: String,
}
