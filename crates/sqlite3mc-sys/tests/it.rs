//! Tests of the calls on a real, encrypted file, and of the options that the library was built
//! with.

use rusqlite::Connection;

fn open(path: &std::path::Path, key: &[u8; 32]) -> Connection {
    let db = Connection::open(path).expect("opens");
    sqlite3mc_sys::set_key(&db, key).expect("takes a key");
    db
}

fn read(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("SELECT x FROM t", [], |row| row.get(0))
}

#[test]
fn a_file_opens_with_its_key_and_after_rekey_with_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let db = open(&path, &[1; 32]);
    db.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (42)").unwrap();
    drop(db);

    read(&open(&path, &[2; 32])).unwrap_err();
    let db = open(&path, &[1; 32]);
    assert_eq!(read(&db), Ok(42));
    sqlite3mc_sys::rekey(&db, &[2; 32]).unwrap();
    drop(db);

    read(&open(&path, &[1; 32])).unwrap_err();
    assert_eq!(read(&open(&path, &[2; 32])), Ok(42));
}

#[test]
fn a_file_without_a_key_gets_a_passphrase_and_loses_it_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (42)").unwrap();
    sqlite3mc_sys::rekey_passphrase(&db, b"open sesame").unwrap();
    drop(db);

    read(&Connection::open(&path).unwrap()).unwrap_err();
    let db = Connection::open(&path).unwrap();
    sqlite3mc_sys::set_passphrase(&db, b"open sesame").unwrap();
    assert_eq!(read(&db), Ok(42));
    sqlite3mc_sys::remove_key(&db).unwrap();
    drop(db);

    assert_eq!(read(&Connection::open(&path).unwrap()), Ok(42));
}

#[test]
fn the_raw_key_is_the_one_that_other_programs_name_in_hex() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    open(&path, &[0xab; 32])
        .execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (42)")
        .unwrap();
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&format!("PRAGMA key = 'raw:{}'", "ab".repeat(32))).unwrap();
    assert_eq!(read(&db), Ok(42));
}

#[test]
fn a_deferred_violation_is_seen_until_it_is_mended() {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch(
        "PRAGMA foreign_keys = ON;
         CREATE TABLE parent (id INTEGER PRIMARY KEY);
         CREATE TABLE child (parent REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
         BEGIN; INSERT INTO child VALUES (1);",
    )
    .unwrap();
    assert_eq!(sqlite3mc_sys::has_deferred_violation(&db), Ok(true));
    db.execute_batch("INSERT INTO parent VALUES (1)").unwrap();
    assert_eq!(sqlite3mc_sys::has_deferred_violation(&db), Ok(false));
}

#[test]
fn the_library_is_built_as_build_rs_says() {
    let db = Connection::open_in_memory().unwrap();
    let mut statement = db.prepare("PRAGMA compile_options").unwrap();
    let options: Vec<String> =
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for wanted in ["THREADSAFE=2", "DQS=0", "ENABLE_FTS5", "ENABLE_STAT4", "TEMP_STORE=2"] {
        assert!(options.iter().any(|option| option == wanted), "{wanted} in {options:?}");
    }
    assert!(sqlite3mc_sys::cache_bytes(&db).unwrap() > 0);
}
