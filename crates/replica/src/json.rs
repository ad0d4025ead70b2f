//! What a replica tells of itself, as JSON for programs: the same from `warren --json` and in a
//! browser.

use std::collections::BTreeMap;

use protocol::ClientList;
use serde_json::{Value, json};

use crate::conflicts::{Conflict, Edit, Outcome};
use crate::deleted::DeletedRow;
use crate::held::{HeldRow, JoinedRow};
use crate::history::HistoryEntry;
use crate::obstacle::Obstacle;
use crate::receipt::Receipt;
use crate::renumber::Renumbered;
use crate::report::{Discrepancy, Report};
use crate::status::{MissingConstraint, Status};
use crate::verify::{Difference, Verification};

impl Status {
    /// As in `warren status --json`.
    pub fn to_json(&self) -> Value {
        let tables = self.tables.iter().map(|t| json!({"table": t.name, "rows": t.rows}));
        let exceptions = self
            .exceptions
            .iter()
            .map(|e| json!({"table": e.table, "key": e.key, "kind": e.kind, "reason": e.reason}));
        let missing = self.missing_constraints.iter().map(|missing| {
            let MissingConstraint { table, constraint } = missing;
            json!({"table": table, "kind": constraint.kind.name(), "name": constraint.name})
        });
        json!({
            "node": self.node.to_string(),
            "tables": tables.collect::<Vec<_>>(),
            "count": self.fingerprint.count,
            "digest": format!("{:032x}", self.fingerprint.digest),
            "bytes": self.bytes,
            "unsent": self.unsent,
            "noted": self.noted,
            "uncaptured": self.uncaptured,
            "refused": self.refused_in_all,
            "set_aside": self.set_aside,
            "sealed": self.sealed,
            "exceptions": exceptions.collect::<Vec<_>>(),
            "obstacles": obstacles(&self.obstacles),
            "unknown": self.unknown,
            "missing_constraints": missing.collect::<Vec<_>>(),
            "remote": self.remote.as_ref().map(|r| json!({
                "server": r.server,
                "login": r.login,
                "client_id": r.client_id,
                "cursor": r.cursor,
                "synced_ms": r.synced_ms,
                "server_count": r.server_count,
                "equal": r.equal,
                "loss": r.loss,
            })),
        })
    }
}

fn obstacles(obstacles: &[Obstacle]) -> Vec<Value> {
    let one = |o: &Obstacle| json!({"table": o.table, "kind": o.kind.name(), "why": o.why});
    obstacles.iter().map(one).collect()
}

impl Receipt {
    /// As in `warren status --json`, with the devices of the list that it was made from.
    pub fn to_json(&self, list: &ClientList) -> Value {
        json!({
            "server_count": self.held,
            "known_count": self.known,
            "to_send": self.to_send,
            "to_fetch": self.to_fetch,
            "equal": self.equal,
            "now_ms": list.now_ms,
            "clients": list.clients,
        })
    }
}

impl Report {
    /// As in `warren sync --json`.
    pub fn to_json(&self) -> Value {
        json!({
            "sent": self.sent,
            "received": self.received,
            "equal": self.equal,
            "repaired": self.repaired,
            "discrepancy": self.discrepancy.map(Discrepancy::name),
            "server_count": self.server_count,
            "became_device": self.became_device,
            "refused": {
                "by_reason": self.refused.by_reason().into_iter().collect::<BTreeMap<_, _>>(),
                "timestamps": self.refused.timestamps.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "in_all": self.refused_in_all,
            },
            "unknown": self.unknown,
            "set_aside": self.set_aside,
            "erased": self.erased,
            "unerased": self.unerased,
            "unscrubbed": self.unscrubbed,
            "lost": self.lost,
            "held": self.held(),
            "exceptions": self.exceptions,
            "obstacles": obstacles(&self.obstacles),
            "adopted": self.adopted,
            "left_out": self.left_out,
            "renumbered": self.renumbered.iter().map(renumbered).collect::<Vec<_>>(),
            "joined": self.joined.iter().map(renumbered).collect::<Vec<_>>(),
            "clock_off_ms": self.clock_off_ms,
            "server_loss": self.server_loss,
        })
    }
}

impl Verification {
    /// As in `warren status --verify --json`, under `verification`.
    pub fn to_json(&self) -> Value {
        let one = |difference: &Difference| {
            let Difference { table, key, kind, columns } = difference;
            json!({"table": table, "key": key, "kind": kind.name(), "columns": columns})
        };
        json!({
            "rows": self.rows,
            "differing": self.differing,
            "differences": self.differences.iter().map(one).collect::<Vec<_>>(),
        })
    }
}

impl HeldRow {
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
    /// As in `warren conflicts --same --json`.
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

fn renumbered(row: &Renumbered) -> Value {
    json!({"table": row.table, "from": row.from, "to": row.to})
}

impl HistoryEntry {
    /// As in `warren history --json`.
    pub fn to_json(&self) -> Value {
        let cells = self
            .cells
            .iter()
            .map(|cell| json!({"column": cell.column, "value": cell.value, "shown": cell.shown}));
        json!({
            "timestamp": self.timestamp.to_string(),
            "at_ms": self.timestamp.millis(),
            "device": self.device,
            "node": self.timestamp.node().to_string(),
            "key": self.key,
            "deleted": self.deleted,
            "cells": cells.collect::<Vec<_>>(),
            "shown": self.shown,
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

fn edit(edit: &Edit) -> Value {
    let value = match &edit.outcome {
        Outcome::Value(literal) => Some(literal),
        Outcome::Present | Outcome::Deleted => None,
    };
    json!({
        "timestamp": edit.timestamp.to_string(),
        "at_ms": edit.timestamp.millis(),
        "device": edit.device,
        "node": edit.timestamp.node().to_string(),
        "deleted": edit.outcome == Outcome::Deleted,
        "value": value,
    })
}
