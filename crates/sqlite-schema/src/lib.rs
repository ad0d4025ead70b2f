//! Reads the schema of a database: columns, keys, indexes, foreign keys.
//!
//! SQLite reports these through its PRAGMAs (<https://sqlite.org/pragma.html>), so no `CREATE
//! TABLE` is parsed for them. For parts that no PRAGMA reports, such as a CHECK, a caller searches
//! the text of the statement, with [`tokens`] and [`words`].
//!
//! # Invariants
//! - Only the main database is read. A TEMP table of the same name is never taken for the table.
//! - Names are spelled as declared, whatever spelling a caller uses.
//! - Lists are in an order that does not depend on the history of the file: tables and indexes by
//!   name, columns as declared. Foreign keys are in SQLite's order: the last one first.
#![warn(missing_docs)]

mod sql_text;

use rusqlite::{Connection, OptionalExtension, Params, Row};

pub use self::sql_text::{
    is_blank, quote_identifier, tokens, unquote, virtual_table_module, words,
};

/// The kind of an entry that `sqlite_schema` lists as a table or view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// An ordinary table, whose rows are in a B-tree of its own.
    Ordinary,
    /// An ordinary table in which a virtual table keeps its content.
    Shadow,
    /// A virtual table, whose content comes from a module.
    Virtual,
    /// A view, which is a stored SELECT.
    View,
}

/// A table or view, without its columns: one row of `PRAGMA table_list`.
#[derive(Clone, Debug)]
pub struct TableEntry {
    /// The name as it was declared.
    pub name: String,
    /// The kind of the table or view.
    pub kind: TableKind,
    /// Whether the table has row ids; `false` if it was declared `WITHOUT ROWID`.
    pub has_rowid: bool,
    /// Whether the table was declared `STRICT`.
    pub is_strict: bool,
}

/// A table with its columns and indexes.
#[derive(Clone, Debug)]
pub struct TableSchema {
    /// The name as it was declared.
    pub name: String,
    /// The kind of the table or view.
    pub kind: TableKind,
    /// Whether the table has row ids; `false` if it was declared `WITHOUT ROWID`.
    pub has_rowid: bool,
    /// Whether the table was declared `STRICT`.
    pub is_strict: bool,
    /// All columns in declared order, generated and hidden ones included.
    pub columns: Vec<ColumnSchema>,
    /// All indexes by name, those of constraints included.
    pub indexes: Vec<IndexSchema>,
}

/// A column of a table or view.
#[derive(Clone, Debug)]
pub struct ColumnSchema {
    /// The name as it was declared.
    pub name: String,
    /// The type as it was declared; empty if there is none.
    pub declared_type: String,
    /// Whether the column was declared `NOT NULL`.
    pub is_not_null: bool,
    /// The SQL of the column's default.
    pub default: Option<String>,
    /// The column's place in the primary key, from 1; 0 outside it.
    pub key_position: u32,
    /// The source of the column's values.
    pub kind: ColumnKind,
}

/// The source of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// An ordinary column, which statements write.
    Ordinary,
    /// A hidden column of a virtual table: its module supplies the values, and `SELECT *` omits
    /// them.
    Hidden,
    /// A generated column, computed when it is read.
    GeneratedVirtual,
    /// A generated column, computed when the row is written.
    GeneratedStored,
}

/// An index of a table.
#[derive(Clone, Debug)]
pub struct IndexSchema {
    /// The index's name; `sqlite_autoindex_…` if a constraint created it.
    pub name: String,
    /// Whether the index was declared `UNIQUE`, or a constraint created it.
    pub is_unique: bool,
    /// Whether the index has a WHERE.
    pub is_partial: bool,
    /// The reason why the index exists.
    pub origin: IndexOrigin,
    /// The columns of the index's key, in order.
    pub columns: Vec<IndexKeyColumn>,
}

/// The reason why an index exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexOrigin {
    /// The index was created by `CREATE INDEX`.
    Created,
    /// The index was created by a UNIQUE constraint.
    UniqueConstraint,
    /// The index was created by a PRIMARY KEY.
    PrimaryKey,
}

/// A key column of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexKeyColumn {
    /// The column's name; `None` for an expression.
    pub column: Option<String>,
    /// The collation that compares the column's values.
    pub collation: String,
    /// Whether the column is declared `DESC`.
    pub is_descending: bool,
}

/// A foreign key: columns of a table that refer to columns of a parent.
#[derive(Clone, Debug)]
pub struct ForeignKeySchema {
    /// SQLite's number of the foreign key in its table, which `PRAGMA foreign_key_check` reports.
    pub id: i64,
    /// The parent table, as the foreign key spells it; it need not exist.
    pub parent: String,
    /// The columns that refer to the parent.
    pub columns: Vec<String>,
    /// The columns of the parent: as declared, or else its primary key. They need not exist, and
    /// their number may differ.
    pub parent_columns: Vec<String>,
    /// The action on delete in SQLite's words, such as `NO ACTION`.
    pub on_delete: String,
    /// The action on update in SQLite's words, such as `CASCADE`.
    pub on_update: String,
}

