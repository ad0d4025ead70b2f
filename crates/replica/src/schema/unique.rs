//! Finds the rows of a table that cannot coexist, although they have different ids.
//!
//! A row's id consists of its key's values with their storage classes. SQLite allows only one of
//! two rows that share a value in a UNIQUE index, including indexes of expressions and of any
//! collation. The key's own index may be such an index: NOCASE does not distinguish 'a' from 'A',
//! and a column without affinity does not distinguish 1 from 1.0. So is the rowid that most tables
//! have in addition to their key. `OR REPLACE` deletes the existing row, and no delete trigger
//! fires (<https://sqlite.org/lang_conflict.html>).

use crdt::{ColumnDefault, Value};
use rusqlite::Connection;
use sqlite_schema::{
    ColumnKind, ColumnSchema, IndexKeyColumn, IndexOrigin, SchemaObjectKind, TableSchema,
    quote_identifier,
};

use super::affinity::Affinity;
use super::column_default;
use crate::error::Result;
use crate::sql_value::to_literal;

/// The indexes by which rows of a table with different ids can collide, for use in BEFORE triggers.
#[derive(Clone, Debug, Default)]
pub(crate) struct UniqueIndexes {
    /// A condition for each index: a row of the table shares the index's value with `new`.
    pub(crate) conditions: Vec<String>,
    /// The columns that matter: an UPDATE that sets none of them makes no row collide.
    pub(crate) columns: Vec<String>,
    /// A statement that the trigger of an UPDATE begins with. SQLite computes generated columns
    /// from those columns of `new` that the trigger reads, and treats the others as NULL.
    pub(crate) before_update: Option<String>,
    /// The name of the rowid, if the rowid is not the key.
    pub(crate) rowid: Option<&'static str>,
}

impl UniqueIndexes {
    /// Reads the UNIQUE indexes of a table; `key` has the affinities of the key's columns.
    pub(crate) fn read(db: &Connection, table: &TableSchema, key: &[Affinity]) -> Result<Self> {
        let all: Vec<_> = table.columns.iter().map(UniqueColumn::new).collect();
        let indexes = UniqueIndex::all(db, table)?;
        let indexes = indexes.iter().filter(|index| !index.distinguishes_row_ids(key));
        let conditions = indexes.clone().map(|index| index.condition(db, &all)).collect();
        let mut columns: Vec<_> =
            all.iter().filter(|c| indexes.clone().any(|index| index.depends_on(c))).collect();
        let mut before_update = None;
        if columns.iter().any(|column| column.is_generated) {
            // A generated column may depend on any of the others.
            columns = all.iter().filter(|column| !column.is_generated).collect();
            let new: Vec<_> =
                columns.iter().map(|c| format!("new.{}", quote_identifier(&c.name))).collect();
            before_update = Some(format!("SELECT {}; ", new.join(",")));
        }
        let columns = columns.into_iter().map(|column| column.name.clone()).collect();
        // The name of the rowid that the table has in addition to its key, if programs can use it.
        let rowid = table.rowid_name().filter(|_| table.rowid_alias().is_none());
        Ok(Self { conditions, columns, before_update, rowid })
    }
}

/// A UNIQUE index.
struct UniqueIndex {
    is_key: bool,
    terms: Vec<IndexTerm>,
    /// The WHERE clause of a partial index.
    condition: Option<String>,
}

/// A column or an expression of an index.
struct IndexTerm {
    /// The term in SQL: the column's name, or the expression in parentheses.
    text: String,
    /// The name of the column, if the term is a column.
    column: Option<String>,
    collation: String,
}

impl UniqueIndex {
    fn all(db: &Connection, table: &TableSchema) -> Result<Vec<Self>> {
        let mut indexes = Vec::new();
        for index in table.indexes.iter().filter(|index| index.is_unique) {
            // Only the SQL of these indexes has something that SQLite does not list.
            let has_sql = index.is_partial || index.column_names().is_none();
            let sql = has_sql
                .then(|| sqlite_schema::object_sql(db, SchemaObjectKind::Index, &index.name))
                .transpose()?
                .flatten();
            let (texts, condition) = sql.as_deref().map(split_index_sql).unwrap_or_default();
            let terms = index.columns.iter().enumerate();
            let terms = terms.map(|(place, key)| IndexTerm::new(key, texts.get(place).copied()));
            let (is_key, terms) = (index.origin == IndexOrigin::PrimaryKey, terms.collect());
            indexes.push(Self { is_key, terms, condition: condition.map(str::to_owned) });
        }
        Ok(indexes)
    }

    /// Returns whether rows with equal values in this index always have the same id.
    fn distinguishes_row_ids(&self, key: &[Affinity]) -> bool {
        let is_binary = |term: &IndexTerm| term.collation.eq_ignore_ascii_case("BINARY");
        self.is_key && self.terms.iter().all(is_binary) && !key.contains(&Affinity::None)
    }

    /// Returns whether the index's values may change when the column changes.
    fn depends_on(&self, column: &UniqueColumn) -> bool {
        let mut texts = self.terms.iter().map(|term| &term.text).chain(&self.condition);
        texts.any(|text| column.may_be_in(text))
    }

