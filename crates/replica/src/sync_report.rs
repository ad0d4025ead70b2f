//! What a sync did, for people and programs.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crdt::{Timestamp, UnsealError};
use protocol::SyncOutcome;

use crate::content_codec::RejectionReason;
use crate::renumber::RenumberedRow;
use crate::schema_conflict::SchemaConflict;

/// What a sync did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncReport {
    /// Messages that were new to the server.
    pub sent_count: u64,
    /// Messages that were new to this device.
    pub received_count: u64,
    /// Whether both sets were equal at the end.
    pub in_sync: bool,
    /// Whether the sets differed, and both sides had to be shown to each other.
    pub reconciled: bool,
    /// What both sides differ in, if they do.
    pub discrepancy: Option<SetDiscrepancy>,
    /// Messages that the server holds.
    pub server_messages_count: u64,
    /// Whether this file turned out to be a copy, and became a device of its own.
    pub registered_copy: bool,
    /// Messages that were received, are kept, and are not shown.
    pub rejected: RejectedMessages,
    /// Messages that are not sent, since the server calls their timestamps invalid: all that this
    /// file holds.
    pub set_aside: u64,
    /// Messages of which something was erased, on another device or from this one.
    pub erased: u64,
    /// Messages of which something was erased here, and that the server has as they were:
    /// [`crate::ErasureTarget::Again`].
    pub unerased: u64,
    /// Messages that the file keeps and does not show, of this sync and earlier ones.
    pub refused_in_all: u64,
    /// Columns and tables that other devices have and this file has not: what they hold waits.
    pub unknown: Vec<String>,
    /// Why pages of the file may still hold what was erased, if that is so.
    pub unscrubbed: Option<String>,
    /// Edits that lost to others made without knowing of them, in rows where such edits met in this
    /// sync: [`crate::Replica::conflicts`].
    pub conflicts_count: u64,
    /// Rows that are not as the messages say, by the kinds of [`crate::OverriddenRow`], zeros
    /// included.
    pub visibility_overrides: BTreeMap<&'static str, u64>,
    /// Tables that cannot be as other devices have them.
    pub schema_conflicts: Vec<SchemaConflict>,
    /// Tables and columns that were created.
    pub created_tables: Vec<String>,
    /// What other devices have for the tables that were created, and no device takes from another,
    /// since it is SQL: `trigger NAME`, `view NAME`, `CHECK (…)`, `generated column NAME`, `UNIQUE
    /// index NAME`.
    pub left_out: Vec<String>,
    /// New rows of this device that got another key.
    pub renumbered_rows: Vec<RenumberedRow>,
    /// New rows of this device that became one with another device's, which was equal but for the
    /// key, as only one of them could be shown.
    pub joined: Vec<RenumberedRow>,
    /// How far the device's clock was off, if far enough to be corrected.
    pub clock_offset_ms: i64,
    /// What the server has lost and still lacks after this sync: neither this device nor another
    /// one that has synced since had it.
    pub server_loss: Option<protocol::ServerLoss>,
}

impl SyncReport {
    /// Live rows that are not shown: of those that collide, and those that do not fit their table.
    pub fn hidden_rows_count(&self) -> u64 {
        let kept = ["kept", "missing"];
        self.visibility_overrides
            .iter()
            .filter(|(kind, _)| !kept.contains(kind))
            .map(|(_, n)| n)
            .sum()
    }

    /// A row that moves again is reported once, with its first and its last key.
    pub(crate) fn add_renumbered(&mut self, renumbered: Vec<RenumberedRow>) {
        let known = self.renumbered_rows.len();
        for row in renumbered {
            let mut before = self.renumbered_rows[..known].iter_mut();
            match before.find(|before| before.table == row.table && before.new_key == row.old_key) {
                Some(before) => before.new_key = row.new_key,
                None => self.renumbered_rows.push(row),
            }
        }
    }

    /// A row that had moved before it was joined is reported once, with its first key.
    pub(crate) fn add_joined(&mut self, joined: Vec<RenumberedRow>) {
        for mut row in joined {
            let is_it =
                |before: &RenumberedRow| before.table == row.table && before.new_key == row.old_key;
            if let Some(place) = self.renumbered_rows.iter().position(is_it) {
                row.old_key = self.renumbered_rows.remove(place).old_key;
            }
            self.joined.push(row);
        }
    }
}

/// What a server's set differs in from this device's after all that could be exchanged was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetDiscrepancy {
    /// It says that it holds so many more messages than it sends.
    Withheld(u64),
    /// It has taken so many messages and does not hold them.
    Lost(u64),
    /// It holds as many, and its fingerprint is another one: other contents, or a lie.
    Other,
}

impl SetDiscrepancy {
    pub(crate) fn from_outcome(outcome: &SyncOutcome, device_count: u64) -> Option<Self> {
        if outcome.in_sync {
            return None;
        }
        let server_count = outcome.server.count;
        Some(match server_count.cmp(&device_count) {
            Ordering::Greater => Self::Withheld(server_count - device_count),
            Ordering::Less => Self::Lost(device_count - server_count),
            Ordering::Equal => Self::Other,
        })
    }

    /// As programs see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Withheld(_) => "withheld",
            Self::Lost(_) => "lost",
            Self::Other => "other",
        }
    }
}

/// Received messages that are no changes here. They stay in the log, where nothing can take their
/// timestamps, and are never shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RejectedMessages {
    /// Of a later version of Warren, or of none; or not under a timestamp that a message may have.
    pub unreadable: u64,
    /// Not sealed, though this file encrypts end to end: anybody could have made them.
    pub plain: u64,
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

/// Enough to look for them; a server that changes everything would else fill the screen.
const TIMESTAMPS_COUNT_MAX: usize = 5;

impl RejectedMessages {
    /// All of them.
    pub fn count(&self) -> u64 {
        self.by_reason().iter().map(|(_, count)| count).sum()
    }

    /// How many for each reason, by the names that programs see.
    pub fn by_reason(&self) -> [(&'static str, u64); 6] {
        [
            ("unreadable", self.unreadable),
            ("plain", self.plain),
            ("wrong_key", self.wrong_key),
            ("truncated", self.truncated),
            ("replayed", self.replayed),
            ("tampered", self.tampered),
        ]
    }

    pub(crate) fn add_all(&mut self, others: Self) {
        self.unreadable += others.unreadable;
        self.plain += others.plain;
        self.wrong_key += others.wrong_key;
        self.truncated += others.truncated;
        self.replayed += others.replayed;
        self.tampered += others.tampered;
        let room = TIMESTAMPS_COUNT_MAX.saturating_sub(self.timestamps.len());
        self.timestamps.extend(others.timestamps.into_iter().take(room));
    }

    pub(crate) fn add(&mut self, timestamp: Timestamp, refusal: RejectionReason) {
        let count = match refusal {
            RejectionReason::Undecodable(_) => &mut self.unreadable,
            RejectionReason::NotEncrypted
            | RejectionReason::Undecryptable(UnsealError::NotSealed) => &mut self.plain,
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
