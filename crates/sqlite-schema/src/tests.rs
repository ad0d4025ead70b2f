// The import links SQLite under rusqlite.
use sqlite3mc_sys as _;

use super::*;

fn database(sql: &str) -> Connection {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(sql).unwrap();
    db
}

fn schema(db: &Connection, name: &str) -> TableSchema {
    table(db, name).unwrap().unwrap().read(db).unwrap()
}

#[test]
fn a_table_is_read_as_it_was_declared() {
    let db = database(
        r#"CREATE TABLE "Order ""1""" (
             b TEXT COLLATE NOCASE NOT NULL DEFAULT 'x',
             a INTEGER,
             twice AS (a * 2),
             thrice INT AS (a * 3) STORED,
             PRIMARY KEY (a, b)) WITHOUT ROWID;
           CREATE INDEX partial ON "Order ""1""" (a DESC, lower(b)) WHERE a > 1;
           CREATE UNIQUE INDEX an_other ON "Order ""1""" (b COLLATE RTRIM);"#,
    );
    let table = schema(&db, "ORDER \"1\"");
    assert_eq!((&*table.name, table.kind), ("Order \"1\"", TableKind::Ordinary));
    assert_eq!((table.has_rowid, table.is_strict, table.is_internal()), (false, false, false));
    let columns: Vec<_> = table
        .columns
        .iter()
        .map(|it| (&*it.name, &*it.declared_type, it.is_not_null, it.key_position, it.kind))
        .collect();
    assert_eq!(
        columns,
        [
            ("b", "TEXT", true, 2, ColumnKind::Ordinary),
            ("a", "INTEGER", true, 1, ColumnKind::Ordinary),
            ("twice", "", false, 0, ColumnKind::GeneratedVirtual),
            ("thrice", "INT", false, 0, ColumnKind::GeneratedStored),
        ]
    );
    assert_eq!((table.columns[0].default_sql(), table.columns[1].default_sql()), ("'x'", "NULL"));
    let key: Vec<_> = table.key_columns().iter().map(|column| &*column.name).collect();
    assert_eq!(key, ["a", "b"]);
    let indexes: Vec<_> = table
        .indexes
        .iter()
        .map(|it| (&*it.name, it.is_unique, it.is_partial, it.origin, it.columns_text()))
        .collect();
    let created = IndexOrigin::Created;
    assert_eq!(indexes[0], ("an_other", true, false, created, "b".to_owned()));
    assert_eq!(indexes[1], ("partial", false, true, created, "a DESC, <expression>".to_owned()));
    assert_eq!(indexes[2].3, IndexOrigin::PrimaryKey);
    assert_eq!(table.indexes[0].columns[0].collation, "RTRIM");
    assert_eq!(
        (table.indexes[0].column_names(), table.indexes[1].column_names()),
        (Some(vec!["b"]), None)
    );
}

/// Tests the rules of <https://sqlite.org/lang_createtable.html#rowid>.
#[test]
fn only_an_integer_primary_key_is_the_row_id() {
    let check = |columns: &str, alias: Option<&str>, name: Option<&str>| {
        let db = database(&format!("CREATE TABLE t ({columns}"));
        let table = schema(&db, "t");
        assert_eq!(table.rowid_alias().map(|column| &*column.name), alias, "{columns}");
        assert_eq!(table.rowid_name(), name, "{columns}");
    };
    check("a INTEGER PRIMARY KEY)", Some("a"), Some("rowid"));
    check("a integer, PRIMARY KEY (a ASC))", Some("a"), Some("rowid"));
    check("rowid integer, PRIMARY KEY (rowid DESC))", Some("rowid"), Some("_rowid_"));
    check("a INTEGER PRIMARY KEY DESC)", None, Some("rowid"));
    check("a INT PRIMARY KEY)", None, Some("rowid"));
    check("a INTEGER, b, PRIMARY KEY (a, b))", None, Some("rowid"));
    check("a INTEGER PRIMARY KEY) WITHOUT ROWID", None, None);
    check("ROWID, _rowid_, oid)", None, None);
}

