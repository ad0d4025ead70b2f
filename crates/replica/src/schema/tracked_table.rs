//! A user's table: what SQLite says of it, and what was noted when it was tracked.
//!
//! # Invariants
//! - A [`TrackedTable`]'s columns stand in the order of `warren_column.place`: the order of the
//!   mask that the triggers write. Places are given once; a later column gets the next one.

use crdt::{ColumnId, Value};
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use super::affinity::Affinity;
use super::unique::{UniqueIndexes, is_rowid_alias};
use crate::error::Result;
use crate::row_id::RowId;
use crate::sql_text::quote;
use crate::sql_value::{BoundValue, read, to_literal};

/// A column as SQLite declares it.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredColumn {
    pub(crate) name: String,
    pub(crate) declared_type: String,
    pub(crate) not_null: bool,
    pub(crate) default: Option<String>,
    pub(crate) key_position: i64,
}

impl DeclaredColumn {
    /// What a row holds that was added without a value, in SQL.
    pub(crate) fn default_expression(&self) -> &str {
        self.default.as_deref().unwrap_or("NULL")
    }
}

/// A table as SQLite declares it; generated columns are left out: every device computes its own.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredTable {
    pub(crate) name: String,
    pub(crate) columns: Vec<DeclaredColumn>,
}

impl DeclaredTable {
    /// `None` if there is no such table. The name is the one that was declared, whatever the case
    /// of `name`.
    pub(crate) fn read(db: &Connection, name: &str) -> Result<Option<Self>> {
        let sql =
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE";
        let declared: Option<String> =
            db.prepare_cached(sql)?.query_row([name], |row| row.get(0)).optional()?;
        let Some(name) = declared else { return Ok(None) };
        let sql = "SELECT name, type, \"notnull\", dflt_value, pk
                   FROM pragma_table_xinfo(?1) WHERE hidden = 0 ORDER BY cid";
        let mut statement = db.prepare_cached(sql)?;
        let columns = statement.query_map([&name], |row| {
            Ok(DeclaredColumn {
                name: row.get(0)?,
                declared_type: row.get(1)?,
                not_null: row.get(2)?,
                default: row.get(3)?,
                key_position: row.get(4)?,
            })
        })?;
        let columns = columns.collect::<rusqlite::Result<_>>()?;
        Ok(Some(Self { name, columns }))
    }

    /// The primary key's columns in the key's order.
    pub(crate) fn key(&self) -> Vec<&DeclaredColumn> {
        let mut key: Vec<_> =
            self.columns.iter().filter(|column| column.key_position > 0).collect();
        key.sort_by_key(|column| column.key_position);
        key
    }

    pub(crate) fn captured(&self) -> impl Iterator<Item = &DeclaredColumn> {
        self.columns.iter().filter(|column| column.key_position == 0)
    }
}

/// A captured column.
#[derive(Clone, Debug)]
pub(crate) struct CapturedColumn {
    pub(crate) id: ColumnId,
    pub(crate) name: String,
    /// What a migration has written to every row.
    pub(crate) fill: Option<Value>,
}

/// Columns here that refer to columns of a parent.
#[derive(Clone, Debug)]
pub(crate) struct ForeignKey {
    pub(crate) columns: Vec<String>,
    pub(crate) parent: String,
    pub(crate) parent_columns: Vec<String>,
    /// In SQLite's words.
    pub(crate) on_delete: String,
    pub(crate) on_update: String,
}

impl ForeignKey {
    fn fits(&self, parent: &DeclaredTable) -> bool {
        let is_there = |name: &String| {
            parent.columns.iter().any(|column| column.name.eq_ignore_ascii_case(name))
        };
        self.parent_columns.len() == self.columns.len() && self.parent_columns.iter().all(is_there)
    }
}

/// A tracked table.
#[derive(Clone, Debug)]
pub(crate) struct TrackedTable {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) key: Vec<String>,
    /// Whether SQLite counts its keys: it gives a row that comes without one the next.
    pub(crate) has_auto_key: bool,
    /// Whether it never gives a key again that a row once had (`AUTOINCREMENT`).
    pub(crate) autoincrement: bool,
    /// Those of the key's columns that may be NULL: such a row has no name that devices could share.
    pub(crate) nullable: Vec<String>,
    /// Of the key's columns.
    key_affinities: Vec<Affinity>,
    pub(crate) columns: Vec<CapturedColumn>,
    pub(crate) uniques: UniqueIndexes,
    pub(crate) foreign_keys: Vec<ForeignKey>,
}

