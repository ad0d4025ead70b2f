//! Implements `warren mail export`: exports mail for other programs.

use std::path::PathBuf;

use clap::Args;
use doctor::counted;
use indicatif::DecimalBytes;
use mail_store::{INBOX, MailExportReport, export_maildir, export_mbox};
use serde::Serialize;
use utoipa::ToSchema;

use super::mail_account::{MailAccountArgs, MailFormat};
use crate::output::{CommandError, Printer};
use crate::signals;

/// Export mail to a Maildir or an mbox file.
///
/// Messages are written byte for byte. A Maildir gets all mailboxes with flags and dates; an mbox
/// file gets one mailbox, with the dates only. Existing mail is never replaced: give a new file, or
/// a new or empty folder.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren mail export maildir ./ada-mail --login ada\n  \
                        warren mail export mbox sent.mbox --mailbox Sent --login ada")]
pub(crate) struct MailExportArgs {
    /// Format to write.
    #[arg(value_enum)]
    format: MailFormat,
    /// Folder or file to create.
    path: PathBuf,
    /// Mailbox to export to an mbox file [default: INBOX].
    #[arg(long)]
    mailbox: Option<String>,
    #[command(flatten)]
    account: MailAccountArgs,
}

/// The output of `warren mail export`.
#[derive(Serialize, ToSchema)]
pub(crate) struct MailExportOutput {
    /// The number of messages that were exported.
    messages_count: u64,
    /// Their size in bytes.
    messages_bytes: u64,
}

pub(super) fn run(arguments: &MailExportArgs, output: Printer) -> anyhow::Result<()> {
    let is_mbox = arguments.format == MailFormat::Mbox;
    let only_mbox = || CommandError::usage("--mailbox is for mbox files; a Maildir gets them all");
    anyhow::ensure!(is_mbox || arguments.mailbox.is_none(), only_mbox());
    signals::remove_temporary_files_first()?;
    let mail = arguments.account.open(output)?;
    let bar = output.progress().with_message("exporting");
    let mut progress = |report: &MailExportReport| bar.set_position(report.messages_count);
    let mailbox = arguments.mailbox.as_deref().unwrap_or(INBOX);
    let exported = match arguments.format {
        MailFormat::Maildir => export_maildir(&mail.vault, &arguments.path, &mut progress),
        MailFormat::Mbox => export_mbox(&mail.vault, mailbox, &arguments.path, &mut progress),
    };
    bar.finish_and_clear();
    let MailExportReport { messages_count, bytes } = exported?;
    let messages = counted(messages_count, "message", "messages");
    let path = arguments.path.display();
    output.line(format_args!("exported {messages} to {path}, {}", DecimalBytes(bytes)));
    output.json(&MailExportOutput { messages_count, messages_bytes: bytes })
}
