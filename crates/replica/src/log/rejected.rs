//! Messages that a device has and cannot read.

use crdt::{Timestamp, UnsealError};

use super::content_codec::RejectionReason;

/// Enough to look for them; a server that changes everything would else fill the screen.
const TIMESTAMPS_COUNT_MAX: usize = 5;

/// Received messages that are no changes here. They stay in the log, where nothing can take their
/// timestamps, and are never shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RejectedMessages {
    /// Of a later version of Warren, or of none; or not under a timestamp that a message may have.
    pub undecodable: u64,
    /// Not sealed, though this file encrypts end to end: anybody could have made them.
    pub not_encrypted: u64,
    /// Sealed with another key.
    pub wrong_key: u64,
    /// Sealed, their end missing.
    pub truncated: u64,
    /// Sealed, under another message's timestamp.
    pub replayed: u64,
    /// Sealed, and changed by somebody without the key.
    pub tampered: u64,
    /// Some of them.
    pub timestamps: Vec<Timestamp>,
}

impl RejectedMessages {
    /// All of them.
    pub fn count(&self) -> u64 {
        self.by_reason().iter().map(|(_, count)| count).sum()
    }

    /// How many for each reason, by the names that programs see.
    pub fn by_reason(&self) -> [(&'static str, u64); 6] {
        [
            ("undecodable", self.undecodable),
            ("not_encrypted", self.not_encrypted),
            ("wrong_key", self.wrong_key),
            ("truncated", self.truncated),
            ("replayed", self.replayed),
            ("tampered", self.tampered),
        ]
    }

    pub(crate) fn add_all(&mut self, others: Self) {
        self.undecodable += others.undecodable;
        self.not_encrypted += others.not_encrypted;
        self.wrong_key += others.wrong_key;
        self.truncated += others.truncated;
        self.replayed += others.replayed;
        self.tampered += others.tampered;
        let room = TIMESTAMPS_COUNT_MAX.saturating_sub(self.timestamps.len());
        self.timestamps.extend(others.timestamps.into_iter().take(room));
    }

    pub(crate) fn add(&mut self, timestamp: Timestamp, refusal: RejectionReason) {
        let count = match refusal {
            RejectionReason::Undecodable(_) => &mut self.undecodable,
            RejectionReason::NotEncrypted
            | RejectionReason::Undecryptable(UnsealError::NotSealed) => &mut self.not_encrypted,
            RejectionReason::MissingKey | RejectionReason::Undecryptable(UnsealError::WrongKey) => {
                &mut self.wrong_key
            }
            RejectionReason::Undecryptable(UnsealError::Truncated) => &mut self.truncated,
            RejectionReason::Undecryptable(UnsealError::Replayed) => &mut self.replayed,
            RejectionReason::Undecryptable(UnsealError::Tampered) => &mut self.tampered,
        };
        *count += 1;
        if self.timestamps.len() < TIMESTAMPS_COUNT_MAX {
            self.timestamps.push(timestamp);
        }
    }
}
