//! Provides files that contain one of everything, and dumps of their content.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use engine::{Cipher, DatabaseKey, FileEncryption, Profile, open_connection};
use rusqlite::Connection;
use rusqlite::types::Value;

const AS_IS: Profile = Profile { name: "as-is", about: "", base: &[], changes: &[] };

pub(crate) fn key() -> FileEncryption {
    FileEncryption::Key { key: DatabaseKey::from_bytes([7; 32]), cipher: None }
}

pub(crate) fn key_of(cipher: Cipher) -> FileEncryption {
    FileEncryption::Key { key: DatabaseKey::from_bytes([7; 32]), cipher: Some(cipher) }
}

pub(crate) fn ciphers() -> Vec<(&'static str, FileEncryption)> {
    Cipher::ALL.into_iter().map(|cipher| (cipher.name(), key_of(cipher))).collect()
}

pub(crate) fn connect(path: &Path, encryption: &FileEncryption) -> Connection {
    open_connection(path, encryption, &AS_IS, false, true).unwrap().0
}

/// Returns the content of all files in the directory of this one.
pub(crate) fn folder(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap().map(|it| it.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Creates a table `t` with an index and this number of rows, on some dozens of pages.
pub(crate) fn fill(db: &Connection, rows: u64) {
    db.execute_batch(&format!(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT); CREATE INDEX by_x ON t (x);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO t SELECT i, printf('row %d %0100d', i, i) FROM n"
    ))
    .unwrap();
}

/// Creates one of everything that a file can contain.
const EVERYTHING: &str = "
    PRAGMA user_version = 7; PRAGMA application_id = 42;
    CREATE TABLE plain (a, b TEXT, c REAL);
    CREATE INDEX plain_b ON plain (b);
    CREATE INDEX plain_part ON plain (a) WHERE b IS NOT NULL;
    CREATE INDEX plain_expression ON plain (lower(b));
    CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE NOT NULL);
    CREATE TABLE keyed (k TEXT, n INTEGER, v BLOB, PRIMARY KEY (k, n)) WITHOUT ROWID;
    CREATE TABLE made (x INTEGER, twice AS (x * 2), thrice AS (x * 3) STORED, y TEXT);
    CREATE TABLE strict_one (i INTEGER, t TEXT, b BLOB, r REAL, a ANY) STRICT;
    CREATE TABLE child (id INTEGER PRIMARY KEY, parent REFERENCES counted (id));
    CREATE TABLE \"it's a \"\"name\"\"\" (\"select\", \"a b\");
    CREATE VIRTUAL TABLE docs USING fts5 (title, body);
    CREATE VIRTUAL TABLE places USING rtree (id, x0, x1, y0, y1);
    CREATE VIEW seen AS SELECT a, b FROM plain WHERE a > 1;
    CREATE TRIGGER on_insert AFTER INSERT ON plain BEGIN
        INSERT INTO child (parent) VALUES (new.a); END;
    CREATE TRIGGER on_view INSTEAD OF INSERT ON seen BEGIN
        INSERT INTO plain (a, b) VALUES (new.a, new.b); END;
    DROP TRIGGER on_insert;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
    INSERT INTO plain (rowid, a, b, c) SELECT i * 3, i, 'line ' || i || char(10) || 'ü\\n', i / 7.0 FROM n;
    INSERT INTO plain VALUES (NULL, 'nul' || char(0) || 'inside', 9e999),
        (x'00ff', '', -0.0), (9223372036854775807, 'it''s', 1e-300), ('', 'a' || char(13, 10), 5);
    INSERT INTO plain VALUES (zeroblob(70000), CAST(x'ff41fe' AS TEXT), 0.1);
    INSERT INTO counted (name) SELECT 'name ' || a FROM plain WHERE typeof(a) = 'integer' AND a < 200;
    DELETE FROM counted WHERE id > 150;
    INSERT INTO keyed SELECT 'k' || (a % 17), a, randomblob(a * 40) FROM plain
        WHERE typeof(a) = 'integer' AND a < 300;
    INSERT INTO made (x, y) SELECT a, b FROM plain WHERE typeof(a) = 'integer' AND a < 300;
    INSERT INTO strict_one VALUES (1, 'x', x'01', 1.5, 'any'), (NULL, NULL, NULL, NULL, 7);
    INSERT INTO child SELECT id, id FROM counted;
    INSERT INTO \"it's a \"\"name\"\"\" VALUES (1, 2);
    INSERT INTO docs SELECT 'title ' || a, b FROM plain WHERE typeof(a) = 'integer' AND a < 300;
    INSERT INTO places SELECT a, a, a + 1, a, a + 1 FROM plain WHERE typeof(a) = 'integer' AND a < 300;
    CREATE TABLE gone AS SELECT * FROM keyed; DROP TABLE gone;
    ANALYZE;
    CREATE TRIGGER late AFTER INSERT ON plain BEGIN DELETE FROM child WHERE id = new.a; END;
";

pub(crate) fn make(path: &Path, encryption: &FileEncryption, settings: &str) {
    let db = connect(path, encryption);
    db.execute_batch(settings).unwrap();
    db.execute_batch(EVERYTHING).unwrap();
    db.close().unwrap();
}

/// The settings, the schema, and the rows of each table, in order.
pub(crate) type DatabaseDump = BTreeMap<String, Vec<String>>;

pub(crate) fn dump(db: &Connection) -> DatabaseDump {
    let mut dump = DatabaseDump::new();
    for name in ["page_size", "encoding", "auto_vacuum", "user_version", "application_id"] {
        let value: Value = db.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).unwrap();
        dump.insert(format!("PRAGMA {name}"), vec![format!("{value:?}")]);
    }
    let schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name";
    dump.insert("schema".into(), rows(db, schema));
    let tables = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type != 'view'";
    let tables: Vec<String> = db
        .prepare(tables)
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    for table in tables.into_iter().filter(|table| table != "sqlite_schema") {
        let name = table.replace('"', "\"\"");
        let rowid = if db.prepare(&format!("SELECT rowid FROM \"{name}\"")).is_ok() {
            "rowid, "
        } else {
            ""
        };
        dump.insert(table, rows(db, &format!("SELECT {rowid}* FROM \"{name}\" ORDER BY 1, 2")));
    }
    dump
}

fn rows(db: &Connection, sql: &str) -> Vec<String> {
    let mut statement = db.prepare(sql).unwrap();
    let columns = statement.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        // Values are compared as bytes, because a text need not be UTF-8.
        let value = |column| format!("{:?}", row.get_ref(column).unwrap());
        Ok((0..columns).map(value).collect::<Vec<_>>().join("|"))
    };
    statement.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap()
}

#[track_caller]
pub(crate) fn compare(found: &DatabaseDump, expected: &DatabaseDump, what: &str) {
    let names = |dump: &DatabaseDump| dump.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected), "{what}");
    for (name, rows) in expected {
        let differing = rows.iter().zip(&found[name]).find(|(a, b)| a != b);
        assert!(differing.is_none(), "{what}: {name}: {differing:?}");
        assert_eq!(rows.len(), found[name].len(), "{what}: {name}");
    }
}
