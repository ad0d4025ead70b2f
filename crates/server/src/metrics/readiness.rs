//! Whether the server does what it is there for: knows its users, and takes their writes.

use accounts::VaultId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app_state::AppState;

/// Of the open vaults, one in so many may recover without the server counting as not ready: a
/// damaged file of one account is no reason to send everybody else away.
const VAULTS_PER_POISONED: usize = 100;

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
    pub(crate) accounts_poisoned: bool,
    /// Open vaults whose disk failed, and that have not recovered.
    pub(crate) poisoned_vaults_count: usize,
    /// The accounts' file does not read back as it was written, so some devices or logins may be
    /// refused. It is used as far as it can be read: restore it from a backup.
    pub(crate) accounts_damaged: bool,
    /// Open vaults that are damaged and were not repaired, because that has happened before.
    pub(crate) damaged_vaults_count: usize,
    /// Open files that a backup copies which makes no progress. Nobody waits for it; the log names
    /// its process.
    pub(crate) stalled_backups_count: usize,
}

impl Readiness {
    pub(crate) fn from_app(app: &AppState) -> Self {
        let poisoned = app.databases.list_poisoned();
        let is_vault = |path: &std::path::Path| VaultId::from_path(path).is_some();
        let poisoned_vaults_count = poisoned.iter().filter(|(path, _)| is_vault(path)).count();
        let accounts_poisoned = poisoned.len() > poisoned_vaults_count;
        let disk_full = app.is_disk_full();
        let is_share = poisoned_vaults_count * VAULTS_PER_POISONED > app.databases.open_count();
        let damaged = app.databases.list_damaged();
        let damaged_vaults_count = damaged.iter().filter(|path| is_vault(path)).count();
        let accounts_damaged = damaged.len() > damaged_vaults_count;
        let ready = !disk_full && !accounts_poisoned && !accounts_damaged && !is_share;
        Self {
            ready,
            disk_full,
            accounts_poisoned,
            poisoned_vaults_count,
            accounts_damaged,
            damaged_vaults_count,
            stalled_backups_count: app.databases.stalled_backups().len(),
        }
    }
}
