//! Converts this file's tables to declarations, and merges the declarations of all devices.
//!
//! # Invariants
//! - The merged declarations of a table depend only on the set of messages. Of those with one
//!   primary key, the newest counts. It gets the columns that only older ones have, each from the
//!   newest of those.

use std::collections::BTreeMap;

use crdt::{
    Change, Collation, ColumnDeclaration, ForeignKeyAction, ForeignKeyDeclaration,
    IndexDeclaration, NodeId, TableDeclaration, Timestamp, Value,
};
use rusqlite::Connection;
use sqlite_schema::{IndexKeyColumn, IndexOrigin, SchemaObjectKind, words};

use super::affinity::Affinity;
use super::tracked_table::DeclaredTable;
use super::{column_default, left_out};
use crate::apply::row_state::NameResolver;
use crate::error::Result;
use crate::log::message_log::MessageLog;
use crate::row_id::RowId;
use crate::sql_value::timestamp;

/// Reads the declaration of a table of this file.
pub(crate) fn read(db: &Connection, declared: &DeclaredTable) -> Result<TableDeclaration> {
    let traits = TableOptions::read(db, &declared.name)?;
    let (indexes, other_indexes) = indexes(db, declared)?;
    let mut columns = Vec::with_capacity(declared.columns.len());
    for column in &declared.columns {
        columns.push(ColumnDeclaration {
            name: column.name.clone(),
            declared_type: column.declared_type.clone(),
            is_not_null: column.is_not_null,
            collation: collation(db, &declared.name, &column.name)?,
            default: column.default.as_deref().map(column_default::parse),
        });
    }
    // SQLite lists foreign keys from the last to the first.
    let references =
        sqlite_schema::foreign_keys(db, &declared.name)?.into_iter().rev().map(|key| {
            let columns =
                key.columns.iter().filter_map(|name| column_index(declared, name)).collect();
            let action = |text: &str| ForeignKeyAction::from_name(text).unwrap_or_default();
            ForeignKeyDeclaration {
                columns,
                parent: key.parent,
                parent_columns: key.parent_columns,
                on_delete: action(&key.on_delete),
                on_update: action(&key.on_update),
            }
        });
    Ok(TableDeclaration {
        columns,
        key: declared
            .key()
            .iter()
            .filter_map(|column| column_index(declared, &column.name))
            .collect(),
        is_autoincrement: traits.is_autoincrement,
        is_strict: traits.is_strict,
        is_without_rowid: traits.is_without_rowid,
        indexes,
        foreign_keys: references.collect(),
        left_out: left_out::read(db, &declared.name, other_indexes)?,
    })
}

fn column_index(declared: &DeclaredTable, name: &str) -> Option<usize> {
    declared.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
}

/// The properties of a table as a whole.
struct TableOptions {
    is_autoincrement: bool,
    is_strict: bool,
    is_without_rowid: bool,
}

impl TableOptions {
    fn read(db: &Connection, table: &str) -> Result<Self> {
        let entry = sqlite_schema::table(db, table)?;
        let sql = sqlite_schema::object_sql(db, SchemaObjectKind::Table, table)?;
        let words = sql.as_deref().map(words).unwrap_or_default();
        Ok(Self {
            is_autoincrement: words.iter().any(|word| word.eq_ignore_ascii_case("AUTOINCREMENT")),
            is_strict: entry.as_ref().is_some_and(|entry| entry.is_strict),
            is_without_rowid: entry.as_ref().is_some_and(|entry| !entry.has_rowid),
        })
    }
}

fn collation(db: &Connection, table: &str, column: &str) -> Result<Collation> {
    let (_, collation, ..) = db.column_metadata(Some("main"), table, column)?;
    let name = collation.and_then(|name| name.to_str().ok());
    Ok(name.and_then(Collation::from_name).unwrap_or_default())
}

