//! Tests that every value of SQLite arrives unchanged: storage classes, sizes, encodings,
//! affinities, in cells and in keys, encrypted and plain; and tests of rows without a valid key.

use std::fmt::Write as _;

use replica::SchemaConflictKind;

use crate::support::{MemoryServer, TestDevice};

/// SQL of every storage class, with values that SQLite, JSON, UTF-8, IEEE 754 or messages might
/// mishandle; and declared types. Browsers use the same file (`web/tests/values.test.ts`).
const VECTORS: &str = include_str!("../../../../vectors/values.json");

fn strings(member: &str) -> Vec<String> {
    let vectors: serde_json::Value = serde_json::from_str(VECTORS).unwrap();
    let all = vectors[member].as_array().unwrap();
    all.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Returns the content of a table, with storage classes and bytes.
fn contents(device: &TestDevice, table: &str) -> Vec<String> {
    let mut columns = device.texts(&format!("SELECT name FROM pragma_table_info('{table}')"));
    for column in &mut columns {
        let quoted = format!(
            "CASE typeof({column}) WHEN 'text' THEN quote(CAST({column} AS BLOB)) ELSE quote({column}) END"
        );
        *column = format!("typeof({column}) || ':' || {quoted}");
    }
    device.texts(&format!("SELECT {} FROM {table} ORDER BY 1", columns.join(" || ', ' || ")))
}

fn check(phrase: bool) {
    let (types, values) = (strings("types"), strings("values"));
    let mut server = MemoryServer::default();
    let columns: Vec<_> =
        types.iter().enumerate().map(|(place, declared)| format!("c{place} {declared}")).collect();
    let mut schema =
        format!("CREATE TABLE cells (id INTEGER PRIMARY KEY, {});", columns.join(", "));
    for (place, declared) in types.iter().enumerate().filter(|(_, declared)| *declared != "INTEGER")
    {
        write!(schema, "CREATE TABLE key{place} (k {declared} PRIMARY KEY NOT NULL, v);").unwrap();
    }
    let [mut one, two] = [0, 1].map(|_| TestDevice::tracked(&schema, &mut server));
    if phrase {
        let phrase = one.replica().create_recovery_phrase().unwrap();
        two.replica().set_recovery_phrase(&phrase).unwrap();
    }
    for value in &values {
        let all = vec![value.as_str(); types.len()].join(", ");
        one.write(&format!("INSERT INTO cells VALUES (NULL, {all})")).unwrap();
        for place in (0..types.len()).filter(|place| types[*place] != "INTEGER") {
            // NULL is not a key, and an affinity turns two values into one key.
            drop(one.write(&format!("INSERT OR IGNORE INTO key{place} VALUES ({value}, 'v')")));
        }
    }
    one.sync(&mut server);
    let report = two.sync(&mut server);
    assert!(report.in_sync && report.rejected.count() == 0, "{report:?}");
    assert_eq!(contents(&two, "cells").len(), values.len());
    assert_eq!(contents(&two, "cells"), contents(&one, "cells"));
    for place in (0..types.len()).filter(|place| types[*place] != "INTEGER") {
        let table = format!("key{place}");
        assert_eq!(contents(&two, &table), contents(&one, &table), "{}", types[place]);
    }
    assert_eq!(report.visibility_override_counts.values().sum::<u64>(), 0, "{report:?}");
    // The test edits a value that is not UTF-8, which has a history.
    one.write("UPDATE cells SET c3 = CAST(x'fe' AS TEXT) WHERE id = 25").unwrap();
    one.sync(&mut server);
    two.sync(&mut server);
    assert_eq!(two.texts("SELECT quote(CAST(c3 AS BLOB)) FROM cells WHERE id = 25"), ["X'FE'"]);
    let history = two.replica().history("cells", &["25".to_owned()]).unwrap();
    let shown = history.iter().flat_map(|entry| &entry.cells).filter(|cell| cell.visible);
    let shown: Vec<_> = shown.filter(|cell| cell.column == "c3").map(|c| c.value.clone()).collect();
    assert_eq!(shown, ["CAST(x'fe' AS TEXT)"]);
}

#[test]
fn every_value_arrives_as_it_is() {
    check(false);
}

#[test]
fn every_value_arrives_as_it_is_sealed() {
    check(true);
}

#[test]
fn rows_with_null_in_their_key_stay_here_and_all_others_go() {
    let mut server = MemoryServer::default();
    let schema =
        "CREATE TABLE t (k TEXT PRIMARY KEY, v); CREATE TABLE p (a, b, PRIMARY KEY (a, b))";
    let mut one = TestDevice::new(schema);
    one.app.execute_batch("INSERT INTO t VALUES (NULL, 'before'), ('a', 1)").unwrap();
    let replica = replica::Replica::prepare(&one.path).unwrap();
    let (tracked, refused) = replica.track_all().unwrap();
    assert_eq!((tracked.len(), refused.len()), (2, 0));
    one.sign_in(&mut server);
    let two = TestDevice::tracked(schema, &mut server);
    one.write("INSERT INTO t VALUES (NULL, 'after'), ('b', 2)").unwrap();
    one.write("INSERT INTO p VALUES (NULL, 1), (1, NULL), (1, 1)").unwrap();
    one.write("UPDATE t SET v = 'changed' WHERE k IS NULL; DELETE FROM t WHERE v = 1").unwrap();
    one.write("UPDATE t SET k = 'named' WHERE rowid = (SELECT min(rowid) FROM t)").unwrap();
    one.write("UPDATE p SET b = NULL WHERE a = 1 AND b = 1").unwrap();
    one.write("ALTER TABLE t ADD COLUMN w").unwrap();
    one.write("UPDATE t SET w = 3").unwrap();
    let report = one.sync(&mut server);
    let told: Vec<_> = report.schema_conflicts.iter().map(|o| (o.table.as_str(), o.kind)).collect();
    assert_eq!(told, [("p", SchemaConflictKind::NullKey), ("t", SchemaConflictKind::NullKey)]);
    assert!(report.schema_conflicts[0].reason.starts_with("3 rows"), "{report:?}");
    two.sync(&mut server);
    assert_eq!(two.texts("SELECT k || v FROM t ORDER BY k"), ["b2", "namedchanged"]);
    assert_eq!(two.texts("SELECT a || b FROM p"), Vec::<String>::new());
    assert_eq!(one.texts("SELECT count(*) || '' FROM t WHERE k IS NULL"), ["1"]);
    assert_eq!(one.texts("SELECT count(*) || '' FROM p"), ["3"]);
}

#[test]
fn the_tables_of_virtual_tables_are_refused_by_name() {
    let device = TestDevice::new(
        "CREATE TABLE place_visits (id INTEGER PRIMARY KEY);
         CREATE TABLE place_node (nodeno INTEGER PRIMARY KEY, data);
         CREATE TABLE note_segdir (level INTEGER, idx INTEGER, PRIMARY KEY (level, idx));
         CREATE TABLE vectors_chunks (chunk_id INTEGER PRIMARY KEY, size);
         PRAGMA writable_schema = ON;
         INSERT INTO sqlite_schema VALUES
             ('table', 'place', 'place', 0, 'CREATE VIRTUAL TABLE place USING geopoly(a, b)'),
             ('table', 'note', 'note', 0, 'CREATE VIRTUAL TABLE \"note\" USING FTS4 (text)'),
             ('table', 'vectors', 'vectors', 0, 'CREATE VIRTUAL TABLE vectors USING vec0(e)');",
    );
    let replica = replica::Replica::prepare(&device.path).unwrap();
    let (tracked, refused) = replica.track_all().unwrap();
    let names: Vec<_> = tracked.iter().map(|tracked| tracked.table.as_str()).collect();
    assert_eq!(names, ["place_visits"]);
    let refused: Vec<_> = refused.iter().map(ToString::to_string).collect();
    // SQLite itself recognizes the internal tables of its own modules, such as FTS4.
    for owner in ["place", "vectors"] {
        let reason = format!("internal table of the virtual table {owner};");
        assert!(refused.iter().any(|refusal| refusal.contains(&reason)), "{refused:?}");
    }
    let named = replica.track(&["note_segdir".to_owned()]).unwrap_err().to_string();
    assert!(named.contains("internal table of the virtual table note;"), "{named}");
}
