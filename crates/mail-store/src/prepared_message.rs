//! A message that is ready to be stored: parsed, cut into segments and compressed.
//!
//! All work that a message alone determines is done here, before the vault's one writer has its
//! turn.

use crate::content::{self, DigestKey, PreparedSegment};
use crate::error::{Error, Result};
use crate::header_fields::HeaderFields;
use crate::limits::{HEADER_BYTES_MAX, MESSAGE_BYTES_MAX};
use crate::part_tree::PartTree;

/// A message that is ready to be stored in one vault.
pub struct PreparedMessage {
    pub(crate) size: usize,
    pub(crate) sent_s: Option<i64>,
    pub(crate) has_attachment: bool,
    pub(crate) parts: Vec<u8>,
    pub(crate) headers: Vec<u8>,
    pub(crate) segments: Vec<PreparedSegment>,
}

impl PreparedMessage {
    /// Returns [`Error::MessageTooLarge`] above [`MESSAGE_BYTES_MAX`].
    pub(crate) fn new(message: &[u8], key: &DigestKey) -> Result<Self> {
        let bytes = message.len() as u64;
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(Error::MessageTooLarge { bytes });
        }
        let parts = PartTree::parse(message);
        let root = parts.root();
        let header = &message[root.header..root.body];
        let has_attachment = parts
            .leaves()
            .any(|part| HeaderFields::parse(&message[part.header..part.body]).is_attachment());
        let listed = &header[..header.len().min(HEADER_BYTES_MAX)];
        let no_memory = |frame: Option<Vec<u8>>| frame.ok_or(Error::MessageTooLarge { bytes });
        Ok(Self {
            size: message.len(),
            sent_s: HeaderFields::parse(header).sent_s(),
            has_attachment,
            parts: parts.to_bytes(),
            headers: no_memory(content::compress(listed))?,
            segments: content::prepare(message, &parts, key),
        })
    }
}
