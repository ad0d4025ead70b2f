//! `warren vault repair`: takes out of an account's vault, and of all its devices' files, what should
//! not be there.

use std::io::{BufRead, IsTerminal};

use anyhow::Context;
use clap::Args;
use protocol::{EraseRequest, ErrorCode, PushResponse};
use replica::{ErasureTarget, Error, Replica};
use serde_json::json;
use zeroize::{Zeroize, Zeroizing};

use crate::args::key_args::TrackedFileArgs;
use crate::args::password::PasswordSource;
use crate::commands::sync;
use crate::commands::sync::sync_once::{ServerAddress, sync_once};
use crate::output::Printer;

/// Erase for good what was sent by mistake: from the server, from this file, and at their next sync
/// from all other devices.
///
/// --erase with --column erases every earlier value of one column of a row. The value that the row
/// shows now stays, so change it first. Without --column it erases everything that was ever recorded
/// about a deleted row, its key included. Erasing needs the account's password. Backups of the server
/// and copies of the devices' files keep what they have.
///
/// Without an option it says what can be repaired, and changes nothing.
#[derive(Args)]
#[command(after_help = "Example:\n  \
    sqlite3 notes.db \"UPDATE note SET text = '' WHERE id = 5\"   a password was pasted there\n  \
    warren vault repair notes.db --erase note 5 --column text\n  \
    warren vault repair notes.db --again                        after the server was restored")]
pub(crate) struct VaultRepairArgs {
    #[command(flatten)]
    tracked: TrackedFileArgs,
    /// A table, and the row's key: its parts as SQL literals, or texts as they are.
    #[arg(long, num_args = 2.., value_names = ["TABLE", "KEY"], group = "what")]
    erase: Vec<String>,
    /// Erase the earlier values of this column only.
    #[arg(long, requires = "erase")]
    column: Option<String>,
    /// Erase changes that no device can read (`warren status` counts them).
    #[arg(long, group = "what")]
    refused: bool,
    /// Erase again what a restored backup has brought back to the server.
    #[arg(long, group = "what")]
    again: bool,
    /// Do not ask whether it is meant.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    password: PasswordSource,
}

/// How often other devices may send something between a look and an erasure.
const TRIES_MAX: u32 = 5;

pub(super) fn repair(arguments: &VaultRepairArgs, output: Printer) -> anyhow::Result<()> {
    let mut replica = arguments.tracked.open()?;
    let Some(target) = target(arguments) else { return print_status(&replica, output) };
    let server = ServerAddress::of(&replica)?;
    let mut password: Option<Zeroizing<String>> = None;
    for _ in 0..TRIES_MAX {
        sync_once(&mut replica, &server, false, output)?;
        let requests = replica.erasure_requests(target)?;
        let count: usize = requests.iter().map(|request| request.erasures.len()).sum();
        if count == 0 {
            output.line(format_args!("There is nothing to erase."));
            return output.json(&json!({"erased": 0}));
        }
        let password = match &password {
            Some(password) => password,
            None => password.insert(confirm(arguments, &replica, count, output)?),
        };
        let token = replica.token()?.ok_or(Error::ServerNotConfigured)?;
        match send(&server, &token, requests, password) {
            Err(Error::RejectedByServer { code: ErrorCode::StaleCursor, .. }) => continue,
            sent => sent?,
        }
        let report = sync_once(&mut replica, &server, false, output)?;
        output.line(format_args!(
            "Erased data of {count} changes on the server and in this file; the other devices follow \
             at their next sync. Backups of the server keep what they have."
        ));
        sync::describe(replica.path(), &report, output);
        return output.json(&json!({"erased": count, "sync": report.to_json()}));
    }
    anyhow::bail!("other devices send faster than this one receives: try again")
}

fn target(arguments: &VaultRepairArgs) -> Option<ErasureTarget<'_>> {
    let column = arguments.column.as_deref();
    match (&arguments.erase[..], column) {
        ([table, key @ ..], Some(column)) => Some(ErasureTarget::Cell { table, key, column }),
        ([table, key @ ..], None) => Some(ErasureTarget::Row { table, key }),
        _ if arguments.refused => Some(ErasureTarget::Refused),
        _ if arguments.again => Some(ErasureTarget::Again),
        _ => None,
    }
}

/// What the last sync found that can be repaired.
fn print_status(replica: &Replica, output: Printer) -> anyhow::Result<()> {
    let count = |target| -> anyhow::Result<usize> {
        let requests = replica.erasure_requests(target)?;
        Ok(requests.iter().map(|request| request.erasures.len()).sum())
    };
    let (refused, again) = (count(ErasureTarget::Refused)?, count(ErasureTarget::Again)?);
    output.line(format_args!(
        "{refused} changes cannot be read by any device: --refused erases them"
    ));
    output.line(format_args!(
        "{again} erased changes are back on the server, from a backup: --again erases them again"
    ));
    output.line(format_args!("--erase TABLE KEY --column COLUMN erases earlier values"));
    output.json(&json!({"refused": refused, "again": again}))
}

/// Asks whether it is meant, and for the password.
fn confirm(
    arguments: &VaultRepairArgs,
    replica: &Replica,
    count: usize,
    output: Printer,
) -> anyhow::Result<Zeroizing<String>> {
    if !arguments.yes {
        anyhow::ensure!(
            std::io::stdin().is_terminal(),
            "this cannot be taken back: say --yes if it is meant"
        );
        output.line(format_args!(
            "This erases data of {count} changes from the server and from all devices. It cannot be \
             undone. Type \"erase\" to go on:"
        ));
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).context("standard input")?;
        anyhow::ensure!(line.trim() == "erase", "nothing was erased");
    }
    let login = replica.remote()?.map(|remote| remote.login).unwrap_or_default();
    arguments.password.read(&format!("Password for {login}: "))
}

fn send(
    server: &ServerAddress,
    token: &str,
    requests: Vec<EraseRequest>,
    password: &str,
) -> replica::Result<()> {
    let http = server.http();
    for mut request in requests {
        password.clone_into(&mut request.password);
        let sent: replica::Result<PushResponse> =
            http.post("/v1/sync/erase", Some(token), &request);
        request.password.zeroize();
        sent?;
    }
    Ok(())
}
