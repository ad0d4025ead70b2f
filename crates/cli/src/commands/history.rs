//! Implements `warren history`: shows every change of one row.

use clap::Args;
use replica::HistoryEntry;
use serde::Serialize;
use utoipa::ToSchema;

use crate::args::key_args::TrackedFileArgs;
use crate::output::{Printer, format_change_time};

/// Show every synced change of a row, with its time, device and values.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren history a.db Track 17\n  \
                        warren history a.db PlaylistTrack 1 3402\n\n\
                        `*` marks the current values.")]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) tracked: TrackedFileArgs,
    /// Table that contains the row.
    table: String,
    /// Primary key, one argument per column, as plain text or as a SQL literal.
    #[arg(required = true, allow_negative_numbers = true)]
    key: Vec<String>,
}

/// The output of `warren history`: every change of a row.
#[derive(Serialize, ToSchema)]
pub(crate) struct HistoryOutput {
    /// The changes of the row, the oldest first.
    changes: Vec<HistoryEntry>,
}

pub(crate) fn run(arguments: &HistoryArgs, output: Printer) -> anyhow::Result<()> {
    let replica = arguments.tracked.open()?;
    let changes = replica.history(&arguments.table, &arguments.key)?;
    for entry in &changes {
        describe(entry, output);
    }
    if changes.is_empty() {
        let (table, key) = (&arguments.table, arguments.key.join(", "));
        output.line(format_args!("no changes of row ({key}) in {table} up to the last sync"));
    }
    output.json(&HistoryOutput { changes })
}

fn describe(entry: &HistoryEntry, output: Printer) {
    let at = format_change_time(entry.origin.changed_ms);
    let what = if entry.deleted { "deleted" } else { "written" };
    output.line(format_args!(
        "{} {at}  {what} on {}",
        mark(entry.visible),
        entry.origin.device_name
    ));
    for cell in &entry.cells {
        output.line(format_args!("  {} {} = {}", mark(cell.visible), cell.column, cell.value));
    }
}

fn mark(shown: bool) -> char {
    if shown { '*' } else { ' ' }
}
