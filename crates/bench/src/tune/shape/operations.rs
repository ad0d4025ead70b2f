//! Builds the operations on one table, in SQL.
//!
//! Updates and inserts use `OR IGNORE`: among many values from other rows, one may violate a
//! constraint.

use std::collections::BTreeMap;

use rusqlite::Connection;
use rusqlite::types::Null;
use sqlite_schema::{ColumnSchema, IndexOrigin, IndexSchema, quote_identifier};

use super::schema::{LoadTable, ROWID_MAX};
use super::values::ValueSample;
use crate::sqlite_bench::{LabStatement, SampleValue};
use crate::tune::tune_load::statement;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationKind {
    Point,
    Lookup,
    Scan,
    Update,
    /// An insert, together with the delete of the inserted row.
    Insert,
}

/// An operation on a table.
#[derive(Clone, Debug)]
pub(super) struct TableOperation {
    pub(super) kind: OperationKind,
    /// The description, for notes.
    pub(super) about: String,
    /// The statements by name; for an insert, the delete is the second.
    pub(super) statements: Vec<(String, Vec<LabStatement>)>,
    /// The query that counts inserted rows, for an insert; `clean` deletes them.
    pub(super) count: Option<String>,
    pub(super) clean: Option<String>,
    /// The operation's share of the work on the table.
    pub(super) share: f64,
}

