//! The codec: the one way from a change to a message's content and back.
//!
//! A file with a recovery phrase seals every content that it makes, and takes no content that is
//! not sealed with its key; a file without one does neither. Nothing else in this crate encodes or
//! decodes a change, so no path to the server can forget it.
//!
//! # Invariants
//! - With a key, what was not sealed with it under this very timestamp is no change, whoever sent
//!   it: a server can make messages, but none that are shown.

use bytes::Bytes;
use crdt::{
    Change, DecodeError, EncryptionMode, Message, SealKey, Timestamp, UnsealError, sealing_key_id,
};
use rusqlite::Connection;

use crate::error::Result;
use crate::sync::recovery_phrase;

/// Why a content in the log is no change here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RejectionReason {
    /// Sealed, and this file has no key.
    #[error("encrypted, and this file has no recovery phrase")]
    MissingKey,
    /// Not sealed, and this file has a key.
    #[error("not encrypted")]
    NotEncrypted,
    #[error(transparent)]
    Undecryptable(UnsealError),
    /// Of a later version, or none.
    #[error(transparent)]
    Undecodable(DecodeError),
}

pub(crate) struct ContentCodec {
    key: Option<SealKey>,
}

impl ContentCodec {
    /// Of a file that seals nothing.
    pub(crate) const PLAIN: Self = Self { key: None };

    /// With the file's key, if it has one.
    pub(crate) fn load(db: &Connection) -> Result<Self> {
        Ok(Self { key: recovery_phrase::load(db)?.map(|phrase| phrase.key()) })
    }

    pub(crate) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// What this file's messages are.
    pub(crate) fn encryption_mode(&self) -> EncryptionMode {
        self.key.as_ref().map_or(EncryptionMode::Plain, |key| EncryptionMode::EndToEnd(key.id()))
    }

    /// The message that says this.
    pub(crate) fn encode(&self, timestamp: Timestamp, change: &Change) -> Message {
        self.seal(timestamp, change.encode())
    }

    /// The message with this content, which is sealed if there is a key. All devices make the same
    /// one.
    pub(crate) fn seal(&self, timestamp: Timestamp, content: Bytes) -> Message {
        let content = match &self.key {
            None => content,
            Some(key) => key.seal(timestamp, &content, key.nonce_tail(timestamp, &content)),
        };
        Message { timestamp, content }
    }

    /// A message's content, in plain; it may be of a later version, which others can read. `None` if
    /// it does not open, or is not in this form: such a message is never sent.
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

    /// Whether a content says that it has the form of this file's messages.
    pub(crate) fn is_own_form(&self, content: &[u8]) -> bool {
        sealing_key_id(content) == self.key.as_ref().map(SealKey::id)
    }

    /// What a message says.
    pub(crate) fn decode(&self, message: &Message) -> Result<Change, RejectionReason> {
        if message.timestamp == Timestamp::ZERO {
            // The state says "never" with it.
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
