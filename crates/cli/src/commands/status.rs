//! Implements `warren status`: shows the state of a tracked file, and compares it with the
//! server's.

pub(crate) mod sync_status;

use clap::Args;
use doctor::counted;
use engine::clock::now_ms;
use indicatif::HumanCount;
use replica::{
    Error, Replica, ReplicaStatus, RowDifference, RowDifferenceKind, SyncStatus,
    TablesVerification, VisibilityOverrideKind,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::sync::describe_loss;
use crate::args::key_args::TrackedFileArgs;
use crate::output::{ErrorDetails, NonZeroExit, Printer, format_time};

/// Show the sync status of a tracked file.
///
/// Shows tables, unsent changes, the server and other devices. Waits at most 2.5 seconds for the
/// server; without a response, shows the state of the last sync.
///
/// With --verify, compares every row of every tracked table with the recorded changes, and exits
/// with status 4 if rows differ. Rows differ if a program wrote to the file without Warren's
/// triggers. `warren sync --compare` sends these rows.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren status a.db\n  warren status a.db --offline\n  \
                        warren status a.db --verify\n  warren status a.db --json")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) tracked: TrackedFileArgs,
    /// Do not contact the server.
    #[arg(long)]
    offline: bool,
    /// Compare every row with the recorded changes. Exits with status 4 if rows differ.
    #[arg(long)]
    verify: bool,
}

/// The output of `warren status`: the sync status of a tracked file.
#[derive(Serialize, ToSchema)]
pub(crate) struct StatusOutput {
    #[serde(flatten)]
    replica: ReplicaStatus,
    /// The sync status according to the server; null without a server, with `--offline`, or after
    /// an error.
    sync_status: Option<SyncStatus>,
    /// The error of the request to the server; null if it succeeded or was not sent.
    sync_status_error: Option<ErrorDetails>,
    /// The result of `--verify`; null without this option.
    verification: Option<TablesVerification>,
}

pub(crate) fn run(arguments: &StatusArgs, output: Printer) -> anyhow::Result<()> {
    let replica = arguments.tracked.open()?;
    let fetched =
        if arguments.offline { Ok(None) } else { sync_status::fetch_device_list(&replica) };
    let status = replica.status()?;
    describe(&status, output);
    let (sync_status, sync_status_error) = match fetched {
        Ok(list) => (list.map(|list| SyncStatus::new(&status, &list)), None),
        Err(
            error @ (Error::Unreachable(_)
            | Error::Untrusted { .. }
            | Error::UnexpectedResponse { .. }
            | Error::RejectedByServer { .. }),
        ) => {
            output.line(format_args!("{error} (the state above is that of the last sync)"));
            (None, Some(ErrorDetails::from(&error.into())))
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(sync_status) = &sync_status {
        output.line(format_args!("{}", sync_status::describe(&status, sync_status)));
    }
    let verification = arguments.verify.then(|| verify(&replica, output)).transpose()?;
    let differs = verification.as_ref().is_some_and(|found| found.differing_count > 0);
    output.json(&StatusOutput { replica: status, sync_status, sync_status_error, verification })?;
    NonZeroExit::if_differing(differs)
}

fn verify(replica: &Replica, output: Printer) -> anyhow::Result<TablesVerification> {
    let spinner = output.spinner(format_args!("comparing"));
    let verification =
        replica.verify(now_ms(), |table| spinner.set_message(format!("comparing {table}")))?;
    spinner.finish_and_clear();
    let TablesVerification { rows_count, differing_count: differing, differences } = &verification;
    let (rows, found) =
        (counted(*rows_count, "row", "rows"), counted(*differing, "difference", "differences"));
    output.line(format_args!("compared {rows} with the recorded changes: {found}"));
    for RowDifference { table, key, kind, columns } in differences {
        let how = match kind {
            RowDifferenceKind::Unknown => "inserted without a recorded change".to_owned(),
            RowDifferenceKind::Missing => "deleted without a recorded change".to_owned(),
            RowDifferenceKind::Changed => {
                format!("updated without a recorded change: {}", columns.join(", "))
            }
        };
        output.line(format_args!("  {table} ({key}): {how}"));
    }
    if *differing > differences.len() as u64 {
        output.line(format_args!("  … and {} more", differing - differences.len() as u64));
    }
    if *differing > 0 {
        output.line(format_args!("run `warren sync --compare` to record and send them"));
    }
    Ok(verification)
}

pub(crate) fn describe(status: &ReplicaStatus, output: Printer) {
    for table in &status.tables {
        let rows = counted(table.rows_count, "row", "rows");
        output.line(format_args!("{:30} {rows:>15}", table.table));
    }
    let pending = counted(status.pending_count, "pending change", "pending changes");
    let unsent = counted(status.unsent_count, "unsent message", "unsent messages");
    output.line(format_args!("{pending} since the last sync, {unsent}"));
    for table in &status.uncaptured_tables {
        output.line(format_args!(
            "{table}: the schema has changed; the next sync finds the changes made since then"
        ));
    }
    if status.e2ee {
        output
            .line(format_args!("end-to-end encrypted (`warren recovery-phrase` shows the phrase)"));
    }
    if status.rejected_count > 0 {
        let changes = counted(status.rejected_count, "change", "changes");
        output.line(format_args!(
            "received but not applied: {changes} (the sync printed the reasons)"
        ));
    }
    if status.set_aside_count > 0 {
        let changes = counted(status.set_aside_count, "change", "changes");
        output.line(format_args!(
            "not sent: {changes}, because the server rejects the timestamp as invalid"
        ));
    }
    match &status.remote {
        None => output.line(format_args!("no server configured")),
        Some(remote) => {
            let verdict = if remote.in_sync { "in sync" } else { "not in sync" };
            let (server, login) = (&remote.server, &remote.login);
            let synced = format_time(remote.last_synced_ms);
            output.line(format_args!("{login} on {server}, device {}", remote.device_id));
            let there = counted(remote.server_messages_count, "change", "changes");
            let here = HumanCount(status.messages_count);
            output.line(format_args!(
                "last sync {synced}: {verdict}; the server had {there}, this file has {here} now"
            ));
            for line in remote.server_loss.iter().flat_map(describe_loss) {
                output.line(format_args!("{line}"));
            }
        }
    }
    describe_differences(status, output);
}

/// Prints the differences between this file and other devices.
fn describe_differences(status: &ReplicaStatus, output: Printer) {
    for exception in &status.visibility_overrides {
        let what = match exception.kind {
            VisibilityOverrideKind::Resurrected => "deleted, but still shown",
            VisibilityOverrideKind::DanglingReference => "deleted, but another row refers to it",
            _ => "hidden",
        };
        let (table, key, reason) = (&exception.table, &exception.key, &exception.reason);
        output.line(format_args!("{what}: {table} ({key}): {reason}"));
    }
    for conflict in &status.schema_conflicts {
        output.line(format_args!("table {}: {}", conflict.table, conflict.reason));
    }
    for unknown in &status.missing_tables {
        output.line(format_args!(
            "{unknown}: exists on other devices, but not in this file (to create it, run \
             `warren sync --create-missing`)"
        ));
    }
    for missing in &status.missing_constraints {
        let (table, constraint) = (&missing.table, missing.description());
        output.line(format_args!(
            "{table}: another device has {constraint}, but this file does not; rows shown here may \
             be hidden there"
        ));
    }
}
