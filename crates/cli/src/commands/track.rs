//! Implements `warren track` and `warren untrack`: chooses the tables of a file that sync.

use clap::Args;
use doctor::counted;
use engine::clock::now_ms;
use replica::{Error, RecoveryPhrase, TrackingResult};
use serde::Serialize;
use utoipa::ToSchema;

use super::recovery_phrase::{self, RecoveryPhraseSource};
use crate::args::key_args::TrackedFileArgs;
use crate::args::permissions_warning;
use crate::output::Printer;

/// Track tables of a SQLite file, so that changes by any program are synced.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren track a.db --all\n  warren track a.db Track Album\n  \
                        warren track a.db --all --e2ee")]
pub(crate) struct TrackArgs {
    #[command(flatten)]
    pub(crate) tracked: TrackedFileArgs,
    /// Tables to track.
    #[arg(value_name = "TABLE", required_unless_present = "all")]
    tables: Vec<String>,
    /// Track all tables that can be tracked.
    #[arg(long, conflicts_with = "tables")]
    all: bool,
    /// Encrypt end to end, so that the server cannot read any content. Creates and shows a recovery
    /// phrase. If the account is not encrypted yet, the next sync sends everything again.
    #[arg(long, conflicts_with = "recovery_phrase_file")]
    e2ee: bool,
    #[command(flatten)]
    phrase: RecoveryPhraseSource,
}

/// Stop tracking tables.
///
/// Without table names, removes everything that Warren added to the file.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren untrack a.db Track\n  warren untrack a.db")]
pub(crate) struct UntrackArgs {
    #[command(flatten)]
    pub(crate) tracked: TrackedFileArgs,
    /// Tables to stop tracking. Default: all.
    #[arg(value_name = "TABLE")]
    tables: Vec<String>,
    /// Untrack all tables even if some changes have not been sent. The rows stay in the file, but
    /// other devices never receive these changes.
    #[arg(long)]
    force: bool,
}

/// The output of `warren track`.
#[derive(Serialize, ToSchema)]
pub(crate) struct TrackOutput<'a> {
    /// The tables that are tracked.
    tables: Vec<TrackingResult>,
    /// The tables that cannot be tracked, with `--all`; empty without it.
    rejected: Vec<RejectedTable>,
    /// The 24 words of the recovery phrase that `--e2ee` created; null if none was created.
    recovery_phrase: Option<&'a str>,
}

/// A table that cannot be tracked.
#[derive(Serialize, ToSchema)]
pub(crate) struct RejectedTable {
    /// The name of the table; null if the error is not about a table.
    table: Option<String>,
    /// The reason why the table cannot be tracked.
    reason: String,
}

impl From<Error> for RejectedTable {
    fn from(error: Error) -> Self {
        match error {
            Error::Untrackable { table, reason } => Self { table: Some(table), reason },
            error => Self { table: None, reason: error.to_string() },
        }
    }
}

/// The output of `warren untrack`.
#[derive(Serialize, ToSchema)]
pub(crate) struct UntrackOutput<'a> {
    /// The tables that are no longer tracked.
    untracked_tables: &'a [String],
}

pub(crate) fn track(arguments: &TrackArgs, output: Printer) -> anyhow::Result<()> {
    let replica = arguments.tracked.prepare()?;
    // The phrase comes first, so that nothing is recorded in a file whose phrase is refused.
    let was_given = arguments.phrase.apply_to(&replica)?;
    let made =
        if arguments.e2ee { recovery_phrase::create_phrase(&replica, output)? } else { None };
    let (tables, refused) = if arguments.all {
        replica.track_all()?
    } else {
        (replica.track(&arguments.tables)?, Vec::new())
    };
    for table in &tables {
        let (name, rows) = (&table.table, counted(table.rows_count, "row", "rows"));
        if table.already_tracked {
            output.line(format_args!("{name}: already tracked"));
        } else {
            output.line(format_args!("{name}: tracked, {rows}"));
        }
    }
    let counting: Vec<_> =
        tables.iter().filter(|table| table.auto_keys && !table.already_tracked).collect();
    if !counting.is_empty() {
        let names: Vec<_> = counting.iter().map(|table| table.table.as_str()).collect();
        output.line(format_args!(
            "SQLite assigns the keys of {}: if two devices create rows with the same key, the row \
             that syncs second gets a new key. Declared foreign keys are updated, so declare them \
             for all references to these rows.",
            names.join(", ")
        ));
    }
    for refused in &refused {
        output.line(format_args!("not tracked: {refused}"));
    }
    if let Some(phrase) = &made {
        recovery_phrase::print_phrase(phrase, output);
        recovery_phrase::explain_enabling_e2ee(&replica, output)?;
    }
    if was_given || made.is_some() {
        permissions_warning::warn_if_readable_by_others(&arguments.tracked.file, output)?;
    }
    let words = made.as_ref().map(RecoveryPhrase::words);
    output.json(&TrackOutput {
        tables,
        rejected: refused.into_iter().map(RejectedTable::from).collect(),
        recovery_phrase: words.as_ref().map(|words| words.as_str()),
    })
}

pub(crate) fn untrack(arguments: &UntrackArgs, output: Printer) -> anyhow::Result<()> {
    let replica = arguments.tracked.open()?;
    let tables = &arguments.tables;
    if tables.is_empty() {
        let untracked_tables = &replica.untrack_all(arguments.force)?;
        output.line(format_args!(
            "removed everything that Warren had added to {}",
            arguments.tracked.file.display()
        ));
        return output.json(&UntrackOutput { untracked_tables });
    }
    replica.untrack(tables, now_ms())?;
    output.line(format_args!("no longer tracked: {}", tables.join(", ")));
    output.json(&UntrackOutput { untracked_tables: tables })
}
