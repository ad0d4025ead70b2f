//! Describes a user's table: its schema in SQLite, and the columns recorded when it was tracked.
//!
//! # Invariants
//! - While a TEMP table hides a tracked table, no table is written to and no change gets a
//!   timestamp ([`check_not_shadowed`]).
//! - The columns of a [`TrackedTable`] are in the order of `warren_column.position`, which is the
//!   order of the mask that the triggers write. A position is assigned once; a later column gets
//!   the next one.

use crdt::{ColumnId, Value};
use rusqlite::{Connection, params_from_iter};
use sqlite_schema::{
    ColumnKind, ColumnSchema, ForeignKeySchema, TableEntry, TableKind, TableSchema, is_sqlite_name,
    key_columns, quote_identifier,
};

use super::affinity::Affinity;
use super::unique::UniqueIndexes;
use crate::error::{Error, Result};
use crate::row_id::RowId;
use crate::sql_value::{BoundValue, read, to_literal};

/// A table as SQLite declares it. Generated columns are left out: every device computes its own.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredTable {
    pub(crate) name: String,
    pub(crate) columns: Vec<ColumnSchema>,
}

impl DeclaredTable {
    /// Reads a table, or returns `None` if it does not exist. The name gets its declared spelling,
    /// whatever the case of `name`.
    pub(crate) fn read(db: &Connection, name: &str) -> Result<Option<Self>> {
        let entry = sqlite_schema::table(db, name)?.filter(|entry| entry.kind != TableKind::View);
        let Some(TableEntry { name, .. }) = entry else { return Ok(None) };
        let mut columns = sqlite_schema::columns(db, &name)?;
        columns.retain(|column| column.kind == ColumnKind::Ordinary);
        Ok(Some(Self { name, columns }))
    }

    /// Returns the primary key's columns in the key's order.
    pub(crate) fn key(&self) -> Vec<&ColumnSchema> {
        key_columns(&self.columns)
    }

    pub(crate) fn captured(&self) -> impl Iterator<Item = &ColumnSchema> {
        self.columns.iter().filter(|column| column.key_position == 0)
    }
}

/// A column that the triggers capture: any column outside the primary key.
#[derive(Clone, Debug)]
pub(crate) struct CapturedColumn {
    pub(crate) id: ColumnId,
    pub(crate) name: String,
    /// The value that a migration has written to every row.
    pub(crate) fill: Option<Value>,
}

/// A table whose changes are captured and synced.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrackedTable {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) key: Vec<String>,
    /// Whether the table has auto keys: SQLite assigns the next key to a row that is inserted
    /// without one.
    pub(crate) has_auto_key: bool,
    /// Whether the table never reuses the key of a deleted row (`AUTOINCREMENT`).
    pub(crate) autoincrement: bool,
    /// The key columns that may be NULL. A row with NULL there has no id that devices could share.
    pub(crate) nullable: Vec<String>,
    /// The affinities of the key columns.
    key_affinities: Vec<Affinity>,
    pub(crate) columns: Vec<CapturedColumn>,
    pub(crate) uniques: UniqueIndexes,
    pub(crate) foreign_keys: Vec<ForeignKeySchema>,
}

impl TrackedTable {
    /// Returns all tracked tables, in the order in which they were tracked.
    pub(crate) fn all(db: &Connection) -> Result<Vec<Self>> {
        let sql = "SELECT id, name FROM warren_table WHERE tracked = 1 ORDER BY id";
        let mut statement = db.prepare_cached(sql)?;
        let tables = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let tables: Vec<(i64, String)> = tables.collect::<rusqlite::Result<_>>()?;
        tables.into_iter().map(|(id, name)| Self::load(db, id, name)).collect()
    }

