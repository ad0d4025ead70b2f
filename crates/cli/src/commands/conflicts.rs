//! `warren conflicts`: edits that lost to others made without knowing of them, and rows that are
//! hidden.

use anyhow::Context;
use clap::Args;
use engine::clock::now_ms;
use replica::{Conflict, ConflictEdit, Error, HiddenRow, JoinedRow, ResolvedEdit};
use serde_json::json;

use crate::args::key_args::TrackedFileArgs;
use crate::output::{Printer, format_change_time};

/// List and resolve conflicts: lost edits and hidden rows.
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
    /// Merge this hidden row into the row that is shown in its place: references move to that row,
    /// and the hidden one is deleted.
    #[arg(long, value_name = "ID", conflicts_with_all = ["restore", "dismiss", "resolve"])]
    merge: Option<String>,
    /// Dismiss this lost edit, or delete this hidden row if no row refers to it. Disappears on all
    /// devices after the next sync.
    #[arg(long, value_name = "ID", conflicts_with = "restore")]
    dismiss: Option<String>,
    /// Resolve a hidden row: set a column to another value, so that the row fits and is shown.
    #[arg(long, num_args = 2, value_names = ["ID", "COLUMN=VALUE"],
        conflicts_with_all = ["restore", "dismiss"])]
    resolve: Vec<String>,
}

pub(crate) fn run(arguments: &ConflictsArgs, output: Printer) -> anyhow::Result<()> {
    let replica = arguments.tracked.open()?;
    if let Some(id) = &arguments.restore {
        let restored = replica.restore(id, now_ms())?;
        let what = cell_label(&restored);
        output.line(format_args!("restored {what}: {}", outcome(&restored.lost)));
        return output.json(&json!({"restored": restored.to_json()}));
    }
    if let Some(id) = &arguments.merge {
        let joined = replica.join(id, now_ms())?;
        describe_joined(&joined, output);
        return output.json(&json!({"joined": joined.to_json()}));
    }
    if let Some(id) = &arguments.dismiss {
        let dismissed = match replica.dismiss(id, now_ms()) {
            Err(Error::ConflictNotFound { .. }) => {
                let row = replica.delete_hidden_row(id, now_ms())?;
                output.line(format_args!("deleted {} ({})", row.table, row.key));
                return output.json(&json!({"dismissed": row.to_json()}));
            }
            dismissed => dismissed?,
        };
        let what = cell_label(&dismissed);
        output.line(format_args!("dismissed {what}: {}", outcome(&dismissed.lost)));
        return output.json(&json!({"dismissed": dismissed.to_json()}));
    }
    if let [id, given] = &arguments.resolve[..] {
        let (column, value) = given.split_once('=').context("--resolve takes COLUMN=VALUE")?;
        let row = replica.resolve_hidden_row(id, column, value, now_ms())?;
        output.line(format_args!("shown {} ({}) with {column} {value}", row.table, row.key));
        return output.json(&json!({"given": row.to_json()}));
    }
    let (conflicts, held) = (replica.conflicts()?, replica.hidden_rows()?);
    for conflict in &conflicts {
        output.line(format_args!("{}  {}", conflict.id, cell_label(conflict)));
        output.line(format_args!("    lost   {}", describe(&conflict.lost)));
        output.line(format_args!("    shown  {}", describe(&conflict.winner)));
    }
    for row in &held {
        describe_hidden_row(row, output);
    }
    if conflicts.is_empty() {
        output.line(format_args!("no lost edits"));
    }
    output.json(&json!({
        "conflicts": conflicts.iter().map(Conflict::to_json).collect::<Vec<_>>(),
        "held": held.iter().map(HiddenRow::to_json).collect::<Vec<_>>(),
    }))
}

fn describe_hidden_row(row: &HiddenRow, output: Printer) {
    let HiddenRow { id, table, key, kind, reason, cells, same_as } = row;
    let what = match *kind {
        "dangling_reference" => "is deleted, and other rows refer to it",
        _ => "is held back",
    };
    output.line(format_args!("{id}  {table} ({key}) {what}: {reason}"));
    for (column, value) in cells {
        output.line(format_args!("    {column}  {value}"));
    }
    if let Some(shown) = same_as {
        output.line(format_args!(
            "    --merge {id}  if {table} ({shown}), which is shown, means the same"
        ));
    }
}

fn describe_joined(joined: &JoinedRow, output: Printer) {
    let JoinedRow { row: HiddenRow { table, key, .. }, into, followed, held } = joined;
    output.line(format_args!(
        "{table} ({key}) is {table} ({into}) now: {followed} rows that referred to it follow"
    ));
    if *held > 0 {
        output.line(format_args!(
            "{held} rows are held back now, since one that followed has the same value: \
             `warren conflicts` lists them"
        ));
    }
}

/// `todo (5) title`
fn cell_label(conflict: &Conflict) -> String {
    let Conflict { table, key, column, .. } = conflict;
    format!("{table} ({key}) {}", column.as_deref().unwrap_or("the row"))
}

fn describe(edit: &ConflictEdit) -> String {
    format!(
        "{}  {} on {}",
        format_change_time(edit.timestamp.millis()),
        outcome(edit),
        edit.device_name
    )
}

fn outcome(edit: &ConflictEdit) -> &str {
    match &edit.outcome {
        ResolvedEdit::Value(literal) => literal,
        ResolvedEdit::Present => "(the row is there)",
        ResolvedEdit::Deleted => "(the row is deleted)",
    }
}
