//! `warren backup` and `warren restore`: a data directory copied while its server works, and put
//! back.
//!
//! # Not here
//! - How a file is copied that others write to → `engine::copy_file`.

mod manifest;

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use accounts::{Accounts, KdfCost, REVOCATIONS};
use anyhow::{Context, ensure};
use clap::Args;
use engine::{Databases, Encryption, Limits, Untouched};
use serde_json::json;
use sync_store::DataLock;

use self::manifest::{BackedUpFile, Manifest, hash_of};
use crate::account::Data;
use crate::clock::now_ms;
use crate::output::{Output, size};

const ACCOUNTS: &str = "accounts.sqlite";
const VAULTS: &str = "vaults";

/// Copy a server's data directory, also while the server works.
///
/// Each database is copied as one of its commits left it, with everything that was acknowledged
/// before its copy began; encrypted ones stay so, and no key is needed. A manifest lists the files
/// with their hashes. The copy holds wrapped keys and logins: keep it as you keep the original.
#[derive(Args)]
#[command(after_help = "Example:\n  warren backup /mnt/backup/monday --data /srv/warren\n\n\
                        Vaults that are in PostgreSQL are not in it: back that database up, too.")]
pub(crate) struct Backup {
    /// A folder that is not there yet, or empty.
    folder: PathBuf,
    #[command(flatten)]
    data: Data,
}

/// Put a backup's files into a new data directory, after checking each against the manifest.
///
/// A restored accounts file makes tokens and passwords valid again that were revoked or changed
/// since the backup, unless --revocations names the list of the directory that is lost.
#[derive(Args)]
#[command(after_help = "Example:\n  \
                        warren restore /mnt/backup/monday --data /srv/warren\n  \
                        warren restore /mnt/backup/monday --data /srv/new \\\n    \
                        --revocations /srv/warren/revocations\n  \
                        warren restore /mnt/backup/monday --check")]
pub(crate) struct Restore {
    /// What `warren backup` wrote.
    folder: PathBuf,
    #[command(flatten)]
    data: Data,
    /// What was revoked and changed since the backup: the file `revocations` of the data directory
    /// that is lost, if that is still there.
    #[arg(long, value_name = "FILE")]
    revocations: Option<PathBuf>,
    /// Only check the backup.
    #[arg(long)]
    check: bool,
}

