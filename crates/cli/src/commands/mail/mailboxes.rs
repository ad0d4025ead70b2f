//! Implements `warren mail mailboxes`: lists the mailboxes of an account.

use clap::Args;
use doctor::counted;
use indicatif::DecimalBytes;
use mail_store::Mailbox;
use serde::Serialize;
use utoipa::ToSchema;

use super::mail_account::MailAccountArgs;
use crate::output::Printer;

/// List the mailboxes of an account.
#[derive(Args)]
#[command(after_help = "Example:\n  warren mail mailboxes --login ada")]
pub(crate) struct MailboxListArgs {
    #[command(flatten)]
    account: MailAccountArgs,
}

/// A mailbox in the output of `warren mail mailboxes`.
#[derive(Serialize, ToSchema)]
pub(crate) struct MailboxListItem {
    /// The name of the mailbox, with `/` between its levels.
    mailbox: String,
    /// The number of messages.
    messages_count: u64,
    /// The number of messages that are not marked as read.
    unseen_count: u64,
    /// The size of the messages in bytes, before compression.
    messages_bytes: u64,
    /// The number that changes if the mailbox's UIDs can have changed, as after a restore.
    uid_validity: u32,
    /// The UID that the next message will have.
    uid_next: u32,
    /// The mailbox's purpose, such as `\Sent` (RFC 6154); null if it has none in particular.
    special_use: Option<String>,
}

impl From<Mailbox> for MailboxListItem {
    fn from(mailbox: Mailbox) -> Self {
        Self {
            mailbox: mailbox.path,
            messages_count: mailbox.messages_count,
            unseen_count: mailbox.unseen_count,
            messages_bytes: mailbox.messages_bytes,
            uid_validity: mailbox.uid_validity,
            uid_next: mailbox.uid_next,
            special_use: mailbox.special_use,
        }
    }
}

pub(super) fn run(arguments: &MailboxListArgs, output: Printer) -> anyhow::Result<()> {
    let mail = arguments.account.open(output)?;
    let mailboxes: Vec<MailboxListItem> =
        mail.vault.mailboxes()?.into_iter().map(MailboxListItem::from).collect();
    for item in &mailboxes {
        let messages = counted(item.messages_count, "message", "messages");
        let (unread, bytes) = (item.unseen_count, DecimalBytes(item.messages_bytes));
        output.line(format_args!("{:24} {messages:>15}  {unread} unread  {bytes}", item.mailbox));
    }
    output.json(&mailboxes)
}
