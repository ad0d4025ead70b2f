//! `warren history`: every change of one row.

use clap::Args;
use replica::HistoryEntry;
use serde_json::json;

use crate::key::TrackedFile;
use crate::output::{Output, change_moment};

/// Show every change of a row until the last sync: when, on which device, what.
#[derive(Args)]
#[command(after_help = "Example:\n  warren history a.db Track 17\n  \
                        warren history a.db PlaylistTrack 1 3402\n\n\
                        `*` marks what is shown in the table.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) tracked: TrackedFile,
    /// The table.
    table: String,
    /// The row's primary key, each column by itself: as it is, or as an SQL literal.
    #[arg(required = true, allow_negative_numbers = true)]
    key: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let replica = arguments.tracked.open()?;
    let entries = replica.history(&arguments.table, &arguments.key)?;
    for entry in &entries {
        describe(entry, output);
    }
    if entries.is_empty() {
        let (table, key) = (&arguments.table, arguments.key.join(", "));
        output.line(format_args!("no change of a row ({key}) of {table} until the last sync"));
    }
    output.value(&json!({"changes": entries.iter().map(HistoryEntry::to_json).collect::<Vec<_>>()}))
}

fn describe(entry: &HistoryEntry, output: Output) {
    let at = change_moment(entry.timestamp.millis());
    let what = if entry.deleted { "deleted" } else { "written" };
    output.line(format_args!("{} {at}  {what} on {}", mark(entry.shown), entry.device));
    for cell in &entry.cells {
        output.line(format_args!("  {} {} = {}", mark(cell.shown), cell.column, cell.value));
    }
}

fn mark(shown: bool) -> char {
    if shown { '*' } else { ' ' }
}
