//! Reports the result of a sync, for people and programs.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use protocol::SyncOutcome;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::apply::visibility_override::VisibilityOverrideKind;
use crate::capture::renumber::RenumberedRow;
use crate::log::rejected::RejectedMessages;
use crate::schema::schema_conflict::SchemaConflict;

/// The result of a sync.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct SyncReport {
    /// The number of messages that were new to the server.
    pub sent_count: u64,
    /// The number of messages that were new to this device.
    pub received_count: u64,
    /// Whether the file and the server had the same messages at the end.
    pub in_sync: bool,
    /// Whether the message sets differed and were reconciled.
    pub reconciled: bool,
    /// The kind of difference between the file and the server: `withheld`, `lost` or `other`; null
    /// if there is none.
    #[serde(serialize_with = "discrepancy_name")]
    #[schema(value_type = Option<String>, example = "withheld")]
    pub discrepancy: Option<SetDiscrepancy>,
    /// The number of messages on the server.
    pub server_messages_count: u64,
    /// Whether this file is a copy and was registered as a new device.
    pub registered_copy: bool,
    /// The received messages that are stored, but not shown.
    pub rejected: RejectedMessages,
    /// The number of messages in this file that are not sent, because the server rejects their
    /// timestamps as invalid.
    pub set_aside_count: u64,
    /// The number of messages from which content was erased, on this or another device.
    pub erased_count: u64,
    /// The number of messages from which content was erased here, but not yet on the server.
    pub unerased_count: u64,
    /// The number of messages in the file that are not shown, from this sync and earlier ones.
    pub rejected_count: u64,
    /// The tables and columns that other devices have and this file lacks. Their content is stored
    /// until they exist.
    pub missing_tables: Vec<String>,
    /// The reason why pages of the file may still contain erased content; null if they do not.
    pub unscrubbed: Option<String>,
    /// The number of edits that were overwritten by concurrent edits, in rows with new conflicts in
    /// this sync.
    pub conflicts_count: u64,
    /// The number of hidden rows: rows that conflict with newer rows or do not fit their table.
    pub hidden_rows_count: u64,
    /// The number of hidden and resurrected rows by kind, including zeros.
    pub visibility_override_counts: BTreeMap<VisibilityOverrideKind, u64>,
    /// The tables that cannot be the same as on other devices.
    pub schema_conflicts: Vec<SchemaConflict>,
    /// The tables and columns that this sync created.
    pub created_tables: Vec<String>,
    /// The parts of created tables that other devices have but that are not synced, as they are
    /// SQL: `trigger NAME`, `view NAME`, `CHECK (…)`, `generated column NAME`, `UNIQUE index NAME`.
    pub left_out: Vec<String>,
    /// The new rows of this device that got a new key.
    pub renumbered_rows: Vec<RenumberedRow>,
    /// The new rows of this device that were merged with another device's row, because the two
    /// differed only in the key and only one could be shown.
    pub merged_rows: Vec<RenumberedRow>,
    /// The server's clock minus the device's clock, in milliseconds; 0 if the difference is too
    /// small to be corrected, or the previous sync did not find the same.
    pub clock_offset_ms: i64,
    /// The messages that the server has lost and still lacks after this sync, because no device
    /// that has synced since had them; null if there are none.
    pub server_loss: Option<protocol::ServerLoss>,
}

impl SyncReport {
    pub(crate) fn set_visibility_overrides(
        &mut self,
        counts: BTreeMap<VisibilityOverrideKind, u64>,
    ) {
        let hidden = counts.iter().filter(|(kind, _)| kind.hides_live_row());
        self.hidden_rows_count = hidden.map(|(_, count)| count).sum();
        self.visibility_override_counts = counts;
    }

    /// Adds renumbered rows. A row that moves again is reported once, with its first and last key.
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

    /// Adds merged rows. A row that had moved before is reported once, with its first key.
    pub(crate) fn add_merged(&mut self, merged: Vec<RenumberedRow>) {
        for mut row in merged {
            let is_it =
                |before: &RenumberedRow| before.table == row.table && before.new_key == row.old_key;
            if let Some(place) = self.renumbered_rows.iter().position(is_it) {
                row.old_key = self.renumbered_rows.remove(place).old_key;
            }
            self.merged_rows.push(row);
        }
    }
}

/// The difference between the server's message set and this device's, after all messages that could
/// be exchanged were exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetDiscrepancy {
    /// The server claims to hold this many more messages than it sends.
    Withheld(u64),
    /// The server has accepted this many messages that it does not hold.
    Lost(u64),
    /// The server holds the same number of messages with another fingerprint: it has other
    /// contents, or lies.
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

    fn name(self) -> &'static str {
        match self {
            Self::Withheld(_) => "withheld",
            Self::Lost(_) => "lost",
            Self::Other => "other",
        }
    }
}

#[expect(clippy::ref_option, reason = "serde's signature")]
fn discrepancy_name<S: Serializer>(
    discrepancy: &Option<SetDiscrepancy>,
    to: S,
) -> Result<S::Ok, S::Error> {
    discrepancy.map(SetDiscrepancy::name).serialize(to)
}
