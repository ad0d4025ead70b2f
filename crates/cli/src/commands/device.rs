//! Implements `warren device`: manages the devices of an account, from one of them or in the data
//! directory.

use std::path::PathBuf;

use accounts::{DeviceId, DeviceRow, UnlockedAccount};
use anyhow::{bail, ensure};
use clap::{Args, Subcommand};
use doctor::counted;
use engine::clock::now_ms;
use protocol::{DeviceInfo, DeviceList, ErrorCode};
use replica::{Error, HttpTransport};
use serde::Serialize;
use utoipa::ToSchema;

use crate::args::data_dir::{DataDir, FileOrAccountArgs, StorageArgs};
use crate::args::key_args::FileKeyArgs;
use crate::args::password::PasswordSource;
use crate::output::time_span::TimeSpan;
use crate::output::{CommandError, Printer, format_time};

/// List and revoke the devices of an account.
#[derive(Subcommand)]
pub(crate) enum DeviceCommand {
    List(DeviceListArgs),
    Revoke(DeviceRevokeArgs),
}

/// List the devices of an account.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren device list a.db\n  \
                        warren device list a.db --inactive-for 90d\n  \
                        warren device list --login ada --data ./data")]
pub(crate) struct DeviceListArgs {
    #[command(flatten)]
    subject: FileOrAccountArgs,
    /// Show only devices that have not synced for this long, such as 90d (units: s, m, h, d, w). A
    /// device that has never synced counts from its registration.
    #[arg(long, value_name = "DURATION")]
    inactive_for: Option<TimeSpan>,
}

/// Revoke a device and every device it registered. Takes effect immediately.
///
/// With --inactive-for, revokes every device that has not synced for that long, except the device
/// that runs the command and devices that registered a device that is not revoked.
#[derive(Args)]
#[command(override_usage = "warren device revoke [OPTIONS] <DEVICE_ID> <FILE>\n       \
                            warren device revoke [OPTIONS] <DEVICE_ID> --login <LOGIN>\n       \
                            warren device revoke [OPTIONS] --inactive-for <DURATION> \
                            <FILE|--login <LOGIN>>")]
#[command(after_help = "Examples:\n  warren device revoke 0f3a5b7c9d1e2f40 a.db\n  \
                        warren device revoke 0f3a5b7c9d1e2f40 --login ada --data ./data\n  \
                        warren device revoke --inactive-for 90d a.db --yes")]
pub(crate) struct DeviceRevokeArgs {
    /// Id of the device to revoke (see `warren device list`), and a tracked file that syncs with
    /// the account.
    #[arg(value_names = ["DEVICE_ID", "FILE"], num_args = 0..=2)]
    #[arg(required_unless_present = "inactive_for")]
    targets: Vec<String>,
    /// Revoke all devices that have not synced for this long, such as 90d (units: s, m, h, d, w).
    #[arg(long, value_name = "DURATION")]
    inactive_for: Option<TimeSpan>,
    /// Confirm the revocation. Required with --inactive-for.
    #[arg(long, requires = "inactive_for")]
    yes: bool,
    /// Account in the server's data directory (see --data). Prompts for its password.
    #[arg(long)]
    login: Option<String>,
    #[command(flatten)]
    key: FileKeyArgs,
    #[command(flatten)]
    place: StorageArgs,
    #[command(flatten)]
    password: PasswordSource,
}

/// The output of `warren device revoke`.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeviceRevokeOutput {
    /// The ids of the devices that were named or selected; devices that these registered are
    /// revoked with them.
    revoked_device_ids: Vec<String>,
}

/// The access to an account's devices.
enum DeviceDirectory {
    /// The access of one of the devices, through the server.
    Device { http: HttpTransport, token: String },
    /// The access of the operator, in the data directory.
    Operator(Box<(DataDir, UnlockedAccount)>),
}

impl DeviceDirectory {
    fn open(subject: &FileOrAccountArgs) -> anyhow::Result<Self> {
        let Some(file) = &subject.file else {
            return Ok(Self::Operator(Box::new(subject.unlock()?)));
        };
        let replica = subject.key.open(file)?;
        let server = replica.server()?.ok_or(Error::ServerNotConfigured)?;
        let token = replica.token()?.ok_or(Error::ServerNotConfigured)?;
        Ok(Self::Device { http: HttpTransport::trusting(&server, replica.trusted_roots()?), token })
    }

