//! Readiness: whether the server can authenticate its users and accept their writes.

use accounts::VaultId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app_state::AppState;

/// The share of open vaults that may be poisoned while the server counts as ready: one in this
/// many. A damaged file of one account is no reason to turn all other users away.
const VAULTS_PER_POISONED: usize = 100;

/// The readiness of the server and its problems.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not exclude each other")]
pub(crate) struct Readiness {
    /// Whether the server accepts logins and writes, except perhaps for a few vaults.
    pub(crate) ready: bool,
    /// Whether the disk of the data directory is full; nothing new is stored.
    pub(crate) disk_full: bool,
    /// Whether the accounts file refuses writes after a disk failure; no device can be registered
    /// until it has recovered.
    pub(crate) accounts_poisoned: bool,
    /// The number of open vaults that refuse writes after a disk failure and have not recovered.
    pub(crate) poisoned_vaults_count: usize,
    /// Whether the accounts file is damaged. Some devices or logins may be refused. The readable
    /// part is still used; restore the file from a backup.
    pub(crate) accounts_damaged: bool,
    /// The number of open vaults that are damaged and were not repaired, because an earlier
    /// .damaged file still exists.
    pub(crate) damaged_vaults_count: usize,
    /// The number of open files whose backup makes no progress. The server no longer waits for it;
    /// the log names its process.
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
