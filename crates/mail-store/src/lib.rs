//! Mail on the server: mail vaults, and the spool in which deliveries wait for them.
//!
//! A mail vault is a user's mail in one encrypted SQLite file (Format 24).
//! A [`MailVault`] has mailboxes with messages. A message is stored byte for byte, compressed, and
//! is never changed. Large parts that are equal are stored once.
//!
//! A delivery can arrive while no process has the vault's key. It is sealed, so that only the vault can
//! read it ([`seal`]), and waits in the [`MailSpool`].
//!
//! # Invariants
//! - A mailbox id, UIDVALIDITY and UID together name one message for good.
//! - No text of a message is in a file in plain form.
//!
//! # Not here
//! - Keys, and who may open a vault → `accounts`. Batching, commits, open handles → `engine`.
#![forbid(unsafe_code)]

mod content;
mod error;
mod export;
mod filing;
mod header_fields;
mod import;
mod leb128;
mod limits;
mod mail_vault;
mod mailboxes;
mod message_flags;
mod message_text;
mod messages;
mod modified_utf7;
mod part_tree;
mod prepared_message;
mod schema;
mod sealed_delivery;
mod spool;

pub use error::{Error, Result};
pub use export::{MailExportReport, export_maildir, export_mbox};
pub use filing::FilingReport;
pub use header_fields::HeaderFields;
pub use import::{MailImportReport, RefusedMessage, import_maildir, import_mbox};
pub use limits::{ADDRESS_BYTES_MAX, MESSAGE_BYTES_MAX};
pub use mail_vault::MailVault;
pub use mailboxes::{INBOX, Mailbox, MailboxId};
pub use message_flags::{ANSWERED, DELETED, DRAFT, FLAGGED, FORWARDED, MessageFlags, SEEN};
pub use message_text::{AttachmentSummary, search};
pub use messages::{MailboxEntry, NewMessage, ReceivedTime, StoredMessage};
pub use part_tree::{PartRange, PartTree};
pub use prepared_message::PreparedMessage;
pub use schema::MAIL_APPLICATION_ID;
pub use sealed_delivery::delivery::MailDelivery;
pub use sealed_delivery::keys::{MailPublicKey, MailSecretKey};
pub use sealed_delivery::{seal, unseal};
pub use spool::backlog::{
    AGES_S, LISTED_COUNT_MAX, SetAsideDelivery, SpoolBacklog, SpoolTotals, VaultBacklog,
};
pub use spool::schema::SPOOL_FILE;
pub use spool::{BATCH_BYTES_MAX, BATCH_COUNT_MAX, FiledMark, MailSpool, SpooledDelivery};
