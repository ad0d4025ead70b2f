//! Implements `warren conflicts`: lists and resolves lost edits, which were made without knowledge
//! of the ones that won, and hidden rows.

use clap::Args;
use doctor::counted;
use engine::clock::now_ms;
use replica::{
    Conflict, ConflictEdit, Error, HiddenRow, MergedRow, Replica, VisibilityOverrideKind,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::args::key_args::TrackedFileArgs;
use crate::output::{CommandError, Printer, format_change_time};

/// List and resolve conflicts: lost edits and hidden rows.
///
/// Without an option, lists them with their ids. An id may be shortened as long as it is unique.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren conflicts a.db\n  \
                        warren conflicts a.db --restore 3f9c01ab; warren sync a.db\n  \
                        warren conflicts a.db --dismiss 3f9c01ab; warren sync a.db\n  \
                        warren conflicts a.db --merge 81d0a2f7; warren sync a.db\n  \
                        warren conflicts a.db --resolve 81d0a2f7 email=ada@other.org")]
pub(crate) struct ConflictsArgs {
    #[command(flatten)]
    pub(crate) tracked: TrackedFileArgs,
    /// Restore this lost edit. The next sync sends it to the other devices.
    #[arg(long, value_name = "ID")]
    restore: Option<String>,
    /// Merge this hidden row into the row that is shown in its place. References move to the shown
    /// row, and the hidden row is deleted.
    #[arg(long, value_name = "ID", conflicts_with_all = ["restore", "dismiss", "resolve"])]
    merge: Option<String>,
    /// Dismiss this lost edit, or delete this hidden row if no row refers to it. The next sync
    /// removes it from the list on all devices.
    #[arg(long, value_name = "ID", conflicts_with = "restore")]
    dismiss: Option<String>,
    /// Set a column of this hidden row to another value, with which the row can be shown.
    #[arg(long, num_args = 2, value_names = ["ID", "COLUMN=VALUE"],
        conflicts_with_all = ["restore", "dismiss"])]
    resolve: Vec<String>,
}

/// The output of `warren conflicts`, which depends on the options.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ConflictsOutput {
    /// The output without an option: all lost edits and hidden rows.
    List {
        /// The lost edits of the file.
        conflicts: Vec<Conflict>,
        /// The hidden rows of the file.
        hidden_rows: Vec<HiddenRow>,
    },
    /// The output with `--restore`: the restored edit.
    Restored {
        /// The conflict whose lost edit was restored to its table.
        restored: Conflict,
    },
    /// The output with `--merge`: the merged row.
    Merged {
        /// The hidden row that was merged, and the row that it was merged into.
        merged: MergedRow,
    },
    /// The output with `--dismiss`: the dismissed edit or the deleted row.
    Dismissed {
        /// The lost edit that was dismissed, or the hidden row that was deleted.
        dismissed: DismissedConflict,
    },
    /// The output with `--resolve`: the resolved row.
    Resolved {
        /// The row that was hidden and is now shown.
        resolved: HiddenRow,
    },
}

/// A lost edit that was dismissed, or a hidden row that was deleted.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum DismissedConflict {
    LostEdit(Conflict),
    HiddenRow(HiddenRow),
}

pub(crate) fn run(arguments: &ConflictsArgs, output: Printer) -> anyhow::Result<()> {
    let replica = arguments.tracked.open()?;
    output.json(&apply(arguments, &replica, output)?)
}

