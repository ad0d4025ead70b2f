//! Finds the constraints of other devices' tables that this file's tables lack.

use std::collections::BTreeSet;

use crdt::{LeftOut, LeftOutKind};
use rusqlite::Connection;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::declaration;
use super::left_out::NAMES_COUNT_MAX;
use super::tracked_table::{DeclaredTable, TrackedTable};
use crate::error::{Error, Result};
use crate::log::message_log::MessageLog;
use crate::meta;

/// Returns the constraints that other devices' tables have and this file's lack.
pub(crate) fn missing_constraints(
    db: &Connection,
    tables: &[TrackedTable],
) -> Result<Vec<MissingConstraint>> {
    let (log, own_node) = (MessageLog::open(db)?, meta::node_id(db)?);
    let mut missing = Vec::new();
    for table in tables {
        let Some(declared) = DeclaredTable::read(db, &table.name)? else { continue };
        let folded = |one: &LeftOut| (one.kind, one.name.to_lowercase());
        let own = declaration::read(db, &declared)?.left_out;
        let mut known: BTreeSet<_> = own.iter().map(folded).collect();
        let mut others = match declaration::other_devices(&log, table.id) {
            // The next sync fetches what the log lacks.
            Err(Error::CorruptMessage { .. }) => continue,
            others => others?,
        };
        others.remove(&own_node);
        let theirs = others.into_values().flat_map(|declaration| declaration.left_out);
        for one in theirs.filter(|one| one.kind.is_constraint()) {
            if missing.len() < NAMES_COUNT_MAX && known.insert(folded(&one)) {
                let LeftOut { kind, name } = one;
                missing.push(MissingConstraint { table: table.name.clone(), kind, name });
            }
        }
    }
    Ok(missing)
}

/// A constraint that a table has on another device and lacks in this file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct MissingConstraint {
    /// The name of the table.
    pub table: String,
    /// The kind of constraint: `check`, `generated_column` or `unique_index`.
    #[serde(serialize_with = "kind_name")]
    #[schema(value_type = String, example = "unique_index")]
    pub kind: LeftOutKind,
    /// The name of the constraint; for a CHECK, its expression.
    pub name: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn kind_name<S: Serializer>(kind: &LeftOutKind, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_str(kind.name())
}

impl MissingConstraint {
    /// Returns the constraint in words, without its table.
    pub fn description(&self) -> String {
        LeftOut { kind: self.kind, name: self.name.clone() }.to_string()
    }
}
