//! Counts the messages that a device has received and cannot read.

use crdt::{Timestamp, UnsealError};
use serde::Serialize;
use utoipa::ToSchema;

use super::content_codec::RejectionReason;
use crate::inspect::json;

/// The number of timestamps that are reported. It suffices to find the cause, and a server that
/// changes every message does not fill the screen.
const TIMESTAMPS_COUNT_MAX: usize = 5;

/// Received messages that cannot be used here. They stay in the log, so that their timestamps
/// cannot be reused, and are never shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct RejectedMessages {
    /// The number of messages for each reason.
    pub by_reason: RejectionCounts,
    /// The timestamps of the first rejected messages, at most five.
    #[serde(serialize_with = "json::texts")]
    #[schema(value_type = Vec<String>)]
    pub timestamps: Vec<Timestamp>,
}

/// The number of rejected messages for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct RejectionCounts {
    /// The number of messages that are malformed, come from a later version of Warren, or have an
    /// invalid timestamp.
    pub undecodable: u64,
    /// The number of messages that are not encrypted, although this file is end-to-end encrypted:
    /// anyone could have created them.
    pub not_encrypted: u64,
    /// The number of messages that are encrypted with another key.
    pub wrong_key: u64,
    /// The number of messages whose encrypted content is truncated.
    pub truncated: u64,
    /// The number of messages whose encrypted content has the timestamp of another message.
    pub replayed: u64,
    /// The number of messages whose encrypted content was changed by someone without the key.
    pub tampered: u64,
}

impl RejectionCounts {
    fn total(&self) -> u64 {
        let Self { undecodable, not_encrypted, wrong_key, truncated, replayed, tampered } = self;
        undecodable + not_encrypted + wrong_key + truncated + replayed + tampered
    }
}

impl RejectedMessages {
    /// Returns the number of rejected messages.
    pub fn count(&self) -> u64 {
        self.by_reason.total()
    }

    pub(crate) fn add_all(&mut self, others: Self) {
        let (counts, more) = (&mut self.by_reason, others.by_reason);
        counts.undecodable += more.undecodable;
        counts.not_encrypted += more.not_encrypted;
        counts.wrong_key += more.wrong_key;
        counts.truncated += more.truncated;
        counts.replayed += more.replayed;
        counts.tampered += more.tampered;
        let room = TIMESTAMPS_COUNT_MAX.saturating_sub(self.timestamps.len());
        self.timestamps.extend(others.timestamps.into_iter().take(room));
    }

    pub(crate) fn add(&mut self, timestamp: Timestamp, refusal: RejectionReason) {
        let counts = &mut self.by_reason;
        let count = match refusal {
            RejectionReason::Undecodable(_) => &mut counts.undecodable,
            RejectionReason::NotEncrypted
            | RejectionReason::Undecryptable(UnsealError::NotSealed) => &mut counts.not_encrypted,
            RejectionReason::MissingKey | RejectionReason::Undecryptable(UnsealError::WrongKey) => {
                &mut counts.wrong_key
            }
            RejectionReason::Undecryptable(UnsealError::Truncated) => &mut counts.truncated,
            RejectionReason::Undecryptable(UnsealError::Replayed) => &mut counts.replayed,
            RejectionReason::Undecryptable(UnsealError::Tampered) => &mut counts.tampered,
        };
        *count += 1;
        if self.timestamps.len() < TIMESTAMPS_COUNT_MAX {
            self.timestamps.push(timestamp);
        }
    }
}
