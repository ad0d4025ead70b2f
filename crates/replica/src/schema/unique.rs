//! Which rows of a table cannot stand next to each other, though they have different names.
//!
//! A row's name is its key's values with their storage classes. SQLite lets only one of two rows
//! stand that have one value in a UNIQUE index, also of expressions and by any collation. The key's
//! own index may be such a one: NOCASE does not tell 'a' from 'A', and a column that stores what it
//! is given does not tell 1 from 1.0. So is the rowid that most tables have next to their key.
//! `OR REPLACE` deletes the row that stands there, and no delete trigger fires
//! (<https://sqlite.org/lang_conflict.html>).

use crdt::{ColumnDefault, Value};
use rusqlite::{Connection, OptionalExtension};

use super::affinity::Affinity;
use super::column_default;
use crate::error::Result;
use crate::sql_text::{self, quote};
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

/// The names of the rowid, but for those that a column has.
pub(crate) const ROWIDS: [&str; 3] = ["rowid", "_rowid_", "oid"];

impl UniqueIndexes {
    /// `key`: the affinities of the key's columns.
    pub(crate) fn read(db: &Connection, table: &str, key: &[Affinity]) -> Result<Self> {
        let all = UniqueColumn::all(db, table)?;
        let indexes = UniqueIndex::all(db, table)?;
        let indexes = indexes.iter().filter(|index| !index.distinguishes_row_ids(key));
        let conditions = indexes.clone().map(|index| index.condition(db, &all)).collect();
        let mut columns: Vec<_> =
            all.iter().filter(|c| indexes.clone().any(|index| index.depends_on(c))).collect();
        let mut before_update = None;
        if columns.iter().any(|column| column.is_generated) {
            // From any of the others.
            columns = all.iter().filter(|column| !column.is_generated).collect();
            let new: Vec<_> = columns.iter().map(|c| format!("new.{}", quote(&c.name))).collect();
            before_update = Some(format!("SELECT {}; ", new.join(",")));
        }
        let columns = columns.into_iter().map(|column| column.name.clone()).collect();
        Ok(Self { conditions, columns, before_update, rowid: rowid_name(db, table, &all)? })
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
    fn all(db: &Connection, table: &str) -> Result<Vec<Self>> {
        let sql = "SELECT i.name, i.origin = 'pk', s.sql FROM pragma_index_list(?1) i
                   LEFT JOIN sqlite_schema s ON s.type = 'index' AND s.name = i.name
                   WHERE i.\"unique\" = 1";
        let mut statement = db.prepare_cached(sql)?;
        let mut rows = statement.query([table])?;
        let mut indexes = Vec::new();
        while let Some(row) = rows.next()? {
            let (name, is_key, sql): (String, _, Option<String>) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let (texts, condition) = sql.as_deref().map(split_index_sql).unwrap_or_default();
            let terms = IndexTerm::all(db, &name, &texts)?;
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
    /// `texts`: the terms as they are written, if a statement made the index.
    fn all(db: &Connection, index: &str, texts: &[&str]) -> Result<Vec<Self>> {
        let sql =
            "SELECT name, coll, \"desc\" FROM pragma_index_xinfo(?1) WHERE key = 1 ORDER BY seqno";
        let mut statement = db.prepare_cached(sql)?;
        let mut rows = statement.query([index])?;
        let mut terms = Vec::new();
        while let Some(row) = rows.next()? {
            let (column, collation): (Option<String>, String) = (row.get(0)?, row.get(1)?);
            let text = if let Some(column) = &column {
                quote(column)
            } else {
                // Only a statement makes an index of expressions. A comment may stand at its end.
                let text = texts.get(terms.len()).copied().unwrap_or_default();
                format!("({}\n)", without_order(text, row.get(2)?))
            };
            terms.push(Self { text, column, collation });
        }
        Ok(terms)
    }

    /// A row of the table has the same value here as `new`.
    fn condition(&self, db: &Connection, columns: &[UniqueColumn]) -> String {
        format!(
            "{} = {} COLLATE {}",
            self.text,
            self.new_value_sql(db, columns),
            quote(&self.collation)
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
        let value =
            |column: &UniqueColumn| format!("{} AS {}", column.new_value(db), quote(&column.name));
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
    fn all(db: &Connection, table: &str) -> Result<Vec<Self>> {
        let sql = "SELECT name, iif(\"notnull\", dflt_value, NULL), hidden <> 0
                   FROM pragma_table_xinfo(?1) ORDER BY cid";
        let mut statement = db.prepare_cached(sql)?;
        let columns = statement.query_map([table], |row| {
            Ok(Self { name: row.get(0)?, default: row.get(1)?, is_generated: row.get(2)? })
        })?;
        Ok(columns.collect::<rusqlite::Result<_>>()?)
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
        let new = format!("new.{}", quote(&self.name));
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

/// What the rowid is called that the table has next to its key, if a program can name it.
fn rowid_name(
    db: &Connection,
    table: &str,
    columns: &[UniqueColumn],
) -> Result<Option<&'static str>> {
    let sql = "SELECT wr FROM pragma_table_list(?1) WHERE schema = 'main'";
    let is_without: Option<bool> =
        db.prepare_cached(sql)?.query_row([table], |row| row.get(0)).optional()?;
    if is_without.unwrap_or(true) || is_rowid_alias(db, table)? {
        return Ok(None);
    }
    let is_free =
        |name: &&str| !columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
    Ok(ROWIDS.into_iter().find(is_free))
}

/// What stands between an index's parentheses, and after its WHERE. It has no other WHERE: its
/// expressions have no queries.
fn split_index_sql(sql: &str) -> (Vec<&str>, Option<&str>) {
    let (mut terms, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for token in sql_text::tokens(sql) {
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
    let last = sql_text::words(term).into_iter().next_back();
    let last = last.filter(|word| word.eq_ignore_ascii_case(order));
    last.map_or(term, |word| &term[..word.as_ptr().addr() - term.as_ptr().addr()])
}

/// Whether the key is the rowid under another name
/// (<https://sqlite.org/lang_createtable.html#rowid>). `INTEGER PRIMARY KEY DESC` is not: it has an
/// index of its own.
pub(crate) fn is_rowid_alias(db: &Connection, table: &str) -> Result<bool> {
    let sql = "SELECT count(*) = 1 AND min(type) = 'INTEGER' COLLATE NOCASE
                   AND NOT (SELECT wr FROM pragma_table_list(?1) WHERE schema = 'main')
                   AND NOT EXISTS (SELECT 1 FROM pragma_index_list(?1) WHERE origin = 'pk')
               FROM pragma_table_info(?1) WHERE pk > 0";
    let counts: Option<bool> = db.prepare_cached(sql)?.query_row([table], |row| row.get(0))?;
    Ok(counts.unwrap_or(false))
}
