//! Copies the rows of a damaged file to a new one, as far as they can be read.
//!
//! Rows are read in the order of their keys. Where that fails, the next key at which it succeeds is
//! searched for with steps that double, and then by bisection: a damaged page of a table's tree
//! hides a range of keys, so a few queries find its end.
//!
//! # Invariants
//! - The damaged file is only read.
//! - The new file has the schema of the migrations, whatever the schema of the damaged one.
//!
//! # Not here
//! - Replacing the damaged file by the new one → `repair.rs`.

use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, Row, Statement, params_from_iter};
use sqlite_schema::{
    ColumnKind, ColumnSchema, TableEntry, TableKind, is_sqlite_name, key_columns, quote_identifier,
};

use crate::error::{Result, is_damage, sqlite};

/// The extent of a salvage: the rows that were copied, and the gaps between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SalvageReport {
    pub(crate) rows_count: u64,
    /// The number of key ranges that could not be read, with or without rows.
    pub(crate) gaps_count: u64,
}

/// A table that both files have.
struct SharedTable {
    /// The name of the table, quoted.
    name: String,
    /// The columns that both tables have, quoted and separated by commas.
    columns: String,
    columns_count: usize,
    /// The columns of the primary key, if the table has no rowid.
    key: Option<String>,
}

/// Copies the rows of every table of `target` that `source` has, in one transaction. Before the
/// commit, `finish` may change rows that depend on missing ones. If `source` is `None`, the damaged
/// file does not open.
pub(crate) fn salvage(
    source: Option<&Connection>,
    target: &Connection,
    finish: impl FnOnce(&Connection) -> Result<()>,
) -> Result<SalvageReport> {
    let transaction = target.unchecked_transaction().map_err(sqlite("BEGIN"))?;
    let salvaged = match source {
        Some(source) => carry_tables(source, target)?,
        None => SalvageReport { rows_count: 0, gaps_count: 1 },
    };
    finish(target)?;
    transaction.commit().map_err(sqlite("COMMIT"))?;
    Ok(salvaged)
}

fn carry_tables(source: &Connection, target: &Connection) -> Result<SalvageReport> {
    let mut salvaged = SalvageReport::default();
    for table in shared_tables(source, target).map_err(sqlite("schema"))? {
        let carrier = RowCopier { source, target, table: &table };
        let carried = match table.key {
            None => carrier.copy_by_rowid(&mut salvaged),
            Some(_) => carrier.copy_from_both_ends(&mut salvaged),
        };
        carried.map_err(sqlite("copying rows"))?;
    }
    Ok(salvaged)
}

/// Returns the tables that both files have; none if the damaged file's schema cannot be read.
fn shared_tables(source: &Connection, target: &Connection) -> rusqlite::Result<Vec<SharedTable>> {
    let is_wanted =
        |table: &TableEntry| table.kind == TableKind::Ordinary && !is_sqlite_name(&table.name);
    let mut shared = Vec::new();
    for table in sqlite_schema::tables(target)?.into_iter().filter(is_wanted) {
        let TableEntry { name, has_rowid, .. } = table;
        let known = match stored_columns(source, &name) {
            Err(error) if is_damage(&error) => continue,
            known => known?,
        };
        let mut columns = stored_columns(target, &name)?;
        columns.retain(|column| known.iter().any(|known| known.name == column.name));
        if columns.is_empty() {
            continue;
        }
        shared.push(SharedTable {
            name: quote_identifier(&name),
            columns: list(columns.iter()),
            columns_count: columns.len(),
            key: (!has_rowid).then(|| list(key_columns(&columns).into_iter())),
        });
    }
    Ok(shared)
}

/// Returns the columns of a table that rows are written to; none if the table does not exist.
fn stored_columns(db: &Connection, table: &str) -> rusqlite::Result<Vec<ColumnSchema>> {
    let mut columns = sqlite_schema::columns(db, table)?;
    columns.retain(|column| column.kind == ColumnKind::Ordinary);
    Ok(columns)
}

fn list<'a>(columns: impl Iterator<Item = &'a ColumnSchema>) -> String {
    columns.map(|column| quote_identifier(&column.name)).collect::<Vec<_>>().join(", ")
}

struct RowCopier<'a> {
    source: &'a Connection,
    target: &'a Connection,
    table: &'a SharedTable,
}

