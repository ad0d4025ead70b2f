//! Converts changes to the contents of messages and back, with end-to-end encryption.
//!
//! A file with a recovery phrase seals every content that it creates, and accepts only contents
//! that are sealed with its key; a file without one does neither. Nothing else in this crate
//! encodes or decodes a change, so no path to the server can forget to seal.
//!
//! # Invariants
//! - With a key, a content that was not sealed with it under this very timestamp is not a change,
//!   whoever sent it: a server can create messages, but none that become visible.

use bytes::Bytes;
use crdt::{
    Change, DecodeError, EncryptionMode, Message, SealKey, Timestamp, UnsealError, sealing_key_id,
};
use rusqlite::Connection;

use crate::error::Result;
use crate::sync::recovery_phrase;

/// The reason why a content in the log is not a change here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RejectionReason {
    /// The content is sealed, and this file has no key.
    #[error("encrypted, and this file has no recovery phrase")]
    MissingKey,
    /// The content is not sealed, and this file has a key.
    #[error("not encrypted")]
    NotEncrypted,
    #[error(transparent)]
    Undecryptable(UnsealError),
    /// The content has a later version's format, or is malformed.
    #[error(transparent)]
    Undecodable(DecodeError),
}

pub(crate) struct ContentCodec {
    key: Option<SealKey>,
}

impl ContentCodec {
    /// The codec of a file that seals nothing.
    pub(crate) const PLAIN: Self = Self { key: None };

    /// Loads the codec with the file's key, if it has one.
    pub(crate) fn load(db: &Connection) -> Result<Self> {
        Ok(Self { key: recovery_phrase::load(db)?.map(|phrase| phrase.key()) })
    }

    pub(crate) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Returns the encryption mode of this file's messages.
    pub(crate) fn encryption_mode(&self) -> EncryptionMode {
        self.key.as_ref().map_or(EncryptionMode::Plain, |key| EncryptionMode::EndToEnd(key.id()))
    }

    /// Encodes a change as a message.
    pub(crate) fn encode(&self, timestamp: Timestamp, change: &Change) -> Message {
        self.seal(timestamp, change.encode())
    }

    /// Creates the message with this content, sealed if there is a key. All devices create
    /// identical messages.
    pub(crate) fn seal(&self, timestamp: Timestamp, content: Bytes) -> Message {
        let content = match &self.key {
            None => content,
            Some(key) => key.seal(timestamp, &content, key.nonce_tail(timestamp, &content)),
        };
        Message { timestamp, content }
    }

    /// Returns a message's content, unsealed; it may be of a later version, which others can read.
    /// Returns `None` if it cannot be unsealed or has another encryption mode: such a message is
    /// never sent.
    pub(crate) fn open(&self, message: &Message) -> Option<Bytes> {
        let Message { timestamp, content } = message;
        if *timestamp == Timestamp::ZERO {
            return None;
        }
        match &self.key {
            None => sealing_key_id(content).is_none().then(|| content.clone()),
            Some(key) => key.open(*timestamp, content).ok(),
        }
    }

    /// Returns whether the header of a content has the encryption mode of this file's messages.
    pub(crate) fn is_own_form(&self, content: &[u8]) -> bool {
        sealing_key_id(content) == self.key.as_ref().map(SealKey::id)
    }

    /// Decodes the change of a message.
    pub(crate) fn decode(&self, message: &Message) -> Result<Change, RejectionReason> {
        if message.timestamp == Timestamp::ZERO {
            // Row states use this timestamp for "never".
            return Err(RejectionReason::Undecodable(DecodeError::Malformed));
        }
        let content = &message.content;
        let Some(key) = &self.key else {
            if sealing_key_id(content).is_some() {
                return Err(RejectionReason::MissingKey);
            }
            return Change::decode(content).map_err(RejectionReason::Undecodable);
        };
        match key.open(message.timestamp, content) {
            Ok(opened) => Change::decode(&opened).map_err(RejectionReason::Undecodable),
            // A later version's content cannot be told from a forged one; neither is shown.
            Err(UnsealError::NotSealed) => match Change::decode(content) {
                Err(DecodeError::Version(version)) => {
                    Err(RejectionReason::Undecodable(DecodeError::Version(version)))
                }
                _ => Err(RejectionReason::NotEncrypted),
            },
            Err(error) => Err(RejectionReason::Undecryptable(error)),
        }
    }
}
