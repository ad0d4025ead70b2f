//! Implements `warren restore`: checks a backup and creates a data directory from it.

use std::fs;
use std::path::{Path, PathBuf};

use accounts::{Accounts, AppliedRevocations, KdfCost, REVOCATIONS_FILE, VaultId};
use anyhow::{Context, ensure};
use clap::Args;
use engine::{Databases, EngineLimits};
use mail_store::{MailSpool, SPOOL_FILE};

use super::files::{check_accounts, copy, write_new};
use super::manifest::{BackupManifest, corrupt};
use super::revocation_lists::{ListFile, merge};
use super::summary::BackupSummary;
use super::target::RestoreTarget;
use crate::args::data_dir::DataDirArgs;
use crate::output::Printer;

/// Restore a backup into a new data directory.
///
/// Checks every file against the manifest first. Tokens and passwords that were revoked or changed
/// after the backup become valid again, unless you pass --revocations with the list from the lost
/// data directory. No server opens the new directory before the restore is complete. If the restore
/// is interrupted, run it again.
#[derive(Args)]
#[command(mut_arg("data", |arg| {
    arg.help("Data directory to create. May exist if empty or left by an interrupted restore")
}))]
#[command(after_help = "Examples:\n  \
                        warren restore /mnt/backup/monday --data /srv/warren\n  \
                        warren restore /mnt/backup/monday --data /srv/new \\\n    \
                        --revocations /srv/warren/revocations\n  \
                        warren restore /mnt/backup/monday --check")]
pub(crate) struct RestoreArgs {
    /// Directory written by `warren backup`.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    data: DataDirArgs,
    /// Revocation list of the lost data directory (its file `revocations`). Repeats the revocations
    /// and password changes that were made after the backup.
    #[arg(long, value_name = "FILE")]
    revocations: Option<PathBuf>,
    /// Check the backup and the revocation list, and restore nothing.
    #[arg(long)]
    check: bool,
}

pub(crate) fn restore(arguments: &RestoreArgs, output: Printer) -> anyhow::Result<()> {
    let (folder, data) = (&arguments.folder, &arguments.data.data);
    let manifest = BackupManifest::read(folder)?;
    check(&manifest, folder, output)?;
    let lists = read_lists(folder, arguments.revocations.as_deref())?;
    if arguments.check {
        let is_whole = lists.iter().all(|list| list.damaged_lines.is_empty());
        let verdict = if is_whole {
            "verified"
        } else {
            "verified, except for damaged lines in a revocation list:"
        };
        return BackupSummary { verdict, manifest: &manifest, folder, lists, applied_count: None }
            .print(output);
    }
    let target = RestoreTarget::begin(data)?;
    copy_files(&manifest, folder, &target, output)?;
    write_new(&target.place(REVOCATIONS_FILE)?, merge(&lists).as_slice())?;
    let applied = apply(target.folder())?;
    for vault in &applied.removed_vaults {
        remove_vault(&vault.path(target.folder()))?;
    }
    target.finish()?;
    let applied_count = Some(applied.applied_count);
    BackupSummary { verdict: "restored", manifest: &manifest, folder: data, lists, applied_count }
        .print(output)
}

/// Returns an error if a file of the backup differs from the manifest.
fn check(manifest: &BackupManifest, folder: &Path, output: Printer) -> anyhow::Result<()> {
    let bar = output.progress().with_message("checking");
    bar.set_length(manifest.files.len() as u64);
    for file in &manifest.files {
        file.check(folder)?;
        bar.inc(1);
    }
    check_accounts(folder)?;
    bar.finish_and_clear();
    Ok(())
}

/// Reads the backup's revocation list, if there is one, and the one from the command line.
fn read_lists(folder: &Path, named: Option<&Path>) -> anyhow::Result<Vec<ListFile>> {
    let own = folder.join(REVOCATIONS_FILE);
    let own = own.exists().then(|| ListFile::read(&own));
    own.into_iter().chain(named.map(ListFile::read_named)).collect()
}

fn copy_files(
    manifest: &BackupManifest,
    folder: &Path,
    target: &RestoreTarget,
    output: Printer,
) -> anyhow::Result<()> {
    let bar = output.progress().with_message("copying");
    bar.set_length(manifest.files.len() as u64);
    for file in manifest.files.iter().filter(|file| file.path != REVOCATIONS_FILE) {
        copy(&folder.join(&file.path), &target.place(&file.path)?)?;
        file.check(target.folder())?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Applies the revocation list of a data directory to its accounts, and records in them that the
/// mail vaults were restored.
fn apply(data: &Path) -> anyhow::Result<AppliedRevocations> {
    let databases = Databases::start(EngineLimits::default())?;
    let accounts = Accounts::open(&databases, data, KdfCost::DEFAULT)?;
    let applied = accounts.apply_revocations();
    let recorded = accounts.record_mail_restore();
    let removed = applied.as_ref().map_or(&[][..], |applied| &applied.removed_vaults);
    let emptied = remove_deliveries(&databases, data, removed);
    databases.shutdown();
    let applied = applied?;
    let message = || format!("{}: the accounts file is damaged", data.display());
    ensure!(applied.unknown_count == 0, corrupt(message()));
    recorded?;
    emptied?;
    Ok(applied)
}

/// Removes the mail that waits for accounts that were removed after the backup.
fn remove_deliveries(
    databases: &Databases,
    data: &Path,
    vaults: &[VaultId],
) -> mail_store::Result<()> {
    if !data.join(SPOOL_FILE).exists() {
        return Ok(());
    }
    let spool = MailSpool::open(databases, data)?;
    vaults.iter().try_for_each(|vault| spool.remove_vault(vault).wait())
}

/// Removes the vault of an account that was removed after the backup.
fn remove_vault(path: &Path) -> anyhow::Result<()> {
    // Some vaults are not files, and some of an account's vaults did not exist during the backup.
    if path.exists() {
        fs::remove_file(path).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
