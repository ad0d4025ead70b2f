//! Implements `warren account`: manages accounts for the operator, directly in the data directory.
//!
//! The commands also work while a server is running: both read the accounts file at every call.

pub(crate) mod quota;
pub(crate) mod recovery_phrase;
pub(crate) mod show;

use std::path::PathBuf;

use accounts::{Login, Password};
use clap::{Args, Subcommand};
use doctor::counted;
use engine::clock::now_ms;
use protocol::ErrorCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::args::data_dir::{DataDir, DataDirArgs, StorageArgs};
use crate::args::password::{self, PasswordSource};
use crate::output::{CommandError, Printer, format_time};

/// Create, list, limit and remove accounts in a data directory.
#[derive(Subcommand)]
pub(crate) enum AccountCommand {
    Add(AccountAddArgs),
    List(AccountListArgs),
    Show(show::AccountShowArgs),
    Quota(quota::AccountQuotaArgs),
    Remove(AccountRemoveArgs),
    Password(AccountPasswordArgs),
    RecoveryPhrase(recovery_phrase::AccountRecoveryPhraseArgs),
}

/// Create an account with an empty vault.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren account add ada\n  \
                        warren account add ada --password-file secret.txt --data /srv/warren")]
pub(crate) struct AccountAddArgs {
    /// Login of the new account.
    login: String,
    #[command(flatten)]
    password: PasswordSource,
    #[command(flatten)]
    place: StorageArgs,
}

/// List the accounts in a data directory.
#[derive(Args)]
#[command(after_help = "Example:\n  warren account list --json")]
pub(crate) struct AccountListArgs {
    #[command(flatten)]
    data: DataDirArgs,
}

/// Delete an account, its devices and its vault. Cannot be undone.
#[derive(Args)]
#[command(after_help = "Example:\n  warren account remove ada --yes")]
pub(crate) struct AccountRemoveArgs {
    /// Account to delete.
    login: String,
    /// Confirm the deletion (required). Only a backup can bring the vault back.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    place: StorageArgs,
}

/// Change an account's password.
///
/// If the password is lost, the account recovery phrase replaces it. Devices stay signed in unless
/// you pass --revoke-devices.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren account password ada\n  \
                        warren account password ada --revoke-devices\n  \
                        warren account password ada --password-file old.txt --new-password-file new.txt\n  \
                        warren account password ada --recovery-phrase-file phrase.txt")]
pub(crate) struct AccountPasswordArgs {
    /// Account to change.
    login: String,
    #[command(flatten)]
    password: PasswordSource,
    /// Read the account recovery phrase from this file, in place of the current password.
    #[arg(long, value_name = "FILE", conflicts_with = "password_file")]
    recovery_phrase_file: Option<PathBuf>,
    /// Read the new password from the first line of this file instead of prompting.
    #[arg(long, value_name = "FILE")]
    new_password_file: Option<PathBuf>,
    /// Revoke all devices of the account. Each must sign in again with the new password.
    #[arg(long)]
    revoke_devices: bool,
    #[command(flatten)]
    place: StorageArgs,
}

/// The output of `warren account add`: the new account.
#[derive(Serialize, ToSchema)]
pub(crate) struct AccountAddOutput {
    /// The login of the account.
    login: String,
    /// The id of the account's vault.
    vault_id: String,
}

/// An account in the output of `warren account list`.
#[derive(Serialize, ToSchema)]
pub(crate) struct AccountListItem {
    /// The login of the account.
    login: String,
    /// The id of the account's vault.
    vault_id: String,
    /// The number of devices that are registered with the account.
    devices_count: u64,
    /// The time at which the account was created, in milliseconds since 1970.
    created_ms: u64,
}

/// The output of `warren account remove`: the deleted account and its vaults.
#[derive(Serialize, ToSchema)]
pub(crate) struct AccountRemoveOutput {
    /// The login of the account.
    login: String,
    /// The id of the account's vault.
    vault_id: String,
    /// The ids of the account's sub-vaults and of its mail vault.
    sub_vault_ids: Vec<String>,
}

/// The output of `warren account password`.
#[derive(Serialize, ToSchema)]
pub(crate) struct AccountPasswordOutput {
    /// The login of the account.
    login: String,
    /// The number of devices that were revoked; 0 without `--revoke-devices`.
    revoked_count: usize,
}