/// Returns the indexes over all rows that consist of columns, except the primary key's, and the
/// names of other UNIQUE indexes.
fn indexes(
    db: &Connection,
    declared: &DeclaredTable,
) -> Result<(Vec<IndexDeclaration>, Vec<String>)> {
    let (mut indexes, mut others) = (Vec::new(), Vec::new());
    for index in sqlite_schema::indexes(db, &declared.name)? {
        if index.origin == IndexOrigin::PrimaryKey {
            continue;
        }
        let columns = index_columns(declared, &index.columns).filter(|_| !index.is_partial);
        let Some(columns) = columns else {
            others.extend(Some(index.name).filter(|_| index.is_unique));
            continue;
        };
        let is_constraint = index.origin == IndexOrigin::UniqueConstraint;
        let name = if is_constraint { String::new() } else { index.name };
        indexes.push(IndexDeclaration { name, is_unique: index.is_unique, columns });
    }
    Ok((indexes, others))
}

/// Returns the columns of an index, or `None` if one is an expression or has a collation that is
/// not built into SQLite.
fn index_columns(
    declared: &DeclaredTable,
    columns: &[IndexKeyColumn],
) -> Option<Vec<(usize, Collation)>> {
    let column = |key: &IndexKeyColumn| {
        let place = column_index(declared, key.column.as_deref()?)?;
        Some((place, Collation::from_name(&key.collation)?))
    };
    columns.iter().map(column).collect()
}

/// Records a declaration that is in the log.
pub(crate) fn record_declaration(
    names: &mut NameResolver<'_>,
    table: &str,
    timestamp: Timestamp,
    declaration: &TableDeclaration,
) -> Result<()> {
    for column in &declaration.columns {
        names.column(table, &column.name)?;
    }
    let id = names.table(table)?;
    let sql = "INSERT INTO warren_declaration VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    names.db.prepare_cached(sql)?.execute((id, timestamp.to_bytes()))?;
    Ok(())
}

/// Replaces the timestamp of a recorded declaration.
pub(crate) fn replace_timestamp(db: &Connection, old: Timestamp, new: Timestamp) -> Result<()> {
    let sql = "UPDATE warren_declaration SET timestamp = ?2 WHERE timestamp = ?1";
    db.prepare_cached(sql)?.execute((old.to_bytes(), new.to_bytes()))?;
    Ok(())
}

/// Removes a declaration whose message was erased.
pub(crate) fn forget(db: &Connection, timestamp: Timestamp) -> Result<()> {
    let sql = "DELETE FROM warren_declaration WHERE timestamp = ?1";
    db.prepare_cached(sql)?.execute([timestamp.to_bytes()])?;
    Ok(())
}

/// Returns the newest declaration of a table, if any is known.
pub(crate) fn newest(log: &MessageLog<'_>, table: i64) -> Result<Option<TableDeclaration>> {
    Ok(declarations(log, table, 1)?.pop().map(|(_, declaration)| declaration))
}

/// Returns the newest declaration of a table by each device.
pub(crate) fn other_devices(
    log: &MessageLog<'_>,
    table: i64,
) -> Result<BTreeMap<NodeId, TableDeclaration>> {
    let mut newest = BTreeMap::new();
    for (timestamp, declaration) in declarations(log, table, DECLARATIONS_COUNT_MAX)? {
        newest.entry(timestamp.node_id()).or_insert(declaration);
    }
    Ok(newest)
}

/// Returns the newest declarations of a table, newest first.
fn declarations(
    log: &MessageLog<'_>,
    table: i64,
    count_max: u32,
) -> Result<Vec<(Timestamp, TableDeclaration)>> {
    let sql = "SELECT timestamp FROM warren_declaration WHERE table_id = ?1
               ORDER BY timestamp DESC LIMIT ?2";
    let mut statement = log.db.prepare_cached(sql)?;
    let mut rows = statement.query((table, count_max))?;
    let mut declarations = Vec::new();
    while let Some(row) = rows.next()? {
        let timestamp = timestamp(row, 0)?;
        if let Change::TableDeclaration { declaration, .. } = log.change(timestamp)? {
            declarations.push((timestamp, declaration));
        }
    }
    Ok(declarations)
}

