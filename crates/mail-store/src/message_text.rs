//! The text of a message, as a person reads and searches it.

use crate::error::Result;
use crate::header_fields::{HeaderFields, decode_text};
use crate::mail_vault::MailVault;
use crate::mailboxes::MailboxId;
use crate::messages::{MailboxEntry, StoredMessage};
use crate::part_tree::PartRange;

/// The number of messages that a search lists at a time.
const LISTED_COUNT: u32 = 200;

/// A part of a message that is not shown as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentSummary {
    pub file_name: Option<String>,
    /// Such as `image/png`.
    pub media_type: String,
    /// The length of its encoded body in bytes.
    pub bytes: usize,
}

impl MailboxEntry {
    /// Returns the fields of the header.
    pub fn fields(&self) -> HeaderFields {
        HeaderFields::parse(&self.header)
    }
}

impl StoredMessage {
    /// Returns the text to read: the plain text, or that of the HTML if the plain text is empty.
    pub fn text(&self) -> String {
        let shown = |media_type: &str| {
            let texts = self
                .leaves()
                .filter(|(_, header)| !header.is_attachment() && header.media_type() == media_type);
            texts.filter_map(|(part, header)| self.decode(part, &header)).collect::<Vec<_>>()
        };
        let plain = shown("text/plain");
        let is_empty = plain.iter().all(|text| text.trim().is_empty());
        let texts = if is_empty { shown("text/html") } else { plain };
        texts.join("\n")
    }

    /// Returns the parts that are attachments or no text.
    pub fn attachments(&self) -> Vec<AttachmentSummary> {
        let attached = self.leaves().filter(|(part, header)| {
            header.is_attachment() || !(header.is_text() || part.body == part.end)
        });
        let summary = |(part, header): (PartRange, HeaderFields)| AttachmentSummary {
            file_name: header.file_name().map(str::to_owned),
            media_type: header.media_type(),
            bytes: part.end - part.body,
        };
        attached.map(summary).collect()
    }

    fn leaves(&self) -> impl Iterator<Item = (PartRange, HeaderFields)> {
        self.parts.leaves().map(|part| {
            let header = self.bytes.get(part.header..part.body).unwrap_or_default();
            (part, HeaderFields::parse(header))
        })
    }

    fn decode(&self, part: PartRange, header: &HeaderFields) -> Option<String> {
        decode_text(self.bytes.get(part.body..part.end)?, header)
    }
}

/// Calls `found` for each message of a mailbox that contains a text, the newest first, until it
/// returns false. The text is searched in the subject, the addresses and all text parts, whatever
/// the case of its letters.
pub fn search(
    vault: &MailVault,
    mailbox: MailboxId,
    text: &str,
    mut found: impl FnMut(MailboxEntry) -> bool,
) -> Result<()> {
    let text = text.to_lowercase();
    let contains = |field: &str| field.to_lowercase().contains(&text);
    let mut before = u32::MAX;
    loop {
        let entries = vault.list(mailbox, before, LISTED_COUNT)?;
        let Some(oldest) = entries.last() else { return Ok(()) };
        before = oldest.uid;
        for entry in entries {
            let fields = entry.fields();
            let addresses = [fields.from(), fields.to(), fields.cc()];
            let is_found = fields.subject().is_some_and(contains)
                || addresses.iter().flatten().any(|field| contains(field))
                || vault.message(mailbox, entry.uid)?.is_some_and(|message| {
                    let mut leaves = message.leaves();
                    leaves.any(|(part, header)| {
                        message.decode(part, &header).is_some_and(|text| contains(&text))
                    })
                });
            if is_found && !found(entry) {
                return Ok(());
            }
        }
    }
}
