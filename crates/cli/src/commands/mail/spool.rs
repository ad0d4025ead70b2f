//! Implements `warren mail spool`: deliveries that wait, for the operator.

use std::collections::HashMap;

use accounts::VaultId;
use clap::{Args, Subcommand};
use doctor::counted;
use engine::clock::now_ms;
use indicatif::DecimalBytes;
use mail_store::MailSpool;
use protocol::ErrorCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::args::data_dir::{DataDir, DataDirArgs};
use crate::output::{CommandError, Printer, format_time};

/// Show the mail that waits, and remove deliveries that were set aside.
#[derive(Subcommand)]
pub(crate) enum MailSpoolCommand {
    List(MailSpoolListArgs),
    Remove(MailSpoolRemoveArgs),
}

/// List the mail that waits for each account, and what was set aside.
///
/// Mail waits until the next command that opens the account's mail, such as `warren mail list`,
/// files it. A delivery is set aside if it cannot be opened with the account's key.
#[derive(Args)]
#[command(after_help = "Example:\n  warren mail spool list --data /srv/warren")]
pub(crate) struct MailSpoolListArgs {
    #[command(flatten)]
    data: DataDirArgs,
}

/// Delete a delivery that was set aside. Cannot be undone.
#[derive(Args)]
#[command(after_help = "Example:\n  warren mail spool remove 1795924859000000 --yes")]
pub(crate) struct MailSpoolRemoveArgs {
    /// Number of the delivery, from `warren mail spool list`.
    delivery: i64,
    /// Confirm the deletion (required).
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    data: DataDirArgs,
}

/// The output of `warren mail spool list`.
#[derive(Serialize, ToSchema)]
pub(crate) struct MailSpoolOutput {
    /// The accounts for which mail waits.
    waiting: Vec<WaitingMailItem>,
    /// The deliveries that could not be opened.
    set_aside: Vec<SetAsideItem>,
}

/// The mail that waits for an account.
#[derive(Serialize, ToSchema)]
pub(crate) struct WaitingMailItem {
    /// The login of the account; null if it was removed.
    login: Option<String>,
    /// The number of deliveries.
    deliveries_count: u64,
    /// Their size in bytes, compressed and sealed.
    sealed_bytes: u64,
    /// The time at which the oldest arrived, in milliseconds since 1970.
    oldest_ms: u64,
}

/// A delivery that could not be opened.
#[derive(Serialize, ToSchema)]
pub(crate) struct SetAsideItem {
    /// The number of the delivery.
    delivery_id: i64,
    /// The login of the account; null if it was removed.
    login: Option<String>,
    /// The size of the delivery in bytes, compressed and sealed.
    sealed_bytes: u64,
    /// The code of the failure.
    reason: String,
    /// When it was set aside, in milliseconds since 1970.
    set_aside_ms: u64,
}

/// The output of `warren mail spool remove`.
#[derive(Serialize, ToSchema)]
pub(crate) struct MailSpoolRemoveOutput {
    /// The number of the delivery that was removed.
    delivery_id: i64,
}

pub(super) fn run(command: &MailSpoolCommand, output: Printer) -> anyhow::Result<()> {
    match command {
        MailSpoolCommand::List(arguments) => list(arguments, output),
        MailSpoolCommand::Remove(arguments) => remove(arguments, output),
    }
}

fn list(arguments: &MailSpoolListArgs, output: Printer) -> anyhow::Result<()> {
    let data_dir = DataDir::open_accounts_only(&arguments.data)?;
    let spool = data_dir.open_spool()?;
    let logins = logins(&data_dir)?;
    let listed = MailSpoolOutput {
        waiting: waiting(&spool, &logins)?,
        set_aside: set_aside(&spool, &logins)?,
    };
    print(&listed, output);
    output.json(&listed)
}

/// Returns the logins of the accounts that have mail, by their mail vaults.
fn logins(data_dir: &DataDir) -> anyhow::Result<HashMap<VaultId, String>> {
    let mut logins = HashMap::new();
    for account in data_dir.accounts.list()? {
        if let Some(row) = data_dir.accounts.mail_vault(account.account)? {
            logins.insert(row.vault, account.login.to_string());
        }
    }
    Ok(logins)
}

fn waiting(
    spool: &MailSpool,
    logins: &HashMap<VaultId, String>,
) -> anyhow::Result<Vec<WaitingMailItem>> {
    let mut items = Vec::new();
    let mut after = None;
    loop {
        let page = spool.backlogs(after.as_ref())?;
        let Some(last) = page.last() else { return Ok(items) };
        after = Some(last.vault.clone());
        items.extend(page.into_iter().map(|found| {
            let backlog = found.backlog;
            WaitingMailItem {
                login: logins.get(&found.vault).cloned(),
                deliveries_count: backlog.count,
                sealed_bytes: backlog.bytes,
                oldest_ms: backlog.oldest_ms().unwrap_or_default(),
            }
        }));
    }
}

fn set_aside(
    spool: &MailSpool,
    logins: &HashMap<VaultId, String>,
) -> anyhow::Result<Vec<SetAsideItem>> {
    let mut items = Vec::new();
    let mut after = 0;
    loop {
        let page = spool.set_aside_deliveries(after)?;
        let Some(last) = page.last() else { return Ok(items) };
        after = last.seq;
        items.extend(page.into_iter().map(|found| SetAsideItem {
            delivery_id: found.seq,
            login: logins.get(&found.vault).cloned(),
            sealed_bytes: found.bytes,
            reason: found.reason,
            set_aside_ms: found.set_aside_ms,
        }));
    }
}

fn print(listed: &MailSpoolOutput, output: Printer) {
    const REMOVED: &str = "(removed account)";
    if listed.waiting.is_empty() {
        output.line(format_args!("no mail waits"));
    }
    for item in &listed.waiting {
        let login = item.login.as_deref().unwrap_or(REMOVED);
        let messages = counted(item.deliveries_count, "message", "messages");
        let (bytes, oldest) = (DecimalBytes(item.sealed_bytes), format_time(item.oldest_ms));
        let minutes = now_ms().saturating_sub(item.oldest_ms) / 60_000;
        output.line(format_args!(
            "{login:24} {messages:>15}  {bytes}  oldest {oldest} ({minutes} min ago)"
        ));
    }
    for item in &listed.set_aside {
        let login = item.login.as_deref().unwrap_or(REMOVED);
        let (delivery, reason) = (item.delivery_id, &item.reason);
        let (bytes, time) = (DecimalBytes(item.sealed_bytes), format_time(item.set_aside_ms));
        output.line(format_args!("set aside: {delivery} for {login}, {bytes}, {time}: {reason}"));
    }
}

fn remove(arguments: &MailSpoolRemoveArgs, output: Printer) -> anyhow::Result<()> {
    let delivery = arguments.delivery;
    let message = || format!("this permanently deletes the delivery {delivery}");
    anyhow::ensure!(arguments.yes, CommandError::new(ErrorCode::ConfirmationRequired, message()));
    let data_dir = DataDir::open_accounts_only(&arguments.data)?;
    let is_removed = data_dir.open_spool()?.remove_set_aside(delivery).wait()?;
    let missing = || {
        let message = format!("no delivery with the number {delivery} was set aside");
        CommandError::new(ErrorCode::NotFound, message)
    };
    anyhow::ensure!(is_removed, missing());
    output.line(format_args!("removed delivery {delivery}"));
    output.json(&MailSpoolRemoveOutput { delivery_id: delivery })
}
