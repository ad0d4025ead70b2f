//! Lists the parts of a table that a declaration leaves out, because they are SQL: triggers, views,
//! CHECKs, generated columns, and UNIQUE indexes that are not lists of columns. Other devices get
//! the names, so that each can report what its tables lack.

use crdt::{LeftOut, LeftOutKind};
use rusqlite::Connection;
use sqlite_schema::{ColumnSchema, SchemaObjectKind, is_blank, tokens, unquote};

use crate::error::Result;

/// The maximum number of names that are sent for one table, or listed. It is less than a list of
/// Format 2 may have.
pub(crate) const NAMES_COUNT_MAX: usize = 1_000;
/// The maximum length of a CHECK's expression, which is sent for people to read.
const EXPRESSION_CHARS_MAX: usize = 200;

/// Returns the parts of a table that its declaration leaves out; `indexes` are its UNIQUE indexes
/// that a declaration cannot contain.
pub(crate) fn read(db: &Connection, table: &str, indexes: Vec<String>) -> Result<Vec<LeftOut>> {
    let mut left_out = triggers_and_views(db, table)?;
    let mut add = |kind, names: Vec<String>| {
        left_out.extend(names.into_iter().map(|name| LeftOut { kind, name }));
    };
    let sql = sqlite_schema::object_sql(db, SchemaObjectKind::Table, table)?;
    add(LeftOutKind::Check, checks(&sql.unwrap_or_default()));
    add(LeftOutKind::GeneratedColumn, generated_columns(db, table)?);
    add(LeftOutKind::UniqueIndex, indexes);
    left_out.truncate(NAMES_COUNT_MAX);
    Ok(left_out)
}

/// Returns the table's triggers, and the views that name it.
fn triggers_and_views(db: &Connection, table: &str) -> Result<Vec<LeftOut>> {
    let sql = "SELECT type = 'view', name, tbl_name, sql FROM sqlite_schema
               WHERE type IN ('trigger', 'view') AND sql IS NOT NULL
                 AND name NOT LIKE 'warren\\_%' ESCAPE '\\' ORDER BY type, name";
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut left_out = Vec::new();
    while let Some(row) = rows.next()? {
        let (is_view, name, of): (bool, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let sql: String = row.get(3)?;
        let names_it = || names(&sql).iter().any(|name| name.eq_ignore_ascii_case(table));
        if if is_view { names_it() } else { of.eq_ignore_ascii_case(table) } {
            let kind = if is_view { LeftOutKind::View } else { LeftOutKind::Trigger };
            left_out.push(LeftOut { kind, name });
        }
    }
    Ok(left_out)
}

/// Returns the tokens of a statement that may be a table's name, without quotes.
fn names(sql: &str) -> Vec<&str> {
    tokens(sql).into_iter().map(unquote).collect()
}

/// Returns the expressions of a table's CHECKs, without comments, with blanks as one space.
fn checks(sql: &str) -> Vec<String> {
    let tokens: Vec<_> =
        tokens(sql).into_iter().map(|token| if is_blank(token) { " " } else { token }).collect();
    let mut checks = Vec::new();
    let mut rest = tokens.into_iter();
    while rest.by_ref().any(|token| token.eq_ignore_ascii_case("CHECK")) {
        if rest.by_ref().find(|token| *token != " ") != Some("(") {
            continue;
        }
        let (mut expression, mut depth) = (String::new(), 1_u32);
        for token in rest.by_ref() {
            match token {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            if token != " " || !expression.ends_with(' ') {
                expression.push_str(token);
            }
        }
        checks.push(expression.trim().chars().take(EXPRESSION_CHARS_MAX).collect());
    }
    checks
}

fn generated_columns(db: &Connection, table: &str) -> Result<Vec<String>> {
    let columns = sqlite_schema::columns(db, table)?.into_iter();
    Ok(columns.filter(ColumnSchema::is_generated).map(|column| column.name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expressions_of_checks_are_found() {
        let sql = r#"CREATE TABLE t (id PRIMARY KEY, "check" /* CHECK (1) */ DEFAULT 'CHECK (2)',
            a CHECK(a > (1 + 2)
                AND a <> ')'), -- CHECK (3)
            CONSTRAINT few CHECK /* few */ ( length("check")<9 ))"#;
        assert_eq!(checks(sql), ["a > (1 + 2) AND a <> ')'", r#"length("check")<9"#]);
        assert_eq!(checks("CREATE TABLE t (a, b CHECK"), Vec::<String>::new());
        let long = format!("CREATE TABLE t (a CHECK (a <> '{}'))", "ö".repeat(300));
        assert_eq!(checks(&long)[0].chars().count(), EXPRESSION_CHARS_MAX);
    }
}
