//! Reads the schema for the checks: tables with their columns and indexes, and their root pages.

use std::collections::{BTreeSet, HashMap};

use rusqlite::Connection;
use sqlite_schema::{TableEntry, TableSchema};

use crate::time_limit::ExaminationBudget;

/// The divisor for the share of the remaining time to read the columns and indexes of tables.
const SHARE: u32 = 2;

/// The declarations in the main database.
#[derive(Clone, Debug, Default)]
pub(crate) struct DatabaseSchema {
    /// The tables whose columns and indexes were read, without virtual tables and views.
    pub(crate) tables: Vec<TableSchema>,
    /// The number of tables that were not read for lack of time.
    pub(crate) unread_count: usize,
    /// The root pages of tables and indexes, which share one namespace.
    roots: HashMap<String, u32>,
    pub(crate) views: Vec<ViewInfo>,
    pub(crate) triggers: Vec<TriggerInfo>,
    pub(crate) virtual_tables: Vec<VirtualTable>,
    /// Whether a table has a CHECK constraint.
    pub(crate) has_checks: bool,
}

/// The declaration of a view.
#[derive(Clone, Debug)]
pub(crate) struct ViewInfo {
    pub(crate) name: String,
    sql: String,
}

/// The declaration of a trigger.
#[derive(Clone, Debug)]
pub(crate) struct TriggerInfo {
    pub(crate) name: String,
    /// The table or view that the trigger belongs to.
    pub(crate) table: String,
    pub(crate) sql: String,
}

/// The declaration of a virtual table.
#[derive(Clone, Debug)]
pub(crate) struct VirtualTable {
    pub(crate) name: String,
    /// The name of the module in lower case, such as `fts5`.
    pub(crate) module: String,
}

/// A row of `sqlite_schema`.
struct SchemaRow {
    kind: String,
    name: String,
    table: String,
    root: u32,
    sql: String,
}

/// Reads the schema: `sqlite_schema` once, then each table separately, in at most half of the
/// remaining time.
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
    let trees = objects.iter().filter(|object| object.root > 0);
    schema.roots = trees.map(|object| (object.name.clone(), object.root)).collect();
    let end = budget.elapsed() + budget.remaining() / SHARE;
    for table in sqlite_schema::tables(db)?.into_iter().filter(TableEntry::is_stored) {
        if !schema.roots.contains_key(&table.name) {
            continue;
        }
        if budget.elapsed() >= end {
            schema.unread_count += 1;
            continue;
        }
        schema.tables.push(table.read(db)?);
    }
    Ok(schema)
}

fn trigger(object: &SchemaRow) -> TriggerInfo {
    TriggerInfo { name: object.name.clone(), table: object.table.clone(), sql: object.sql.clone() }
}

fn virtual_table(object: &SchemaRow) -> Option<VirtualTable> {
    let module = sqlite_schema::virtual_table_module(&object.sql)?;
    Some(VirtualTable { name: object.name.clone(), module: module.to_ascii_lowercase() })
}

impl DatabaseSchema {
    /// Returns the root page of a table or an index.
    pub(crate) fn root_of(&self, name: &str) -> Option<u32> {
        self.roots.get(name).copied()
    }

    /// Returns the root pages of a table and of its indexes, that of the table last.
    pub(crate) fn roots_of(&self, table: &TableSchema) -> impl Iterator<Item = u32> {
        let indexes = table.indexes.iter().map(|index| &index.name);
        indexes.chain([&table.name]).filter_map(|name| self.root_of(name))
    }

    /// Returns the collations that order the keys of indexes.
    pub(crate) fn collations(&self) -> BTreeSet<String> {
        let indexes = self.tables.iter().flat_map(|table| &table.indexes);
        indexes.flat_map(|index| &index.columns).map(|key| key.collation.clone()).collect()
    }

    /// Returns the views and triggers whose text contains the name of this index and `INDEXED`.
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

/// Returns all rows of a query.
pub(crate) fn rows<T>(
    db: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    row: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    db.prepare_cached(sql)?.query_map(parameters, row)?.collect()
}

/// Checks whether the text of a schema is a CREATE statement: in a damaged or hostile file it may be
/// any other statement.
pub(crate) fn is_create(sql: &str) -> bool {
    sql.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("create"))
}

/// Quotes a name for SQL that people read, only where quotes are needed.
pub(crate) fn quote_if_needed(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !is_keyword(name);
    if is_plain { name.to_owned() } else { sqlite_schema::quote_identifier(name) }
}

/// Quotes a path for a shell's command line where needed.
pub(crate) fn quote_for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Checks for words that SQL does not accept as a name, or that are harmful as one
/// (<https://sqlite.org/lang_keywords.html>); it accepts other keywords.
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