    fn list(&self) -> anyhow::Result<DeviceList> {
        match self {
            Self::Device { http, token } => Ok(http.devices(token)?),
            Self::Operator(operator) => list_from_data_dir(&operator.0, &operator.1),
        }
    }

    fn revoke(&self, id: &str) -> anyhow::Result<()> {
        match self {
            Self::Device { http, token } => Ok(http.delete(&format!("/v1/devices/{id}"), token)?),
            Self::Operator(operator) => {
                let (data_dir, unlocked) = &**operator;
                let id: DeviceId = id.parse()?;
                let revoked = data_dir.accounts.revoke(unlocked.account, &id)?;
                Ok(data_dir.wait(data_dir.vaults.open(unlocked)?.remove_devices(revoked))?)
            }
        }
    }
}

/// Returns the response of `GET /v1/devices`, but from the data directory.
pub(crate) fn list_from_data_dir(
    data_dir: &DataDir,
    unlocked: &UnlockedAccount,
) -> anyhow::Result<DeviceList> {
    let vault = data_dir.vaults.open(unlocked)?;
    let in_vault = data_dir.wait(vault.devices())?;
    let state = data_dir.wait(vault.summary())?;
    let known = data_dir.accounts.devices(unlocked.account)?;
    let is_known =
        |device: &sync_store::VaultDevice| known.iter().any(|k| k.device_id == device.id);
    let in_vault = in_vault.into_iter().filter(is_known);
    let devices = in_vault.map(|device| DeviceInfo {
        device_id: device.id.as_str().to_owned(),
        name: device.name,
        cursor: device.cursor,
        last_seen_ms: device.last_seen_ms,
        created_ms: device.created_ms,
        current: false,
        node_id: device.node_id.map(|node| node.to_string()).unwrap_or_default(),
        unsent_count: device.unsent_count,
        pending_download_count: state.cursor.saturating_sub(device.cursor),
        registered_by: registered_by(&known, &device.id),
    });
    let (devices, fingerprint) = (devices.collect(), Some(state.fingerprint.into()));
    Ok(DeviceList { devices, cursor: state.cursor, fingerprint, server_time_ms: now_ms() })
}

/// Returns the device whose token registered this one; empty if the password was used.
fn registered_by(known: &[DeviceRow], id: &DeviceId) -> String {
    let row = known.iter().find(|row| row.device_id == *id);
    let registrar = row.and_then(|row| row.registered_by.as_ref());
    registrar.map(ToString::to_string).unwrap_or_default()
}

pub(crate) fn run(command: DeviceCommand, output: Printer) -> anyhow::Result<()> {
    match command {
        DeviceCommand::List(arguments) => list(&arguments, output),
        DeviceCommand::Revoke(arguments) => revoke(arguments, output),
    }
}

fn list(arguments: &DeviceListArgs, output: Printer) -> anyhow::Result<()> {
    let mut list = DeviceDirectory::open(&arguments.subject)?.list()?;
    if let Some(span) = arguments.inactive_for {
        list.devices.retain(|device| is_inactive(device, span, list.server_time_ms));
    }
    for device in &list.devices {
        let here = if device.current { "  this device" } else { "" };
        let (id, name) = (&device.device_id, &device.name);
        let seen = format_time(device.last_seen_ms);
        output.line(format_args!("{id}  {name:24} last seen {seen}{here}"));
    }
    if list.devices.is_empty() {
        output.line(format_args!("no devices found"));
    }
    output.json(&list)
}

/// Returns whether a device has not synced for this span; one that has never synced counts from its
/// registration.
fn is_inactive(device: &DeviceInfo, span: TimeSpan, now_ms: u64) -> bool {
    let last_ms = device.last_seen_ms.max(device.created_ms);
    last_ms <= now_ms.saturating_sub(span.ms)
}