pub(crate) fn run(command: AccountCommand, output: Printer) -> anyhow::Result<()> {
    match command {
        AccountCommand::Add(arguments) => add(&arguments, output),
        AccountCommand::List(arguments) => list(&arguments, output),
        AccountCommand::Show(arguments) => show::run(&arguments, output),
        AccountCommand::Quota(arguments) => quota::run(&arguments, output),
        AccountCommand::Remove(arguments) => remove(&arguments, output),
        AccountCommand::Password(arguments) => change_password(&arguments, output),
        AccountCommand::RecoveryPhrase(arguments) => recovery_phrase::run(&arguments, output),
    }
}

fn add(arguments: &AccountAddArgs, output: Printer) -> anyhow::Result<()> {
    let login = Login::parse(&arguments.login)?;
    let prompt = format!("Password for {login}: ");
    let password = Password::parse(arguments.password.read_new(&prompt)?)?;
    let is_new = arguments.place.data.existing_directory().is_err();
    let data_dir = DataDir::open_or_create(&arguments.place)?;
    let unlocked = data_dir.accounts.add(&login, &password, now_ms())?;
    data_dir.vaults.open(&unlocked)?;
    output.line(format_args!("created account {login}"));
    if is_new {
        // A server that uses another data directory does not have this account.
        let data = data_dir.path.display();
        output.line(format_args!(
            "  created the data directory {data} (to use another one, pass --data)"
        ));
    }
    output
        .json(&AccountAddOutput { login: login.to_string(), vault_id: unlocked.vault.to_string() })
}

fn list(arguments: &AccountListArgs, output: Printer) -> anyhow::Result<()> {
    let accounts = DataDir::open_accounts_only(&arguments.data)?.accounts.list()?;
    for account in &accounts {
        let created = format_time(account.created_ms);
        let devices = counted(account.devices_count, "device", "devices");
        let login = account.login.as_str();
        output.line(format_args!("{login:24} {devices:>12}   created {created}"));
    }
    let items = accounts.iter().map(|account| AccountListItem {
        login: account.login.to_string(),
        vault_id: account.vault.to_string(),
        devices_count: account.devices_count,
        created_ms: account.created_ms,
    });
    output.json(&items.collect::<Vec<_>>())
}

fn remove(arguments: &AccountRemoveArgs, output: Printer) -> anyhow::Result<()> {
    let login = Login::parse(&arguments.login)?;
    let message = || format!("this permanently deletes the account {login} and its vault");
    anyhow::ensure!(arguments.yes, CommandError::new(ErrorCode::ConfirmationRequired, message()));
    let data_dir = DataDir::open(&arguments.place)?;
    let vaults = data_dir.accounts.remove(&login)?;
    for vault in &vaults {
        data_dir.remove_vault(vault)?;
    }
    let count = vaults.len() as u64 - 1;
    let sub_vaults = counted(count, "sub-vault", "sub-vaults");
    let others = if count > 0 { format!(" and {sub_vaults}") } else { String::new() };
    output.line(format_args!("removed account {login} and its vault{others}"));
    output.json(&AccountRemoveOutput {
        login: login.to_string(),
        vault_id: vaults[0].to_string(),
        sub_vault_ids: vaults[1..].iter().map(ToString::to_string).collect(),
    })
}

fn change_password(arguments: &AccountPasswordArgs, output: Printer) -> anyhow::Result<()> {
    let login = Login::parse(&arguments.login)?;
    let data_dir = DataDir::open(&arguments.place)?;
    let unlocked = if let Some(file) = &arguments.recovery_phrase_file {
        recovery_phrase::unlock(&data_dir, &login, file)?
    } else {
        let old = Password::parse_any_length(arguments.password.read("Current password: ")?)?;
        data_dir.accounts.unlock(&login, &old)?
    };
    let new = arguments.new_password_file.as_deref();
    let new = Password::parse(password::read_new(new, "New password: ")?)?;
    let revoked_count = if arguments.revoke_devices {
        let revoked = data_dir.accounts.replace_password(&unlocked, &new, None)?;
        let count = revoked.len();
        data_dir.wait(data_dir.vaults.open(&unlocked)?.remove_devices(revoked))?;
        count
    } else {
        data_dir.accounts.reset_password(&unlocked, &new)?;
        0
    };
    output.line(format_args!("changed the password of {login}"));
    if arguments.revoke_devices {
        let devices = counted(revoked_count as u64, "device", "devices");
        output.line(format_args!("revoked {devices}"));
    }
    output.json(&AccountPasswordOutput { login: login.to_string(), revoked_count })
}