#[test]
fn a_foreign_key_without_columns_means_the_parents_key() {
    let db = database(
        "CREATE TABLE parent (b, a, PRIMARY KEY (a, b));
         CREATE TABLE child (
           x REFERENCES absent (p) ON DELETE CASCADE, y, z,
           FOREIGN KEY (y, z) REFERENCES Parent ON UPDATE SET NULL,
           FOREIGN KEY (z) REFERENCES missing);",
    );
    let keys = foreign_keys(&db, "child").unwrap();
    let keys: Vec<_> = keys
        .iter()
        .map(|key| {
            let ForeignKeySchema { parent, columns, parent_columns, on_delete, on_update, .. } =
                key;
            let (columns, parent_columns) = (columns.join(","), parent_columns.join(","));
            format!("{columns} -> {parent} ({parent_columns}) {on_delete}, {on_update}")
        })
        .collect();
    assert_eq!(
        keys,
        [
            "z -> missing () NO ACTION, NO ACTION",
            "y,z -> Parent (a,b) NO ACTION, SET NULL",
            "x -> absent (p) CASCADE, NO ACTION",
        ]
    );
}

#[test]
fn a_temp_table_does_not_stand_for_a_table() {
    let db = database(
        "CREATE TABLE p (id INTEGER PRIMARY KEY);
         CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE REFERENCES p);
         CREATE TEMP TABLE t (other);
         CREATE TEMP TABLE p (no_key);
         CREATE TEMP TABLE only_here (x);",
    );
    let columns: Vec<_> = columns(&db, "t").unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!(columns, ["a", "b"]);
    assert_eq!(indexes(&db, "t").unwrap().len(), 1);
    assert_eq!(foreign_keys(&db, "t").unwrap()[0].parent_columns, ["id"]);
    let sql = object_sql(&db, SchemaObjectKind::Table, "T").unwrap().unwrap();
    assert!(sql.contains("REFERENCES p"), "{sql}");
    assert!(table(&db, "only_here").unwrap().is_none());
    assert!(super::columns(&db, "only_here").unwrap().is_empty());
    assert_eq!(temporary_tables(&db).unwrap(), ["only_here", "p", "t"]);
}

#[test]
fn kinds_of_tables_are_told_apart() {
    let db = database(
        "CREATE TABLE plain (a ANY) STRICT;
         CREATE VIEW seen AS SELECT a FROM plain;
         CREATE VIRTUAL TABLE \"search\" USING \"fts5\"(text);",
    );
    let kind = |name: &str| table(&db, name).unwrap().map(|table| table.kind);
    assert_eq!(kind("plain"), Some(TableKind::Ordinary));
    assert_eq!(kind("SEEN"), Some(TableKind::View));
    assert_eq!(kind("search"), Some(TableKind::Virtual));
    assert_eq!(kind("search_data"), Some(TableKind::Shadow));
    assert_eq!(kind("absent"), None);
    assert!(table(&db, "plain").unwrap().unwrap().is_strict);
    let names: Vec<_> = tables(&db).unwrap().into_iter().map(|table| table.name).collect();
    assert!(names.is_sorted() && names.contains(&"sqlite_schema".to_owned()), "{names:?}");
    let sql = object_sql(&db, SchemaObjectKind::Table, "search").unwrap().unwrap();
    assert_eq!(virtual_table_module(&sql), Some("fts5"));
    let sql = object_sql(&db, SchemaObjectKind::Table, "plain").unwrap().unwrap();
    assert_eq!(virtual_table_module(&sql), None);
    let sql = "create virtual/**/table [using] using -- using\n rtree_i32(a, b, c)";
    assert_eq!(virtual_table_module(sql), Some("rtree_i32"));
}

#[test]
fn an_identifier_is_quoted_whatever_it_holds() {
    let db = database("");
    for name in ["plain", "select", "a \"b\"", "ö", "[x]", "1"] {
        db.execute_batch(&format!("CREATE TABLE {} (a)", quote_identifier(name))).unwrap();
        assert_eq!(schema(&db, name).name, name);
    }
}
