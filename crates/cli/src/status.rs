//! `warren status`: how a tracked file stands, and what the server says to it.

pub(crate) mod receipt;

use clap::Args;
use replica::{Error, Receipt, Status};
use serde_json::json;

use crate::key::TrackedFile;
use crate::output::{Output, moment};

/// Show how a tracked file stands: tables, unsent changes, what the server and other devices have.
///
/// The server is asked for at most 2.5 seconds; if it does not answer, what the last sync saw is
/// shown.
#[derive(Args)]
#[command(after_help = "Example:\n  warren status a.db\n  warren status a.db --offline\n  \
                        warren status a.db --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) tracked: TrackedFile,
    /// Do not ask the server.
    #[arg(long)]
    offline: bool,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let replica = arguments.tracked.open()?;
    let fetched = if arguments.offline { Ok(None) } else { receipt::fetch(&replica) };
    let status = replica.status()?;
    describe(&status, output);
    let mut value = status.to_json();
    match fetched {
        Ok(list) => {
            if let Some(list) = &list {
                output.line(format_args!("{}", receipt::describe(&status, list)));
            }
            value["receipt"] = list.map(|list| Receipt::of(&status, &list).to_json(&list)).into();
        }
        Err(
            error @ (Error::Unreachable(_)
            | Error::Untrusted { .. }
            | Error::Intermediary { .. }
            | Error::Refused { .. }),
        ) => {
            output.line(format_args!("{error} (what is above, the last sync saw)"));
            value["receipt_error"] = json!({"code": error.code(), "message": error.to_string()});
        }
        Err(error) => return Err(error.into()),
    }
    output.value(&value)
}

pub(crate) fn describe(status: &Status, output: Output) {
    for table in &status.tables {
        output.line(format_args!("{:30} {:>10} rows", table.name, table.rows));
    }
    let (noted, unsent) = (status.noted, status.unsent);
    output.line(format_args!("changes since the last sync: {noted}; unsent messages: {unsent}"));
    for table in &status.uncaptured {
        output.line(format_args!(
            "{table}: its schema has changed; the next sync looks for what was written since"
        ));
    }
    if status.sealed {
        output.line(format_args!("encrypted end to end (`warren phrase` shows the phrase)"));
    }
    if status.refused > 0 {
        let count = status.refused;
        output.line(format_args!(
            "received but not applied, for the reasons that the sync gave: {count}"
        ));
    }
    if status.set_aside > 0 {
        let count = status.set_aside;
        output.line(format_args!(
            "not sent, as the server says that their timestamps are invalid: {count}"
        ));
    }
    match &status.remote {
        None => output.line(format_args!("no server yet")),
        Some(remote) => {
            let equal = if remote.equal { "equal then" } else { "not equal then" };
            let (server, login) = (&remote.server, &remote.login);
            let synced = moment(remote.synced_ms);
            output.line(format_args!("{login} on {server}, device {}", remote.client_id));
            let (here, there) = (status.fingerprint.count, remote.server_count);
            output.line(format_args!(
                "last sync {synced}: server {there} changes, here {here}, {equal}"
            ));
        }
    }
    for exception in &status.exceptions {
        let what = match exception.kind.as_str() {
            "kept" => "kept though deleted",
            "missing" => "deleted, though another row refers to it",
            _ => "held back",
        };
        let (table, key, reason) = (&exception.table, &exception.key, &exception.reason);
        output.line(format_args!("{what}: {table} ({key}): {reason}"));
    }
    for obstacle in &status.obstacles {
        output.line(format_args!("table {}: {}", obstacle.table, obstacle.why));
    }
    for unknown in &status.unknown {
        output.line(format_args!(
            "{unknown}: other devices have it, this file has not (`warren sync --adopt` creates it)"
        ));
    }
}
