//! `warren conflicts`: edits that lost to others which had not seen them, and getting them back, or letting them be.

use clap::Args;
use replica::{Conflict, Edit, Outcome};
use serde_json::json;

use crate::clock::now_ms;
use crate::key::TrackedFile;
use crate::output::{Output, change_moment};

/// List edits that were lost to others made without knowing of them, and restore or dismiss them.
#[derive(Args)]
#[command(after_help = "Example:\n  warren conflicts a.db\n  \
                        warren conflicts a.db --restore 3f9c01ab; warren sync a.db\n  \
                        warren conflicts a.db --dismiss 3f9c01ab; warren sync a.db")]
pub(crate) struct Arguments {
    #[command(flatten)]
    tracked: TrackedFile,
    /// Write this lost edit into its table again; the next sync sends it to the other devices.
    #[arg(long, value_name = "ID")]
    restore: Option<String>,
    /// Let this lost edit be; from the next sync on no device lists it.
    #[arg(long, value_name = "ID", conflicts_with = "restore")]
    dismiss: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let replica = arguments.tracked.open()?;
    if let Some(id) = &arguments.restore {
        let restored = replica.restore(id, now_ms())?;
        let what = place(&restored);
        output.line(format_args!("restored {what}: {}", outcome(&restored.lost)));
        return output.value(&json!({"restored": restored.to_json()}));
    }
    if let Some(id) = &arguments.dismiss {
        let dismissed = replica.dismiss(id, now_ms())?;
        let what = place(&dismissed);
        output.line(format_args!("dismissed {what}: {}", outcome(&dismissed.lost)));
        return output.value(&json!({"dismissed": dismissed.to_json()}));
    }
    let conflicts = replica.conflicts()?;
    for conflict in &conflicts {
        output.line(format_args!("{}  {}", conflict.id, place(conflict)));
        output.line(format_args!("    lost   {}", describe(&conflict.lost)));
        output.line(format_args!("    shown  {}", describe(&conflict.winner)));
    }
    if conflicts.is_empty() {
        output.line(format_args!("no lost edits"));
    }
    output.value(&json!({"conflicts": conflicts.iter().map(Conflict::to_json).collect::<Vec<_>>()}))
}

/// `todo (5) title`
fn place(conflict: &Conflict) -> String {
    let Conflict { table, key, column, .. } = conflict;
    format!("{table} ({key}) {}", column.as_deref().unwrap_or("the row"))
}

fn describe(edit: &Edit) -> String {
    format!("{}  {} on {}", change_moment(edit.timestamp.millis()), outcome(edit), edit.device)
}

fn outcome(edit: &Edit) -> &str {
    match &edit.outcome {
        Outcome::Value(literal) => literal,
        Outcome::Present => "(the row is there)",
        Outcome::Deleted => "(the row is deleted)",
    }
}
