//! Records rows whose visibility differs from their liveness, with reasons, in
//! `warren_visibility_override`.

use std::collections::BTreeMap;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Result;
use crate::row_id::RowId;

/// The reason why a deleted row is visible or a live row is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VisibilityOverrideKind {
    /// The row is deleted, but visible, because a visible row refers to it.
    Resurrected,
    /// The row is deleted and referred to, but not visible, because it conflicts with visible rows.
    DanglingReference,
    /// The row is live, but not visible, because a newer row has the same unique value.
    Displaced,
    /// The row is live, but not visible, because the table rejects it regardless of other rows.
    Constraint,
    /// The row is live, but not visible, because its key does not fit this table.
    InvalidKey,
    /// The row is live, but not visible, because a chunk of a large value has not been received
    /// yet.
    Incomplete,
}

impl VisibilityOverrideKind {
    const ALL: [Self; 6] = [
        Self::Resurrected,
        Self::DanglingReference,
        Self::Displaced,
        Self::Constraint,
        Self::InvalidKey,
        Self::Incomplete,
    ];

    /// The kinds that depend on the visibility of other rows, and not only on the row itself.
    pub(crate) const DEPENDENT_ON_REFERENCES: [Self; 2] =
        [Self::Resurrected, Self::DanglingReference];

    /// Returns the name of the kind, as stored and as programs see it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Resurrected => "resurrected",
            Self::DanglingReference => "dangling_reference",
            Self::Displaced => "displaced",
            Self::Constraint => "constraint",
            Self::InvalidKey => "invalid_key",
            Self::Incomplete => "incomplete",
        }
    }

    /// Parses a stored kind. An unknown kind from another version hides a live row, because the row
    /// would be visible without an override.
    pub(crate) fn read(stored: ValueRef<'_>) -> Self {
        let kind = Self::ALL.into_iter().find(|kind| stored.as_str() == Ok(kind.name()));
        kind.unwrap_or(Self::Constraint)
    }

    pub(crate) fn is_visible(self) -> bool {
        self == Self::Resurrected
    }

    /// Returns whether the kind hides a live row.
    pub(crate) fn hides_live_row(self) -> bool {
        !Self::DEPENDENT_ON_REFERENCES.contains(&self)
    }
}

/// A kind of override with its reason in words.
#[derive(Clone, Debug)]
pub(crate) struct VisibilityOverride {
    pub(crate) kind: VisibilityOverrideKind,
    pub(crate) reason: String,
}

impl VisibilityOverride {
    pub(crate) fn new(kind: VisibilityOverrideKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into() }
    }
}

/// Sets the override of a row, replacing an earlier one.
pub(crate) fn set(
    db: &Connection,
    id: &RowId,
    visibility_override: &VisibilityOverride,
) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO warren_visibility_override VALUES (?1, ?2, ?3, ?4)";
    let values = (id.table, &id.key, visibility_override.kind.name(), &visibility_override.reason);
    db.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Removes the override of a row.
pub(crate) fn clear(db: &Connection, id: &RowId) -> Result<()> {
    let sql = "DELETE FROM warren_visibility_override WHERE table_id = ?1 AND key = ?2";
    db.prepare_cached(sql)?.execute((id.table, &id.key))?;
    Ok(())
}

/// Returns whether any row has an override.
pub(crate) fn is_any(db: &Connection) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM warren_visibility_override)";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Returns the overrides of all rows.
pub(crate) fn all(db: &Connection) -> Result<Vec<(RowId, VisibilityOverrideKind)>> {
    let mut statement =
        db.prepare_cached("SELECT table_id, key, kind FROM warren_visibility_override")?;
    let mut rows = statement.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let kind = VisibilityOverrideKind::read(row.get_ref(2)?);
        all.push((RowId { table: row.get(0)?, key: row.get(1)? }, kind));
    }
    Ok(all)
}

/// Returns the number of overrides of each kind.
pub(crate) fn counts(db: &Connection) -> Result<BTreeMap<VisibilityOverrideKind, u64>> {
    let mut counts: BTreeMap<_, u64> = VisibilityOverrideKind::ALL.map(|kind| (kind, 0)).into();
    for (_, kind) in all(db)? {
        *counts.entry(kind).or_default() += 1;
    }
    Ok(counts)
}