pub(crate) fn back_up(arguments: &Backup, output: Output) -> anyhow::Result<()> {
    let (data, folder) = (&arguments.data.data, &arguments.folder);
    let is_one = data.join(ACCOUNTS).exists();
    ensure!(is_one, "{} is no data directory of Warren's", data.display());
    accounts::make_data_directory(folder)?;
    ensure!(is_empty(folder)?, "{} is not empty", folder.display());
    let names = names(data)?;
    let bar = output.progress().with_message("copying");
    bar.set_length(names.len() as u64);
    let mut files = Vec::new();
    for name in names {
        files.extend(back_up_file(data, folder, &name)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    check_accounts(folder)?;
    files.extend(back_up_list(data, folder)?);
    let manifest = Manifest::new(now_ms(), files);
    manifest.write(folder)?;
    describe("backed up", &manifest, folder, output)
}

/// `None`: it was removed meanwhile, with its account.
fn back_up_file(data: &Path, folder: &Path, name: &str) -> anyhow::Result<Option<BackedUpFile>> {
    let (from, to) = (data.join(name), folder.join(name));
    accounts::make_data_directory(to.parent().context("a file has a folder")?)?;
    match engine::copy_file(&from, &to) {
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

/// The list of revocations, which is no database: a last line that is half there is left out when it
/// is applied. `None`: nothing was ever revoked.
fn back_up_list(data: &Path, folder: &Path) -> anyhow::Result<Option<BackedUpFile>> {
    let (from, to) = (data.join(REVOCATIONS), folder.join(REVOCATIONS));
    if !from.exists() {
        return Ok(None);
    }
    copy(&from, &to)?;
    let (bytes, blake3) = hash_of(&to)?;
    Ok(Some(BackedUpFile { path: REVOCATIONS.to_owned(), bytes, blake3, wal_pages: 0 }))
}

/// Returns when the disk has the copy. It is the owner's alone, whoever may read the original.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let mut source = File::open(from).with_context(|| from.display().to_string())?;
    let mut write = || -> std::io::Result<()> {
        let mut target = File::options().write(true).create_new(true).mode(0o600).open(to)?;
        std::io::copy(&mut source, &mut target)?;
        target.sync_all()
    };
    write().with_context(|| to.display().to_string())
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

fn is_empty(folder: &Path) -> anyhow::Result<bool> {
    Ok(entries(folder)?.is_empty())
}

/// The accounts' file is plain, so SQLite itself can look through it.
fn check_accounts(folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(ACCOUNTS);
    let (db, _) = engine::open_untouched(&path, &Encryption::None, Untouched::Overlay)?;
    let found: String = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    ensure!(found == "ok", "{} is damaged: {found}", path.display());
    Ok(())
}

pub(crate) fn restore(arguments: &Restore, output: Output) -> anyhow::Result<()> {
    let (folder, data) = (&arguments.folder, &arguments.data.data);
    let manifest = Manifest::read(folder)?;
    let bar = output.progress().with_message("checking");
    bar.set_length(manifest.files.len() as u64);
    for file in &manifest.files {
        file.check(folder)?;
        bar.inc(1);
    }
    check_accounts(folder)?;
    bar.finish_and_clear();
    if arguments.check {
        return describe("sound:", &manifest, folder, output);
    }
    let _lock = DataLock::take(data, "warren restore")?;
    let is_fresh = entries(data)?.iter().all(|name| name == "lock");
    ensure!(is_fresh, "{} is not empty: restore into a new directory", data.display());
    bar.reset();
    bar.set_message("copying");
    // The list is applied below, which writes it anew.
    for file in manifest.files.iter().filter(|file| file.path != REVOCATIONS) {
        let to = data.join(&file.path);
        accounts::make_data_directory(to.parent().context("a file has a folder")?)?;
        copy(&folder.join(&file.path), &to)?;
        file.check(data)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let lists = [Some(folder.join(REVOCATIONS)), arguments.revocations.clone()];
    let revoked = apply(data, lists.into_iter().flatten())?;
    if revoked > 0 {
        output.line(format_args!("applied {revoked} revocations and changes of passwords"));
    }
    describe("restored", &manifest, data, output)
}

/// Applies these lists of revocations to restored accounts, those that are there.
fn apply(data: &Path, lists: impl Iterator<Item = PathBuf>) -> anyhow::Result<u64> {
    let databases = Databases::start(Limits::default())?;
    let accounts = Accounts::open(&databases, data, KdfCost::DEFAULT)?;
    let mut changed = 0;
    for list in lists.filter(|list| list.exists()) {
        let text = fs::read_to_string(&list).with_context(|| list.display().to_string())?;
        changed += accounts.apply_revocations(&text).with_context(|| list.display().to_string())?;
    }
    databases.shutdown();
    Ok(changed)
}

fn describe(done: &str, manifest: &Manifest, folder: &Path, output: Output) -> anyhow::Result<()> {
    let bytes = manifest.files.iter().map(|file| file.bytes).sum();
    let is_vault = |file: &&BackedUpFile| file.path.starts_with(VAULTS);
    let vaults = manifest.files.iter().filter(is_vault).count();
    let folder = folder.display();
    output.line(format_args!("{done} the accounts and {vaults} vaults, {}: {folder}", size(bytes)));
    output.value(&json!({
        "folder": folder.to_string(),
        "made_ms": manifest.made_ms,
        "vaults": vaults,
        "bytes": bytes,
    }))
}
