//! `warren backup` and `warren restore`: a data directory copied while its server works, and put
//! back.
//!
//! # Not here
//! - How a file is copied that others write to → `engine::copy_file`.

mod folder;
mod manifest;
mod restore;
mod revocation_lists;
mod target;

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use accounts::REVOCATIONS_FILE;
use anyhow::{Context, ensure};
use clap::Args;
use engine::{CopyProgress, FileEncryption, ReadOnlyMode};
use indicatif::ProgressBar;
use serde_json::json;

use self::folder::BackupFolder;
use self::manifest::{BackedUpFile, BackupManifest, hash_of};
pub(crate) use self::restore::{RestoreArgs, restore};
use self::revocation_lists::ListFile;
use crate::account::DataDirArgs;
use crate::clock::now_ms;
use crate::output::{Printer, format_bytes};

const ACCOUNTS: &str = "accounts.sqlite";
const VAULTS: &str = "vaults";

/// What a server's log calls the process that copies its files.
const COMMAND: &str = "warren backup";

/// Copy a server's data directory, also while the server works.
///
/// Each database is copied as one of its commits left it, with everything that was acknowledged
/// before its copy began; encrypted ones stay so, and no key is needed. A manifest lists the files
/// with their hashes. The copy holds wrapped keys and logins: keep it as you keep the original.
#[derive(Args)]
#[command(after_help = "Example:\n  warren backup /mnt/backup/monday --data /srv/warren\n\n\
                        Vaults that are in PostgreSQL are not in it: back that database up, too.")]
pub(crate) struct BackupArgs {
    /// A folder that is not there yet, or empty. One that an interrupted backup has left is begun
    /// again.
    folder: PathBuf,
    #[command(flatten)]
    data: DataDirArgs,
}

pub(crate) fn back_up(arguments: &BackupArgs, output: Printer) -> anyhow::Result<()> {
    let (data, folder) = (&arguments.data.data, &arguments.folder);
    let is_one = data.join(ACCOUNTS).exists();
    ensure!(is_one, "{} is no data directory of Warren's", data.display());
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

/// `None`: it was removed meanwhile, with its account.
fn back_up_file(
    data: &Path,
    folder: &Path,
    name: &str,
    bar: &ProgressBar,
) -> anyhow::Result<Option<BackedUpFile>> {
    let (from, to) = (data.join(name), folder.join(name));
    accounts::make_data_directory(to.parent().context("a file has a folder")?)?;
    let on_progress = |progress: CopyProgress| {
        let (read, total) = (format_bytes(progress.read_bytes), format_bytes(progress.total_bytes));
        bar.set_message(format!("copying {read} of {total}"));
    };
    match engine::copy_file(&from, &to, COMMAND, on_progress) {
        Ok(copied) => {
            let (bytes, hash) = hash_of(&to)?;
            ensure!(bytes == copied.bytes, "{} is not as long as it was written", to.display());
            let (path, wal_pages) = (name.to_owned(), copied.wal_pages);
            Ok(Some(BackedUpFile { path, bytes, blake3: hash, wal_pages }))
        }
        Err(_) if !from.exists() => Ok(None),
        Err(error) => Err(error).with_context(|| format!("copying {}", from.display())),
    }
}

/// The list of revocations, which is no database. `None`: nothing was ever revoked.
fn back_up_revocations(data: &Path, folder: &Path) -> anyhow::Result<Option<BackedUpFile>> {
    let (from, to) = (data.join(REVOCATIONS_FILE), folder.join(REVOCATIONS_FILE));
    if !from.exists() {
        return Ok(None);
    }
    copy(&from, &to)?;
    let (bytes, blake3) = hash_of(&to)?;
    Ok(Some(BackedUpFile { path: REVOCATIONS_FILE.to_owned(), bytes, blake3, wal_pages: 0 }))
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    write_new(to, File::open(from).with_context(|| from.display().to_string())?)
}

/// Makes a file that only its owner may read. Returns when the disk has it.
fn write_new(path: &Path, mut content: impl Read) -> anyhow::Result<()> {
    let mut write = || -> io::Result<()> {
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
        io::copy(&mut content, &mut file)?;
        file.sync_all()
    };
    write().with_context(|| path.display().to_string())
}

/// The databases of a data directory, by their paths in it. The accounts last: whatever account it
/// has then, its vault was there to be copied, or is made anew when one of its devices comes.
fn names(data: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    let vaults = data.join(VAULTS);
    let folders = if vaults.is_dir() { entries(&vaults)? } else { Vec::new() };
    for folder in folders {
        for file in entries(&vaults.join(&folder))? {
            let is_database = Path::new(&file).extension().is_some_and(|ending| ending == "sqlite");
            if is_database {
                names.push(format!("{VAULTS}/{folder}/{file}"));
            }
        }
    }
    names.push(ACCOUNTS.to_owned());
    Ok(names)
}

/// Names in a folder, in order.
fn entries(folder: &Path) -> anyhow::Result<Vec<String>> {
    let read = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut names = Vec::new();
    for entry in read {
        // What is not UTF-8 is not of our making.
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

/// The accounts' file is plain, so SQLite itself can look through it.
fn check_accounts(folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(ACCOUNTS);
    let (db, _) = engine::open_read_only(&path, &FileEncryption::None, ReadOnlyMode::Overlay)?;
    let found: String = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    ensure!(found == "ok", "{} is damaged: {found}", path.display());
    Ok(())
}

/// What was done with a backup, and in what state it is.
struct BackupSummary<'b> {
    /// How the line begins that sums it up.
    verdict: &'static str,
    manifest: &'b BackupManifest,
    folder: &'b Path,
    lists: Vec<ListFile>,
    /// Revocations that the restored accounts lacked.
    applied_count: Option<u64>,
}

impl BackupSummary<'_> {
    fn print(self, output: Printer) -> anyhow::Result<()> {
        let Self { verdict, manifest, folder, lists, applied_count } = self;
        let bytes = manifest.files.iter().map(|file| file.bytes).sum();
        let is_vault = |file: &&BackedUpFile| file.path.starts_with(VAULTS);
        let vaults = manifest.files.iter().filter(is_vault).count();
        let (folder, total) = (folder.display(), format_bytes(bytes));
        output.line(format_args!("{verdict} the accounts and {vaults} vaults, {total}: {folder}"));
        if let Some(count @ 1..) = applied_count {
            output.line(format_args!("  applied {count} revocations and password changes"));
        }
        for warning in lists.iter().filter_map(ListFile::warning) {
            output.line(format_args!("  {warning}"));
        }
        output.json(&json!({
            "folder": folder.to_string(),
            "made_ms": manifest.made_ms,
            "vaults": vaults,
            "bytes": bytes,
            "revocations": lists,
            "revocations_applied": applied_count,
        }))
    }
}
