//! Lists and writes the files of data directories and backups.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::{fs, io};

use accounts::{ACCOUNTS_FILE, VAULTS_DIRECTORY};
use anyhow::{Context, ensure};
use engine::{FileEncryption, ReadOnlyMode};
use mail_store::SPOOL_FILE;
use protocol::ErrorCode;

use super::manifest::corrupt;
use crate::output::CommandError;

/// Checks the accounts file with SQLite itself, which is possible because this file is not
/// encrypted.
pub(crate) fn check_accounts(folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(ACCOUNTS_FILE);
    let (db, _) = engine::open_read_only(&path, &FileEncryption::None, ReadOnlyMode::Overlay)?;
    let found: String = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    ensure!(found == "ok", corrupt(format!("{} is damaged: {found}", path.display())));
    Ok(())
}

pub(crate) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    write_new(to, File::open(from).with_context(|| from.display().to_string())?)
}

/// Creates a file that only its owner can read, and returns when it is on the disk.
pub(crate) fn write_new(path: &Path, mut content: impl Read) -> anyhow::Result<()> {
    let mut write = || -> io::Result<()> {
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
        io::copy(&mut content, &mut file)?;
        file.sync_all()
    };
    write().with_context(|| path.display().to_string())
}

/// Lists the databases of a data directory, by their paths in it. The spool is first: a delivery
/// that is filed during the backup is then in the copy of the spool or in that of its vault, or in
/// both, but never in neither. The accounts file is last: each account in its copy had a vault when
/// the vaults were copied, or gets a new one when a device connects.
pub(crate) fn names(data: &Path) -> anyhow::Result<Vec<String>> {
    let has_spool = data.join(SPOOL_FILE).is_file();
    let mut names: Vec<String> = has_spool.then(|| SPOOL_FILE.to_owned()).into_iter().collect();
    let vaults = data.join(VAULTS_DIRECTORY);
    let folders = if vaults.is_dir() { entries(&vaults)? } else { Vec::new() };
    for folder in folders {
        for file in entries(&vaults.join(&folder))? {
            let is_database = Path::new(&file).extension().is_some_and(|ending| ending == "sqlite");
            if is_database {
                names.push(format!("{VAULTS_DIRECTORY}/{folder}/{file}"));
            }
        }
    }
    names.push(ACCOUNTS_FILE.to_owned());
    Ok(names)
}

/// Returns the names in a directory, in order.
pub(crate) fn entries(folder: &Path) -> anyhow::Result<Vec<String>> {
    let read = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut names = Vec::new();
    for entry in read {
        // Warren creates no names that are not UTF-8.
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

/// Returns the error for a directory with contents that must not be replaced.
pub(super) fn not_empty(path: &Path) -> CommandError {
    let message = format!("{} is not empty", path.display());
    CommandError::new(ErrorCode::FileExists, message).with_hint("choose a new directory")
}
