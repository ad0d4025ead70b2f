//! The errors of this crate that callers may have to handle.

use std::path::PathBuf;

use crate::limits::{
    ADDRESS_BYTES_MAX, KEYWORDS_COUNT_MAX, MAILBOXES_COUNT_MAX, MESSAGE_BYTES_MAX,
};

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reasons why a call failed. Messages contain no text of a mail message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("there is no mailbox {path:?}")]
    MailboxNotFound { path: String },
    #[error("the name {name:?} cannot be used for a mailbox: {reason}")]
    InvalidMailboxName { name: String, reason: &'static str },
    #[error("a mail vault can have at most {MAILBOXES_COUNT_MAX} mailboxes")]
    TooManyMailboxes,
    #[error("a mail vault can have at most {KEYWORDS_COUNT_MAX} keywords")]
    TooManyKeywords,
    #[error("the message has {bytes} bytes; the limit is {MESSAGE_BYTES_MAX}")]
    MessageTooLarge { bytes: u64 },
    /// All 2³² − 1 UIDs or UIDVALIDITYs of a mailbox were given.
    #[error("mailbox {mailbox} cannot take another message: its UIDs are used up")]
    UidsUsedUp { mailbox: i64 },
    #[error("{} is not a Maildir: it has no folders 'cur' and 'new'", path.display())]
    NotAMaildir { path: PathBuf },
    #[error("{} is not an mbox file: it does not begin with \"From \"", path.display())]
    NotAnMbox { path: PathBuf },
    #[error("{} exists already and is not empty", path.display())]
    NotEmpty { path: PathBuf },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("an address is longer than {ADDRESS_BYTES_MAX} bytes")]
    AddressTooLong,
    /// The delivery was sealed for another key or another vault, or a byte of it has changed. These
    /// cases cannot be distinguished.
    #[error("the delivery does not open with the key of this vault")]
    WrongKey,
    /// The bytes have another version of the format.
    #[error("version {version} of the sealed delivery is not known")]
    UnknownVersion { version: u8 },
    /// A row of the vault, or a delivery, contains a value that this program never writes.
    #[error("{what} is damaged")]
    Damaged { what: &'static str },
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

impl From<rusqlite::Error> for Error {
    fn from(source: rusqlite::Error) -> Self {
        Self::Engine(source.into())
    }
}
