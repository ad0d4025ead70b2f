//! Scenarios: the work that is done while operations are broken, and what must hold afterwards.

mod accounts;
mod device;
mod sync;
mod uploads;

use std::path::{Path, PathBuf};

use serde_json::json;

pub(crate) use accounts::AccountsScenario;
pub(crate) use device::DeviceScenario;
pub(crate) use sync::{SyncScenario, prepare_files};
pub(crate) use uploads::UploadScenario;

use crate::fixture::{ADMIN, FaultedServer, PASSWORD, SendRecord};
use crate::shim::ShimControl;

/// One run: a folder of its own, with the server's `data` and perhaps the devices' files in it.
pub(crate) struct FaultRun {
    pub(crate) folder: PathBuf,
    pub(crate) ledger: SendRecord,
    /// The control, if the faults are in a device's folder instead of the server's.
    pub(crate) device_control: Option<ShimControl>,
}

pub(crate) trait FaultScenario: Send + Sync + Sized {
    /// The work's results that the checks need.
    type Left: Default;

    const NAME: &'static str;
    /// Whether the faults are in the device's folder.
    const IS_DEVICE: bool = false;

    /// Prepares the folder of which every run gets a copy.
    fn prepare(base: &Path) -> Self;

    /// Does the work, even if parts of it are refused.
    fn run(&self, server: &FaultedServer, run: &mut FaultRun) -> Self::Left;

    /// Returns whether the server takes writes again, of each kind that the scenario has.
    fn is_back(&self, server: &FaultedServer, run: &mut FaultRun, left: &mut Self::Left) -> bool;

    /// Returns what is wrong, once no operation is broken any more.
    fn check(&self, server: &FaultedServer, run: &mut FaultRun, left: &Self::Left) -> Vec<String>;
}

/// Starts a server on `base` with the account ada and one device; returns its token.
pub(crate) fn prepare_account(base: &Path) -> (FaultedServer, String) {
    std::fs::create_dir_all(base.join("data")).unwrap();
    let server = FaultedServer::start(base, Vec::new()).map_err(|(_, said)| said).unwrap();
    let mut ledger = SendRecord::default();
    let account = json!({"login": "ada", "password": PASSWORD});
    let made = ledger.call(&server, ("POST", "/v1/accounts"), ADMIN, &account).unwrap();
    assert_eq!(made.status, 201);
    let device = register(&mut ledger, &server, "", PASSWORD, "rig").unwrap();
    (server, device.token)
}

pub(crate) struct RegisteredDevice {
    pub(crate) id: String,
    pub(crate) token: String,
}

/// Registers a device, with ada's password or with another device's token.
pub(crate) fn register(
    ledger: &mut SendRecord,
    server: &FaultedServer,
    token: &str,
    password: &str,
    name: &str,
) -> Option<RegisteredDevice> {
    let login = if token.is_empty() { "ada" } else { "" };
    let body = json!({"login": login, "password": password, "name": name});
    let answer = ledger.call(server, ("POST", "/v1/devices"), token, &body)?.value();
    let text = |name: &str| Some(answer[name].as_str()?.to_owned());
    Some(RegisteredDevice { id: text("device_id")?, token: text("token")? })
}
