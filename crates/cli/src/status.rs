//! `warren status`: how a tracked file stands, and what the server says to it.

pub(crate) mod receipt;

use std::path::PathBuf;

use clap::Args;
use replica::{Error, Replica, Status};
use serde_json::{Value, json};

use crate::output::{Output, moment};

/// Show how a tracked file stands: tables, unsent changes, what the server and other devices have.
///
/// The server is asked for at most 2.5 seconds; if it does not answer, what the last sync saw is
/// shown.
#[derive(Args)]
#[command(after_help = "Example:\n  warren status a.db\n  warren status a.db --offline\n  \
                        warren status a.db --json")]
pub(crate) struct Arguments {
    file: PathBuf,
    /// Do not ask the server.
    #[arg(long)]
    offline: bool,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let replica = Replica::open(&arguments.file)?;
    let fetched = if arguments.offline { Ok(None) } else { receipt::fetch(&replica) };
    let status = replica.status()?;
    describe(&status, output);
    let mut value = to_json(&status);
    match fetched {
        Ok(list) => {
            if let Some(list) = &list {
                output.line(format_args!("{}", receipt::describe(&status, list)));
            }
            value["receipt"] = list.map(|list| receipt::to_json(&status, &list)).into();
        }
        Err(error @ (Error::Unreachable(_) | Error::Refused { .. })) => {
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
    if status.sealed {
        output.line(format_args!("encrypted end to end (`warren phrase` shows the phrase)"));
    }
    if status.refused > 0 {
        let count = status.refused;
        output.line(format_args!(
            "received but not applied, for the reasons that the sync gave: {count}"
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
        let what = if exception.held { "held back" } else { "kept though deleted" };
        let (table, key, reason) = (&exception.table, &exception.key, &exception.reason);
        output.line(format_args!("{what}: {table} ({key}): {reason}"));
    }
    for unknown in &status.unknown {
        output.line(format_args!(
            "{unknown}: other devices have it, this file has not (`warren sync --adopt` creates it)"
        ));
    }
}

pub(crate) fn to_json(status: &Status) -> Value {
    let tables = status.tables.iter().map(|t| json!({"table": t.name, "rows": t.rows}));
    let exceptions = status
        .exceptions
        .iter()
        .map(|e| json!({"table": e.table, "key": e.key, "held": e.held, "reason": e.reason}));
    json!({
        "node": status.node.to_string(),
        "tables": tables.collect::<Vec<_>>(),
        "count": status.fingerprint.count,
        "digest": format!("{:032x}", status.fingerprint.digest),
        "bytes": status.bytes,
        "unsent": status.unsent,
        "noted": status.noted,
        "refused": status.refused,
        "sealed": status.sealed,
        "exceptions": exceptions.collect::<Vec<_>>(),
        "unknown": status.unknown,
        "remote": status.remote.as_ref().map(|r| json!({
            "server": r.server,
            "login": r.login,
            "client_id": r.client_id,
            "cursor": r.cursor,
            "synced_ms": r.synced_ms,
            "server_count": r.server_count,
            "equal": r.equal,
        })),
    })
}