impl TrackedTable {
    /// All tracked tables, in the order in which they were tracked.
    pub(crate) fn all(db: &Connection) -> Result<Vec<Self>> {
        let sql = "SELECT id, name FROM warren_table WHERE tracked = 1 ORDER BY id";
        let mut statement = db.prepare_cached(sql)?;
        let tables = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let tables: Vec<(i64, String)> = tables.collect::<rusqlite::Result<_>>()?;
        tables.into_iter().map(|(id, name)| Self::load(db, id, name)).collect()
    }

    fn load(db: &Connection, id: i64, name: String) -> Result<Self> {
        let sql = "SELECT name FROM warren_column
                   WHERE table_id = ?1 AND key_place NOT NULL ORDER BY key_place";
        let mut statement = db.prepare_cached(sql)?;
        let key = statement.query_map([id], |row| row.get(0))?;
        let key: Vec<String> = key.collect::<rusqlite::Result<_>>()?;
        let sql = "SELECT id, name, fill FROM warren_column
                   WHERE table_id = ?1 AND place NOT NULL ORDER BY place";
        let mut statement = db.prepare_cached(sql)?;
        let mut rows = statement.query([id])?;
        let mut columns = Vec::new();
        while let Some(row) = rows.next()? {
            let fill = read(row, 2, 1)?.pop().filter(|fill| *fill != Value::Null);
            columns.push(CapturedColumn { id: row.get(0)?, name: row.get(1)?, fill });
        }
        let key_affinities = key_affinities(db, &name)?;
        let uniques = UniqueIndexes::read(db, &name, &key_affinities)?;
        let counts = is_rowid_alias(db, &name)?;
        let autoincrement = counts && db.column_metadata(Some("main"), &name, &*key[0])?.4;
        let declared = DeclaredTable::read(db, &name)?;
        let nullable = declared.iter().filter(|_| !counts).flat_map(DeclaredTable::key);
        let nullable = nullable.filter(|c| !c.not_null).map(|c| c.name.clone()).collect();
        let mut usable_keys = Vec::new();
        for key in foreign_keys(db, &name)? {
            // SQLite takes a key to a table that is not there, or has no such columns.
            if DeclaredTable::read(db, &key.parent)?.is_some_and(|parent| key.fits(&parent)) {
                usable_keys.push(key);
            }
        }
        let foreign_keys = usable_keys;
        Ok(Self {
            id,
            name,
            key,
            has_auto_key: counts,
            autoincrement,
            nullable,
            key_affinities,
            columns,
            uniques,
            foreign_keys,
        })
    }

    /// Why these values are no key of this table, if they are none.
    pub(crate) fn key_mismatch(&self, key: &[Value]) -> Option<String> {
        if key.len() != self.key.len() {
            let (here, there) = (self.key.len(), key.len());
            return Some(format!("its key has {there} values, the table's has {here}"));
        }
        let mut columns = self.key.iter().zip(&self.key_affinities).zip(key);
        let (column, value) = columns
            .find(|((_, affinity), value)| !affinity.preserves(value))
            .map(|((c, _), v)| (c, v))?;
        Some(format!("its {column} is {}, which the column does not store", to_literal(value)))
    }

    /// The values of a row's key, if the table can have it.
    pub(crate) fn key_of(&self, id: &RowId) -> Result<Option<Vec<Value>>> {
        let key = id.key_values()?;
        Ok(self.key_mismatch(&key).is_none().then_some(key))
    }

    /// A condition on the columns of `row` (`new.`, or nothing): the row has a name.
    pub(crate) fn key_not_null_sql(&self, row: &str) -> String {
        let one = |column: &String| format!("{row}{} IS NOT NULL", quote(column));
        let all: Vec<_> = self.nullable.iter().map(one).collect();
        if all.is_empty() { "1".to_owned() } else { all.join(" AND ") }
    }

    /// The contrary, in a form that the key's index serves.
    pub(crate) fn key_null_sql(&self) -> String {
        let all: Vec<_> = self.nullable.iter().map(|c| format!("{} IS NULL", quote(c))).collect();
        if all.is_empty() { "0".to_owned() } else { all.join(" OR ") }
    }

    /// `"a" = ?1 AND …`, exact also where the key's index is not.
    pub(crate) fn key_condition(&self) -> String {
        self.key_condition_from(1)
    }

    /// The same, from this parameter on.
    pub(crate) fn key_condition_from(&self, first: usize) -> String {
        let value = |place| format!("?{}", first + place);
        // A comparison that can use the key's index, which need not tell keys apart.
        let one =
            |(place, column): (usize, &String)| format!("{} = {}", quote(column), value(place));
        let all: Vec<_> = self.key.iter().enumerate().map(one).collect();
        format!("{} AND {}", all.join(" AND "), self.has_key(value))
    }

