//! What a replica tells of itself, as JSON for programs: the same from `warren --json` and in a
//! browser.

use std::collections::BTreeMap;

use protocol::DeviceList;
use serde_json::{Value, json};

use super::conflicts::{Conflict, ConflictEdit, ResolvedEdit};
use super::deleted::DeletedRow;
use super::hidden_rows::{HiddenRow, JoinedRow};
use super::history::HistoryEntry;
use super::replica_status::ReplicaStatus;
use super::sync_status::SyncStatus;
use super::verify::{RowDifference, TablesVerification};
use crate::capture::renumber::RenumberedRow;
use crate::schema::missing_constraints::MissingConstraint;
use crate::schema::schema_conflict::SchemaConflict;
use crate::sync::sync_report::{SetDiscrepancy, SyncReport};

impl ReplicaStatus {
    /// As in `warren status --json`.
    pub fn to_json(&self) -> Value {
        let tables = self.tables.iter().map(|t| json!({"table": t.name, "rows": t.rows_count}));
        let overrides = self
            .visibility_overrides
            .iter()
            .map(|e| json!({"table": e.table, "key": e.key, "kind": e.kind, "reason": e.reason}));
        let missing = self.missing_constraints.iter().map(|missing| {
            let MissingConstraint { table, constraint } = missing;
            json!({"table": table, "kind": constraint.kind.name(), "name": constraint.name})
        });
        json!({
            "node": self.node_id.to_string(),
            "tables": tables.collect::<Vec<_>>(),
            "count": self.fingerprint.count,
            "digest": format!("{:032x}", self.fingerprint.digest),
            "bytes": self.content_bytes,
            "unsent": self.unsent_count,
            "noted": self.pending_count,
            "uncaptured": self.uncaptured,
            "refused": self.refused_in_all,
            "set_aside": self.set_aside,
            "sealed": self.e2ee,
            "exceptions": overrides.collect::<Vec<_>>(),
            "obstacles": obstacles(&self.schema_conflicts),
            "unknown": self.missing_tables,
            "missing_constraints": missing.collect::<Vec<_>>(),
            "remote": self.remote.as_ref().map(|r| json!({
                "server": r.server,
                "login": r.login,
                "client_id": r.device_id,
                "cursor": r.cursor,
                "synced_ms": r.last_synced_ms,
                "server_count": r.server_messages_count,
                "equal": r.in_sync,
                "loss": r.loss,
            })),
        })
    }
}

fn obstacles(obstacles: &[SchemaConflict]) -> Vec<Value> {
    let one =
        |o: &SchemaConflict| json!({"table": o.table, "kind": o.kind.name(), "why": o.reason});
    obstacles.iter().map(one).collect()
}

impl SyncStatus {
    /// As in `warren status --json`, with the devices of the list that it was made from.
    pub fn to_json(&self, list: &DeviceList) -> Value {
        json!({
            "server_count": self.server_messages_count,
            "known_count": self.total_messages_count,
            "to_send": self.pending_upload_count,
            "to_fetch": self.pending_download_count,
            "equal": self.in_sync,
            "server_time_ms": list.server_time_ms,
            "devices": list.devices,
        })
    }
}

impl SyncReport {
    /// As in `warren sync --json`.
    pub fn to_json(&self) -> Value {
        json!({
            "sent": self.sent_count,
            "received": self.received_count,
            "equal": self.in_sync,
            "repaired": self.reconciled,
            "discrepancy": self.discrepancy.map(SetDiscrepancy::name),
            "server_count": self.server_messages_count,
            "became_device": self.registered_copy,
            "refused": {
                "by_reason": self.rejected.by_reason().into_iter().collect::<BTreeMap<_, _>>(),
                "timestamps": self.rejected.timestamps.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "in_all": self.refused_in_all,
            },
            "unknown": self.unknown,
            "set_aside": self.set_aside,
            "erased": self.erased,
            "unerased": self.unerased,
            "unscrubbed": self.unscrubbed,
            "lost": self.conflicts_count,
            "held": self.hidden_rows_count(),
            "exceptions": self.visibility_overrides,
            "obstacles": obstacles(&self.schema_conflicts),
            "adopted": self.created_tables,
            "left_out": self.left_out,
            "renumbered": self.renumbered_rows.iter().map(renumbered).collect::<Vec<_>>(),
            "joined": self.joined.iter().map(renumbered).collect::<Vec<_>>(),
            "clock_off_ms": self.clock_offset_ms,
            "server_loss": self.server_loss,
        })
    }
}

impl TablesVerification {
    /// As in `warren status --verify --json`, under `verification`.
    pub fn to_json(&self) -> Value {
        let one = |difference: &RowDifference| {
            let RowDifference { table, key, kind, columns } = difference;
            json!({"table": table, "key": key, "kind": kind.name(), "columns": columns})
        };
        json!({
            "rows": self.rows,
            "differing": self.differing,
            "differences": self.differences.iter().map(one).collect::<Vec<_>>(),
        })
    }
}

impl HiddenRow {
    /// As in `warren conflicts --json`.
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "table": self.table,
            "key": self.key,
            "kind": self.kind,
            "reason": self.reason,
            "cells": literals_by_column(&self.cells),
            "same_as": self.same_as,
        })
    }
}

impl JoinedRow {
    /// As in `warren conflicts --merge --json`.
    pub fn to_json(&self) -> Value {
        json!({
            "row": self.row.to_json(),
            "into": self.into,
            "followed": self.followed,
            "held": self.held,
        })
    }
}

impl DeletedRow {
    /// For a browser.
    pub fn to_json(&self) -> Value {
        json!({
            "key": self.key,
            "at_ms": self.timestamp.millis(),
            "device": self.device,
            "cells": literals_by_column(&self.cells),
        })
    }
}

fn literals_by_column(cells: &[(String, String)]) -> Value {
    let cells = cells.iter().map(|(column, value)| (column.clone(), json!(value)));
    Value::Object(cells.collect())
}

fn renumbered(row: &RenumberedRow) -> Value {
    json!({"table": row.table, "from": row.old_key, "to": row.new_key})
}

impl HistoryEntry {
    /// As in `warren history --json`.
    pub fn to_json(&self) -> Value {
        let cells = self
            .cells
            .iter()
            .map(|cell| json!({"column": cell.column, "value": cell.value, "shown": cell.visible}));
        json!({
            "timestamp": self.timestamp.to_string(),
            "at_ms": self.timestamp.millis(),
            "device": self.device_name,
            "node": self.timestamp.node_id().to_string(),
            "key": self.key,
            "deleted": self.deleted,
            "cells": cells.collect::<Vec<_>>(),
            "shown": self.visible,
        })
    }
}

impl Conflict {
    /// As in `warren conflicts --json`.
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "table": self.table,
            "key": self.key,
            "column": self.column,
            "lost": edit(&self.lost),
            "winner": edit(&self.winner),
        })
    }
}

fn edit(edit: &ConflictEdit) -> Value {
    let value = match &edit.outcome {
        ResolvedEdit::Value(literal) => Some(literal),
        ResolvedEdit::Present | ResolvedEdit::Deleted => None,
    };
    json!({
        "timestamp": edit.timestamp.to_string(),
        "at_ms": edit.timestamp.millis(),
        "device": edit.device_name,
        "node": edit.timestamp.node_id().to_string(),
        "deleted": edit.outcome == ResolvedEdit::Deleted,
        "value": value,
    })
}
