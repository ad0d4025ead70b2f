//! Implements `warren mail address`: the mail addresses of accounts.

use accounts::{Login, MailAddress};
use clap::{Args, Subcommand};
use serde::Serialize;
use utoipa::ToSchema;

use super::mail_account::MailAccountArgs;
use crate::args::data_dir::{DataDir, DataDirArgs};
use crate::output::Printer;

/// Add, list and remove the mail addresses of accounts.
#[derive(Subcommand)]
pub(crate) enum MailAddressCommand {
    Add(MailAddressAddArgs),
    List(MailAddressListArgs),
    Remove(MailAddressRemoveArgs),
}

/// Give an account a mail address.
///
/// Mail for name+tag@domain goes to the account with name@domain. The first address of an account
/// sets up its mail, which needs the account's password.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren mail address add ada@example.org --login ada\n  \
                        warren mail address add info@example.org --login ada --data /srv/warren")]
pub(crate) struct MailAddressAddArgs {
    /// Address that the account receives mail for.
    address: String,
    #[command(flatten)]
    account: MailAccountArgs,
}

/// List mail addresses and the accounts that they belong to.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren mail address list\n  \
                        warren mail address list --login ada --json")]
pub(crate) struct MailAddressListArgs {
    /// List only the addresses of this account.
    #[arg(long)]
    login: Option<String>,
    #[command(flatten)]
    data: DataDirArgs,
}

/// Remove a mail address from its account. Mail that has arrived stays.
#[derive(Args)]
#[command(after_help = "Example:\n  warren mail address remove info@example.org")]
pub(crate) struct MailAddressRemoveArgs {
    /// Address to remove.
    address: String,
    #[command(flatten)]
    data: DataDirArgs,
}

/// A mail address in the output of `warren mail address add` and `list`.
#[derive(Serialize, ToSchema)]
pub(crate) struct MailAddressOutput {
    /// The address, in lower case.
    address: String,
    /// The login of the account that it belongs to.
    login: String,
}

/// The output of `warren mail address remove`.
#[derive(Serialize, ToSchema)]
pub(crate) struct MailAddressRemoveOutput {
    /// The address that was removed.
    address: String,
}

pub(super) fn run(command: &MailAddressCommand, output: Printer) -> anyhow::Result<()> {
    match command {
        MailAddressCommand::Add(arguments) => add(arguments, output),
        MailAddressCommand::List(arguments) => list(arguments, output),
        MailAddressCommand::Remove(arguments) => remove(arguments, output),
    }
}

fn add(arguments: &MailAddressAddArgs, output: Printer) -> anyhow::Result<()> {
    let address = MailAddress::parse(&arguments.address)?;
    let login = Login::parse(&arguments.account.login)?;
    let data_dir = DataDir::open_accounts_only(&arguments.account.data)?;
    let account = data_dir.accounts.find(&login)?.account;
    if data_dir.accounts.mail_vault(account)?.is_none() {
        let unlocked = data_dir.unlock(login.as_str(), &arguments.account.password)?;
        arguments.account.set_up(&data_dir, &unlocked, output)?;
    }
    data_dir.accounts.add_mail_address(&login, &address)?;
    output.line(format_args!("mail for {address} goes to account {login}"));
    output.json(&MailAddressOutput { address: address.to_string(), login: login.to_string() })
}

fn list(arguments: &MailAddressListArgs, output: Printer) -> anyhow::Result<()> {
    let login = arguments.login.as_deref().map(Login::parse).transpose()?;
    let data_dir = DataDir::open_accounts_only(&arguments.data)?;
    let addresses = data_dir.accounts.mail_addresses(login.as_ref())?;
    for (address, login) in &addresses {
        output.line(format_args!("{:40} {login}", address.as_str()));
    }
    let item = |(address, login): &(MailAddress, Login)| MailAddressOutput {
        address: address.to_string(),
        login: login.to_string(),
    };
    output.json(&addresses.iter().map(item).collect::<Vec<_>>())
}

fn remove(arguments: &MailAddressRemoveArgs, output: Printer) -> anyhow::Result<()> {
    let address = MailAddress::parse(&arguments.address)?;
    DataDir::open_accounts_only(&arguments.data)?.accounts.remove_mail_address(&address)?;
    output.line(format_args!("removed {address}"));
    output.json(&MailAddressRemoveOutput { address: address.to_string() })
}
