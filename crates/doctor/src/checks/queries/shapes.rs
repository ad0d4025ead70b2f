//! Finds index keys that the text of a query suggests: NOCASE for a LIKE, an order with mixed
//! directions, an expression that is compared.
//!
//! The text is read token by token, not parsed: something that cannot be a key of an index is tried
//! in vain, and the planner decides about the rest.

use sqlite_schema::TableSchema;

use crate::file::schema::quote_if_needed;
use crate::program::sql::{SqlToken, SqlTokenKind, tokens};

/// The maximum number of keys of one kind that are tried for one query.
const KEYS_MAX: usize = 6;

/// Returns lists of keys, each for one index on this table.
pub(super) fn keys(sql: &str, table: &TableSchema) -> Vec<Vec<CandidateKey>> {
    let tokens = tokens(sql);
    let likes = likes(&tokens, table);
    let order = mixed_order(&tokens, table);
    let mut all: Vec<Vec<CandidateKey>> = likes.into_iter().map(|key| vec![key]).collect();
    all.extend(expressions(sql, &tokens, table).into_iter().map(|key| vec![key]));
    if let Some(order) = order {
        let others = table.columns.iter().filter(|column| {
            let is_named = tokens.iter().any(|it| is_column(it, &column.name));
            is_named && order.iter().all(|key| key.column.as_ref() != Some(&column.name))
        });
        let others = others.take(KEYS_MAX);
        all.extend(others.map(|it| [vec![CandidateKey::column(&it.name)], order.clone()].concat()));
        all.push(order);
    }
    all
}

fn is_column(token: &SqlToken<'_>, column: &str) -> bool {
    token.name().is_some_and(|name| name.eq_ignore_ascii_case(column))
}

fn column<'a>(table: &'a TableSchema, token: &SqlToken<'_>) -> Option<&'a str> {
    let mut columns = table.columns.iter().map(|column| column.name.as_str());
    columns.find(|column| is_column(token, column))
}

/// Returns columns that the query compares with one value in its text, with the condition as an
/// index needs it: `published = 0`. Returns none if the query contains alternatives.
pub(super) fn constants(sql: &str, table: &TableSchema) -> Vec<(String, String)> {
    let tokens = tokens(sql);
    if tokens.iter().any(|token| token.is("or") || token.is("not")) {
        return Vec::new();
    }
    let mut constants = Vec::new();
    for window in tokens.windows(3) {
        let Some(column) = column(table, &window[0]) else { continue };
        let is_value = window[1].text == "=" && window[2].kind == SqlTokenKind::Value;
        if is_value || (window[1].is("is") && window[2].is("null")) {
            let sign = if is_value { "=" } else { "IS" };
            let rows = format!("{} {sign} {}", quote_if_needed(column), window[2].text);
            constants.push((column.to_owned(), rows));
        }
    }
    constants.truncate(KEYS_MAX);
    constants
}