    fn load(db: &Connection, id: i64, name: String) -> Result<Self> {
        let sql = "SELECT name FROM warren_column
                   WHERE table_id = ?1 AND key_position NOT NULL ORDER BY key_position";
        let mut statement = db.prepare_cached(sql)?;
        let key = statement.query_map([id], |row| row.get(0))?;
        let key: Vec<String> = key.collect::<rusqlite::Result<_>>()?;
        let sql = "SELECT id, name, fill FROM warren_column
                   WHERE table_id = ?1 AND position NOT NULL ORDER BY position";
        let mut statement = db.prepare_cached(sql)?;
        let mut rows = statement.query([id])?;
        let mut columns = Vec::new();
        while let Some(row) = rows.next()? {
            let fill = read(row, 2, 1)?.pop().filter(|fill| *fill != Value::Null);
            columns.push(CapturedColumn { id: row.get(0)?, name: row.get(1)?, fill });
        }
        let mut table = Self { id, name, key, columns, ..Self::default() };
        if let Some(entry) = sqlite_schema::table(db, &table.name)? {
            table.load_schema(db, &entry.read(db)?)?;
        }
        Ok(table)
    }

    /// Fills in the fields that SQLite's schema determines.
    fn load_schema(&mut self, db: &Connection, schema: &TableSchema) -> Result<()> {
        let key = schema.key_columns();
        let affinity = |column: &&ColumnSchema| {
            Affinity::from_declared_type(&column.declared_type, schema.is_strict)
        };
        self.key_affinities = key.iter().map(affinity).collect();
        self.uniques = UniqueIndexes::read(db, schema, &self.key_affinities)?;
        if let Some(alias) = schema.rowid_alias() {
            self.has_auto_key = true;
            self.autoincrement = db.column_metadata(Some("main"), &self.name, &*alias.name)?.4;
        } else {
            let nullable = key.iter().filter(|column| !column.is_not_null);
            self.nullable = nullable.map(|column| column.name.clone()).collect();
        }
        for key in sqlite_schema::foreign_keys(db, &self.name)? {
            // SQLite accepts a foreign key to a table that does not exist, or lacks such columns.
            if DeclaredTable::read(db, &key.parent)?.is_some_and(|parent| fits(&key, &parent)) {
                self.foreign_keys.push(key);
            }
        }
        Ok(())
    }

    /// Returns the reason why these values cannot be a key of this table, if they cannot.
    pub(crate) fn key_mismatch(&self, key: &[Value]) -> Option<String> {
        if key.len() != self.key.len() {
            let (here, there) = (self.key.len(), key.len());
            return Some(format!("the key has {there} columns on another device and {here} here"));
        }
        let mut columns = self.key.iter().zip(&self.key_affinities).zip(key);
        let (column, value) = columns
            .find(|((_, affinity), value)| !affinity.preserves(value))
            .map(|((c, _), v)| (c, v))?;
        let value = to_literal(value);
        Some(format!("column {column} cannot store {value} without changing it"))
    }

    /// Returns the values of a row's key, if the table can store it.
    pub(crate) fn key_of(&self, id: &RowId) -> Result<Option<Vec<Value>>> {
        let key = id.key_values()?;
        Ok(self.key_mismatch(&key).is_none().then_some(key))
    }

    /// Returns an SQL condition that no key column of `row` (`new.` or empty) is NULL.
    pub(crate) fn key_not_null_sql(&self, row: &str) -> String {
        let one = |column: &String| format!("{row}{} IS NOT NULL", quote_identifier(column));
        let all: Vec<_> = self.nullable.iter().map(one).collect();
        if all.is_empty() { "1".to_owned() } else { all.join(" AND ") }
    }

    /// Returns the opposite condition, in a form that the key's index serves.
    pub(crate) fn key_null_sql(&self) -> String {
        let all: Vec<_> =
            self.nullable.iter().map(|c| format!("{} IS NULL", quote_identifier(c))).collect();
        if all.is_empty() { "0".to_owned() } else { all.join(" OR ") }
    }

    /// Returns `"a" = ?1 AND …`, which is exact even if the key's index is not.
    pub(crate) fn key_condition(&self) -> String {
        self.key_condition_from(1)
    }

