//! Reads Maildirs: a folder for each mailbox, with a file for each message.
//!
//! The mailboxes in a Maildir are folders whose names begin with a dot (`.Archive.2026`,
//! Maildir++), or folders in folders (`Archive/2026`). Flags are in a file's name after `:2,`; the
//! time of arrival is the time at which the file was changed.
//!
//! A file or folder that cannot be read is reported, and all else is imported. A folder that is a
//! symbolic link is reported, too: it could lead out of the Maildir, or back into it.
//!
//! `mail-parser` has a reader, too. It returns messages in the order of the directory, not in that
//! of their arrival.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::{ImportRun, MailImportReport, SourceMessage, io, is_too_large, item};
use crate::error::{Error, Result};
use crate::limits::{MAILBOXES_DEPTH_MAX, MESSAGE_BYTES_MAX};
use crate::mail_vault::MailVault;
use crate::mailboxes::{self, INBOX};
use crate::message_flags::{ANSWERED, DELETED, DRAFT, FLAGGED, FORWARDED, MessageFlags, SEEN};
use crate::modified_utf7;

/// The letters of flags in a file's name.
pub(crate) const FLAG_LETTERS: [(char, &str); 6] =
    [('D', DRAFT), ('F', FLAGGED), ('P', FORWARDED), ('R', ANSWERED), ('S', SEEN), ('T', DELETED)];

/// Imports a Maildir with all mailboxes in it; the Maildir itself becomes INBOX. `progress` is
/// called after each batch.
pub fn import_maildir(
    vault: &MailVault,
    path: &Path,
    progress: &mut dyn FnMut(&MailImportReport),
) -> Result<MailImportReport> {
    let root = path.canonicalize().map_err(io(path))?;
    let mut run = ImportRun::new(vault, progress);
    let mut folders = Vec::new();
    if is_maildir(&root) {
        folders.push((INBOX.to_owned(), root.clone()));
    }
    find_folders(&mut run, &root, &[], &mut folders)?;
    if folders.is_empty() {
        return Err(Error::NotAMaildir { path: path.to_owned() });
    }
    for (mailbox, folder) in folders {
        import_folder(&mut run, &mailbox, &folder)?;
    }
    Ok(run.report)
}

fn is_maildir(folder: &Path) -> bool {
    folder.join("cur").is_dir() && folder.join("new").is_dir()
}

/// Adds the mailboxes in a folder, sorted by their names: their paths and folders.
fn find_folders(
    run: &mut ImportRun<'_>,
    folder: &Path,
    levels: &[String],
    folders: &mut Vec<(String, PathBuf)>,
) -> Result<()> {
    let mut entries = read_folder(folder)?;
    entries.sort_by_key(DirEntry::file_name);
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        let file_type = entry.file_type().map_err(io(&path))?;
        if file_type.is_symlink() && is_maildir(&path) {
            run.refuse(&path, None, "it is a symbolic link".to_owned());
        }
        if !file_type.is_dir() || ["cur", "new", "tmp"].iter().any(|part| name == *part) {
            continue;
        }
        let levels: Vec<String> = levels.iter().cloned().chain(folder_levels(&name)).collect();
        if levels.len() > MAILBOXES_DEPTH_MAX {
            run.refuse(&path, None, "it has too many levels".to_owned());
            continue;
        }
        if is_maildir(&path) {
            folders.push((levels.join("/"), path.clone()));
        }
        if let Err(error) = find_folders(run, &path, &levels, folders) {
            run.refuse(&path, None, error.to_string());
        }
    }
    Ok(())
}

/// Returns the names of the mailboxes that a folder's name stands for.
fn folder_levels(name: &OsStr) -> Vec<String> {
    let name = name.to_string_lossy();
    let names: Vec<&str> = match name.strip_prefix('.') {
        Some(names) => names.split('.').collect(),
        None => vec![&*name],
    };
    names.into_iter().map(|name| mailboxes::valid_name(&modified_utf7::decode(name))).collect()
}