/// Returns a NOCASE key for each LIKE. LIKE ignores case, so it can use only an index that does,
/// too.
fn likes(tokens: &[SqlToken<'_>], table: &TableSchema) -> Vec<CandidateKey> {
    let pairs = tokens.windows(2).filter(|pair| pair[1].is("like"));
    let columns = pairs.filter_map(|pair| column(table, &pair[0]));
    let key = |column: &str| CandidateKey {
        sql: format!("{} COLLATE NOCASE", quote_if_needed(column)),
        column: Some(column.to_owned()),
    };
    columns.take(KEYS_MAX).map(key).collect()
}

/// Returns the keys of the last ORDER BY if it mixes directions: an index can be read backwards
/// only as a whole.
fn mixed_order(tokens: &[SqlToken<'_>], table: &TableSchema) -> Option<Vec<CandidateKey>> {
    let start = tokens.windows(2).rposition(|pair| pair[0].is("order") && pair[1].is("by"))?;
    let behind = &tokens[start + 2..];
    let end = behind.iter().position(|it| it.is("limit") || it.text == ";" || it.text == ")");
    let terms = behind[..end.unwrap_or(behind.len())].split(|token| token.text == ",");
    let keys: Option<Vec<(CandidateKey, bool)>> = terms
        .map(|term| {
            let is_descending = term.last().is_some_and(|last| last.is("desc"));
            let name = term.iter().rev().find(|it| !it.is("desc") && !it.is("asc"))?;
            let column = column(table, name)?;
            let direction = if is_descending { " DESC" } else { "" };
            let sql = format!("{}{direction}", quote_if_needed(column));
            Some((CandidateKey { sql, column: Some(column.to_owned()) }, is_descending))
        })
        .collect();
    let keys = keys?;
    let is_mixed = keys.iter().any(|key| key.1) && keys.iter().any(|key| !key.1);
    is_mixed.then(|| keys.into_iter().map(|key| key.0).collect())
}

/// Returns the function calls on a column, as in the text: `lower(title)`,
/// `json_extract(x, '$.a')`.
fn expressions(sql: &str, tokens: &[SqlToken<'_>], table: &TableSchema) -> Vec<CandidateKey> {
    let mut keys = Vec::new();
    for (index, pair) in tokens.windows(2).enumerate() {
        let is_name = pair[0].kind == SqlTokenKind::Word;
        let follows = pair[0].end() == pair[1].start;
        if !is_name || !follows || pair[1].text != "(" || keys.len() >= KEYS_MAX {
            continue;
        }
        let Some(end) = closing(&tokens[index + 1..]) else { continue };
        let inside = &tokens[index + 2..index + 1 + end];
        if !inside.iter().any(|token| column(table, token).is_some()) {
            continue;
        }
        let text = &sql[pair[0].start..tokens[index + 1 + end].end()];
        keys.push(CandidateKey { sql: unqualified(text, inside, pair[0].start), column: None });
    }
    keys
}

/// Returns the position of the parenthesis that closes the first one.
fn closing(tokens: &[SqlToken<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    tokens.iter().position(|token| {
        match token.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

/// Removes table names before column names, because an index does not allow them.
fn unqualified(text: &str, tokens: &[SqlToken<'_>], start: usize) -> String {
    let mut plain = text.to_owned();
    for pair in tokens.windows(2).rev().filter(|pair| pair[1].text == ".") {
        plain.replace_range(pair[0].start - start..=pair[1].start - start, "");
    }
    plain
}

/// A key of a candidate index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CandidateKey {
    /// The key as CREATE INDEX expects it.
    pub(super) sql: String,
    /// The column whose values determine how many rows the key finds; `None` for an expression.
    pub(super) column: Option<String>,
}

impl CandidateKey {
    pub(super) fn column(name: &str) -> Self {
        Self { sql: quote_if_needed(name), column: Some(name.to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use sqlite_schema::{ColumnKind, ColumnSchema, TableKind};

    use super::*;

    fn table() -> TableSchema {
        let column = |name: &str| ColumnSchema {
            name: name.to_owned(),
            declared_type: String::new(),
            is_not_null: false,
            default: None,
            key_position: 0,
            kind: ColumnKind::Ordinary,
        };
        TableSchema {
            name: "t".to_owned(),
            kind: TableKind::Ordinary,
            has_rowid: true,
            is_strict: false,
            columns: ["title", "at", "x"].map(column).to_vec(),
            indexes: Vec::new(),
        }
    }

    #[test]
    fn the_text_of_a_query_has_keys() {
        let table = table();
        for (sql, expected) in [
            ("SELECT 1 FROM t WHERE title LIKE 'a%'", vec!["title COLLATE NOCASE"]),
            ("SELECT 1 FROM t ORDER BY at DESC, x LIMIT 3", vec!["at DESC, x"]),
            (
                "SELECT 1 FROM t b WHERE title = ? ORDER BY b.at, b.x DESC",
                vec!["title, at, x DESC", "at, x DESC"],
            ),
            ("SELECT 1 FROM t ORDER BY at DESC, x DESC", vec![]),
            ("SELECT 1 FROM t a WHERE lower(a.title) = 'at(x)'", vec!["lower(title)"]),
            ("SELECT 1 FROM t WHERE json_extract(x, '$.a') = 3", vec!["json_extract(x, '$.a')"]),
            ("SELECT count(*) FROM t WHERE x IN (1, 2)", vec![]),
            ("SELECT 'order by at desc, x'", vec![]),
            ("SELECT lower(title FROM t", vec![]),
        ] {
            let keys = keys(sql, &table)
                .into_iter()
                .map(|keys| keys.into_iter().map(|key| key.sql).collect::<Vec<_>>().join(", "));
            assert_eq!(keys.collect::<Vec<_>>(), expected, "{sql}");
        }
    }

    #[test]
    fn the_text_of_a_query_has_constants() {
        let table = table();
        for (sql, expected) in [
            ("SELECT 1 FROM t WHERE x = 0 AND title = ? ORDER BY at", vec!["x = 0"]),
            ("SELECT 1 FROM t WHERE x IS NULL AND title='a b'", vec!["x IS NULL", "title = 'a b'"]),
            ("SELECT 1 FROM t WHERE x IS NOT NULL", vec![]),
            ("SELECT 1 FROM t WHERE x = 0 OR at = 3", vec![]),
            ("SELECT 1 FROM t WHERE x > 0", vec![]),
        ] {
            let rows = constants(sql, &table).into_iter().map(|constant| constant.1);
            assert_eq!(rows.collect::<Vec<_>>(), expected, "{sql}");
        }
    }
}
