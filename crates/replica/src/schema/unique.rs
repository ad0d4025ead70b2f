//! Which rows of a table cannot stand next to each other, though they have different names.
//!
//! A row's name is its key's values with their storage classes. SQLite lets only one of two rows
//! stand that have one value in a UNIQUE index, also of expressions and by any collation. The key's
//! own index may be such a one: NOCASE does not tell 'a' from 'A', and a column that stores what it
//! is given does not tell 1 from 1.0. So is the rowid that most tables have next to their key.
//! `OR REPLACE` deletes the row that stands there, and no delete trigger fires
//! (<https://sqlite.org/lang_conflict.html>).

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

/// Where rows of a table with different names can collide, in the words of a BEFORE trigger.
#[derive(Clone, Debug, Default)]
pub(crate) struct UniqueIndexes {
    /// For each index a condition: a row of the table shares the index's value with `new`.
    pub(crate) conditions: Vec<String>,
    /// An UPDATE that sets none of these columns makes no row collide.
    pub(crate) columns: Vec<String>,
    /// A statement that an UPDATE's trigger begins with. SQLite computes generated columns from those
    /// columns of `new` that the trigger reads, and takes the others for NULL.
    pub(crate) before_update: Option<String>,
    /// What the rowid is called, where it is not the key.
    pub(crate) rowid: Option<&'static str>,
}

impl UniqueIndexes {
    /// `key`: the affinities of the key's columns.
    pub(crate) fn read(db: &Connection, table: &TableSchema, key: &[Affinity]) -> Result<Self> {
        let all: Vec<_> = table.columns.iter().map(UniqueColumn::new).collect();
        let indexes = UniqueIndex::all(db, table)?;
        let indexes = indexes.iter().filter(|index| !index.distinguishes_row_ids(key));
        let conditions = indexes.clone().map(|index| index.condition(db, &all)).collect();
        let mut columns: Vec<_> =
            all.iter().filter(|c| indexes.clone().any(|index| index.depends_on(c))).collect();
        let mut before_update = None;
        if columns.iter().any(|column| column.is_generated) {
            // From any of the others.
            columns = all.iter().filter(|column| !column.is_generated).collect();
            let new: Vec<_> =
                columns.iter().map(|c| format!("new.{}", quote_identifier(&c.name))).collect();
            before_update = Some(format!("SELECT {}; ", new.join(",")));
        }
        let columns = columns.into_iter().map(|column| column.name.clone()).collect();
        // What the rowid is called that the table has next to its key, if a program can name it.
        let rowid = table.rowid_name().filter(|_| table.rowid_alias().is_none());
        Ok(Self { conditions, columns, before_update, rowid })
    }
}

/// A UNIQUE index.
struct UniqueIndex {
    is_key: bool,
    terms: Vec<IndexTerm>,
    /// The rows that it is about, if not all.
    condition: Option<String>,
}

/// A column or an expression of an index.
struct IndexTerm {
    /// In SQL: the column's name, or the expression in parentheses.
    text: String,
    /// The column's name, if it is one.
    column: Option<String>,
    collation: String,
}

