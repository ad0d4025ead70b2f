//! Implements `warren mail show`: shows a message.

use std::io::Write;

use clap::Args;
use indicatif::DecimalBytes;
use mail_store::{AttachmentSummary, INBOX, StoredMessage};
use protocol::ErrorCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::list::MailListItem;
use super::mail_account::{MailAccountArgs, find_mailbox};
use crate::output::{CommandError, Printer, format_time};

/// Show the text of a message, or write all of it as it arrived.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren mail show 12 --login ada\n  \
                        warren mail show 12 --mailbox Sent --raw --login ada > message.eml")]
pub(crate) struct MailShowArgs {
    /// UID of the message, from `warren mail list`.
    uid: u32,
    /// Mailbox that the message is in.
    #[arg(long, default_value = INBOX)]
    mailbox: String,
    /// Write the message byte for byte to standard output.
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    account: MailAccountArgs,
}

/// The output of `warren mail show`.
#[derive(Serialize, ToSchema)]
pub(crate) struct MailShowOutput {
    /// The message as `warren mail list` lists it.
    message: MailListItem,
    /// The text of the message: its plain text, or else that of its HTML.
    text: String,
    /// The parts that are not shown as text.
    attachments: Vec<MailAttachmentItem>,
}

/// An attachment in the output of `warren mail show`.
#[derive(Serialize, ToSchema)]
pub(crate) struct MailAttachmentItem {
    /// The name of its file; null if it has none.
    file_name: Option<String>,
    /// Its media type, such as `image/png`.
    media_type: String,
    /// Its size in bytes, as it is encoded in the message.
    encoded_bytes: u64,
}

pub(super) fn run(arguments: &MailShowArgs, output: Printer) -> anyhow::Result<()> {
    let mail = arguments.account.open(output)?;
    let mailbox = find_mailbox(&mail.vault, &arguments.mailbox)?;
    let (uid, path) = (arguments.uid, mailbox.path);
    let missing = || {
        let message = format!("mailbox {path} has no message with the UID {uid}");
        CommandError::new(ErrorCode::MessageNotFound, message)
    };
    let stored = mail.vault.message(mailbox.id, uid)?.ok_or_else(missing)?;
    if arguments.raw {
        // A reader that closes the pipe (`| head`) is not an error.
        drop(std::io::stdout().lock().write_all(&stored.bytes));
        return Ok(());
    }
    let shown = MailShowOutput {
        message: MailListItem::new(&path, &stored.entry),
        text: stored.text(),
        attachments: stored.attachments().into_iter().map(MailAttachmentItem::from).collect(),
    };
    print(&shown, &stored, output);
    output.json(&shown)
}

impl From<AttachmentSummary> for MailAttachmentItem {
    fn from(attachment: AttachmentSummary) -> Self {
        let AttachmentSummary { file_name, media_type, bytes } = attachment;
        Self { file_name, media_type, encoded_bytes: bytes as u64 }
    }
}

fn print(shown: &MailShowOutput, stored: &StoredMessage, output: Printer) {
    let fields = stored.entry.fields();
    let sent = stored.entry.sent_s.and_then(|sent_s| u64::try_from(sent_s).ok());
    let lines = [
        ("From", fields.from()),
        ("To", fields.to()),
        ("Cc", fields.cc()),
        ("Date", sent.map(|sent_s| format_time(sent_s.saturating_mul(1_000)))),
        ("Subject", fields.subject().map(str::to_owned)),
    ];
    for (name, value) in lines {
        if let Some(value) = value {
            output.line(format_args!("{name}: {value}"));
        }
    }
    output.text(format_args!("\n{}", shown.text.replace("\r\n", "\n").trim_end()));
    for attachment in &shown.attachments {
        let name = attachment.file_name.as_deref().unwrap_or("(no name)");
        let (media_type, bytes) = (&attachment.media_type, DecimalBytes(attachment.encoded_bytes));
        output.line(format_args!("attachment: {name} ({media_type}, {bytes})"));
    }
}
