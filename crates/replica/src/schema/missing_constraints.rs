//! Constraints of other devices' tables that this file's tables do not have.

use std::collections::BTreeSet;

use crdt::LeftOut;
use rusqlite::Connection;

use super::declaration;
use super::left_out::NAMES_COUNT_MAX;
use super::tracked_table::{DeclaredTable, TrackedTable};
use crate::error::{Error, Result};
use crate::log::message_log::MessageLog;
use crate::meta;

/// The constraints that other devices' tables have and this file's have not.
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
            // What the log lacks, the next sync brings.
            Err(Error::CorruptMessage { .. }) => continue,
            others => others?,
        };
        others.remove(&own_node);
        let theirs = others.into_values().flat_map(|declaration| declaration.left_out);
        for one in theirs.filter(|one| one.kind.is_constraint()) {
            if missing.len() < NAMES_COUNT_MAX && known.insert(folded(&one)) {
                missing.push(MissingConstraint { table: table.name.clone(), constraint: one });
            }
        }
    }
    Ok(missing)
}

/// A constraint that another device's table has and this file's has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingConstraint {
    /// The table.
    pub table: String,
    /// What it is.
    pub constraint: LeftOut,
}
