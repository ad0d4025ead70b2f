//! Whether the server does what it is there for: knows its users, and takes their writes.

use accounts::VaultId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app_state::AppState;

/// Of the open vaults, one in so many may recover without the server counting as not ready: a
/// damaged file of one account is no reason to send everybody else away.
const VAULTS_PER_REFUSING: usize = 100;

/// What keeps the server from doing its work.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not exclude each other")]
pub(crate) struct Readiness {
    /// Devices are let in and their writes taken, but for those of a few vaults perhaps.
    pub(crate) ready: bool,
    /// There is no room on the disk of the data directory: nothing new is stored.
    pub(crate) disk_full: bool,
    /// The disk failed under the accounts' file: no device can be registered until it has
    /// recovered.
    pub(crate) accounts_refuse_writes: bool,
    /// Open vaults whose disk failed, and that have not recovered.
    pub(crate) vaults_refusing_writes: usize,
    /// The accounts' file does not read back as it was written, so some devices or logins may be
    /// refused. It is used as far as it can be read: restore it from a backup.
    pub(crate) accounts_damaged: bool,
    /// Open vaults that are damaged and were not repaired, because that has happened before.
    pub(crate) vaults_damaged: usize,
    /// Open files that a backup copies which makes no progress. Nobody waits for it; the log names
    /// its process.
    pub(crate) backups_stalled: usize,
}

impl Readiness {
    pub(crate) fn from_app(app: &AppState) -> Self {
        let refusing = app.databases.list_poisoned();
        let is_vault = |path: &std::path::Path| VaultId::from_path(path).is_some();
        let vaults_refusing_writes = refusing.iter().filter(|(path, _)| is_vault(path)).count();
        let accounts_refuse_writes = refusing.len() > vaults_refusing_writes;
        let disk_full = app.is_disk_full();
        let is_share = vaults_refusing_writes * VAULTS_PER_REFUSING > app.databases.open_count();
        let damaged = app.databases.list_damaged();
        let vaults_damaged = damaged.iter().filter(|path| is_vault(path)).count();
        let accounts_damaged = damaged.len() > vaults_damaged;
        let ready = !disk_full && !accounts_refuse_writes && !accounts_damaged && !is_share;
        Self {
            ready,
            disk_full,
            accounts_refuse_writes,
            vaults_refusing_writes,
            accounts_damaged,
            vaults_damaged,
            backups_stalled: app.databases.stalled_backups().len(),
        }
    }
}