/// The kind of an object that `sqlite_schema` lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaObjectKind {
    /// A table, virtual or not.
    Table,
    /// An index of a table.
    Index,
    /// A trigger of a table or view.
    Trigger,
}

/// Returns the tables and views of the main database, SQLite's own included.
pub fn tables(db: &Connection) -> rusqlite::Result<Vec<TableEntry>> {
    let sql = "SELECT name, type, wr, strict FROM pragma_table_list
               WHERE schema = 'main' ORDER BY name";
    rows(db, sql, [], TableEntry::from_row)
}

/// Returns one table or view. The case of `name` does not matter.
pub fn table(db: &Connection, name: &str) -> rusqlite::Result<Option<TableEntry>> {
    let sql = "SELECT name, type, wr, strict FROM pragma_table_list(?1) WHERE schema = 'main'";
    db.prepare_cached(sql)?.query_row([name], TableEntry::from_row).optional()
}

/// Returns the TEMP tables and views of this connection. Each hides a table of the same name from
/// every statement that does not name the schema `main`.
pub fn temporary_tables(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM temp.sqlite_schema WHERE type IN ('table', 'view') ORDER BY name";
    rows(db, sql, [], |row| row.get(0))
}

/// Returns the columns of a table or view, generated and hidden ones included; none if it does not
/// exist.
pub fn columns(db: &Connection, table: &str) -> rusqlite::Result<Vec<ColumnSchema>> {
    let sql = "SELECT name, type, \"notnull\", dflt_value, pk, hidden
               FROM pragma_table_xinfo(?1, 'main') ORDER BY cid";
    rows(db, sql, [table], |row| {
        Ok(ColumnSchema {
            name: row.get(0)?,
            declared_type: row.get(1)?,
            is_not_null: row.get(2)?,
            default: row.get(3)?,
            key_position: row.get(4)?,
            kind: match row.get(5)? {
                0 => ColumnKind::Ordinary,
                1 => ColumnKind::Hidden,
                2 => ColumnKind::GeneratedVirtual,
                _ => ColumnKind::GeneratedStored,
            },
        })
    })
}

/// Returns the indexes of a table, with their columns.
pub fn indexes(db: &Connection, table: &str) -> rusqlite::Result<Vec<IndexSchema>> {
    let sql = "SELECT name, \"unique\", partial, origin
               FROM pragma_index_list(?1, 'main') ORDER BY name";
    let mut indexes = rows(db, sql, [table], |row| {
        Ok(IndexSchema {
            name: row.get(0)?,
            is_unique: row.get(1)?,
            is_partial: row.get(2)?,
            origin: match row.get_ref(3)?.as_str()? {
                "c" => IndexOrigin::Created,
                "u" => IndexOrigin::UniqueConstraint,
                _ => IndexOrigin::PrimaryKey,
            },
            columns: Vec::new(),
        })
    })?;
    for index in &mut indexes {
        let sql = "SELECT name, coll, \"desc\" FROM pragma_index_xinfo(?1, 'main')
                   WHERE key ORDER BY seqno";
        index.columns = rows(db, sql, [&index.name], |row| {
            let collation: Option<String> = row.get(1)?;
            Ok(IndexKeyColumn {
                column: row.get(0)?,
                collation: collation.unwrap_or_else(|| "BINARY".to_owned()),
                is_descending: row.get(2)?,
            })
        })?;
    }
    Ok(indexes)
}

/// Returns the foreign keys of a table, the one that was declared last first.
pub fn foreign_keys(db: &Connection, table: &str) -> rusqlite::Result<Vec<ForeignKeySchema>> {
    let sql = "SELECT id, \"table\", \"from\", \"to\", on_delete, on_update
               FROM pragma_foreign_key_list(?1, 'main') ORDER BY id, seq";
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query([table])?;
    let mut keys: Vec<ForeignKeySchema> = Vec::new();
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        if keys.last().is_none_or(|last| last.id != id) {
            keys.push(ForeignKeySchema {
                id,
                parent: row.get(1)?,
                columns: Vec::new(),
                parent_columns: Vec::new(),
                on_delete: row.get(4)?,
                on_update: row.get(5)?,
            });
        }
        let key = keys.last_mut().expect("the list is not empty");
        key.columns.push(row.get(2)?);
        key.parent_columns.extend(row.get::<_, Option<String>>(3)?);
    }
    for key in keys.iter_mut().filter(|key| key.parent_columns.is_empty()) {
        let parent = columns(db, &key.parent)?;
        key.parent_columns = key_columns(&parent).into_iter().map(|it| it.name.clone()).collect();
    }
    Ok(keys)
}

