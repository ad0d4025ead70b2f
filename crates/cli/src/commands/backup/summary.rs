//! Prints the result of a backup or restore, in a line and as JSON.

use std::path::Path;

use accounts::VAULTS_DIRECTORY;
use doctor::counted;
use indicatif::DecimalBytes;
use serde::Serialize;
use utoipa::ToSchema;

use super::manifest::{BackedUpFile, BackupManifest};
use super::revocation_lists::ListFile;
use crate::output::Printer;

/// The output of `warren backup` and `warren restore`.
#[derive(Serialize, ToSchema)]
pub(crate) struct BackupOutput {
    /// The path of the backup, or of the data directory that was restored.
    path: String,
    /// The time at which the backup was completed, in milliseconds since 1970.
    created_ms: u64,
    /// The number of vaults in the backup.
    vaults_count: usize,
    /// The size of all files in the backup in bytes.
    total_bytes: u64,
    /// The revocation lists that were read: the list of the backup and the list of `--revocations`.
    revocations: Vec<ListFile>,
    /// The number of revocations and password changes that were applied to the restored accounts;
    /// null if nothing was restored.
    applied_revocations_count: Option<u64>,
}

/// The result of a backup or restore.
pub(crate) struct BackupSummary<'b> {
    /// The start of the line that summarizes it.
    pub(crate) verdict: &'static str,
    pub(crate) manifest: &'b BackupManifest,
    /// The backup, or the data directory that was restored.
    pub(crate) folder: &'b Path,
    pub(crate) lists: Vec<ListFile>,
    /// The number of revocations that the restored accounts lacked.
    pub(crate) applied_count: Option<u64>,
}

impl BackupSummary<'_> {
    pub(crate) fn print(self, output: Printer) -> anyhow::Result<()> {
        let Self { verdict, manifest, folder, lists, applied_count } = self;
        let total_bytes = manifest.files.iter().map(|file| file.file_bytes).sum();
        let is_vault = |file: &&BackedUpFile| file.path.starts_with(VAULTS_DIRECTORY);
        let vaults_count = manifest.files.iter().filter(is_vault).count();
        let (path, total) = (folder.display(), DecimalBytes(total_bytes));
        let vaults = counted(vaults_count as u64, "vault", "vaults");
        output.line(format_args!("{verdict} the accounts and {vaults}, {total}: {path}"));
        if let Some(count @ 1..) = applied_count {
            let applied =
                counted(count, "revocation or password change", "revocations and password changes");
            output.line(format_args!("  applied {applied}"));
        }
        for warning in lists.iter().filter_map(ListFile::warning) {
            output.line(format_args!("  {warning}"));
        }
        output.json(&BackupOutput {
            path: path.to_string(),
            created_ms: manifest.created_ms,
            vaults_count,
            total_bytes,
            revocations: lists,
            applied_revocations_count: applied_count,
        })
    }
}
