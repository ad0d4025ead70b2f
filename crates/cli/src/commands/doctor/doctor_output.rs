//! What `warren doctor --json` prints.

use doctor::{CatalogueEntry, DoctorReport, FixReport, WatchInterval};
use serde::Serialize;
use utoipa::ToSchema;

use super::fleet_report::FleetReport;

/// What `warren doctor` prints, by its options.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum DoctorOutput {
    /// What was found in one file.
    Report(Box<DoctorReport>),
    /// What was found in several files or a directory, or with `--baseline`.
    Fleet(FleetReport),
    /// What was fixed, with `--fix`.
    Fix(Box<FixReport>),
    /// What was undone, with `--undo`.
    Undo(UndoReport),
    /// All codes, with `--list`.
    Catalogue(Vec<CatalogueEntry>),
    /// One code, with `--explain`.
    Entry(CatalogueEntry),
    /// One interval of many, with `--watch`.
    Watch(WatchInterval),
}

/// What was undone.
#[derive(Serialize, ToSchema)]
pub(crate) struct UndoReport {
    /// The path of the file.
    pub(super) path: String,
    /// The directory that had the file as it was; it is gone now.
    pub(super) undo_path: String,
}
