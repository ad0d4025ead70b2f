//! Imports mail from other programs: a Maildir or an mbox file.
//!
//! An import can be interrupted and run again: the vault records each message that it has stored,
//! in the transaction that stores it. So a second run stores only messages that are new, also while
//! the other program still receives mail.
//!
//! ```text
//! item of a Maildir   BLAKE3("maildir", folder's path, file name without its flags, file size)
//! item of an mbox     BLAKE3("mbox", file's path, mailbox id, BLAKE3(message),
//!                            how often that message came before)
//! ```
//! with the length of each value before it. A path is absolute, without symbolic links. The message
//! of an mbox is hashed without the fields that mail programs change in it.
//!
//! # Invariants
//! - A message is left out only by its item: never because another message is equal to it.

mod maildir;
mod mbox;

use std::path::{Path, PathBuf};

pub(crate) use self::maildir::FLAG_LETTERS;
pub use self::maildir::import_maildir;
pub use self::mbox::import_mbox;
use crate::error::{Error, Result};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::mail_vault::MailVault;
use crate::mailboxes::MailboxId;
use crate::message_flags::MessageFlags;
use crate::messages::{NewMessage, ReceivedTime};

/// The maximum number of messages that an import stores in one transaction.
const BATCH_COUNT_MAX: usize = 200;

/// The size of messages at which an import stores them, before compression.
const BATCH_BYTES_MAX: u64 = 16 << 20;

/// The result of an import so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailImportReport {
    /// The number of messages that were stored.
    pub stored_count: u64,
    /// The number of messages that an earlier run has stored.
    pub known_count: u64,
    /// The number of bytes of all these messages.
    pub bytes: u64,
    /// Messages and folders that could not be stored, and why. They remain in the source.
    pub refused: Vec<RefusedMessage>,
}

/// A message that could not be stored, or a folder that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedMessage {
    /// The file of the message or of the mbox, or the folder.
    pub path: PathBuf,
    /// The number of the message in an mbox, from 1.
    pub number: Option<u64>,
    pub reason: String,
}

/// A message of a source.
struct SourceMessage {
    bytes: Vec<u8>,
    item: [u8; 32],
    flags: MessageFlags,
    received_s: i64,
}

/// An import that is running: collects messages for one mailbox, and stores them in batches.
struct ImportRun<'r> {
    vault: &'r MailVault,
    report: MailImportReport,
    progress: &'r mut dyn FnMut(&MailImportReport),
    batch: Vec<NewMessage>,
    batch_bytes: u64,
}

impl<'r> ImportRun<'r> {
    fn new(vault: &'r MailVault, progress: &'r mut dyn FnMut(&MailImportReport)) -> Self {
        let report = MailImportReport::default();
        Self { vault, report, progress, batch: Vec::new(), batch_bytes: 0 }
    }

    fn add(&mut self, mailbox: MailboxId, message: SourceMessage) -> Result<()> {
        let SourceMessage { bytes, item, flags, received_s } = message;
        let new = NewMessage {
            message: self.vault.prepare(&bytes)?,
            flags,
            received: ReceivedTime { unix_s: received_s, zone_min: 0 },
            imported_item: Some(item),
        };
        self.batch.push(new);
        self.batch_bytes += bytes.len() as u64;
        if self.batch.len() == BATCH_COUNT_MAX || self.batch_bytes >= BATCH_BYTES_MAX {
            self.store(mailbox)?;
        }
        Ok(())
    }

    /// Stores the collected messages.
    fn store(&mut self, mailbox: MailboxId) -> Result<()> {
        let count = self.batch.len() as u64;
        let stored = u64::from(self.vault.store(mailbox, std::mem::take(&mut self.batch))?);
        self.report.stored_count += stored;
        self.report.known_count += count - stored;
        self.report.bytes += std::mem::take(&mut self.batch_bytes);
        (self.progress)(&self.report);
        Ok(())
    }

    fn count_known(&mut self, bytes: u64) {
        self.report.known_count += 1;
        self.report.bytes += bytes;
    }

    fn refuse(&mut self, path: &Path, number: Option<u64>, reason: String) {
        self.report.refused.push(RefusedMessage { path: path.to_owned(), number, reason });
    }
}

/// Whether a message is too large to be stored.
fn is_too_large(bytes: u64) -> bool {
    bytes > MESSAGE_BYTES_MAX as u64
}

/// Returns the item of a message: a hash of values that identify it in its source.
fn item(values: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for value in values {
        hasher.update(&(value.len() as u64).to_be_bytes());
        hasher.update(value);
    }
    *hasher.finalize().as_bytes()
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |source| Error::Io { path: path.to_owned(), source }
}
