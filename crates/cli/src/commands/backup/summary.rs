//! What was backed up or restored, in a line and as JSON.

use std::path::Path;

use accounts::VAULTS_DIRECTORY;
use indicatif::DecimalBytes;
use serde_json::json;

use super::manifest::{BackedUpFile, BackupManifest};
use super::revocation_lists::ListFile;
use crate::output::Printer;

/// What was done with a backup, and in what state it is.
pub(crate) struct BackupSummary<'b> {
    /// How the line begins that sums it up.
    pub(crate) verdict: &'static str,
    pub(crate) manifest: &'b BackupManifest,
    pub(crate) folder: &'b Path,
    pub(crate) lists: Vec<ListFile>,
    /// Revocations that the restored accounts lacked.
    pub(crate) applied_count: Option<u64>,
}

impl BackupSummary<'_> {
    pub(crate) fn print(self, output: Printer) -> anyhow::Result<()> {
        let Self { verdict, manifest, folder, lists, applied_count } = self;
        let bytes = manifest.files.iter().map(|file| file.file_bytes).sum();
        let is_vault = |file: &&BackedUpFile| file.path.starts_with(VAULTS_DIRECTORY);
        let vaults = manifest.files.iter().filter(is_vault).count();
        let (folder, total) = (folder.display(), DecimalBytes(bytes));
        output.line(format_args!("{verdict} the accounts and {vaults} vaults, {total}: {folder}"));
        if let Some(count @ 1..) = applied_count {
            output.line(format_args!("  applied {count} revocations and password changes"));
        }
        for warning in lists.iter().filter_map(ListFile::warning) {
            output.line(format_args!("  {warning}"));
        }
        output.json(&json!({
            "folder": folder.to_string(),
            "made_ms": manifest.created_ms,
            "vaults": vaults,
            "bytes": bytes,
            "revocations": lists,
            "revocations_applied": applied_count,
        }))
    }
}