impl UniqueIndex {
    fn all(db: &Connection, table: &TableSchema) -> Result<Vec<Self>> {
        let mut indexes = Vec::new();
        for index in table.indexes.iter().filter(|index| index.is_unique) {
            // Only these say something that SQLite does not list.
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

    /// Whether rows that it takes for one have one name.
    fn distinguishes_row_ids(&self, key: &[Affinity]) -> bool {
        let is_binary = |term: &IndexTerm| term.collation.eq_ignore_ascii_case("BINARY");
        self.is_key && self.terms.iter().all(is_binary) && !key.contains(&Affinity::None)
    }

    /// Whether its values may be others when the column's is.
    fn depends_on(&self, column: &UniqueColumn) -> bool {
        let mut texts = self.terms.iter().map(|term| &term.text).chain(&self.condition);
        texts.any(|text| column.may_be_in(text))
    }

    fn condition(&self, db: &Connection, columns: &[UniqueColumn]) -> String {
        let terms = self.terms.iter().map(|term| term.condition(db, columns));
        // A comment may stand at its end.
        let condition = self.condition.iter().map(|condition| format!("({condition}\n)"));
        terms.chain(condition).collect::<Vec<_>>().join(" AND ")
    }
}

impl IndexTerm {
    /// `written`: the term as it is written, if a statement made the index.
    fn new(key: &IndexKeyColumn, written: Option<&str>) -> Self {
        let IndexKeyColumn { column, collation, is_descending } = key.clone();
        let text = if let Some(column) = &column {
            quote_identifier(column)
        } else {
            // Only a statement makes an index of expressions. A comment may stand at its end.
            format!("({}\n)", without_order(written.unwrap_or_default(), is_descending))
        };
        Self { text, column, collation }
    }

    /// A row of the table has the same value here as `new`.
    fn condition(&self, db: &Connection, columns: &[UniqueColumn]) -> String {
        format!(
            "{} = {} COLLATE {}",
            self.text,
            self.new_value_sql(db, columns),
            quote_identifier(&self.collation)
        )
    }

    /// The value of `new` here.
    fn new_value_sql(&self, db: &Connection, columns: &[UniqueColumn]) -> String {
        let is_it = |column: &&UniqueColumn| self.column.as_ref() == Some(&column.name);
        if let Some(column) = columns.iter().find(is_it) {
            return column.new_value(db);
        }
        // The expression as it is, of a row whose values have the columns' names.
        let named = columns.iter().filter(|column| column.may_be_in(&self.text));
        let value = |column: &UniqueColumn| {
            format!("{} AS {}", column.new_value(db), quote_identifier(&column.name))
        };
        let row = named.map(value).collect::<Vec<_>>().join(",");
        let row = if row.is_empty() { "1" } else { &row };
        format!("(SELECT {} FROM (SELECT {row}))", self.text)
    }
}

/// A column, also one that is generated.
struct UniqueColumn {
    name: String,
    /// What it gets in the place of NULL, if it cannot be that.
    default: Option<String>,
    is_generated: bool,
}

impl UniqueColumn {
    fn new(column: &ColumnSchema) -> Self {
        let default = column.default.clone().filter(|_| column.is_not_null);
        let is_generated = column.kind != ColumnKind::Ordinary;
        Self { name: column.name.clone(), default, is_generated }
    }

    /// Whether an expression names it; `true` also where its name is a part of another word.
    fn may_be_in(&self, expression: &str) -> bool {
        let is_plain = self.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        // Another one may be written in several ways.
        !is_plain || expression.to_ascii_lowercase().contains(&self.name.to_ascii_lowercase())
    }

    /// What a new row has here: where NULL cannot be, REPLACE puts the default, but only after the
    /// BEFORE triggers.
    fn new_value(&self, db: &Connection) -> String {
        let new = format!("new.{}", quote_identifier(&self.name));
        let default = self.default.as_deref().map(column_default::parse);
        let default = match default {
            Some(ColumnDefault::Literal(Value::Null)) | None => None,
            Some(ColumnDefault::Literal(value)) => Some(to_literal(&value)),
            Some(_) => {
                // A word without quotes, which is a text there, is none here.
                let text = format!("({}\n)", self.default.as_deref().unwrap_or_default());
                db.prepare(&format!("SELECT {text}")).is_ok().then_some(text)
            }
        };
        default.map_or(new.clone(), |default| format!("ifnull({new},{default})"))
    }
}

/// What stands between an index's parentheses, and after its WHERE. It has no other WHERE: its
/// expressions have no queries.
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

/// A term of an index without its ASC or DESC.
fn without_order(term: &str, is_descending: bool) -> &str {
    let order = if is_descending { "DESC" } else { "ASC" };
    let last = sqlite_schema::words(term).into_iter().next_back();
    let last = last.filter(|word| word.eq_ignore_ascii_case(order));
    last.map_or(term, |word| &term[..word.as_ptr().addr() - term.as_ptr().addr()])
}
