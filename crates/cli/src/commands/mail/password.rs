//! Implements `warren mail password`: passwords for mail programs, which open an account's mail only.

use accounts::{Login, MailPasswordId};
use clap::{Args, Subcommand};
use engine::clock::now_ms;
use serde::Serialize;
use utoipa::ToSchema;

use super::mail_account::MailAccountArgs;
use crate::args::data_dir::{DataDir, DataDirArgs};
use crate::output::{EscapedText, Printer, format_time};

/// Create, list and remove passwords that open an account's mail only.
#[derive(Subcommand)]
pub(crate) enum MailPasswordCommand {
    Add(MailPasswordAddArgs),
    List(MailPasswordListArgs),
    Remove(MailPasswordRemoveArgs),
}

/// Create a password for one mail program, and show it once.
///
/// The password opens the account's mail and nothing else: no synced data, and no settings of the
/// account. A mail program that is lost then costs only its own password. Needs the account's own
/// password.
#[derive(Args)]
#[command(after_help = "Example:\n  warren mail password add --login ada --name phone")]
pub(crate) struct MailPasswordAddArgs {
    /// Name by which you recognize the mail program. The operator cannot read it.
    #[arg(long, default_value = "", hide_default_value = true)]
    name: String,
    #[command(flatten)]
    account: MailAccountArgs,
}

/// List the passwords that open an account's mail, without the passwords themselves.
#[derive(Args)]
#[command(after_help = "Example:\n  warren mail password list --login ada")]
pub(crate) struct MailPasswordListArgs {
    #[command(flatten)]
    account: MailAccountArgs,
}

/// Remove a password, which then opens nothing any more. Needs no password.
#[derive(Args)]
#[command(after_help = "Example:\n  warren mail password remove 0f1e2d3c4b5a6978 --login ada")]
pub(crate) struct MailPasswordRemoveArgs {
    /// Id of the password, from `warren mail password list`.
    password_id: String,
    /// Account that the password belongs to.
    #[arg(long)]
    login: String,
    #[command(flatten)]
    data: DataDirArgs,
}

/// The output of `warren mail password add`.
#[derive(Serialize, ToSchema)]
pub(crate) struct MailPasswordAddOutput<'a> {
    /// The id of the password.
    password_id: String,
    /// The password for the mail program. It is not stored, and not shown again.
    password: &'a str,
}

/// A password in the output of `warren mail password list`.
#[derive(Serialize, ToSchema)]
pub(crate) struct MailPasswordListItem {
    /// The id of the password.
    password_id: String,
    /// The name of the mail program; empty if none was given.
    name: String,
    /// When the password was created, in milliseconds since 1970.
    created_ms: u64,
}

/// The output of `warren mail password remove`.
#[derive(Serialize, ToSchema)]
pub(crate) struct MailPasswordRemoveOutput {
    /// The id of the password that was removed.
    password_id: String,
}

pub(super) fn run(command: &MailPasswordCommand, output: Printer) -> anyhow::Result<()> {
    match command {
        MailPasswordCommand::Add(arguments) => add(arguments, output),
        MailPasswordCommand::List(arguments) => list(arguments, output),
        MailPasswordCommand::Remove(arguments) => remove(arguments, output),
    }
}

fn add(arguments: &MailPasswordAddArgs, output: Printer) -> anyhow::Result<()> {
    let account = &arguments.account;
    let data_dir = DataDir::open_accounts_only(&account.data)?;
    let unlocked = data_dir.unlock(&account.login, &account.password)?;
    let added = data_dir.accounts.add_mail_password(&unlocked, &arguments.name, now_ms())?;
    let text = added.password.to_text();
    output.line(format_args!("{}", *text));
    output.line(format_args!(
        "  This password opens the mail of {} and nothing else. It is not shown again.",
        unlocked.login
    ));
    output.json(&MailPasswordAddOutput { password_id: added.id.to_string(), password: &text })
}

fn list(arguments: &MailPasswordListArgs, output: Printer) -> anyhow::Result<()> {
    let (data_dir, unlocked) = arguments.account.unlock()?;
    let passwords = data_dir.accounts.mail_passwords(&unlocked.mail())?;
    for password in &passwords {
        let (time, name) = (format_time(password.created_ms), EscapedText::line(&password.name));
        output.line(format_args!("{}  {time}  {name}", password.id));
    }
    let items = passwords.into_iter().map(|password| MailPasswordListItem {
        password_id: password.id.to_string(),
        name: password.name,
        created_ms: password.created_ms,
    });
    output.json(&items.collect::<Vec<_>>())
}

fn remove(arguments: &MailPasswordRemoveArgs, output: Printer) -> anyhow::Result<()> {
    let (login, id) = (Login::parse(&arguments.login)?, &arguments.password_id);
    let data_dir = DataDir::open_accounts_only(&arguments.data)?;
    let account = data_dir.accounts.find(&login)?.account;
    data_dir.accounts.remove_mail_password(account, &id.parse::<MailPasswordId>()?)?;
    output.line(format_args!("removed password {id}"));
    output.json(&MailPasswordRemoveOutput { password_id: id.clone() })
}
