//! Exports mail to a Maildir or an mbox file, byte for byte.
//!
//! # Invariants
//! - An export replaces no file: a Maildir must be a new or empty folder, and an mbox a new file.

mod maildir;
mod mbox;

pub use self::maildir::export_maildir;
pub use self::mbox::export_mbox;
use crate::error::Result;
use crate::mail_vault::MailVault;
use crate::mailboxes::MailboxId;
use crate::messages::StoredMessage;

/// The number of UIDs that an export reads at a time.
const UIDS_COUNT: u32 = 1_000;

/// The numbers of messages and bytes that an export has written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailExportReport {
    pub messages_count: u64,
    /// The number of bytes of these messages.
    pub bytes: u64,
}

/// Calls `write` for each message of a mailbox in the order of UIDs. A message that is removed at
/// the same time is left out.
fn for_each_message(
    vault: &MailVault,
    mailbox: MailboxId,
    report: &mut MailExportReport,
    progress: &mut dyn FnMut(&MailExportReport),
    mut write: impl FnMut(&StoredMessage) -> Result<()>,
) -> Result<()> {
    let mut after = 0;
    loop {
        let uids = vault.uids(mailbox, after, UIDS_COUNT)?;
        let Some(last) = uids.last() else { return Ok(()) };
        after = *last;
        for uid in uids {
            let Some(message) = vault.message(mailbox, uid)? else { continue };
            write(&message)?;
            report.messages_count += 1;
            report.bytes += message.bytes.len() as u64;
            progress(report);
        }
    }
}
