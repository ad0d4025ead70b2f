//! What a sync did, for people and programs.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use protocol::SyncOutcome;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::apply::visibility_override::VisibilityOverrideKind;
use crate::capture::renumber::RenumberedRow;
use crate::log::rejected::RejectedMessages;
use crate::schema::schema_conflict::SchemaConflict;

/// What a sync did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct SyncReport {
    /// Messages that were new to the server.
    pub sent_count: u64,
    /// Messages that were new to this device.
    pub received_count: u64,
    /// Whether both sets were equal at the end.
    pub in_sync: bool,
    /// Whether the sets differed, and both sides had to be shown to each other.
    pub reconciled: bool,
    /// What both sides differ in, if they do: `withheld`, `lost` or `other`.
    #[serde(serialize_with = "discrepancy_name")]
    #[schema(value_type = Option<String>, example = "withheld")]
    pub discrepancy: Option<SetDiscrepancy>,
    /// Messages that the server holds.
    pub server_messages_count: u64,
    /// Whether this file turned out to be a copy, and became a device of its own.
    pub registered_copy: bool,
    /// Messages that were received, are kept, and are not shown.
    pub rejected: RejectedMessages,
    /// Messages that are not sent, since the server calls their timestamps invalid: all that this
    /// file holds.
    pub set_aside_count: u64,
    /// Messages of which something was erased, on another device or from this one.
    pub erased_count: u64,
    /// Messages of which something was erased here, and that the server has as they were
    /// before.
    pub unerased_count: u64,
    /// Messages that the file keeps and does not show, of this sync and earlier ones.
    pub rejected_count: u64,
    /// Columns and tables that other devices have and this file has not: what they hold waits.
    pub missing_tables: Vec<String>,
    /// Why pages of the file may still hold what was erased, if that is so.
    pub unscrubbed: Option<String>,
    /// Edits that lost to others made without knowing of them, in rows where such edits met in this
    /// sync.
    pub conflicts_count: u64,
    /// Rows that are live and not shown: they collide with newer ones, or do not fit their table.
    pub hidden_rows_count: u64,
    /// Rows whose visibility is not their liveness, by kind, zeros included.
    pub visibility_override_counts: BTreeMap<VisibilityOverrideKind, u64>,
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
    pub merged_rows: Vec<RenumberedRow>,
    /// How far the device's clock was off, if far enough to be corrected.
    pub clock_offset_ms: i64,
    /// What the server has lost and still lacks after this sync: neither this device nor another
    /// one that has synced since had it.
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

    /// A row that had moved before it was merged is reported once, with its first key.
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
