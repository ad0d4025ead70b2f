//! Implements `warren backup` and `warren restore`: copies a data directory while its server is
//! running, and restores it.
//!
//! # Not here
//! - Copying a file that other processes write to → `engine::copy_file`.

mod files;
mod folder;
mod manifest;
mod restore;
mod revocation_lists;
mod summary;
mod target;

use std::path::{Path, PathBuf};

use accounts::REVOCATIONS_FILE;
use anyhow::{Context, ensure};
use clap::Args;
use engine::CopyProgress;
use engine::clock::now_ms;
use indicatif::{DecimalBytes, ProgressBar};
use protocol::ErrorCode;

use self::files::{check_accounts, copy, names};
use self::folder::BackupFolder;
use self::manifest::{BackedUpFile, BackupManifest, hash_of};
pub(crate) use self::restore::{RestoreArgs, restore};
use self::revocation_lists::ListFile;
pub(crate) use self::summary::BackupOutput;
use self::summary::BackupSummary;
use crate::args::data_dir::DataDirArgs;
use crate::output::{CommandError, Printer};

/// The name under which a server's log shows the process that copies its files.
const COMMAND: &str = "warren backup";

/// Back up a data directory, even while the server is running.
///
/// Each database is copied in a committed state and includes everything that was acknowledged
/// before its copy began. Encrypted databases stay encrypted; no key is needed. A manifest lists
/// the files with their hashes. The backup contains wrapped keys and logins: protect it like the
/// original.
#[derive(Args)]
#[command(after_help = "Example:\n  warren backup /mnt/backup/monday --data /srv/warren\n\n\
                        Vaults stored in PostgreSQL are not included. Back up that database as well.")]
pub(crate) struct BackupArgs {
    /// Directory to create. May exist if it is empty or contains an interrupted backup.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    data: DataDirArgs,
}

pub(crate) fn back_up(arguments: &BackupArgs, output: Printer) -> anyhow::Result<()> {
    let (data, folder) = (arguments.data.existing_directory()?, &arguments.folder);
    accounts::check_restored(data)?;
    let begun = BackupFolder::begin(folder, data)?;
    let names = names(data)?;
    let bar = output.progress();
    bar.set_length(names.len() as u64);
    let mut files = Vec::new();
    for name in names {
        bar.set_message("copying");
        files.extend(back_up_file(data, folder, &name, &bar)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    check_accounts(folder)?;
    let list = back_up_revocations(data, folder)?;
    let lists = list.iter().map(|list| ListFile::read(&folder.join(&list.path)));
    let lists = lists.collect::<anyhow::Result<_>>()?;
    files.extend(list);
    let manifest = BackupManifest::new(now_ms(), files);
    manifest.write(folder)?;
    begun.finish()?;
    let verdict = "backed up";
    BackupSummary { verdict, manifest: &manifest, folder, lists, applied_count: None }.print(output)
}

/// Backs up a database; `None` if it was removed during the backup, with its account.
fn back_up_file(
    data: &Path,
    folder: &Path,
    name: &str,
    bar: &ProgressBar,
) -> anyhow::Result<Option<BackedUpFile>> {
    let (from, to) = (data.join(name), folder.join(name));
    accounts::make_data_directory(to.parent().context("a file has a folder")?)?;
    let on_progress = |progress: CopyProgress| {
        let (read, total) = (DecimalBytes(progress.read_bytes), DecimalBytes(progress.total_bytes));
        bar.set_message(format!("copying {read} of {total}"));
    };
    match engine::copy_file(&from, &to, COMMAND, on_progress) {
        Ok(copied) => {
            let (file_bytes, blake3) = hash_of(&to)?;
            let message = || format!("{} does not have the length that was written", to.display());
            ensure!(
                file_bytes == copied.bytes,
                CommandError::new(ErrorCode::StorageFailed, message())
            );
            let (path, wal_pages_count) = (name.to_owned(), copied.wal_pages);
            Ok(Some(BackedUpFile { path, file_bytes, blake3, wal_pages_count }))
        }
        Err(_) if !from.exists() => Ok(None),
        Err(error) => Err(error).with_context(|| format!("copying {}", from.display())),
    }
}

/// Backs up the revocation list, which is not a database; `None` if there were no revocations.
fn back_up_revocations(data: &Path, folder: &Path) -> anyhow::Result<Option<BackedUpFile>> {
    let (from, to) = (data.join(REVOCATIONS_FILE), folder.join(REVOCATIONS_FILE));
    if !from.exists() {
        return Ok(None);
    }
    copy(&from, &to)?;
    let (file_bytes, blake3) = hash_of(&to)?;
    let path = REVOCATIONS_FILE.to_owned();
    Ok(Some(BackedUpFile { path, file_bytes, blake3, wal_pages_count: 0 }))
}