/// The maximum number of declarations of a table that are read, and of rows whose keys decide which
/// declaration fits.
const DECLARATIONS_COUNT_MAX: u32 = 64;
const ROWS_COUNT_MAX: u32 = 1_000;

/// Merges all devices' declarations of a table into one for each primary key. The first one fits
/// most of the known rows; among equals, the newest is first.
pub(crate) fn merged_declarations(
    log: &MessageLog<'_>,
    table: i64,
) -> Result<Vec<TableDeclaration>> {
    let mut merged: Vec<TableDeclaration> = Vec::new();
    for (_, declaration) in declarations(log, table, DECLARATIONS_COUNT_MAX)? {
        let known = merged.iter_mut().find(|known| has_same_key(known, &declaration));
        match known {
            Some(newer) => add_columns(newer, declaration),
            None => merged.push(declaration),
        }
    }
    if merged.len() > 1 {
        let keys = keys(log.db, table)?;
        let fitting = |declaration: &TableDeclaration| {
            keys.iter().filter(|key| key_fits(declaration, key)).count()
        };
        // The sort is stable: among equals the newest stays first.
        merged.sort_by_cached_key(|declaration| std::cmp::Reverse(fitting(declaration)));
    }
    Ok(merged)
}

fn key_columns(declaration: &TableDeclaration) -> impl Iterator<Item = &ColumnDeclaration> {
    declaration.key.iter().map(|place| &declaration.columns[*place])
}

fn has_same_key(one: &TableDeclaration, other: &TableDeclaration) -> bool {
    let is_same = |(a, b): (&ColumnDeclaration, &ColumnDeclaration)| {
        let affinity =
            |column: &ColumnDeclaration| Affinity::from_declared_type(&column.declared_type, false);
        a.name.eq_ignore_ascii_case(&b.name) && affinity(a) == affinity(b)
    };
    one.key.len() == other.key.len() && key_columns(one).zip(key_columns(other)).all(is_same)
}

/// Adds the columns that only the older declaration has.
fn add_columns(newer: &mut TableDeclaration, older: TableDeclaration) {
    for column in older.columns {
        let is_known = |known: &ColumnDeclaration| known.name.eq_ignore_ascii_case(&column.name);
        if !newer.columns.iter().any(is_known) {
            newer.columns.push(column);
        }
    }
}

fn keys(db: &Connection, table: i64) -> Result<Vec<Vec<Value>>> {
    let sql = "SELECT key FROM warren_row WHERE table_id = ?1 ORDER BY key LIMIT ?2";
    let mut statement = db.prepare_cached(sql)?;
    let keys = statement.query_map((table, ROWS_COUNT_MAX), |row| row.get::<_, Vec<u8>>(0))?;
    keys.map(|key| RowId { table, key: key? }.key_values()).collect()
}

fn key_fits(declaration: &TableDeclaration, key: &[Value]) -> bool {
    let affinity = |column: &ColumnDeclaration| {
        Affinity::from_declared_type(&column.declared_type, declaration.is_strict)
    };
    declaration.key.len() == key.len()
        && key_columns(declaration)
            .zip(key)
            .all(|(column, value)| affinity(column).preserves(value))
}

#[cfg(test)]
mod tests {
    use crdt::{ColumnDefault, LeftOut, LeftOutKind};

    use super::*;

    fn read_from(sql: &str) -> TableDeclaration {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(sql).unwrap();
        read(&db, &DeclaredTable::read(&db, "t").unwrap().unwrap()).unwrap()
    }