impl RowCopier<'_> {
    fn copy_by_rowid(&self, salvaged: &mut SalvageReport) -> rusqlite::Result<()> {
        let SharedTable { name, columns, .. } = self.table;
        let select = format!(
            "SELECT rowid, {columns} FROM {name} NOT INDEXED WHERE rowid >= ?1 ORDER BY rowid"
        );
        let mut insert = self.insert()?;
        let mut next = Some(i64::MIN);
        while let Some(first) = next {
            let mut expected = first;
            let read = self.read(&select, [first], |row| {
                expected = row.get::<_, i64>(0)?.saturating_add(1);
                self.copy_row(&mut insert, row, 1, salvaged)
            });
            match read {
                Ok(()) => break,
                Err(error) if is_damage(&error) => {}
                Err(error) => return Err(error),
            }
            salvaged.gaps_count += 1;
            // Keys usually start at 1; if the very first page is damaged, smaller ones are not
            // searched for.
            let searched = if expected == i64::MIN { 1 } else { expected };
            next = self.find_readable(&select, searched)?;
        }
        Ok(())
    }

    /// Returns the first key from `first` on at which reading succeeds or finds the end, if there
    /// is one.
    fn find_readable(&self, select: &str, first: i64) -> rusqlite::Result<Option<i64>> {
        let select = format!("{select} LIMIT 1");
        let reads = |key: i64| match self.read(&select, [key], |_| Ok(())) {
            Ok(()) => Ok(true),
            Err(error) if is_damage(&error) => Ok(false),
            Err(error) => Err(error),
        };
        let mut unreadable = first;
        if reads(first)? {
            return Ok(Some(first));
        }
        let mut step = 1_i64;
        let mut readable = loop {
            let Some(key) = first.checked_add(step) else { return Ok(None) };
            if reads(key)? {
                break key;
            }
            unreadable = key;
            let Some(doubled) = step.checked_mul(2) else { return Ok(None) };
            step = doubled;
        };
        while readable - unreadable > 1 {
            let middle = unreadable + (readable - unreadable) / 2;
            if reads(middle)? {
                readable = middle;
            } else {
                unreadable = middle;
            }
        }
        Ok(Some(readable))
    }

    /// Copies the rows of a table without rowids before the first damage, and those after the last.
    fn copy_from_both_ends(&self, salvaged: &mut SalvageReport) -> rusqlite::Result<()> {
        let SharedTable { name, columns, key, .. } = self.table;
        let key = key.as_deref().unwrap_or_default();
        let descending = key.replace(", ", " DESC, ") + " DESC";
        let mut insert = self.insert()?;
        for order in [key, &descending] {
            let select = format!("SELECT {columns} FROM {name} ORDER BY {order}");
            let read = self.read(&select, [], |row| self.copy_row(&mut insert, row, 0, salvaged));
            match read {
                Ok(()) => break,
                Err(error) if is_damage(&error) => salvaged.gaps_count += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read<const N: usize>(
        &self,
        select: &str,
        parameters: [i64; N],
        mut visit: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let mut statement = self.source.prepare_cached(select)?;
        let mut rows = statement.query(params_from_iter(parameters))?;
        while let Some(row) = rows.next()? {
            // Columns on overflow pages are read here.
            visit(row)?;
        }
        Ok(())
    }

    fn insert(&self) -> rusqlite::Result<Statement<'_>> {
        let SharedTable { name, columns, columns_count, .. } = self.table;
        let places = vec!["?"; *columns_count].join(", ");
        // A copied row replaces the one that the migrations inserted.
        self.target.prepare(&format!("INSERT OR REPLACE INTO {name} ({columns}) VALUES ({places})"))
    }

    fn copy_row(
        &self,
        insert: &mut Statement<'_>,
        row: &Row<'_>,
        first_column: usize,
        salvaged: &mut SalvageReport,
    ) -> rusqlite::Result<()> {
        let columns = first_column..first_column + self.table.columns_count;
        let values: Vec<Value> = columns.map(|column| row.get(column)).collect::<Result<_, _>>()?;
        match insert.execute(params_from_iter(values)) {
            // The row differs from what was written, in a file whose pages are not authenticated.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                salvaged.gaps_count += 1;
            }
            inserted => salvaged.rows_count += inserted? as u64,
        }
        Ok(())
    }
}