/// Returns the statement that created an object, or `None` if the object does not exist or no
/// statement created it.
pub fn object_sql(
    db: &Connection,
    kind: SchemaObjectKind,
    name: &str,
) -> rusqlite::Result<Option<String>> {
    let kind = match kind {
        SchemaObjectKind::Table => "table",
        SchemaObjectKind::Index => "index",
        SchemaObjectKind::Trigger => "trigger",
    };
    let sql = "SELECT sql FROM main.sqlite_schema WHERE type = ?1 AND name = ?2 COLLATE NOCASE";
    let sql: Option<Option<String>> =
        db.prepare_cached(sql)?.query_row([kind, name], |row| row.get(0)).optional()?;
    Ok(sql.flatten())
}

/// Returns the columns of the primary key, in the key's order.
pub fn key_columns(columns: &[ColumnSchema]) -> Vec<&ColumnSchema> {
    let mut key: Vec<_> = columns.iter().filter(|column| column.key_position > 0).collect();
    key.sort_by_key(|column| column.key_position);
    key
}

/// Checks whether a table of this name is SQLite's own.
pub fn is_sqlite_name(name: &str) -> bool {
    name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("sqlite_"))
}

impl TableEntry {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let kind = match row.get_ref(1)?.as_str()? {
            "shadow" => TableKind::Shadow,
            "virtual" => TableKind::Virtual,
            "view" => TableKind::View,
            _ => TableKind::Ordinary,
        };
        let (name, is_without_rowid, is_strict) =
            (row.get(0)?, row.get::<_, bool>(2)?, row.get(3)?);
        Ok(Self { name, kind, has_rowid: !is_without_rowid, is_strict })
    }

    /// Reads the table's columns and indexes.
    pub fn read(self, db: &Connection) -> rusqlite::Result<TableSchema> {
        let Self { name, kind, has_rowid, is_strict } = self;
        let (columns, indexes) = (columns(db, &name)?, indexes(db, &name)?);
        Ok(TableSchema { name, kind, has_rowid, is_strict, columns, indexes })
    }

    /// Checks whether the table keeps rows in a B-tree of its own.
    pub fn is_stored(&self) -> bool {
        matches!(self.kind, TableKind::Ordinary | TableKind::Shadow)
    }
}

impl TableSchema {
    /// Returns the columns of the primary key, in the key's order.
    pub fn key_columns(&self) -> Vec<&ColumnSchema> {
        key_columns(&self.columns)
    }

    /// Returns the column that is the row id itself: an `INTEGER PRIMARY KEY`
    /// (<https://sqlite.org/lang_createtable.html#rowid>). `INTEGER PRIMARY KEY DESC` is not one:
    /// it has an index of its own.
    pub fn rowid_alias(&self) -> Option<&ColumnSchema> {
        let key = self.key_columns();
        let [column] = key[..] else { return None };
        let has_index = self.indexes.iter().any(|index| index.origin == IndexOrigin::PrimaryKey);
        let is_integer = column.declared_type.eq_ignore_ascii_case("INTEGER");
        (self.has_rowid && is_integer && !has_index).then_some(column)
    }

    /// Returns a name of the row id that no column has, if the table has row ids.
    pub fn rowid_name(&self) -> Option<&'static str> {
        let is_free =
            |name: &&str| !self.columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
        ROWID_NAMES.into_iter().find(is_free).filter(|_| self.has_rowid)
    }

    /// Checks whether the table is SQLite's own, or belongs to a virtual table.
    pub fn is_internal(&self) -> bool {
        self.kind == TableKind::Shadow || is_sqlite_name(&self.name)
    }
}

/// The names of the row id, where no column has the name.
pub const ROWID_NAMES: [&str; 3] = ["rowid", "_rowid_", "oid"];

impl ColumnSchema {
    /// Returns the SQL of the value that this column has in rows that are older than the column.
    pub fn default_sql(&self) -> &str {
        self.default.as_deref().unwrap_or("NULL")
    }

    /// Checks whether the column's values are computed from others of the row.
    pub fn is_generated(&self) -> bool {
        matches!(self.kind, ColumnKind::GeneratedVirtual | ColumnKind::GeneratedStored)
    }
}

impl IndexSchema {
    /// Returns the columns as text: `a, b DESC, <expression>`.
    pub fn columns_text(&self) -> String {
        let columns = self.columns.iter().map(|key| {
            let name = key.column.as_deref().unwrap_or("<expression>");
            if key.is_descending { format!("{name} DESC") } else { name.to_owned() }
        });
        columns.collect::<Vec<_>>().join(", ")
    }

    /// Returns the names of the index's columns, or `None` if one is an expression.
    pub fn column_names(&self) -> Option<Vec<&str>> {
        self.columns.iter().map(|key| key.column.as_deref()).collect()
    }
}

fn rows<T>(
    db: &Connection,
    sql: &str,
    parameters: impl Params,
    row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    db.prepare_cached(sql)?.query_map(parameters, row)?.collect()
}

#[cfg(test)]
mod tests;
