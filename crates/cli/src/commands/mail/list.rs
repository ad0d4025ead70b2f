//! Implements `warren mail list` and `warren mail search`.

use clap::Args;
use mail_store::{INBOX, Mailbox, MailboxEntry, SEEN, search as search_mailbox};
use serde::Serialize;
use utoipa::ToSchema;

use super::mail_account::{MailAccountArgs, find_mailbox};
use crate::output::{Printer, format_time};

/// The number of characters of a sender in a line of the list.
const SENDER_CHARS: usize = 30;

/// List the messages of a mailbox, the newest first.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren mail list --login ada\n  \
                        warren mail list --mailbox Sent --limit 10 --login ada --json")]
pub(crate) struct MailListArgs {
    /// Mailbox to list.
    #[arg(long, default_value = INBOX)]
    mailbox: String,
    #[command(flatten)]
    page: MailPageArgs,
    /// List only messages with a UID below this one: pass the last UID of a list to continue it.
    #[arg(long, value_name = "UID")]
    before: Option<u32>,
    #[command(flatten)]
    account: MailAccountArgs,
}

/// Find messages that contain a text, the newest first.
///
/// Searches the subject, the addresses and the text of each message, whatever the case of its
/// letters. Reads every message.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren mail search invoice --login ada\n  \
                        warren mail search \"from Bob\" --mailbox Archive --login ada")]
pub(crate) struct MailSearchArgs {
    /// Text to find.
    text: String,
    /// Search only this mailbox.
    #[arg(long)]
    mailbox: Option<String>,
    #[command(flatten)]
    page: MailPageArgs,
    #[command(flatten)]
    account: MailAccountArgs,
}

/// The length of a list of messages.
#[derive(Args)]
struct MailPageArgs {
    /// Maximum number of messages to print.
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: u32,
}

/// A message in the output of `warren mail list` and `search`.
#[derive(Serialize, ToSchema)]
pub(crate) struct MailListItem {
    /// The mailbox that the message is in.
    mailbox: String,
    /// The number of the message in its mailbox, for `warren mail show`.
    uid: u32,
    /// The message's flags, such as `\Seen`, and its keywords.
    flags: Vec<String>,
    /// The time at which the message arrived, in milliseconds since 1970.
    received_ms: i64,
    /// The time at which the sender wrote it, in milliseconds since 1970; null if unknown.
    sent_ms: Option<i64>,
    /// The sender; null if the message names none.
    from: Option<String>,
    /// The recipients; null if the message names none.
    to: Option<String>,
    /// The subject; null if the message has none.
    subject: Option<String>,
    /// The size of the message in bytes.
    message_bytes: u64,
    /// Whether a part of the message is an attachment.
    attachment: bool,
}

impl MailListItem {
    pub(super) fn new(mailbox: &str, entry: &MailboxEntry) -> Self {
        let fields = entry.fields();
        Self {
            mailbox: mailbox.to_owned(),
            uid: entry.uid,
            flags: entry.flags.names().map(str::to_owned).collect(),
            received_ms: entry.received.unix_s.saturating_mul(1_000),
            sent_ms: entry.sent_s.map(|sent_s| sent_s.saturating_mul(1_000)),
            from: fields.from(),
            to: fields.to(),
            subject: fields.subject().map(str::to_owned),
            message_bytes: entry.size,
            attachment: entry.has_attachment,
        }
    }

    fn print(&self, output: Printer) {
        let unread = if self.flags.iter().any(|flag| flag == SEEN) { ' ' } else { '*' };
        let received = format_time(u64::try_from(self.received_ms).unwrap_or(0));
        let from: String = self.from.as_deref().unwrap_or("–").chars().take(SENDER_CHARS).collect();
        let (uid, subject) = (self.uid, self.subject.as_deref().unwrap_or("(no subject)"));
        output.line(format_args!("{uid:>6} {unread} {received}  {from:SENDER_CHARS$}  {subject}"));
    }
}

pub(super) fn list(arguments: &MailListArgs, output: Printer) -> anyhow::Result<()> {
    let mail = arguments.account.open(output)?;
    let mailbox = find_mailbox(&mail.vault, &arguments.mailbox)?;
    let before = arguments.before.unwrap_or(u32::MAX);
    let entries = mail.vault.list(mailbox.id, before, arguments.page.limit)?;
    let items = entries.iter().map(|entry| MailListItem::new(&mailbox.path, entry));
    let items: Vec<MailListItem> = items.collect();
    for item in &items {
        item.print(output);
    }
    if items.is_empty() {
        let than = arguments.before.map_or_else(String::new, |uid| format!(" below {uid}"));
        output.line(format_args!("{} has no messages{than}", mailbox.path));
    }
    output.json(&items)
}

pub(super) fn search(arguments: &MailSearchArgs, output: Printer) -> anyhow::Result<()> {
    let mail = arguments.account.open(output)?;
    let mailboxes: Vec<Mailbox> = match &arguments.mailbox {
        Some(path) => vec![find_mailbox(&mail.vault, path)?],
        None => mail.vault.mailboxes()?,
    };
    let limit = usize::try_from(arguments.page.limit)?;
    let mut items: Vec<MailListItem> = Vec::new();
    for mailbox in mailboxes {
        if items.len() >= limit {
            break;
        }
        let mut is_first = true;
        search_mailbox(&mail.vault, mailbox.id, &arguments.text, |entry| {
            if is_first {
                output.line(format_args!("{}", mailbox.path));
                is_first = false;
            }
            let item = MailListItem::new(&mailbox.path, &entry);
            item.print(output);
            items.push(item);
            items.len() < limit
        })?;
    }
    if items.is_empty() {
        output.line(format_args!("no message contains {:?}", arguments.text));
    }
    output.json(&items)
}
