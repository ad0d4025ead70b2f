//! The schema as the checks need it: tables with their columns, indexes with theirs.

use rusqlite::Connection;

/// An ordinary table: neither virtual nor a view.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) root: u32,
    pub(crate) has_rowid: bool,
    /// Of a virtual table, or SQLite's own.
    pub(crate) is_internal: bool,
    pub(crate) columns: Vec<Column>,
    pub(crate) indexes: Vec<Index>,
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) declared: String,
    /// Its place in the primary key, from 1; 0 outside it.
    pub(crate) key_place: i64,
    /// Computed when it is read.
    pub(crate) is_virtual: bool,
}

/// An index.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub(crate) name: String,
    pub(crate) root: u32,
    pub(crate) is_unique: bool,
    pub(crate) is_partial: bool,
    pub(crate) origin: Origin,
    pub(crate) columns: Vec<Key>,
}

/// Why an index is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Created,
    UniqueConstraint,
    PrimaryKey,
}

/// A key column of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// `None` for an expression.
    pub(crate) column: Option<String>,
    pub(crate) collation: String,
    pub(crate) is_descending: bool,
}

/// The tables of the main database, and SQLite's other objects counted.
pub(crate) fn read(db: &Connection) -> rusqlite::Result<Vec<Table>> {
    let sql =
        "SELECT l.name, s.rootpage, l.wr, l.type = 'shadow' OR l.name LIKE 'sqlite\\_%' ESCAPE '\\'
               FROM pragma_table_list l JOIN sqlite_schema s
                 ON s.name = l.name AND s.type = 'table' AND s.rootpage > 0
               WHERE l.schema = 'main' AND l.type IN ('table', 'shadow') ORDER BY l.name";
    let mut tables: Vec<Table> = rows(db, sql, [], |row| {
        Ok(Table {
            name: row.get(0)?,
            root: row.get(1)?,
            has_rowid: !row.get::<_, bool>(2)?,
            is_internal: row.get(3)?,
            columns: Vec::new(),
            indexes: Vec::new(),
        })
    })?;
    for table in &mut tables {
        table.columns = columns(db, &table.name)?;
        table.indexes = indexes(db, &table.name)?;
    }
    Ok(tables)
}

impl Table {
    /// The root pages of the table and of its indexes.
    pub(crate) fn roots(&self) -> impl Iterator<Item = u32> {
        let indexes = self.indexes.iter().map(|index| index.root);
        indexes.chain([self.root]).filter(|root| *root > 0)
    }

    /// The column that is the row id itself.
    pub(crate) fn rowid_column(&self) -> Option<&Column> {
        let mut keys = self.columns.iter().filter(|column| column.key_place > 0);
        let key = keys.next().filter(|_| self.has_rowid && keys.next().is_none())?;
        let is_rowid = key.declared.eq_ignore_ascii_case("integer")
            && self.indexes.iter().all(|index| index.origin != Origin::PrimaryKey);
        is_rowid.then_some(key)
    }

    /// The table's own primary key, for a table without row ids.
    pub(crate) fn key_columns(&self) -> Vec<&str> {
        let mut keys: Vec<&Column> =
            self.columns.iter().filter(|column| column.key_place > 0).collect();
        keys.sort_by_key(|column| column.key_place);
        keys.into_iter().map(|column| column.name.as_str()).collect()
    }
}

impl Index {
    /// The columns as text: `a, b DESC, <expression>`.
    pub(crate) fn columns_text(&self) -> String {
        let columns = self.columns.iter().map(|key| {
            let name = key.column.as_deref().unwrap_or("<expression>");
            if key.is_descending { format!("{name} DESC") } else { name.to_owned() }
        });
        columns.collect::<Vec<_>>().join(", ")
    }
}

fn columns(db: &Connection, table: &str) -> rusqlite::Result<Vec<Column>> {
    let sql = "SELECT name, type, pk, hidden = 2 FROM pragma_table_xinfo(?1) ORDER BY cid";
    rows(db, sql, [table], |row| {
        Ok(Column {
            name: row.get(0)?,
            declared: row.get(1)?,
            key_place: row.get(2)?,
            is_virtual: row.get(3)?,
        })
    })
}

fn indexes(db: &Connection, table: &str) -> rusqlite::Result<Vec<Index>> {
    let sql = "SELECT l.name, coalesce(s.rootpage, 0), l.\"unique\", l.partial, l.origin
               FROM pragma_index_list(?1) l LEFT JOIN sqlite_schema s
                 ON s.type = 'index' AND s.name = l.name ORDER BY l.name";
    let mut indexes: Vec<Index> = rows(db, sql, [table], |row| {
        Ok(Index {
            name: row.get(0)?,
            root: row.get(1)?,
            is_unique: row.get(2)?,
            is_partial: row.get(3)?,
            origin: match row.get::<_, String>(4)?.as_str() {
                "c" => Origin::Created,
                "u" => Origin::UniqueConstraint,
                _ => Origin::PrimaryKey,
            },
            columns: Vec::new(),
        })
    })?;
    for index in &mut indexes {
        let sql =
            "SELECT name, coll, \"desc\" FROM pragma_index_xinfo(?1) WHERE key ORDER BY seqno";
        index.columns = rows(db, sql, [&index.name], |row| {
            let collation: Option<String> = row.get(1)?;
            Ok(Key {
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
pub(crate) fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !is_keyword(name);
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A path in a shell's command line.
pub(crate) fn shell_word(word: &str) -> String {
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
