//! Implements `warren erase`: erases unwanted data from an account's vault, and from the files of
//! all its devices.

use std::io::{BufRead, IsTerminal};

use anyhow::Context;
use clap::Args;
use doctor::counted;
use protocol::{EraseRequest, ErrorCode, PushResponse};
use replica::{ErasureTarget, Error, Replica, SyncReport};
use serde::Serialize;
use utoipa::ToSchema;
use zeroize::{Zeroize, Zeroizing};

use crate::args::key_args::TrackedFileArgs;
use crate::args::password::PasswordSource;
use crate::commands::sync;
use crate::commands::sync::sync_once::{ServerAddress, sync_once};
use crate::output::{CommandError, Printer};

/// Erase earlier values or deleted rows from the server and all devices.
///
/// With --column, erases every earlier value of one column of a row. The current value stays, so
/// change it first. Without --column, erases everything that was recorded about a deleted row,
/// including its key. Other devices erase it at their next sync. Cannot be undone. Backups of the
/// server and copies of the devices' files keep their data. Prompts for the account's password.
///
/// Without a row, --rejected or --again, erases nothing and shows how many changes --rejected and
/// --again would erase.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    sqlite3 notes.db \"UPDATE note SET text = '' WHERE id = 5\"  (replace the current value)\n  \
    warren erase notes.db note 5 --column text                 (then erase earlier values)\n  \
    warren erase notes.db --again                              (after a backup was restored)")]
pub(crate) struct EraseArgs {
    #[command(flatten)]
    pub(crate) tracked: TrackedFileArgs,
    /// Table of the row to erase.
    #[arg(requires = "key")]
    table: Option<String>,
    /// Primary key of the row, one argument per column, as plain text or as a SQL literal.
    #[arg(allow_negative_numbers = true)]
    key: Vec<String>,
    /// Erase only the earlier values of this column.
    #[arg(long, requires = "key")]
    column: Option<String>,
    /// Erase changes that this device rejected because it cannot read them. `warren status` counts
    /// them.
    #[arg(long, conflicts_with = "table")]
    rejected: bool,
    /// Erase data again that a restored backup brought back to the server.
    #[arg(long, conflicts_with_all = ["table", "rejected"])]
    again: bool,
    /// Skip the confirmation prompt.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    password: PasswordSource,
}

/// The output of `warren erase`, which depends on the arguments.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum EraseOutput {
    /// The output with a row or an option: the result of erasing.
    Erased {
        /// The number of changes of which data was erased.
        erased_count: usize,
        /// The sync that followed; null if there was nothing to erase.
        sync: Option<Box<SyncReport>>,
    },
    /// The output without a row or an option: the changes that can be erased.
    Erasable {
        /// The number of changes that this device cannot read; `--rejected` erases them.
        rejected_count: usize,
        /// The number of erased changes that a restored backup brought back to the server;
        /// `--again` erases them again.
        unerased_count: usize,
    },
}

/// The maximum number of attempts; an attempt fails if another device sends a change after this one
/// has synced.
const TRIES_MAX: u32 = 5;

pub(crate) fn run(arguments: &EraseArgs, output: Printer) -> anyhow::Result<()> {
    let mut replica = arguments.tracked.open()?;
    let Some(target) = target(arguments) else { return print_status(&replica, output) };
    let server = ServerAddress::of(&replica)?;
    let mut password: Option<Zeroizing<String>> = None;
    for _ in 0..TRIES_MAX {
        sync_once(&mut replica, &server, false, output)?;
        let requests = replica.erasure_requests(target)?;
        let count: usize = requests.iter().map(|request| request.erasures.len()).sum();
        if count == 0 {
            output.line(format_args!("Nothing to erase."));
            return output.json(&EraseOutput::Erased { erased_count: 0, sync: None });
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
            "Erased data of {} on the server and in this file. Other devices erase it at their \
             next sync. Backups of the server still contain it.",
            counted(count as u64, "change", "changes")
        ));
        sync::describe(replica.path(), &report, output);
        return output
            .json(&EraseOutput::Erased { erased_count: count, sync: Some(Box::new(report)) });
    }
    let message = "other devices are sending faster than this one can receive";
    anyhow::bail!(CommandError::new(ErrorCode::StaleCursor, message).with_hint("try again"))
}

fn target(arguments: &EraseArgs) -> Option<ErasureTarget<'_>> {
    let column = arguments.column.as_deref();
    let key = &arguments.key[..];
    match (arguments.table.as_deref(), column) {
        (Some(table), Some(column)) => Some(ErasureTarget::Cell { table, key, column }),
        (Some(table), None) => Some(ErasureTarget::Row { table, key }),
        _ if arguments.rejected => Some(ErasureTarget::Rejected),
        _ if arguments.again => Some(ErasureTarget::Again),
        _ => None,
    }
}

/// Prints the number of changes that can be erased, as of the last sync.
fn print_status(replica: &Replica, output: Printer) -> anyhow::Result<()> {
    let count = |target| -> anyhow::Result<usize> {
        let requests = replica.erasure_requests(target)?;
        Ok(requests.iter().map(|request| request.erasures.len()).sum())
    };
    let (rejected, again) = (count(ErasureTarget::Rejected)?, count(ErasureTarget::Again)?);
    output.line(format_args!(
        "unreadable on this device: {} (to erase, pass --rejected)",
        counted(rejected as u64, "change", "changes")
    ));
    output.line(format_args!(
        "erased, but back on the server from a backup: {} (to erase again, pass --again)",
        counted(again as u64, "change", "changes")
    ));
    output.line(format_args!(
        "to erase earlier values, run `warren erase FILE TABLE KEY --column COLUMN`"
    ));
    output.json(&EraseOutput::Erasable { rejected_count: rejected, unerased_count: again })
}

/// Asks for a confirmation, and for the password.
fn confirm(
    arguments: &EraseArgs,
    replica: &Replica,
    count: usize,
    output: Printer,
) -> anyhow::Result<Zeroizing<String>> {
    if !arguments.yes {
        let changes = counted(count as u64, "change", "changes");
        let message = || format!("this erases data of {changes} and cannot be undone");
        anyhow::ensure!(
            std::io::stdin().is_terminal(),
            CommandError::new(ErrorCode::ConfirmationRequired, message())
        );
        output.line(format_args!(
            "This erases data of {changes} from the server and from all devices. It cannot be \
             undone. Type \"erase\" to continue:"
        ));
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).context("cannot read standard input")?;
        anyhow::ensure!(
            line.trim() == "erase",
            CommandError::new(ErrorCode::ConfirmationRequired, "not confirmed; nothing was erased")
        );
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