fn revoke(arguments: DeviceRevokeArgs, output: Printer) -> anyhow::Result<()> {
    let DeviceRevokeArgs { mut targets, inactive_for, yes, login, key, place, password } =
        arguments;
    let id = inactive_for.is_none().then(|| targets.remove(0));
    let file = targets.pop().map(PathBuf::from);
    let message = "give either a device id or --inactive-for, and at most one file";
    ensure!(targets.is_empty(), CommandError::usage(message));
    let message = "give either a file or --login";
    ensure!(file.is_some() != login.is_some(), CommandError::usage(message));
    let view = DeviceDirectory::open(&FileOrAccountArgs { file, key, login, place, password })?;
    if let Some(span) = inactive_for {
        return revoke_inactive(&view, span, yes, output);
    }
    let id = id.expect("clap wants a device where no span is given");
    view.revoke(&id)?;
    output.line(format_args!("revoked device {id}"));
    output.json(&DeviceRevokeOutput { revoked_device_ids: vec![id] })
}

fn revoke_inactive(
    view: &DeviceDirectory,
    span: TimeSpan,
    yes: bool,
    output: Printer,
) -> anyhow::Result<()> {
    let list = view.list()?;
    let inactive = revocable(&list, span);
    if !yes && !inactive.is_empty() {
        let devices = counted(inactive.len() as u64, "device", "devices");
        let message = format!("this revokes {devices}");
        bail!(
            CommandError::new(ErrorCode::ConfirmationRequired, message).with_hint(
                "check `warren device list` with the same --inactive-for, then pass --yes"
            )
        );
    }
    for device in &inactive {
        match view.revoke(&device.device_id) {
            // The device was revoked with the one that had registered it.
            Err(error) if is_not_found(&error) => {}
            result => result?,
        }
        output.line(format_args!("revoked device {}  {}", device.device_id, device.name));
    }
    let devices = counted(inactive.len() as u64, "device", "devices");
    output.line(format_args!("revoked {devices}"));
    let ids = inactive.iter().map(|device| device.device_id.clone());
    output.json(&DeviceRevokeOutput { revoked_device_ids: ids.collect() })
}

/// Returns the inactive devices, except the current one and those that registered a device that
/// stays, because that would be revoked with them.
fn revocable(list: &DeviceList, span: TimeSpan) -> Vec<&DeviceInfo> {
    let devices = &list.devices;
    let goes =
        |device: &&DeviceInfo| is_inactive(device, span, list.server_time_ms) && !device.current;
    let (mut going, mut staying): (Vec<_>, Vec<_>) = devices.iter().partition(goes);
    while let Some(stays) = staying.pop() {
        if let Some(place) = going.iter().position(|c| c.device_id == stays.registered_by) {
            staying.push(going.remove(place));
        }
    }
    going
}

fn is_not_found(error: &anyhow::Error) -> bool {
    let remote = error.downcast_ref::<Error>();
    matches!(remote, Some(Error::RejectedByServer { code: ErrorCode::NotFound, .. }))
        || matches!(error.downcast_ref(), Some(accounts::Error::NotFound))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(id: &str, registered_by: &str, last_seen_ms: u64, created_ms: u64) -> DeviceInfo {
        let (device_id, registered_by) = (id.to_owned(), registered_by.to_owned());
        let current = id == "me";
        DeviceInfo {
            device_id,
            registered_by,
            last_seen_ms,
            created_ms,
            current,
            ..DeviceInfo::default()
        }
    }

    #[test]
    fn nobody_who_was_seen_goes_with_those_who_were_not() {
        let devices = vec![
            device("old", "", 1_000, 1),
            device("old copy", "old", 1_000, 1),
            device("never, long ago", "", 0, 1_000),
            device("never, of late", "", 0, 9_000),
            device("my grandparent", "", 1_000, 1),
            device("my parent", "my grandparent", 1_000, 1),
            device("me", "my parent", 1_000, 1),
            device("seen", "", 9_000, 1),
        ];
        let list = DeviceList { devices, server_time_ms: 10_000, ..DeviceList::default() };
        let ids = |span| -> Vec<_> {
            revocable(&list, TimeSpan { ms: span }).iter().map(|c| &c.device_id[..]).collect()
        };
        assert_eq!(ids(9_000), ["old", "old copy", "never, long ago"]);
        assert_eq!(ids(9_001), Vec::<&str>::new());
        assert_eq!(ids(20_000), Vec::<&str>::new());
        assert_eq!(ids(0).len(), 5);
    }
}
