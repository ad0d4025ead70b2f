//! Tests of applying messages to a budget's database, on one with two tables.

use super::*;

const TABLES: &str = "
    CREATE TABLE messages_crdt (id INTEGER PRIMARY KEY, timestamp TEXT NOT NULL UNIQUE,
        dataset TEXT NOT NULL, row TEXT NOT NULL, column TEXT NOT NULL, value BLOB NOT NULL);
    CREATE TABLE messages_clock (id INTEGER PRIMARY KEY, clock TEXT);
    CREATE TABLE payees (id TEXT PRIMARY KEY, name TEXT, tombstone INTEGER DEFAULT 0);
    CREATE TABLE \"odd \"\"name\" (id TEXT PRIMARY KEY, x REAL);
    INSERT INTO payees VALUES ('a', 'Baker', 0);
    INSERT INTO messages_clock VALUES (1, 'of before');
    INSERT INTO messages_crdt (timestamp, dataset, row, column, value) VALUES
        ('2026-01-05T08:00:00.000Z-0000-aaaaaaaaaaaaaaaa', 'payees', 'a', 'name', 'S:Baker');";

fn at(minute: u64) -> Timestamp {
    let text = format!("2026-01-05T08:{minute:02}:00.000Z-0000-bbbbbbbbbbbbbbbb");
    text.parse().unwrap()
}

fn change(dataset: &str, row: &str, column: &str, value: &str) -> CellMessage {
    let [dataset, row, column, value] = [dataset, row, column, value].map(str::to_owned);
    CellMessage { dataset, row, column, value }
}

/// Creates a database with these statements and returns its file.
fn file(sql: &str) -> Vec<u8> {
    let mut db = Connection::open_in_memory().unwrap();
    db.execute_batch(sql).unwrap();
    db.serialize(MAIN_DB).unwrap().to_vec()
}

/// Returns the rows of a query on a file, as text.
fn rows(file: &[u8], sql: &str) -> Vec<String> {
    let db = load(file).unwrap();
    let mut statement = db.prepare(sql).unwrap();
    let row = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    statement.query_map([], row).unwrap().map(Result::unwrap).collect()
}

fn replayed(changes: &[(u64, CellMessage)]) -> ReplayOutcome {
    let mut replay = Replay::open(file(TABLES)).unwrap();
    for (minute, change) in changes {
        replay.apply(at(*minute), change).unwrap();
    }
    replay.finish().unwrap()
}

const PAYEES: &str = "SELECT format('%s %s %s', id, quote(name), quote(tombstone)) FROM payees";

#[test]
fn rows_are_made_and_changed() {
    let replayed = replayed(&[
        (1, change("payees", "a", "name", "S:Bäcker \u{2602}")),
        (2, change("payees", "b", "name", "S:")),
        (3, change("payees", "b", "tombstone", "N:1")),
        (4, change("payees", "c", "name", "0:")),
        (5, change("odd \"name", "r", "x", "N:-0.5")),
        (6, change("prefs", "budgetName", "value", "S:Zuhause")),
    ]);
    assert_eq!(rows(&replayed.database, PAYEES), ["a 'Bäcker \u{2602}' 0", "b '' 1", "c NULL 0"]);
    assert_eq!(rows(&replayed.database, "SELECT quote(x) FROM \"odd \"\"name\""), ["-0.5"]);
    assert_eq!(json!(replayed.preferences), json!({"budgetName": "Zuhause"}));
    assert_eq!(replayed.messages_count, 6);
    let noted = "SELECT row || column || value FROM messages_crdt ORDER BY timestamp DESC LIMIT 2";
    assert_eq!(rows(&replayed.database, noted), ["budgetNamevalueS:Zuhause", "rxN:-0.5"]);
}

#[test]
fn the_later_change_of_a_cell_stays_whenever_it_arrives() {
    let mut replay = Replay::open(file(TABLES)).unwrap();
    let known = "2026-01-05T08:00:00.000Z-0000-aaaaaaaaaaaaaaaa".parse().unwrap();
    let before = "2026-01-04T08:00:00.000Z-0000-bbbbbbbbbbbbbbbb".parse().unwrap();
    replay.apply(before, &change("payees", "a", "name", "S:older")).unwrap();
    replay.apply(known, &change("payees", "a", "name", "S:the same message")).unwrap();
    let replayed = replay.finish().unwrap();
    assert_eq!(rows(&replayed.database, PAYEES), ["a 'Baker' 0"]);
    assert_eq!(replayed.messages_count, 1);
    assert_eq!(rows(&replayed.database, "SELECT count(*) || '' FROM messages_crdt"), ["2"]);
}

#[test]
fn the_clock_is_that_of_all_messages() {
    let replayed = replayed(&[(7, change("payees", "a", "name", "S:x"))]);
    let mut trie = MerkleTrie::new();
    trie.insert("2026-01-05T08:00:00.000Z-0000-aaaaaaaaaaaaaaaa".parse().unwrap());
    trie.insert(at(7));
    trie.prune();
    let mut merkle = String::new();
    trie.write_json(&mut merkle);
    let expected = format!("{{\"timestamp\":\"{}\",\"merkle\":{merkle}}}", at(7));
    assert_eq!(rows(&replayed.database, "SELECT clock FROM messages_clock"), [expected]);
}

#[test]
fn a_column_of_a_newer_app_is_named() {
    let mut replay = Replay::open(file(TABLES)).unwrap();
    for (table, column) in [("payees", "color"), ("tags", "id")] {
        let refused = replay.apply(at(1), &change(table, "a", column, "S:x")).unwrap_err();
        assert!(
            matches!(&refused, ExportError::NewerApp { column: c } if *c == format!("{table}.{column}"))
        );
    }
}

#[test]
fn values_are_those_of_javascript() {
    let value = |text: &str| change("", "", "", text).sql_value();
    for (text, expected) in [
        ("0:", SqlValue::Null),
        ("S:0:", SqlValue::Text("0:".to_owned())),
        ("N:-12", SqlValue::Integer(-12)),
        ("N:12.5", SqlValue::Real(12.5)),
        ("N:9007199254740991", SqlValue::Integer(9_007_199_254_740_991)),
        ("N:1e+21", SqlValue::Real(1e21)),
    ] {
        assert_eq!(value(text).unwrap(), expected, "{text}");
    }
    for text in ["", "x", "X:1", "☂"] {
        assert!(matches!(value(text), Err(ExportError::Damaged(_))), "{text}");
    }
}

#[test]
fn files_of_all_kinds_are_opened_or_refused() {
    let mut wal = file(TABLES);
    wal[JOURNAL_VERSIONS].fill(2);
    assert_eq!(Replay::open(wal).unwrap().finish().unwrap().messages_count, 0);
    for bytes in [b"no database".repeat(100), vec![0; 10]] {
        let opened = Replay::open(bytes).and_then(Replay::finish);
        assert!(matches!(opened, Err(ExportError::Damaged(_))));
    }
    // A trigger would run at each change.
    let hostile = [TABLES, "CREATE TRIGGER t AFTER UPDATE ON payees BEGIN DELETE FROM payees; END"];
    let mut replay = Replay::open(file(&hostile.concat())).unwrap();
    replay.apply(at(1), &change("payees", "a", "name", "S:x")).unwrap();
    assert_eq!(rows(&replay.finish().unwrap().database, PAYEES), ["a 'x' 0"]);
}
