//! Implements `warren account show`: shows an account and, with its password, the contents of its
//! vault.

use std::path::Path;

use accounts::{AccountSummary, Login, Password, VaultId};
use clap::Args;
use doctor::counted;
use engine::clock::now_ms;
use engine::wal_bytes;
use indicatif::HumanCount;
use protocol::DeviceInfo;
use serde::Serialize;
use sync_store::Vaults;
use utoipa::ToSchema;

use super::quota::{self, AccountQuota};
use crate::args::data_dir::{DataDir, StorageArgs};
use crate::args::password::PasswordSource;
use crate::commands::device;
use crate::output::time_span::ago;
use crate::output::{Printer, format_time};

/// Show an account: limits, devices and size.
///
/// With --with-vault or --password-file, also shows the contents of its vault.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren account show ada\n  \
                        warren account show ada --with-vault\n  \
                        warren account show ada --password-file secret.txt --json")]
pub(crate) struct AccountShowArgs {
    /// Account to show.
    login: String,
    /// Also show the contents of the vault. Prompts for the password.
    #[arg(long)]
    with_vault: bool,
    #[command(flatten)]
    password: PasswordSource,
    #[command(flatten)]
    place: StorageArgs,
}

/// The output of `warren account show`.
#[derive(Serialize, ToSchema)]
pub(crate) struct AccountShowOutput {
    /// The login of the account.
    login: String,
    /// The id of the account's vault.
    vault_id: String,
    /// The time at which the account was created, in milliseconds since 1970.
    created_ms: u64,
    /// The number of devices that are registered with the account.
    devices_count: u64,
    /// The size of the vault's file with its WAL in bytes; null before the first device is
    /// registered, and in PostgreSQL.
    file_bytes: Option<u64>,
    /// The number of the account's sub-vaults.
    sub_vaults_count: usize,
    /// The account's own limits, which replace the server's defaults.
    limits: AccountQuota,
    /// The contents of the vault; null if it was not opened with the password.
    vault: Option<VaultContents>,
}

/// The contents of a vault that was opened with the password.
#[derive(Serialize, ToSchema)]
pub(crate) struct VaultContents {
    /// The number of messages in the vault.
    messages_count: u64,
    /// The size of all message contents in bytes.
    content_bytes: u64,
    /// The newest sequence number in the vault; 0 if it has no messages.
    cursor: u64,
    /// The registered devices, in order of registration.
    devices: Vec<DeviceInfo>,
}

pub(crate) fn run(arguments: &AccountShowArgs, output: Printer) -> anyhow::Result<()> {
    let login = Login::parse(&arguments.login)?;
    let data_dir = DataDir::open(&arguments.place)?;
    let account = data_dir.accounts.find(&login)?;
    let file_bytes = match &data_dir.vaults {
        Vaults::Files(_) => file_bytes(&account.vault, &arguments.place.data.data)?,
        Vaults::Postgres(_) => None,
    };
    let sub_vaults_count = data_dir.accounts.sub_vaults(account.account)?.len();
    describe(&account, file_bytes, output);
    if sub_vaults_count > 0 {
        let sub_vaults = counted(sub_vaults_count as u64, "sub-vault", "sub-vaults");
        output.line(format_args!("{sub_vaults}"));
    }
    let opens_vault = arguments.with_vault || arguments.password.password_file.is_some();
    let vault = opens_vault.then(|| describe_vault(&data_dir, &login, arguments, output));
    output.json(&AccountShowOutput {
        login: login.to_string(),
        vault_id: account.vault.to_string(),
        created_ms: account.created_ms,
        devices_count: account.devices_count,
        file_bytes,
        sub_vaults_count,
        limits: account.limits.into(),
        vault: vault.transpose()?,
    })
}

/// Returns the size of the vault's file with its WAL; `None` before the first device is registered,
/// and in PostgreSQL.
fn file_bytes(vault: &VaultId, data: &Path) -> anyhow::Result<Option<u64>> {
    let path = vault.path(data);
    match path.metadata() {
        Ok(file) => Ok(Some(file.len() + wal_bytes(&path))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn describe(account: &AccountSummary, file_bytes: Option<u64>, output: Printer) {
    let (login, vault) = (&account.login, &account.vault);
    output
        .line(format_args!("{login}, created {}, vault {vault}", format_time(account.created_ms)));
    output.line(format_args!("{}", quota::describe(account.limits)));
    let devices = counted(account.devices_count, "device", "devices");
    match file_bytes {
        Some(bytes) => {
            output
                .line(format_args!("{devices}; the vault's file has {} bytes", HumanCount(bytes)));
        }
        None => output.line(format_args!("{devices}; no vault file")),
    }
}

/// Prints and returns the contents of the vault, which requires the password.
fn describe_vault(
    data_dir: &DataDir,
    login: &Login,
    arguments: &AccountShowArgs,
    output: Printer,
) -> anyhow::Result<VaultContents> {
    let password = arguments.password.read(&format!("Password for {login}: "))?;
    let unlocked = data_dir.accounts.unlock(login, &Password::parse(password)?)?;
    let vault = data_dir.vaults.open(&unlocked)?;
    let state = data_dir.wait(vault.summary())?;
    let list = device::list_from_data_dir(data_dir, &unlocked)?;
    let messages = counted(state.fingerprint.count, "message", "messages");
    let bytes = HumanCount(state.bytes);
    output.line(format_args!("{messages}, {bytes} bytes, cursor {}", state.cursor));
    let now_ms = now_ms();
    for device in &list.devices {
        let seen = ago(device.last_seen_ms, now_ms);
        let (id, name) = (&device.device_id, &device.name);
        let (unsent, behind) =
            (HumanCount(device.unsent_count), HumanCount(device.pending_download_count));
        output.line(format_args!(
            "{id}  {name:24} last seen {seen}, {unsent} unsent, {behind} to receive"
        ));
    }
    Ok(VaultContents {
        messages_count: state.fingerprint.count,
        content_bytes: state.bytes,
        cursor: state.cursor,
        devices: list.devices,
    })
}