/// A file of a Maildir.
struct MaildirFile {
    /// When the message arrived: seconds since 1970, and nanoseconds, to sort by.
    modified: (i64, u32),
    name: OsString,
    path: PathBuf,
    size: u64,
}

fn import_folder(run: &mut ImportRun<'_>, mailbox_path: &str, folder: &Path) -> Result<()> {
    let mailbox = match run.vault.find_or_create_mailbox(mailbox_path) {
        Err(error @ Error::InvalidMailboxName { .. }) => {
            run.refuse(folder, None, error.to_string());
            return Ok(());
        }
        mailbox => mailbox?,
    };
    for file in files(run, folder) {
        let (unique, letters) = split_name(file.name.as_encoded_bytes());
        // The size, because a program may give a name again.
        let size = file.size.to_be_bytes();
        let item = item(&[b"maildir", folder.as_os_str().as_encoded_bytes(), unique, &size]);
        if run.vault.is_imported(&item)? {
            run.count_known(file.size);
            continue;
        }
        let mut bytes = Vec::new();
        let limit = MESSAGE_BYTES_MAX as u64 + 1;
        let read = File::open(&file.path).and_then(|open| open.take(limit).read_to_end(&mut bytes));
        if let Err(error) = read {
            // If the mail program moved the file to give it other flags, the next run finds it.
            if error.kind() != ErrorKind::NotFound {
                run.refuse(&file.path, None, error.to_string());
            }
            continue;
        }
        if is_too_large(bytes.len() as u64) {
            run.refuse(&file.path, None, Error::MessageTooLarge { bytes: file.size }.to_string());
            continue;
        }
        let mut flags = MessageFlags::default();
        for (letter, flag) in FLAG_LETTERS {
            if letters.contains(&(letter as u8)) {
                flags.insert(flag);
            }
        }
        run.add(mailbox, SourceMessage { bytes, item, flags, received_s: file.modified.0 })?;
    }
    run.store(mailbox)
}

/// Returns the messages of a folder in the order of their arrival. `new` is read first: a file that
/// a mail program moves to `cur` at the same time is then found at least once.
fn files(run: &mut ImportRun<'_>, folder: &Path) -> Vec<MaildirFile> {
    let mut files = Vec::new();
    for part in ["new", "cur"] {
        let part = folder.join(part);
        let entries = read_folder(&part).unwrap_or_else(|error| {
            run.refuse(&part, None, error.to_string());
            Vec::new()
        });
        for entry in entries {
            let (name, path) = (entry.file_name(), entry.path());
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let metadata = fs::metadata(&path);
            match metadata.and_then(|found| Ok((modified(&found)?, found.len(), found.is_file()))) {
                Ok((modified, size, true)) => {
                    files.push(MaildirFile { modified, name, path, size });
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => run.refuse(&path, None, error.to_string()),
            }
        }
    }
    files.sort_by(|a, b| (a.modified, &a.name).cmp(&(b.modified, &b.name)));
    files
}

/// Returns when a file was changed: seconds since 1970, and the nanoseconds after them.
fn modified(metadata: &Metadata) -> std::io::Result<(i64, u32)> {
    Ok(match metadata.modified()?.duration_since(UNIX_EPOCH) {
        Ok(after) => (after.as_secs().cast_signed(), after.subsec_nanos()),
        Err(before) => (0_i64.saturating_sub_unsigned(before.duration().as_secs()), 0),
    })
}

/// Splits a file's name into what identifies the message, and the letters of its flags.
fn split_name(name: &[u8]) -> (&[u8], &[u8]) {
    // Some programs write another separator, because Windows does not allow a colon.
    let at = name.windows(3).rposition(|window| matches!(window, b":2," | b";2," | b"!2,"));
    at.map_or((name, &[]), |at| (&name[..at], &name[at + 3..]))
}

fn read_folder(folder: &Path) -> Result<Vec<DirEntry>> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<_>>);
    entries.map_err(io(folder))
}
