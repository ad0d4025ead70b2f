//! Implements `warren mail import`: imports mail from other programs.

use std::path::PathBuf;

use clap::Args;
use doctor::counted;
use indicatif::DecimalBytes;
use mail_store::{INBOX, MailImportReport, import_maildir, import_mbox};
use serde::Serialize;
use utoipa::ToSchema;

use super::mail_account::{MailAccountArgs, MailFormat};
use crate::output::exit_status::STATUS_WARNING;
use crate::output::{CommandError, NonZeroExit, Printer};
use crate::signals;

/// Import mail from a Maildir or an mbox file.
///
/// Messages are stored byte for byte, with their flags and dates. The source is not
/// changed. An import that was interrupted can be run again: it stores only messages that it has
/// not stored before. Exits with status 3 if a message was too large.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren mail import maildir ~/Maildir --login ada\n  \
                        warren mail import mbox archive.mbox --mailbox Archive --login ada")]
pub(crate) struct MailImportArgs {
    /// Format of the mail.
    #[arg(value_enum)]
    format: MailFormat,
    /// Folder or file to import.
    path: PathBuf,
    /// Mailbox for the messages of an mbox file; created if it does not exist [default: INBOX].
    #[arg(long)]
    mailbox: Option<String>,
    #[command(flatten)]
    account: MailAccountArgs,
}

/// The output of `warren mail import`.
#[derive(Serialize, ToSchema)]
pub(crate) struct MailImportOutput {
    /// The number of messages that were stored.
    stored_count: u64,
    /// The number of messages that an earlier import from the same place has stored.
    known_count: u64,
    /// The size of all these messages in bytes.
    messages_bytes: u64,
    /// The messages that could not be stored.
    refused: Vec<RefusedMailOutput>,
}

/// A message that could not be stored.
#[derive(Serialize, ToSchema)]
pub(crate) struct RefusedMailOutput {
    /// The file of the message, or of the mbox.
    path: String,
    /// The number of the message in the mbox, from 1; null in a Maildir.
    message_number: Option<u64>,
    /// Why it could not be stored.
    reason: String,
}

pub(super) fn run(arguments: &MailImportArgs, output: Printer) -> anyhow::Result<()> {
    let is_mbox = arguments.format == MailFormat::Mbox;
    let only_mbox = || CommandError::usage("--mailbox is for mbox files; a Maildir has mailboxes");
    anyhow::ensure!(is_mbox || arguments.mailbox.is_none(), only_mbox());
    signals::remove_temporary_files_first()?;
    let mail = arguments.account.open_or_create(output)?;
    let bar = output.progress().with_message("importing");
    let mut progress = |report: &MailImportReport| {
        bar.set_position(report.stored_count + report.known_count);
    };
    let mailbox = arguments.mailbox.as_deref().unwrap_or(INBOX);
    let imported = match arguments.format {
        MailFormat::Maildir => import_maildir(&mail.vault, &arguments.path, &mut progress),
        MailFormat::Mbox => import_mbox(&mail.vault, &arguments.path, mailbox, &mut progress),
    };
    bar.finish_and_clear();
    let report = imported?;
    print(&report, output);
    let refused = report.refused.into_iter().map(|message| RefusedMailOutput {
        path: message.path.display().to_string(),
        message_number: message.number,
        reason: message.reason,
    });
    let refused: Vec<_> = refused.collect();
    let has_refused = !refused.is_empty();
    let MailImportReport { stored_count, known_count, bytes, .. } = report;
    output.json(&MailImportOutput { stored_count, known_count, messages_bytes: bytes, refused })?;
    if has_refused { Err(NonZeroExit(STATUS_WARNING).into()) } else { Ok(()) }
}

fn print(report: &MailImportReport, output: Printer) {
    let messages = counted(report.stored_count, "message", "messages");
    output.line(format_args!("imported {messages}"));
    if report.known_count > 0 {
        let messages = counted(report.known_count, "message", "messages");
        output.line(format_args!("  {messages} had been imported before"));
    }
    output.line(format_args!("  {} in all", DecimalBytes(report.bytes)));
    for message in &report.refused {
        let (path, reason) = (message.path.display(), &message.reason);
        match message.number {
            Some(number) => output.line(format_args!("skipped {path}, message {number}: {reason}")),
            None => output.line(format_args!("skipped {path}: {reason}")),
        }
    }
}