    /// Returns the condition of [`Self::key_condition`] with parameters from number `first` on.
    pub(crate) fn key_condition_from(&self, first: usize) -> String {
        let value = |place| format!("?{}", first + place);
        // This comparison can use the key's index, which need not distinguish all keys.
        let one = |(place, column): (usize, &String)| {
            format!("{} = {}", quote_identifier(column), value(place))
        };
        let all: Vec<_> = self.key.iter().enumerate().map(one).collect();
        format!("{} AND {}", all.join(" AND "), self.has_key(value))
    }

    /// Returns an SQL condition that a row has exactly the key with these values, by position.
    pub(crate) fn has_key(&self, value: impl Fn(usize) -> String) -> String {
        let one = |(place, column): (usize, &String)| {
            // Only a column without affinity stores both 1 and 1.0.
            let same = match self.key_affinities.get(place) {
                Some(Affinity::None) => is_exactly,
                _ => has_bytes,
            };
            same(&quote_identifier(column), &value(place))
        };
        self.key.iter().enumerate().map(one).collect::<Vec<_>>().join(" AND ")
    }

    /// Returns the key's and the captured columns, quoted and separated by commas.
    pub(crate) fn column_list(&self) -> String {
        let columns = self.key.iter().chain(self.columns.iter().map(|column| &column.name));
        columns.map(|name| quote_identifier(name)).collect::<Vec<_>>().join(", ")
    }
}

/// Returns an SQL condition that two values have the same bytes, whatever the column's collation.
fn has_bytes(column: &str, value: &str) -> String {
    format!("{column} = {value} COLLATE BINARY")
}

/// Returns an SQL condition that two values have the same bytes and storage class: 1 is not 1.0.
pub(crate) fn is_exactly(column: &str, value: &str) -> String {
    format!("{} AND typeof({column}) = typeof({value})", has_bytes(column, value))
}

/// Returns every foreign key that refers to `parent`, with the table that holds it.
pub(crate) fn references<'a>(
    tables: &'a [TrackedTable],
    parent: &'a TrackedTable,
) -> impl Iterator<Item = (&'a TrackedTable, &'a ForeignKeySchema)> {
    let keys = tables.iter().flat_map(|table| table.foreign_keys.iter().map(move |fk| (table, fk)));
    keys.filter(|(_, fk)| fk.parent.eq_ignore_ascii_case(&parent.name))
}

/// Returns whether the parent has the columns that a foreign key refers to.
fn fits(key: &ForeignKeySchema, parent: &DeclaredTable) -> bool {
    let is_there =
        |name: &String| parent.columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
    key.parent_columns.len() == key.columns.len() && key.parent_columns.iter().all(is_there)
}

pub(crate) fn is_internal(name: &str) -> bool {
    is_sqlite_name(name) || is_warren_name(name)
}

fn is_warren_name(name: &str) -> bool {
    name.to_ascii_lowercase().starts_with("warren_")
}

/// The reason why a hidden table cannot be tracked or synced.
pub(crate) const SHADOWED: &str = "a TEMP table or view of this connection has the same name and hides it: drop or rename that one";

/// Checks that no TEMP table or view of this connection hides a tracked table or one of Warren's.
/// Changes of other devices would be written into the TEMP table, and be lost with it.
pub(crate) fn check_not_shadowed(db: &Connection, tables: &[TrackedTable]) -> Result<()> {
    let is_ours = |name: &String| {
        is_warren_name(name) || tables.iter().any(|table| table.name.eq_ignore_ascii_case(name))
    };
    match sqlite_schema::temporary_tables(db)?.into_iter().find(is_ours) {
        Some(table) => Err(Error::Untrackable { table, reason: SHADOWED.to_owned() }),
        None => Ok(()),
    }
}

/// Returns whether the table has the row.
pub(crate) fn row_exists(db: &Connection, table: &TrackedTable, id: &RowId) -> Result<bool> {
    let Some(key) = table.key_of(id)? else { return Ok(false) };
    let sql =
        format!("SELECT 1 FROM {} WHERE {}", quote_identifier(&table.name), table.key_condition());
    Ok(db.prepare_cached(&sql)?.exists(params_from_iter(key.iter().map(BoundValue)))?)
}
