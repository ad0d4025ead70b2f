//! Rows whose visibility is not their liveness, each with the reason: `warren_exception`.

use std::collections::BTreeMap;

use rusqlite::Connection;

use crate::error::Result;
use crate::state::RowId;

/// Why a row's visibility is not its liveness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Deleted, and visible: a visible row refers to it.
    Kept,
    /// Deleted, referred to, and not visible: it does not fit beside the visible rows.
    Missing,
    /// Live, and not visible: a row with a newer write has a value that only one may have.
    Displaced,
    /// Live, and not visible: the table refuses it, whatever else is in it.
    Constraint,
    /// Live, and not visible: its key is none of this table's.
    Key,
    /// Live, and not visible: a part of a large value is not here yet.
    Incomplete,
}

impl Kind {
    const ALL: [Self; 6] =
        [Self::Kept, Self::Missing, Self::Displaced, Self::Constraint, Self::Key, Self::Incomplete];

    /// What depends on other rows' visibility, and not only on the row.
    pub(crate) const OF_REFERENCES: [Self; 2] = [Self::Kept, Self::Missing];

    /// As it is stored, and as programs see it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Missing => "missing",
            Self::Displaced => "displaced",
            Self::Constraint => "constraint",
            Self::Key => "key",
            Self::Incomplete => "incomplete",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(crate) fn is_visible(self) -> bool {
        self == Self::Kept
    }

    /// Live, and not visible.
    pub(crate) fn is_held(self) -> bool {
        !Self::OF_REFERENCES.contains(&self)
    }
}

/// A kind, with its reason in words.
#[derive(Clone, Debug)]
pub(crate) struct Exception {
    pub(crate) kind: Kind,
    pub(crate) reason: String,
}

impl Exception {
    pub(crate) fn new(kind: Kind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into() }
    }
}

/// Notes that the row is one, in the place of whatever it was.
pub(crate) fn set(db: &Connection, id: &RowId, exception: &Exception) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO warren_exception VALUES (?1, ?2, ?3, ?4)";
    let values = (id.table, &id.key, exception.kind.name(), &exception.reason);
    db.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Notes that the row is none.
pub(crate) fn clear(db: &Connection, id: &RowId) -> Result<()> {
    let sql = "DELETE FROM warren_exception WHERE table_id = ?1 AND key = ?2";
    db.prepare_cached(sql)?.execute((id.table, &id.key))?;
    Ok(())
}

/// Whether there is one.
pub(crate) fn is_any(db: &Connection) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM warren_exception)";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// All of them.
pub(crate) fn all(db: &Connection) -> Result<Vec<(RowId, Kind)>> {
    let mut statement = db.prepare_cached("SELECT table_id, key, kind FROM warren_exception")?;
    let mut rows = statement.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let kind = row.get_ref(2)?.as_str().ok().and_then(Kind::named);
        // What another version has noted is live and not visible, or it would be shown.
        let kind = kind.unwrap_or(Kind::Constraint);
        all.push((RowId { table: row.get(0)?, key: row.get(1)? }, kind));
    }
    Ok(all)
}

/// How many there are of each kind, by its name.
pub(crate) fn counts(db: &Connection) -> Result<BTreeMap<&'static str, u64>> {
    let mut counts: BTreeMap<_, u64> = Kind::ALL.map(|kind| (kind.name(), 0)).into();
    for (_, kind) in all(db)? {
        *counts.entry(kind.name()).or_default() += 1;
    }
    Ok(counts)
}