fn apply(
    arguments: &ConflictsArgs,
    replica: &Replica,
    output: Printer,
) -> anyhow::Result<ConflictsOutput> {
    if let Some(id) = &arguments.restore {
        let restored = replica.restore(id, now_ms())?;
        let what = cell_label(&restored);
        output.line(format_args!("restored {what}: {}", outcome(&restored.lost)));
        return Ok(ConflictsOutput::Restored { restored });
    }
    if let Some(id) = &arguments.merge {
        let merged = replica.merge_hidden_row(id, now_ms())?;
        describe_merged(&merged, output);
        return Ok(ConflictsOutput::Merged { merged });
    }
    if let Some(id) = &arguments.dismiss {
        return Ok(ConflictsOutput::Dismissed { dismissed: dismiss(id, replica, output)? });
    }
    if let [id, given] = &arguments.resolve[..] {
        let (column, value) = given
            .split_once('=')
            .ok_or_else(|| CommandError::usage("--resolve expects ID COLUMN=VALUE"))?;
        let resolved = replica.resolve_hidden_row(id, column, value, now_ms())?;
        let HiddenRow { table, key, .. } = &resolved;
        output.line(format_args!("resolved: {table} ({key}) is shown with {column} = {value}"));
        return Ok(ConflictsOutput::Resolved { resolved });
    }
    let (conflicts, hidden_rows) = (replica.conflicts()?, replica.hidden_rows()?);
    for conflict in &conflicts {
        output.line(format_args!("{}  {}", conflict.id, cell_label(conflict)));
        output.line(format_args!("    lost   {}", describe(&conflict.lost)));
        output.line(format_args!("    shown  {}", describe(&conflict.winner)));
    }
    for row in &hidden_rows {
        describe_hidden_row(row, output);
    }
    if conflicts.is_empty() {
        output.line(format_args!("no lost edits"));
    }
    Ok(ConflictsOutput::List { conflicts, hidden_rows })
}

/// Dismisses a lost edit, or deletes a hidden row.
fn dismiss(id: &str, replica: &Replica, output: Printer) -> anyhow::Result<DismissedConflict> {
    match replica.dismiss(id, now_ms()) {
        Err(Error::ConflictNotFound { .. }) => {
            let row = replica.delete_hidden_row(id, now_ms())?;
            output.line(format_args!("deleted {} ({})", row.table, row.key));
            Ok(DismissedConflict::HiddenRow(row))
        }
        dismissed => {
            let dismissed = dismissed?;
            let what = cell_label(&dismissed);
            output.line(format_args!("dismissed {what}: {}", outcome(&dismissed.lost)));
            Ok(DismissedConflict::LostEdit(dismissed))
        }
    }
}

fn describe_hidden_row(row: &HiddenRow, output: Printer) {
    let HiddenRow { id, table, key, kind, reason, cells, same_as } = row;
    let what = match kind {
        VisibilityOverrideKind::DanglingReference => "is deleted, but other rows refer to it",
        _ => "is hidden",
    };
    output.line(format_args!("{id}  {table} ({key}) {what}: {reason}"));
    for (column, value) in cells {
        output.line(format_args!("    {column}  {value}"));
    }
    if let Some(shown) = same_as {
        output.line(format_args!(
            "    if it duplicates the shown row {table} ({shown}), merge it with --merge {id}"
        ));
    }
}

fn describe_merged(merged: &MergedRow, output: Printer) {
    let MergedRow { row, into_key, moved_references_count, hidden_rows_count } = merged;
    let HiddenRow { table, key, .. } = row;
    let updated = counted(*moved_references_count, "referring row", "referring rows");
    output.line(format_args!(
        "merged {table} ({key}) into {table} ({into_key}) and updated {updated}"
    ));
    if *hidden_rows_count > 0 {
        let rows = counted(*hidden_rows_count, "row", "rows");
        output.line(format_args!(
            "{rows} newly hidden, because a row with an updated reference has the same unique \
             value (see `warren conflicts`)"
        ));
    }
}

/// Returns the label of a cell, such as `todo (5) title`.
fn cell_label(conflict: &Conflict) -> String {
    let Conflict { table, key, column, .. } = conflict;
    format!("{table} ({key}) {}", column.as_deref().unwrap_or("the row"))
}

fn describe(edit: &ConflictEdit) -> String {
    format!(
        "{}  {} on {}",
        format_change_time(edit.origin.changed_ms),
        outcome(edit),
        edit.origin.device_name
    )
}

fn outcome(edit: &ConflictEdit) -> &str {
    match &edit.value {
        Some(literal) => literal,
        None if edit.deleted => "(the row is deleted)",
        None => "(the row exists)",
    }
}
