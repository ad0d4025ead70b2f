//! Writes mbox files in the variant mboxrd: see `import/mbox.rs`.

use std::io::{BufWriter, Write};
use std::path::Path;

use engine::{directory_of, sync_directory};
use tempfile::NamedTempFile;
use time::OffsetDateTime;
use time::macros::format_description;

use super::{MailExportReport, for_each_message};
use crate::error::{Error, Result};
use crate::mail_vault::MailVault;
use crate::messages::StoredMessage;

/// Exports a mailbox to a new mbox file. A message whose last line does not end gets a line feed.
/// Flags are not exported: an mbox has no place for them outside the messages.
pub fn export_mbox(
    vault: &MailVault,
    mailbox_path: &str,
    path: &Path,
    progress: &mut dyn FnMut(&MailExportReport),
) -> Result<MailExportReport> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let mailbox = vault.find_mailbox(mailbox_path)?;
    if path.exists() {
        return Err(Error::NotEmpty { path: path.to_owned() });
    }
    let mut report = MailExportReport::default();
    let folder = directory_of(path);
    let mut file = BufWriter::new(NamedTempFile::new_in(folder).map_err(io)?);
    for_each_message(vault, mailbox, &mut report, progress, |message| {
        write_message(&mut file, message).map_err(io)
    })?;
    let file = file.into_inner().map_err(|error| io(error.into_error()))?;
    file.as_file().sync_all().map_err(io)?;
    file.persist_noclobber(path).map_err(|error| io(error.error))?;
    sync_directory(folder)?;
    Ok(report)
}

fn write_message(file: &mut impl Write, message: &StoredMessage) -> std::io::Result<()> {
    let format = format_description!(
        "[weekday repr:short] [month repr:short] [day padding:space] [hour]:[minute]:[second] [year]"
    );
    let received = OffsetDateTime::from_unix_timestamp(message.entry.received.unix_s);
    let received = received.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let received = received.format(format).unwrap_or_default();
    writeln!(file, "From MAILER-DAEMON {received}")?;
    for line in message.bytes.split_inclusive(|byte| *byte == b'\n') {
        let quotes = line.iter().position(|byte| *byte != b'>').unwrap_or(line.len());
        if line[quotes..].starts_with(b"From ") {
            file.write_all(b">")?;
        }
        file.write_all(line)?;
    }
    let is_ended = message.bytes.is_empty() || message.bytes.ends_with(b"\n");
    file.write_all(if is_ended { b"\n" } else { b"\n\n" })
}
