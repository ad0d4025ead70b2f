//! Finds references to a row that are lost when the row is removed.

use crdt::Value;
use rusqlite::Connection;

use crate::apply::row_state::NameResolver;
use crate::apply::row_writer::RowValues;
use crate::apply::{row_state, row_writer, visibility_override};
use crate::error::Result;
use crate::row_id::RowId;
use crate::schema::tracked_table::{TrackedTable, references};

/// A reference that is lost when its target is removed.
pub(crate) struct DroppedReference {
    pub(crate) row: RowId,
    pub(crate) columns: Vec<String>,
    /// The referenced columns of the row that is removed.
    pub(crate) targets: Vec<String>,
    /// The values of the remaining row in those columns.
    pub(crate) instead: Option<Vec<Value>>,
}

/// Returns the references of visible or hidden rows to `gone` that do not also refer to `stays`.
pub(crate) fn dropped_references(
    db: &Connection,
    tables: &[TrackedTable],
    gone: &RowId,
    stays: Option<&RowId>,
) -> Result<Vec<DroppedReference>> {
    let Some(table) = tables.iter().find(|table| table.id == gone.table) else {
        return Ok(Vec::new());
    };
    let Some(parent) = load(db, table, gone)? else { return Ok(Vec::new()) };
    let stays = stays.map(|row| load(db, table, row)).transpose()?.flatten();
    let overrides = visibility_override::all(db)?;
    let mut found = Vec::new();
    for (child, key) in references(tables, table) {
        let Some(tuple) = parent.tuple(&key.parent_columns) else { continue };
        let instead = stays.as_ref().and_then(|stays| stays.tuple(&key.parent_columns));
        if instead.as_ref() == Some(&tuple) {
            continue;
        }
        let mut rows = row_writer::rows_with(db, child, &key.columns, &tuple)?;
        let held =
            overrides.iter().filter(|(row, kind)| row.table == child.id && kind.hides_live_row());
        for (row, _) in held {
            let values = load(db, child, row)?;
            if values.and_then(|values| values.tuple(&key.columns)).as_ref() == Some(&tuple) {
                rows.push(row.clone());
            }
        }
        let (columns, targets) = (&key.columns, &key.parent_columns);
        found.extend(rows.into_iter().filter(|row| row != gone).map(|row| DroppedReference {
            row,
            columns: columns.clone(),
            targets: targets.clone(),
            instead: instead.clone(),
        }));
    }
    Ok(found)
}

/// Loads the row's values, or returns `None` if the table cannot store them.
pub(crate) fn load<'a>(
    db: &Connection,
    table: &'a TrackedTable,
    id: &RowId,
) -> Result<Option<RowValues<'a>>> {
    let row = row_state::load(db, id)?.unwrap_or_default();
    Ok(RowValues::load(&mut NameResolver::new(db)?, table, id, &row)?.ok())
}
