//! The schema as the checks need it: tables with their columns, indexes with theirs.

use std::collections::{BTreeSet, HashMap};

use rusqlite::Connection;

use crate::time_limit::ExaminationBudget;

/// Of the time that is left, for reading what the tables have.
const SHARE: u32 = 2;

/// What the main database declares.
#[derive(Clone, Debug, Default)]
pub(crate) struct DatabaseSchema {
    /// Those for whose columns and indexes there was time.
    pub(crate) tables: Vec<TableSchema>,
    /// Tables for which there was none.
    pub(crate) unread_count: usize,
    pub(crate) views: Vec<ViewInfo>,
    pub(crate) triggers: Vec<TriggerInfo>,
    pub(crate) virtual_tables: Vec<VirtualTable>,
    /// Some table has a CHECK constraint.
    pub(crate) has_checks: bool,
}

/// A view.
#[derive(Clone, Debug)]
pub(crate) struct ViewInfo {
    pub(crate) name: String,
    sql: String,
}

/// A trigger.
#[derive(Clone, Debug)]
pub(crate) struct TriggerInfo {
    pub(crate) name: String,
    /// The table or view that it is on.
    pub(crate) table: String,
    pub(crate) sql: String,
}

/// A virtual table.
#[derive(Clone, Debug)]
pub(crate) struct VirtualTable {
    pub(crate) name: String,
    /// In lower case: `fts5`.
    pub(crate) module: String,
}

/// An ordinary table: neither virtual nor a view.
#[derive(Clone, Debug)]
pub(crate) struct TableSchema {
    pub(crate) name: String,
    pub(crate) root: u32,
    pub(crate) has_rowid: bool,
    /// Of a virtual table, or SQLite's own.
    pub(crate) is_internal: bool,
    pub(crate) columns: Vec<ColumnSchema>,
    pub(crate) indexes: Vec<IndexSchema>,
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct ColumnSchema {
    pub(crate) name: String,
    pub(crate) declared: String,
    /// Its place in the primary key, from 1; 0 outside it.
    pub(crate) key_place: i64,
    /// Computed when it is read.
    pub(crate) is_virtual: bool,
    /// Computed then, or when the row is written.
    pub(crate) is_generated: bool,
}

/// An index.
#[derive(Clone, Debug)]
pub(crate) struct IndexSchema {
    pub(crate) name: String,
    pub(crate) root: u32,
    pub(crate) is_unique: bool,
    pub(crate) is_partial: bool,
    pub(crate) origin: IndexOrigin,
    pub(crate) columns: Vec<IndexKeyColumn>,
}

/// Why an index is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexOrigin {
    Created,
    UniqueConstraint,
    PrimaryKey,
}

/// A key column of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexKeyColumn {
    /// `None` for an expression.
    pub(crate) column: Option<String>,
    pub(crate) collation: String,
    pub(crate) is_descending: bool,
}

/// A row of `sqlite_schema`.
struct SchemaRow {
    kind: String,
    name: String,
    table: String,
    root: u32,
    sql: String,
}

/// Reads the schema: `sqlite_schema` once, then each table by itself, as far as half of the time
/// goes.
pub(crate) fn read(
    db: &Connection,
    budget: &ExaminationBudget,
) -> rusqlite::Result<DatabaseSchema> {
    let sql = "SELECT type, name, tbl_name, coalesce(rootpage, 0), coalesce(sql, '')
               FROM sqlite_schema";
    let objects = rows(db, sql, [], |row| {
        Ok(SchemaRow {
            kind: row.get(0)?,
            name: row.get(1)?,
            table: row.get(2)?,
            root: row.get(3)?,
            sql: row.get(4)?,
        })
    })?;
    let of = |kind: &'static str| objects.iter().filter(move |object| object.kind == kind);
    let mut schema = DatabaseSchema {
        views: of("view")
            .map(|view| ViewInfo { name: view.name.clone(), sql: view.sql.clone() })
            .collect(),
        triggers: of("trigger").map(trigger).collect(),
        virtual_tables: of("table").filter_map(virtual_table).collect(),
        has_checks: of("table").any(|table| table.sql.to_ascii_uppercase().contains("CHECK")),
        ..DatabaseSchema::default()
    };
    let roots_of = |kind: &'static str| -> HashMap<&str, u32> {
        of(kind).map(|object| (object.name.as_str(), object.root)).collect()
    };
    let index_roots = roots_of("index");
    let mut tables = tables(db, &roots_of("table"))?;
    let end = budget.elapsed() + budget.remaining() / SHARE;
    for mut table in tables.drain(..) {
        if budget.elapsed() >= end {
            schema.unread_count += 1;
            continue;
        }
        table.columns = columns(db, &table.name)?;
        table.indexes = indexes(db, &table.name, &index_roots)?;
        schema.tables.push(table);
    }
    Ok(schema)
}

fn trigger(object: &SchemaRow) -> TriggerInfo {
    TriggerInfo { name: object.name.clone(), table: object.table.clone(), sql: object.sql.clone() }
}

/// The module is the word behind USING.
fn virtual_table(object: &SchemaRow) -> Option<VirtualTable> {
    let mut words = object.sql.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let mut words = words.by_ref().filter(|word| !word.is_empty()).map(str::to_ascii_lowercase);
    let is_virtual = words.next()? == "create" && words.next()? == "virtual";
    let module = words.skip_while(|word| word != "using").nth(1).filter(|_| is_virtual)?;
    Some(VirtualTable { name: object.name.clone(), module })
}