impl TableOperation {
    pub(super) fn names(&self) -> Vec<String> {
        self.statements.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// The shares of a table's reads: half find a row by its key, a fifth are scans, and the rest are
/// lookups.
const POINT_SHARE: f64 = 0.5;
const SCAN_SHARE: f64 = 0.2;
const LOOKUP_SHARE: f64 = 0.3;
/// The most rows of a scan or a lookup.
const ROWS_MAX: usize = 50;

type SampleValues = BTreeMap<String, Vec<SampleValue>>;

/// Returns the operations to try. Adds the values to `samples`, under names that begin with the
/// table's.
pub(super) fn candidate_operations(
    db: &Connection,
    table: &LoadTable,
    samples: &mut SampleValues,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<TableOperation>> {
    let leading: Vec<&str> = lookups(table).filter_map(|(_, column)| column).collect();
    let changeable: Vec<&str> = changeable(table).map(|column| column.name.as_str()).collect();
    let sample = ValueSample::of(db, table, &[&leading[..], &changeable].concat())?;
    let Some((keys, key)) = sample.keys(1) else {
        notes.push(format!("{}: no row has a key", table.name));
        return Ok(Vec::new());
    };
    let key_name = format!("{} key", table.name);
    samples.insert(key_name.clone(), keys);
    let shaper = LoadShaper { table, sample: &sample, key_name };
    let mut operations = shaper.by_key(&key);
    operations.extend(shaper.lookups(db, samples, notes)?);
    match shaper.update(&changeable, samples) {
        Some(update) => operations.push(update),
        None => notes.push(format!(
            "{}: no updates: no column that can be updated has two different values",
            table.name
        )),
    }
    match shaper.insert(db)? {
        Ok(insert) => operations.push(insert),
        Err(why) => notes.push(format!("{}: no inserts: {why}", table.name)),
    }
    Ok(operations)
}

/// Returns each index with the column whose values find rows through it, if it has one.
fn lookups(table: &LoadTable) -> impl Iterator<Item = (&str, Option<&str>)> {
    let all = table.indexes.iter().filter(|index| index.origin != IndexOrigin::PrimaryKey);
    all.map(|index| {
        let first = index.columns.first().and_then(|key| key.column.as_deref());
        (index.name.as_str(), first.filter(|_| !index.is_partial))
    })
}

/// Returns the columns that may get another row's value: first those without an index or a foreign
/// key.
fn changeable(table: &LoadTable) -> impl Iterator<Item = &ColumnSchema> {
    let is_in = |column: &ColumnSchema, unique: bool| {
        let of_kind = table.indexes.iter().filter(move |index| !unique || index.is_unique);
        of_kind
            .flat_map(|index| &index.columns)
            .any(|key| key.column.as_ref() == Some(&column.name))
    };
    let free = move |column: &&ColumnSchema| {
        !column.is_generated() && !table.key.contains(&column.name) && !is_in(column, true)
    };
    let mut all: Vec<&ColumnSchema> = table.columns.iter().filter(free).collect();
    all.sort_by_key(|column| (table.is_foreign(column), is_in(column, false)));
    all.into_iter()
}

struct LoadShaper<'a> {
    table: &'a LoadTable,
    sample: &'a ValueSample,
    /// The name of the sample of keys.
    key_name: String,
}

impl LoadShaper<'_> {
    fn operation(
        &self,
        kind: OperationKind,
        about: &str,
        share: f64,
        of: LabStatement,
    ) -> TableOperation {
        let name = format!("{} {about}", self.table.name);
        TableOperation {
            kind,
            about: format!("{}: {about}", self.table.name),
            statements: vec![(name, vec![of])],
            count: None,
            clean: None,
            share,
        }
    }

    fn by_key(&self, key: &[String]) -> Vec<TableOperation> {
        let table = quote_identifier(&self.table.name);
        let columns: Vec<String> =
            self.table.key.iter().map(|name| quote_identifier(name)).collect();
        let (columns, key) = (columns.join(", "), key.join(", "));
        let point = format!("SELECT * FROM {table} WHERE ({columns}) = ({key})");
        let scan = format!(
            "SELECT * FROM {table} WHERE ({columns}) >= ({key}) ORDER BY {columns} LIMIT {ROWS_MAX}"
        );
        let bind = [self.key_name.as_str()];
        vec![
            self.operation(
                OperationKind::Point,
                "read by key",
                POINT_SHARE,
                statement(point, &bind),
            ),
            self.operation(OperationKind::Scan, "scan", SCAN_SHARE, statement(scan, &bind)),
        ]
    }

    fn lookups(
        &self,
        db: &Connection,
        samples: &mut SampleValues,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<Vec<TableOperation>> {
        let table = &self.table.name;
        let mut operations = Vec::new();
        for (index, column) in lookups(self.table) {
            let Some(column) = column else {
                notes.push(format!("{table}: index {index} is partial or on an expression"));
                continue;
            };
            let Some(bound) = self.sample.column(column) else { continue };
            let sql = format!(
                "SELECT * FROM {} INDEXED BY {} WHERE {} = {} LIMIT {ROWS_MAX}",
                quote_identifier(table),
                quote_identifier(index),
                quote_identifier(column),
                bound.parameter(1)
            );
            // An index with another collation would be scanned from end to end.
            let plan = format!("EXPLAIN QUERY PLAN {sql}");
            let plan: String = db.query_row(&plan, [Null], |row| row.get("detail"))?;
            if !plan.starts_with("SEARCH") {
                notes.push(format!("{table}: index {index} cannot be used to look up {column}"));
                continue;
            }
            let name = format!("{table} column {column}");
            let about = format!("lookup in {index}");
            let of = statement(sql, &[&name]);
            operations.push(self.operation(OperationKind::Lookup, &about, LOOKUP_SHARE, of));
            samples.insert(name, bound.values);
        }
        let share = LOOKUP_SHARE / f64::from(u32::try_from(operations.len()).unwrap_or(1).max(1));
        for operation in &mut operations {
            operation.share = share;
        }
        Ok(operations)
    }

    fn update(&self, columns: &[&str], samples: &mut SampleValues) -> Option<TableOperation> {
        let table = &self.table.name;
        let found = columns.iter().find_map(|column| {
            let bound = self.sample.column(column)?;
            bound.differ().then_some((column, bound))
        });
        let (column, bound) = found?;
        let (_, key) = self.sample.keys(2)?;
        let columns: Vec<String> =
            self.table.key.iter().map(|name| quote_identifier(name)).collect();
        let sql = format!(
            "UPDATE OR IGNORE {} SET {} = {} WHERE ({}) = ({})",
            quote_identifier(table),
            quote_identifier(column),
            bound.parameter(1),
            columns.join(", "),
            key.join(", ")
        );
        let name = format!("{table} column {column}");
        let of = statement(sql, &[&name, &self.key_name]);
        samples.insert(name, bound.values);
        Some(self.operation(OperationKind::Update, &format!("update of {column}"), 1.0, of))
    }

    /// Returns copies of rows with new values wherever they must be unique, or the reason why that
    /// is impossible.
    fn insert(&self, db: &Connection) -> anyhow::Result<Result<TableOperation, String>> {
        let table = quote_identifier(&self.table.name);
        let mut fresh: Vec<(String, FreshValue)> = Vec::new();
        if let Some(rowid) = &self.table.rowid {
            let sql = format!("SELECT max({}) FROM {table}", quote_identifier(rowid));
            let max: i64 = db.query_row(&sql, [], |row| row.get(0))?;
            if max >= ROWID_MAX {
                return Ok(Err("its rowids are too close to the maximum".to_owned()));
            }
            fresh.push((rowid.clone(), FreshValue::Integer { after: 0, max }));
        }
        let mut unique: Vec<Vec<String>> =
            self.table.indexes.iter().filter(|index| index.is_unique).filter_map(named).collect();
        if self.table.rowid.is_none() {
            // The delete finds the rows by the key's first column.
            unique.insert(0, self.table.key[..1].to_vec());
        }
        for columns in unique {
            if columns.iter().any(|name| fresh.iter().any(|(of, _)| of == name)) {
                continue;
            }
            let column = columns.iter().find_map(|name| {
                self.table.columns.iter().find(|column| {
                    column.name == *name && !self.table.is_foreign(column) && !column.is_generated()
                })
            });
            let Some(column) = column else {
                return Ok(Err(format!("({}) references other rows", columns.join(", "))));
            };
            fresh.push((column.name.clone(), FreshValue::of(db, &table, &column.name)?));
        }
        Ok(Ok(self.copies(&fresh)))
    }

    fn copies(&self, fresh: &[(String, FreshValue)]) -> TableOperation {
        let table = quote_identifier(&self.table.name);
        let others = self.table.columns.iter().filter(|column| {
            !column.is_generated() && fresh.iter().all(|(name, _)| *name != column.name)
        });
        let others: Vec<String> = others.map(|column| quote_identifier(&column.name)).collect();
        let mut columns: Vec<String> =
            fresh.iter().map(|(name, _)| quote_identifier(name)).collect();
        let mut values: Vec<String> = fresh.iter().map(|(_, of)| of.expression()).collect();
        columns.extend(others.iter().cloned());
        values.extend(others);
        let key: Vec<String> = self.table.key.iter().map(|name| quote_identifier(name)).collect();
        let (_, of_key) = self.sample.keys(2).unwrap_or_default();
        let insert = format!(
            "INSERT OR IGNORE INTO {table} ({}) SELECT {} FROM {table} WHERE ({}) = ({})",
            columns.join(", "),
            values.join(", "),
            key.join(", "),
            of_key.join(", ")
        );
        let (first, fresh) = &fresh[0];
        let first = quote_identifier(first);
        let delete = format!("DELETE FROM {table} WHERE {first} = {}", fresh.expression());
        let is_inserted = fresh.condition(&first);
        let name = |what: &str| format!("{} {what}", self.table.name);
        TableOperation {
            kind: OperationKind::Insert,
            about: name("inserts"),
            statements: vec![
                (name("insert"), vec![statement(insert, &["new", &self.key_name])]),
                (name("delete"), vec![statement(delete, &["last"])]),
            ],
            count: Some(format!("SELECT count(*) FROM {table} WHERE {is_inserted}")),
            clean: Some(format!("DELETE FROM {table} WHERE {is_inserted}")),
            share: 1.0,
        }
    }
}

fn named(index: &IndexSchema) -> Option<Vec<String>> {
    // A partial index, or one on an expression, may reject a row, which is then not inserted.
    let columns: Option<Vec<String>> = index.columns.iter().map(|key| key.column.clone()).collect();
    columns.filter(|_| !index.is_partial)
}

/// A value that no row has, derived from the number of the new row.
enum FreshValue {
    /// The number itself, after the largest existing value.
    Integer {
        after: i64,
        max: i64,
    },
    Text,
    Blob,
}

/// The prefix of fresh texts and BLOBs.
const MARK: &str = "warren ";

impl FreshValue {
    fn of(db: &Connection, table: &str, column: &str) -> anyhow::Result<Self> {
        let column = quote_identifier(column);
        let sql =
            format!("SELECT typeof({column}) FROM {table} WHERE {column} IS NOT NULL LIMIT 1");
        let kind = db.query_row(&sql, [], |row| row.get::<_, String>(0));
        Ok(match kind.as_deref() {
            Ok("integer" | "real") => {
                let sql =
                    format!("SELECT coalesce(max(CAST({column} AS INTEGER)), 0) FROM {table}");
                let max: i64 = db.query_row(&sql, [], |row| row.get(0))?;
                Self::Integer { after: max.clamp(0, ROWID_MAX), max }
            }
            Ok("blob") => Self::Blob,
            _ => Self::Text,
        })
    }

    /// Returns the SQL for a fresh value; the first parameter is the number.
    fn expression(&self) -> String {
        match self {
            Self::Integer { after: 0, .. } => "?1".to_owned(),
            Self::Integer { after, .. } => format!("?1 + {after}"),
            Self::Text => format!("'{MARK}' || ?1"),
            Self::Blob => format!("CAST('{MARK}' || ?1 AS BLOB)"),
        }
    }

    /// Returns the condition that holds for the rows with fresh values.
    fn condition(&self, column: &str) -> String {
        let range = |cast: fn(&str) -> String| {
            let (low, high) = (cast("warren "), cast("warren!"));
            format!("{column} >= {low} AND {column} < {high}")
        };
        match self {
            Self::Integer { max, .. } => format!("{column} > {max}"),
            Self::Text => range(|text| format!("'{text}'")),
            Self::Blob => range(|text| format!("CAST('{text}' AS BLOB)")),
        }
    }
}
