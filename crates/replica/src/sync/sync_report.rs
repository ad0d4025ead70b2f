//! What a sync did, for people and programs.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use protocol::SyncOutcome;

use crate::capture::renumber::RenumberedRow;
use crate::log::rejected::RejectedMessages;
use crate::schema::schema_conflict::SchemaConflict;

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
        let deleted = ["resurrected", "dangling_reference"];
        self.visibility_overrides
            .iter()
            .filter(|(kind, _)| !deleted.contains(kind))
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