    /// A condition: a row has just the key whose values are these, by place.
    pub(crate) fn has_key(&self, value: impl Fn(usize) -> String) -> String {
        let one = |(place, column): (usize, &String)| {
            // Only a column without affinity stores both 1 and 1.0.
            let same = match self.key_affinities.get(place) {
                Some(Affinity::None) => is_exactly,
                _ => has_bytes,
            };
            same(&quote(column), &value(place))
        };
        self.key.iter().enumerate().map(one).collect::<Vec<_>>().join(" AND ")
    }

    /// The key's and the captured columns, quoted, comma-separated.
    pub(crate) fn column_list(&self) -> String {
        let columns = self.key.iter().chain(self.columns.iter().map(|column| &column.name));
        columns.map(|name| quote(name)).collect::<Vec<_>>().join(", ")
    }
}

/// A condition: two values have the same bytes, whatever the column's collation.
fn has_bytes(column: &str, value: &str) -> String {
    format!("{column} = {value} COLLATE BINARY")
}

/// The same, and one storage class: 1 is not 1.0.
pub(crate) fn is_exactly(column: &str, value: &str) -> String {
    format!("{} AND typeof({column}) = typeof({value})", has_bytes(column, value))
}

/// Every foreign key that refers to `parent`, with the table that holds it.
pub(crate) fn references<'a>(
    tables: &'a [TrackedTable],
    parent: &'a TrackedTable,
) -> impl Iterator<Item = (&'a TrackedTable, &'a ForeignKey)> {
    let keys = tables.iter().flat_map(|table| table.foreign_keys.iter().map(move |fk| (table, fk)));
    keys.filter(|(_, fk)| fk.parent.eq_ignore_ascii_case(&parent.name))
}

/// In the key's order.
fn key_affinities(db: &Connection, table: &str) -> Result<Vec<Affinity>> {
    let sql = "SELECT strict FROM pragma_table_list(?1) WHERE schema = 'main'";
    let strict: Option<bool> =
        db.prepare_cached(sql)?.query_row([table], |r| r.get(0)).optional()?;
    let declared = DeclaredTable::read(db, table)?;
    let of = |column: &&DeclaredColumn| {
        Affinity::from_declared_type(&column.declared_type, strict.unwrap_or(false))
    };
    Ok(declared.map(|declared| declared.key().iter().map(of).collect()).unwrap_or_default())
}

pub(crate) fn foreign_keys(db: &Connection, table: &str) -> Result<Vec<ForeignKey>> {
    let sql = "SELECT id, \"table\", \"from\", \"to\", on_delete, on_update
               FROM pragma_foreign_key_list(?1) ORDER BY id, seq";
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query([table])?;
    let mut keys: Vec<(i64, ForeignKey)> = Vec::new();
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        if keys.last().is_none_or(|(last, _)| *last != id) {
            let (parent, on_delete, on_update) = (row.get(1)?, row.get(4)?, row.get(5)?);
            let (columns, parent_columns) = (Vec::new(), Vec::new());
            let key = ForeignKey { columns, parent, parent_columns, on_delete, on_update };
            keys.push((id, key));
        }
        let key = &mut keys.last_mut().expect("just pushed").1;
        key.columns.push(row.get(2)?);
        key.parent_columns.extend(row.get::<_, Option<String>>(3)?);
    }
    let mut keys: Vec<ForeignKey> = keys.into_iter().map(|(_, key)| key).collect();
    for key in keys.iter_mut().filter(|key| key.parent_columns.is_empty()) {
        // `REFERENCES parent` without columns means its primary key.
        if let Some(parent) = DeclaredTable::read(db, &key.parent)? {
            key.parent_columns = parent.key().iter().map(|column| column.name.clone()).collect();
        }
    }
    Ok(keys)
}

pub(crate) fn is_internal(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("sqlite_") || name.starts_with("warren_")
}

/// Whether the table has the row.
pub(crate) fn row_exists(db: &Connection, table: &TrackedTable, id: &RowId) -> Result<bool> {
    let Some(key) = table.key_of(id)? else { return Ok(false) };
    let sql = format!("SELECT 1 FROM {} WHERE {}", quote(&table.name), table.key_condition());
    Ok(db.prepare_cached(&sql)?.exists(params_from_iter(key.iter().map(BoundValue)))?)
}
