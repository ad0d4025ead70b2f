//! Writes the SQL for declarations of other devices, from data.
//!
//! # Invariants
//! - Every name is quoted, every type is one of a closed grammar and quoted, and every value is a
//!   literal: any declaration creates one table of that name, or its indexes, or nothing.
//! - Foreign keys are checked at the end of a transaction, because the order in which another
//!   device's program writes is unknown here.

use crdt::{
    Collation, ColumnDeclaration, ColumnDefault, ForeignKeyDeclaration, IndexDeclaration,
    TableDeclaration, Value,
};
use sqlite_schema::quote_identifier;

use super::affinity::Affinity;
use super::tracked_table::is_internal;
use crate::sql_value::to_literal;

/// The maximum bytes of a type's name; the longest in use have some thirty.
const TYPE_BYTES_MAX: usize = 100;

/// Returns the reason why no table can be created from a declaration, if there is one.
pub(crate) fn why_not_creatable(
    table: &str,
    declaration: &TableDeclaration,
) -> Option<&'static str> {
    let columns = declaration.columns.iter().map(|column| &*column.name);
    let indexes = declaration.indexes.iter().map(|index| &*index.name);
    let is_name = |name: &str| !name.is_empty() && !name.contains('\0');
    if is_internal(table) {
        Some("reserved table name")
    } else if !is_name(table) || !columns.clone().all(is_name) {
        Some("invalid table or column name")
    } else if indexes
        .filter(|name| !name.is_empty())
        .any(|name| is_internal(name) || !is_name(name))
    {
        Some("reserved or invalid index name")
    } else if declaration.key.is_empty() {
        Some("no primary key")
    } else {
        None
    }
}

/// Returns the `CREATE TABLE` statement.
pub(crate) fn create_table(table: &str, declaration: &TableDeclaration) -> String {
    let key = &declaration.key[..];
    let columns = declaration.columns.iter().enumerate().map(|(place, column)| {
        let key = match key {
            [only] if *only == place && declaration.is_autoincrement => {
                " PRIMARY KEY AUTOINCREMENT"
            }
            [only] if *only == place => " PRIMARY KEY",
            _ => "",
        };
        format!("{}{key}{}", column_definition(column), column_constraints(column))
    });
    let mut parts: Vec<_> = columns.collect();
    if key.len() > 1 {
        parts.push(format!("PRIMARY KEY ({})", names(declaration, key)));
    }
    let constraints = declaration.indexes.iter().filter(|index| index.name.is_empty());
    parts
        .extend(constraints.map(|index| format!("UNIQUE ({})", index_columns(declaration, index))));
    parts.extend(declaration.foreign_keys.iter().map(|reference| {
        let columns = names(declaration, &reference.columns);
        format!("FOREIGN KEY ({columns}) {}", references_clause(reference))
    }));
    let options =
        [(declaration.is_strict, "STRICT"), (declaration.is_without_rowid, "WITHOUT ROWID")];
    let options: Vec<_> =
        options.iter().filter(|(is_set, _)| *is_set).map(|(_, option)| *option).collect();
    format!(
        "CREATE TABLE {} ({}) {}",
        quote_identifier(table),
        parts.join(", "),
        options.join(", ")
    )
}

/// Returns a `CREATE INDEX` statement for each index that has a name.
pub(crate) fn create_indexes(
    table: &str,
    declaration: &TableDeclaration,
) -> impl Iterator<Item = String> {
    let indexes = declaration.indexes.iter().filter(|index| !index.name.is_empty());
    indexes.map(move |index| {
        let unique = if index.is_unique { "UNIQUE " } else { "" };
        let (name, columns) = (quote_identifier(&index.name), index_columns(declaration, index));
        format!("CREATE {unique}INDEX {name} ON {} ({columns})", quote_identifier(table))
    })
}

/// Returns the `ALTER TABLE … ADD COLUMN` statement, as far as SQLite supports it. Existing rows
/// get the default, so it is neither a time nor a reference to another row.
pub(crate) fn add_column(
    table: &str,
    column: &ColumnDeclaration,
    reference: Option<&ForeignKeyDeclaration>,
) -> String {
    let is_constant = match &column.default {
        Some(ColumnDefault::Literal(value)) => *value != Value::Null && reference.is_none(),
        _ => false,
    };
    let rules = if is_constant { column_constraints(column) } else { String::new() };
    let reference = reference.map(|reference| format!(" {}", references_clause(reference)));
    let reference = reference.unwrap_or_default();
    format!(
        "ALTER TABLE {} ADD COLUMN {}{rules}{reference}",
        quote_identifier(table),
        column_definition(column)
    )
}

