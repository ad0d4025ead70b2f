//! Writes Maildirs in the variant Maildir++: see `import/maildir.rs`.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::{MailExportReport, for_each_message};
use crate::error::{Error, Result};
use crate::import::FLAG_LETTERS;
use crate::mail_vault::MailVault;
use crate::mailboxes::{INBOX, Mailbox};
use crate::messages::StoredMessage;
use crate::modified_utf7;

/// The maximum length of a folder's name. Most file systems allow 255 bytes.
const FOLDER_NAME_BYTES_MAX: usize = 255;

/// The length to which a longer name is cut, before the mailbox's UIDVALIDITY is added.
const CUT_NAME_BYTES: usize = 240;

/// Exports all mailboxes to a new Maildir, with flags and times. Keywords other than `$Forwarded`
/// are not exported. As with a copy, it is up to the system when the files are on the disk.
pub fn export_maildir(
    vault: &MailVault,
    path: &Path,
    progress: &mut dyn FnMut(&MailExportReport),
) -> Result<MailExportReport> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    fs::create_dir_all(path).map_err(io)?;
    if fs::read_dir(path).map_err(io)?.next().is_some() {
        return Err(Error::NotEmpty { path: path.to_owned() });
    }
    let mut report = MailExportReport::default();
    for mailbox in vault.mailboxes()? {
        let folder = folder(path, &mailbox);
        for part in ["cur", "new", "tmp"] {
            let part = folder.join(part);
            fs::create_dir_all(&part).map_err(|source| Error::Io { path: part.clone(), source })?;
        }
        let cur = folder.join("cur");
        for_each_message(vault, mailbox.id, &mut report, progress, |message| {
            let file = cur.join(file_name(&mailbox, message));
            write_message(&file, message).map_err(|source| Error::Io { path: file, source })
        })?;
    }
    Ok(report)
}

/// Returns the folder of a mailbox, which no other mailbox has. Its levels are separated by dots,
/// so a dot in a name is encoded. A name that is too long for a folder is cut.
fn folder(root: &Path, mailbox: &Mailbox) -> PathBuf {
    if mailbox.path == INBOX {
        return root.to_owned();
    }
    let levels = mailbox.path.split('/');
    let levels: Vec<String> =
        levels.map(|name| modified_utf7::encode(name, |char| char == '.')).collect();
    let mut name = format!(".{}", levels.join("."));
    if name.len() > FOLDER_NAME_BYTES_MAX {
        name.truncate(CUT_NAME_BYTES);
        name = format!("{name}-{}", mailbox.uid_validity);
    }
    root.join(name)
}

/// Returns a name that no other message of the mailbox has.
fn file_name(mailbox: &Mailbox, message: &StoredMessage) -> String {
    let entry = &message.entry;
    let letters = FLAG_LETTERS.iter().filter(|(_, flag)| entry.flags.has(flag));
    let letters: String = letters.map(|(letter, _)| letter).collect();
    let (received_s, uid_validity, uid) = (entry.received.unix_s, mailbox.uid_validity, entry.uid);
    format!("{received_s}.V{uid_validity}U{uid}.warren:2,{letters}")
}

/// Writes a message to a new file, which only its owner can read.
fn write_message(path: &Path, message: &StoredMessage) -> std::io::Result<()> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.write(true).create_new(true).open(path)?;
    file.write_all(&message.bytes)?;
    let received_s = message.entry.received.unix_s;
    let distance = Duration::from_secs(received_s.unsigned_abs());
    let received = match received_s {
        0.. => UNIX_EPOCH.checked_add(distance),
        _ => UNIX_EPOCH.checked_sub(distance),
    };
    file.set_modified(received.unwrap_or(UNIX_EPOCH))
}