    fn condition(&self, db: &Connection, columns: &[UniqueColumn]) -> String {
        let terms = self.terms.iter().map(|term| term.condition(db, columns));
        // The condition may end with a comment, hence the line break.
        let condition = self.condition.iter().map(|condition| format!("({condition}\n)"));
        terms.chain(condition).collect::<Vec<_>>().join(" AND ")
    }
}

impl IndexTerm {
    /// Creates a term; `written` is its SQL, if a statement created the index.
    fn new(key: &IndexKeyColumn, written: Option<&str>) -> Self {
        let IndexKeyColumn { column, collation, is_descending } = key.clone();
        let text = if let Some(column) = &column {
            quote_identifier(column)
        } else {
            // Only a statement creates an index of expressions. It may end with a comment.
            format!("({}\n)", without_order(written.unwrap_or_default(), is_descending))
        };
        Self { text, column, collation }
    }

    /// Returns a condition that a row of the table has the same value of this term as `new`.
    fn condition(&self, db: &Connection, columns: &[UniqueColumn]) -> String {
        format!(
            "{} = {} COLLATE {}",
            self.text,
            self.new_value_sql(db, columns),
            quote_identifier(&self.collation)
        )
    }

    /// Returns the SQL of this term's value in `new`.
    fn new_value_sql(&self, db: &Connection, columns: &[UniqueColumn]) -> String {
        let is_it = |column: &&UniqueColumn| self.column.as_ref() == Some(&column.name);
        if let Some(column) = columns.iter().find(is_it) {
            return column.new_value(db);
        }
        // Evaluates the unchanged expression on a row whose values have the columns' names.
        let named = columns.iter().filter(|column| column.may_be_in(&self.text));
        let value = |column: &UniqueColumn| {
            format!("{} AS {}", column.new_value(db), quote_identifier(&column.name))
        };
        let row = named.map(value).collect::<Vec<_>>().join(",");
        let row = if row.is_empty() { "1" } else { &row };
        format!("(SELECT {} FROM (SELECT {row}))", self.text)
    }
}

/// A column of the table, including generated ones.
struct UniqueColumn {
    name: String,
    /// The default that replaces NULL, if the column is NOT NULL.
    default: Option<String>,
    is_generated: bool,
}

impl UniqueColumn {
    fn new(column: &ColumnSchema) -> Self {
        let default = column.default.clone().filter(|_| column.is_not_null);
        let is_generated = column.kind != ColumnKind::Ordinary;
        Self { name: column.name.clone(), default, is_generated }
    }

    /// Returns whether an expression may name the column; `true` also if the name is a part of
    /// another word.
    fn may_be_in(&self, expression: &str) -> bool {
        let is_plain = self.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        // Other names can be written in several ways.
        !is_plain || expression.to_ascii_lowercase().contains(&self.name.to_ascii_lowercase())
    }

    /// Returns the SQL of a new row's value. REPLACE replaces NULL by the default of a NOT NULL
    /// column, but only after the BEFORE triggers.
    fn new_value(&self, db: &Connection) -> String {
        let new = format!("new.{}", quote_identifier(&self.name));
        let default = self.default.as_deref().map(column_default::parse);
        let default = match default {
            Some(ColumnDefault::Literal(Value::Null)) | None => None,
            Some(ColumnDefault::Literal(value)) => Some(to_literal(&value)),
            Some(_) => {
                // An unquoted word is a text in a default, but not in an expression.
                let text = format!("({}\n)", self.default.as_deref().unwrap_or_default());
                db.prepare(&format!("SELECT {text}")).is_ok().then_some(text)
            }
        };
        default.map_or(new.clone(), |default| format!("ifnull({new},{default})"))
    }
}

/// Splits the SQL of an index into the terms between its parentheses and the condition after WHERE.
/// It has no other WHERE, because its expressions contain no queries.
fn split_index_sql(sql: &str) -> (Vec<&str>, Option<&str>) {
    let (mut terms, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for token in sqlite_schema::tokens(sql) {
        let at = token.as_ptr().addr() - sql.as_ptr().addr();
        let after = at + token.len();
        match token {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            word if depth == 0 && word.eq_ignore_ascii_case("WHERE") => {
                return (terms, Some(&sql[after..]));
            }
            _ => {}
        }
        match (token, depth) {
            ("(", 1) => start = after,
            (",", 1) | (")", 0) => {
                terms.push(&sql[start..at]);
                start = after;
            }
            _ => {}
        }
    }
    (terms, None)
}

/// Removes ASC or DESC from a term of an index.
fn without_order(term: &str, is_descending: bool) -> &str {
    let order = if is_descending { "DESC" } else { "ASC" };
    let last = sqlite_schema::words(term).into_iter().next_back();
    let last = last.filter(|word| word.eq_ignore_ascii_case(order));
    last.map_or(term, |word| &term[..word.as_ptr().addr() - term.as_ptr().addr()])
}