    #[test]
    fn what_is_no_expression_is_data() {
        let declaration = read_from(
            "CREATE TABLE p (id INTEGER PRIMARY KEY);
             CREATE TABLE t (
                 b VARCHAR(30) NOT NULL COLLATE nocase DEFAULT 'it''s', a TEXT NOT NULL,
                 c REAL DEFAULT -1.5, d DEFAULT x'00fF', e INTEGER DEFAULT ( 7 ), f DEFAULT TRUE,
                 g DATETIME DEFAULT CURRENT_TIMESTAMP REFERENCES p ON DELETE SET NULL,
                 PRIMARY KEY (a, b), UNIQUE (c, d)) WITHOUT ROWID;
             CREATE INDEX t_e ON t (e, a COLLATE RTRIM);",
        );
        let column = |place: usize| &declaration.columns[place];
        assert_eq!((&*column(0).declared_type, column(0).is_not_null), ("VARCHAR(30)", true));
        assert_eq!(column(0).collation, Collation::NoCase);
        let defaults: Vec<_> =
            declaration.columns.iter().filter_map(|column| column.default.clone()).collect();
        let literals = [
            Value::Text("it's".into()),
            Value::Real(-1.5),
            Value::Blob(vec![0, 255]),
            Value::Integer(7),
            Value::Integer(1),
        ];
        assert_eq!(defaults[..5], literals.map(ColumnDefault::Literal));
        assert_eq!(defaults[5], ColumnDefault::Timestamp);
        assert_eq!((&declaration.key[..], declaration.is_without_rowid), (&[1, 0][..], true));
        assert_eq!(declaration.left_out, []);
        let of = |name: &str, is_unique, columns: &[_]| IndexDeclaration {
            name: name.into(),
            is_unique,
            columns: columns.to_vec(),
        };
        let binary = Collation::Binary;
        let constraint = of("", true, &[(2, binary), (3, binary)]);
        let index = of("t_e", false, &[(4, binary), (1, Collation::Rtrim)]);
        assert_eq!(declaration.indexes, [constraint, index]);
        let reference = &declaration.foreign_keys[0];
        assert_eq!((&*reference.parent, reference.on_delete), ("p", ForeignKeyAction::SetNull));
        assert_eq!(
            (&reference.columns[..], &reference.parent_columns[..]),
            (&[6][..], &["id".into()][..])
        );
    }

    #[test]
    fn expressions_stay_where_they_are() {
        let left_out = |kind, name: &str| LeftOut { kind, name: name.into() };
        for (sql, expected) in [
            (
                "CREATE TABLE t (id PRIMARY KEY, a CHECK (a > 0))",
                Some(left_out(LeftOutKind::Check, "a > 0")),
            ),
            (
                "CREATE TABLE t (id PRIMARY KEY, a AS (id + 1))",
                Some(left_out(LeftOutKind::GeneratedColumn, "a")),
            ),
            (
                "CREATE TABLE t (id PRIMARY KEY, a); CREATE UNIQUE INDEX i ON t (a) WHERE a > 0",
                Some(left_out(LeftOutKind::UniqueIndex, "i")),
            ),
            ("CREATE TABLE t (id PRIMARY KEY, a); CREATE INDEX i ON t (lower(a))", None),
        ] {
            let declaration = read_from(sql);
            assert_eq!(declaration.left_out, Vec::from_iter(expected), "{sql}");
            assert!(declaration.indexes.is_empty(), "{sql}");
        }
        let computed = read_from("CREATE TABLE t (id PRIMARY KEY, a DEFAULT (random()))");
        assert_eq!(computed.columns[1].default, Some(ColumnDefault::Computed));
        let told = read_from(
            "CREATE TABLE t (id PRIMARY KEY); CREATE TABLE tt (id PRIMARY KEY);
             CREATE VIEW \"all\" AS SELECT * FROM \"T\"; CREATE VIEW other AS SELECT 1 FROM tt;
             CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END;
             CREATE TRIGGER h AFTER INSERT ON tt BEGIN DELETE FROM t; END;",
        );
        let expected = [left_out(LeftOutKind::Trigger, "g"), left_out(LeftOutKind::View, "all")];
        assert_eq!(told.left_out, expected);
        let named =
            r#"CREATE TABLE t (id PRIMARY KEY, "check" /* CHECK (1) */, b DEFAULT 'CHECK')"#;
        assert_eq!(read_from(named).left_out, []);
        assert!(
            read_from("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT)").is_autoincrement
        );
    }
}