/// Returns the name, type and collation of a column.
fn column_definition(column: &ColumnDeclaration) -> String {
    let declared_type = match type_name(&column.declared_type) {
        "" => String::new(),
        declared_type => format!(" {}", quote_identifier(declared_type)),
    };
    let collation = match column.collation {
        Collation::Binary => String::new(),
        other => format!(" COLLATE {}", other.name()),
    };
    format!("{}{declared_type}{collation}", quote_identifier(&column.name))
}

/// Returns the NOT NULL and DEFAULT clauses. If the default is an expression, which stays with
/// other devices, rows are inserted without a value, so NOT NULL is left out.
fn column_constraints(column: &ColumnDeclaration) -> String {
    let not_null = if column.is_not_null { " NOT NULL" } else { "" };
    let default = match &column.default {
        None => return not_null.to_owned(),
        Some(ColumnDefault::Computed) => return String::new(),
        Some(ColumnDefault::Literal(value)) => to_literal(value),
        Some(ColumnDefault::Time) => "CURRENT_TIME".into(),
        Some(ColumnDefault::Date) => "CURRENT_DATE".into(),
        Some(ColumnDefault::Timestamp) => "CURRENT_TIMESTAMP".into(),
    };
    format!("{not_null} DEFAULT {default}")
}

fn references_clause(reference: &ForeignKeyDeclaration) -> String {
    let columns: Vec<_> =
        reference.parent_columns.iter().map(|name| quote_identifier(name)).collect();
    let columns =
        if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
    format!(
        "REFERENCES {}{columns} ON DELETE {} ON UPDATE {} DEFERRABLE INITIALLY DEFERRED",
        quote_identifier(&reference.parent),
        reference.on_delete.name(),
        reference.on_update.name(),
    )
}

fn names(declaration: &TableDeclaration, places: &[usize]) -> String {
    let names = places.iter().map(|place| quote_identifier(&declaration.columns[*place].name));
    names.collect::<Vec<_>>().join(", ")
}

fn index_columns(declaration: &TableDeclaration, index: &IndexDeclaration) -> String {
    let columns = index.columns.iter().map(|(place, collation)| {
        let column = &declaration.columns[*place];
        if *collation == column.collation {
            return quote_identifier(&column.name);
        }
        format!("{} COLLATE {}", quote_identifier(&column.name), collation.name())
    });
    columns.collect::<Vec<_>>().join(", ")
}

/// Returns the declared type if it consists of words, optionally followed by one or two numbers in
/// parentheses, as in SQLite's grammar. Otherwise returns a type with the same affinity.
fn type_name(declared: &str) -> &str {
    let (words, numbers) = match declared.split_once('(') {
        Some((words, rest)) => (words, rest.strip_suffix(')')),
        None => (declared, Some("")),
    };
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ' ');
    let is_number = |number: &str| {
        let digits = number.trim().trim_start_matches(['+', '-']);
        digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let are_numbers = numbers.is_some_and(|numbers| {
        numbers.split(',').count() <= 2 && numbers.split(',').all(is_number)
    });
    if declared.len() <= TYPE_BYTES_MAX && words.chars().all(is_word) && are_numbers {
        return declared;
    }
    match Affinity::from_declared_type(declared, false) {
        Affinity::Text => "TEXT",
        Affinity::Numeric => "NUMERIC",
        Affinity::Real => "REAL",
        Affinity::None => "BLOB",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_types_of_the_grammar_are_taken() {
        for declared in ["", "INTEGER", "DOUBLE PRECISION", "VARCHAR(30)", "DECIMAL(10, -2)", "ANY"]
        {
            assert_eq!(type_name(declared), declared);
        }
        for (declared, taken) in [
            ("TEXT; DROP TABLE diary; --", "TEXT"),
            ("evil \"INT\"", "NUMERIC"),
            ("REAL(1) (2)", "REAL"),
            ("BLOB(1,2,3)", "BLOB"),
            ("TEXT(a)", "TEXT"),
            ("DOUBLE(1", "REAL"),
            (&"X".repeat(200), "NUMERIC"),
        ] {
            assert_eq!(type_name(declared), taken, "{declared}");
        }
    }
}