/// Ordinary tables, without their columns and indexes, by name.
fn tables(db: &Connection, roots: &HashMap<&str, u32>) -> rusqlite::Result<Vec<TableSchema>> {
    let sql = "SELECT name, wr, type = 'shadow' OR name LIKE 'sqlite\\_%' ESCAPE '\\'
               FROM pragma_table_list
               WHERE schema = 'main' AND type IN ('table', 'shadow') ORDER BY name";
    let mut tables: Vec<TableSchema> = rows(db, sql, [], |row| {
        Ok(TableSchema {
            name: row.get(0)?,
            root: 0,
            has_rowid: !row.get::<_, bool>(1)?,
            is_internal: row.get(2)?,
            columns: Vec::new(),
            indexes: Vec::new(),
        })
    })?;
    for table in &mut tables {
        table.root = roots.get(table.name.as_str()).copied().unwrap_or(0);
    }
    tables.retain(|table| table.root > 0);
    Ok(tables)
}

impl DatabaseSchema {
    /// By which the keys of indexes are ordered.
    pub(crate) fn collations(&self) -> BTreeSet<String> {
        let indexes = self.tables.iter().flat_map(|table| &table.indexes);
        indexes.flat_map(|index| &index.columns).map(|key| key.collation.clone()).collect()
    }

    /// Views and triggers whose text has the name of this index, as `INDEXED BY` has it.
    pub(crate) fn users_of_index(&self, index: &str) -> Vec<&str> {
        let names = |sql: &str| {
            let sql = sql.to_ascii_lowercase();
            sql.contains("indexed") && sql.contains(&index.to_ascii_lowercase())
        };
        let views = self.views.iter().filter(|view| names(&view.sql)).map(|it| &it.name);
        let triggers = self.triggers.iter().filter(|it| names(&it.sql)).map(|it| &it.name);
        views.chain(triggers).map(String::as_str).collect()
    }
}

impl TableSchema {
    /// The root pages of the table and of its indexes.
    pub(crate) fn roots(&self) -> impl Iterator<Item = u32> {
        let indexes = self.indexes.iter().map(|index| index.root);
        indexes.chain([self.root]).filter(|root| *root > 0)
    }

    /// The column that is the row id itself.
    pub(crate) fn rowid_column(&self) -> Option<&ColumnSchema> {
        let mut keys = self.columns.iter().filter(|column| column.key_place > 0);
        let key = keys.next().filter(|_| self.has_rowid && keys.next().is_none())?;
        let is_rowid = key.declared.eq_ignore_ascii_case("integer")
            && self.indexes.iter().all(|index| index.origin != IndexOrigin::PrimaryKey);
        is_rowid.then_some(key)
    }

    /// The table's own primary key, for a table without row ids.
    pub(crate) fn key_columns(&self) -> Vec<&str> {
        let mut keys: Vec<&ColumnSchema> =
            self.columns.iter().filter(|column| column.key_place > 0).collect();
        keys.sort_by_key(|column| column.key_place);
        keys.into_iter().map(|column| column.name.as_str()).collect()
    }
}

impl IndexSchema {
    /// The columns as text: `a, b DESC, <expression>`.
    pub(crate) fn columns_text(&self) -> String {
        let columns = self.columns.iter().map(|key| {
            let name = key.column.as_deref().unwrap_or("<expression>");
            if key.is_descending { format!("{name} DESC") } else { name.to_owned() }
        });
        columns.collect::<Vec<_>>().join(", ")
    }
}

fn columns(db: &Connection, table: &str) -> rusqlite::Result<Vec<ColumnSchema>> {
    let sql = "SELECT name, type, pk, hidden = 2, hidden IN (2, 3) FROM pragma_table_xinfo(?1) ORDER BY cid";
    rows(db, sql, [table], |row| {
        Ok(ColumnSchema {
            name: row.get(0)?,
            declared: row.get(1)?,
            key_place: row.get(2)?,
            is_virtual: row.get(3)?,
            is_generated: row.get(4)?,
        })
    })
}

fn indexes(
    db: &Connection,
    table: &str,
    roots: &HashMap<&str, u32>,
) -> rusqlite::Result<Vec<IndexSchema>> {
    let sql = "SELECT name, \"unique\", partial, origin FROM pragma_index_list(?1) ORDER BY name";
    let mut indexes: Vec<IndexSchema> = rows(db, sql, [table], |row| {
        let name: String = row.get(0)?;
        Ok(IndexSchema {
            root: roots.get(name.as_str()).copied().unwrap_or(0),
            name,
            is_unique: row.get(1)?,
            is_partial: row.get(2)?,
            origin: match row.get::<_, String>(3)?.as_str() {
                "c" => IndexOrigin::Created,
                "u" => IndexOrigin::UniqueConstraint,
                _ => IndexOrigin::PrimaryKey,
            },
            columns: Vec::new(),
        })
    })?;
    for index in &mut indexes {
        let sql =
            "SELECT name, coll, \"desc\" FROM pragma_index_xinfo(?1) WHERE key ORDER BY seqno";
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

/// All rows of a query.
pub(crate) fn rows<T>(
    db: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    row: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    db.prepare_cached(sql)?.query_map(parameters, row)?.collect()
}

/// A name in an SQL text.
pub(crate) fn quote_identifier(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !is_keyword(name);
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A path in a shell's command line.
pub(crate) fn quote_for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Words that an SQL text does not take for a name, or that do harm as one
/// (<https://sqlite.org/lang_keywords.html>); others it takes.
fn is_keyword(name: &str) -> bool {
    const KEYWORDS: &str = "add all alter and as autoincrement between case check collate commit \
        constraint create cross current_date current_time current_timestamp \
        default deferrable delete distinct drop else escape except exists foreign \
        from full group having in index inner insert intersect into is isnull join \
        left limit natural not nothing notnull null on or order outer primary \
        references returning right select set table then to transaction union \
        unique update using values when where";
    KEYWORDS.split(' ').any(|keyword| keyword.eq_ignore_ascii_case(name))
}
