//! Tests damaged files: the content of other pages is saved, and losses are reported.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use doctor::{Error, RecoverOptions, RecoverReport, RecoveredTable, recover};
use engine::{Cipher, FileEncryption};
use rusqlite::Connection;

use super::recovered;
use super::subject::{ciphers, connect, fill, key, key_of, make};
use crate::fixture::DoctorFixture;

const ROWS: u64 = 5_000;
const PAGE: u64 = 4096;

/// Creates a file with the table of [`fill`].
fn filled(path: &Path, encryption: &FileEncryption) {
    let db = connect(path, encryption);
    fill(&db, ROWS);
    db.close().unwrap();
}

fn pages(path: &Path, encryption: &FileEncryption, of: &str) -> Vec<u64> {
    let db = connect(path, encryption);
    let sql = format!("SELECT pageno FROM dbstat WHERE {of} ORDER BY pageno");
    let mut statement = db.prepare(&sql).unwrap();
    let pages = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
    pages.map(|page| page.unwrap().cast_unsigned()).collect()
}

fn write(path: &Path, offset: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, offset).unwrap();
}

/// Damages a page somewhere in its middle.
fn spoil(path: &Path, page: u64) {
    write(path, (page - 1) * PAGE + 2_000, &[0xa5; 64]);
}

fn zero(path: &Path, page: u64) {
    write(path, (page - 1) * PAGE, &[0; 4096]);
}

fn table<'a>(report: &'a RecoverReport, name: &str) -> &'a RecoveredTable {
    report.tables.iter().find(|table| table.name == name).unwrap()
}

fn count(db: &Connection, sql: &str) -> u64 {
    db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap().cast_unsigned()
}

/// Counts the rows whose content is unchanged.
const RIGHT: &str = "SELECT count(*) FROM t WHERE x = printf('row %d %0100d', id, id)";

#[test]
fn over_pages_that_the_cipher_refuses_it_goes_on() {
    let fixture = DoctorFixture::new();
    for (name, encryption) in ciphers() {
        let path = fixture.at(&format!("{name}.db"));
        filled(&path, &encryption);
        let leaves = pages(&path, &encryption, "name = 't' AND pagetype = 'leaf'");
        let (first, second) = (leaves[3], leaves[20]);
        spoil(&path, first);
        zero(&path, second);
        let (report, db) = recovered(&path, &encryption);
        assert!(!report.complete && report.sound, "{report:#?}");
        let saved = table(&report, "t");
        assert_eq!(saved.saved_rows_count, count(&db, "SELECT count(*) FROM t"), "{name}");
        if encryption_authenticates(name) {
            assert_eq!(report.pages.unreadable_count, 2, "{name}: {report:#?}");
            assert_eq!(
                report.pages.first_unreadable,
                [first, second].map(|it| u32::try_from(it).unwrap())
            );
            assert_eq!(saved.lost_pages_count, 2, "{name}: {report:#?}");
            assert_eq!(saved.lost_rows_count + saved.saved_rows_count, ROWS, "{name}: {report:#?}");
            // The saved rows are unchanged.
            assert_eq!(count(&db, RIGHT), saved.saved_rows_count, "{name}");
        }
        assert!((1..200).contains(&(ROWS - count(&db, RIGHT))), "{name}: {report:#?}");
        assert_eq!(
            count(&db, "SELECT count(*) FROM t INDEXED BY by_x WHERE x > ''"),
            saved.saved_rows_count
        );
    }
}

fn encryption_authenticates(name: &str) -> bool {
    name.parse::<Cipher>().unwrap().authenticates()
}

#[test]
fn leaves_below_a_lost_inner_page_are_kept_apart() {
    let fixture = DoctorFixture::new();
    for encryption in [FileEncryption::None, key(), key_of(Cipher::SqlCipher)] {
        let path = fixture.at("a.db");
        filled(&path, &encryption);
        let inner = pages(&path, &encryption, "name = 't' AND pagetype = 'internal'");
        zero(&path, inner[0]);
        let (report, db) = recovered(&path, &encryption);
        assert!(!report.complete && report.sound, "{report:#?}");
        // The lost page is the root, so no leaf belongs to the table any more.
        let saved = table(&report, "t");
        assert_eq!((saved.saved_rows_count, saved.lost_pages_count), (0, 1), "{report:#?}");
        assert_eq!(saved.lost_rows_count, ROWS, "{report:#?}");
        let lost = report.lost_and_found.as_ref().unwrap();
        assert_eq!((lost.table.as_str(), lost.rows_count), ("lost_and_found", ROWS));
        let right = "SELECT count(*) FROM lost_and_found
                     WHERE c1 = printf('row %d %0100d', id, id) AND nfield = 2";
        assert_eq!(count(&db, right), ROWS);
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(path.with_extension("out")).unwrap();
    }
}

#[test]
fn a_lost_header_is_made_anew() {
    let fixture = DoctorFixture::new();
    for bytes in [16, 100] {
        let path = fixture.at(&format!("{bytes}.db"));
        filled(&path, &FileEncryption::None);
        write(&path, 0, &vec![0; bytes]);
        let (report, db) = recovered(&path, &FileEncryption::None);
        assert!(report.sound, "{report:#?}");
        assert_eq!(table(&report, "t").saved_rows_count, ROWS, "{report:#?}");
        assert_eq!(count(&db, RIGHT), ROWS);
    }
}

/// Checks that the rows are saved, each with the number of its tree.
#[test]
fn without_page_1_the_rows_are_kept_apart() {
    let fixture = DoctorFixture::new();
    let all = ciphers().into_iter().chain([("none", FileEncryption::None)]);
    for (name, encryption) in all {
        let path = fixture.at(&format!("{name}.db"));
        filled(&path, &encryption);
        // The first 16 bytes are the salt, without which SQLCipher's keys cannot be derived.
        let start = if name == "sqlcipher" { 16 } else { 0 };
        write(&path, start, &vec![0; 4096 - usize::try_from(start).unwrap()]);
        let (report, db) = recovered(&path, &encryption);
        assert!(!report.complete && report.sound, "{name}: {report:#?}");
        assert_eq!(report.pages.page_1_readable, name == "none", "{report:#?}");
        let lost = report.lost_and_found.as_ref().unwrap();
        assert!(lost.rows_count >= ROWS, "{name}: {report:#?}");
        let right =
            "SELECT count(*) FROM lost_and_found WHERE c1 = printf('row %d %0100d', id, id)";
        assert_eq!(count(&db, right), ROWS, "{name}");
    }
}

#[test]
fn a_schema_on_several_pages_loses_what_was_on_the_lost_one() {
    let fixture = DoctorFixture::new();
    for encryption in [FileEncryption::None, key()] {
        let path = fixture.at("a.db");
        let db = connect(&path, &encryption);
        for table in 0..200 {
            let columns: Vec<String> = (0..20).map(|it| format!("column_{it}")).collect();
            db.execute_batch(&format!(
                "CREATE TABLE t{table} ({}); INSERT INTO t{table} (column_0) VALUES ({table})",
                columns.join(", ")
            ))
            .unwrap();
        }
        db.close().unwrap();
        let of_schema = "name = 'sqlite_schema' AND pagetype = 'leaf'";
        zero(&path, pages(&path, &encryption, of_schema)[1]);
        let (report, db) = recovered(&path, &encryption);
        assert!(!report.complete && report.sound, "{report:#?}");
        assert_eq!(report.lost_schema_pages_count, 1, "{report:#?}");
        let tables = u64::try_from(report.tables.len()).unwrap();
        assert!((150..200).contains(&tables), "{report:#?}");
        let lost = report.lost_and_found.as_ref().unwrap();
        assert_eq!(tables + lost.rows_count, 200, "each table had a row");
        assert_eq!(
            count(&db, "SELECT count(*) FROM lost_and_found WHERE c0 >= 0"),
            lost.rows_count
        );
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(path.with_extension("out")).unwrap();
    }
}

#[test]
fn a_truncated_file_keeps_what_is_left() {
    let fixture = DoctorFixture::new();
    for encryption in [FileEncryption::None, key(), key_of(Cipher::Aes256Cbc)] {
        let path = fixture.at("a.db");
        filled(&path, &encryption);
        let bytes = path.metadata().unwrap().len();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(bytes / 2 + 1_000).unwrap();
        let (report, db) = recovered(&path, &encryption);
        assert!(!report.complete && report.sound, "{report:#?}");
        assert!(report.pages.missing_count > 0, "{report:#?}");
        let saved = table(&report, "t");
        assert!(saved.saved_rows_count > 1_000 && saved.lost_pages_count > 0, "{report:#?}");
        assert_eq!(count(&db, RIGHT), saved.saved_rows_count);
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(path.with_extension("out")).unwrap();
    }
}

/// Checks a page of an overflow chain that points to the start of the chain.
#[test]
fn an_overflow_chain_in_a_loop_ends_and_is_told() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    let db = connect(&path, &FileEncryption::None);
    fill(&db, 100);
    db.execute_batch(
        "CREATE TABLE big (x); INSERT INTO big VALUES (randomblob(50000)), (zeroblob(9000))",
    )
    .unwrap();
    db.close().unwrap();
    let chain = pages(&path, &FileEncryption::None, "name = 'big' AND pagetype = 'overflow'");
    let to = u32::try_from(chain[0]).unwrap();
    write(&path, (chain[3] - 1) * PAGE, &to.to_be_bytes());
    let (report, _) = recovered(&path, &FileEncryption::None);
    assert!(!report.complete && report.sound, "{report:#?}");
    let big = table(&report, "big");
    assert_eq!(
        (big.saved_rows_count, big.torn_rows_count, big.lost_pages_count),
        (2, 1, 0),
        "{report:#?}"
    );
    assert!(table(&report, "t").is_whole(), "{report:#?}");
}

#[test]
fn a_free_list_in_a_loop_ends() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    let db = connect(&path, &FileEncryption::None);
    fill(&db, ROWS);
    db.execute_batch("DELETE FROM t WHERE id > 1000").unwrap();
    db.close().unwrap();
    let mut trunk = [0; 4];
    let file = OpenOptions::new().read(true).open(&path).unwrap();
    file.read_exact_at(&mut trunk, 32).unwrap();
    let number = u64::from(u32::from_be_bytes(trunk));
    write(&path, (number - 1) * PAGE, &trunk);
    let (report, db) = recovered(&path, &FileEncryption::None);
    assert!(report.sound, "{report:#?}");
    assert!(table(&report, "t").is_whole(), "{report:#?}");
    assert_eq!(count(&db, RIGHT), 1_000);

    // Deleted rows are on the free pages.
    let options = RecoverOptions { includes_free_pages: true, ..RecoverOptions::default() };
    let out = fixture.at("with-free-pages.db");
    let report = recover(&path, &FileEncryption::None, &out, options, |_| {}).unwrap();
    assert!(report.lost_and_found.unwrap().rows_count > 1_000);
}

/// Damages a page in each kind of table, and checks that the others lose nothing.
#[test]
fn damage_of_one_table_is_none_of_the_others() {
    let fixture = DoctorFixture::new();
    for encryption in [FileEncryption::None, key()] {
        for name in ["plain", "counted", "keyed", "made", "docs_data", "places_node"] {
            let path = fixture.at("a.db");
            make(&path, &encryption, "");
            let leaf = pages(&path, &encryption, &format!("name = '{name}' AND pagetype = 'leaf'"));
            zero(&path, leaf[0]);
            let (report, _) = recovered(&path, &encryption);
            assert!(!report.complete, "{name}: {report:#?}");
            // The content of FTS5 and R-tree tables is useless if a part of it is lost.
            assert!(report.sound || name.contains('_'), "{name}: {report:#?}");
            let hurt = report.tables.iter().filter(|table| !table.is_whole());
            let hurt: Vec<&str> = hurt.map(|table| table.name.as_str()).collect();
            assert_eq!(hurt, [name], "{report:#?}");
            assert!(report.missing.is_empty(), "{report:#?}");
            std::fs::remove_file(&path).unwrap();
            std::fs::remove_file(path.with_extension("out")).unwrap();
        }
    }
}

#[test]
fn rows_that_break_a_constraint_are_refused_and_counted() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    let db = connect(&path, &FileEncryption::None);
    db.execute_batch(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x); INSERT INTO t VALUES (1, 1), (2, 1), (3, 2);
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = 'CREATE TABLE t (id INTEGER PRIMARY KEY, x CHECK (x < 2))';",
    )
    .unwrap();
    db.close().unwrap();
    let (report, _) = recovered(&path, &FileEncryption::None);
    let saved = table(&report, "t");
    assert_eq!((saved.saved_rows_count, saved.lost_rows_count), (2, 0), "{report:#?}");
    assert_eq!(saved.rejected.as_ref().unwrap().rows_count, 1, "{report:#?}");
    assert!(!report.complete && report.sound, "{report:#?}");
}

#[test]
fn what_only_its_own_program_can_make_is_named() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    let db = connect(&path, &FileEncryption::None);
    db.create_collation("own_order", |a: &str, b: &str| b.cmp(a)).unwrap();
    let flags = rusqlite::functions::FunctionFlags::SQLITE_DETERMINISTIC;
    db.create_scalar_function("own_function", 1, flags, |_| Ok(1)).unwrap();
    db.execute_batch(
        "CREATE TABLE t (x TEXT COLLATE own_order UNIQUE, y); INSERT INTO t VALUES ('a', 1), ('b', 2);
         CREATE INDEX own_index ON t (own_function(y));",
    )
    .unwrap();
    db.close().unwrap();
    let (report, db) = recovered(&path, &FileEncryption::None);
    assert_eq!(report.collations, ["own_order"]);
    let missing: Vec<&str> = report.missing.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(missing, ["own_index"], "{report:#?}");
    assert!(report.missing[0].reason.contains("own_function"), "{report:#?}");
    assert!(report.sound && !report.complete, "{report:#?}");
    assert_eq!(count(&db, "SELECT sum(y) FROM t NOT INDEXED"), 3);
}

#[test]
fn a_table_may_be_as_wide_as_any() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    let db = connect(&path, &FileEncryption::None);
    let columns: Vec<String> = (0..1_990).map(|it| format!("c{it}")).collect();
    let values: Vec<String> = (0..1_990).map(|it| it.to_string()).collect();
    db.execute_batch(&format!(
        "CREATE TABLE t ({}); INSERT INTO t VALUES ({})",
        columns.join(", "),
        values.join(", ")
    ))
    .unwrap();
    db.close().unwrap();
    let (report, db) = recovered(&path, &FileEncryption::None);
    super::is_whole(&report);
    assert_eq!(count(&db, "SELECT c1989 FROM t WHERE c0 = 0 AND c500 = 500"), 1_989);

    // The same file is recovered without its schema.
    zero(&path, 1);
    std::fs::remove_file(path.with_extension("out")).unwrap();
    let (report, db) = recovered(&path, &FileEncryption::None);
    assert_eq!(report.lost_and_found.unwrap().rows_count, 1, "{:?}", report.tables);
    assert_eq!(count(&db, "SELECT c1989 FROM lost_and_found WHERE c0 = 0"), 1_989);
}

/// Checks a schema row that is cut in the middle of a statement.
#[test]
fn a_virtual_table_without_a_statement_is_named_and_spoils_nothing() {
    let fixture = DoctorFixture::new();
    let path = fixture.at("a.db");
    let db = connect(&path, &FileEncryption::None);
    fill(&db, 10);
    db.execute_batch(
        "CREATE VIRTUAL TABLE docs USING fts5 (a, b); PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = substr(sql, 1, 38) WHERE name = 'docs'",
    )
    .unwrap();
    db.close().unwrap();
    let (report, db) = recovered(&path, &FileEncryption::None);
    let missing: Vec<&str> = report.missing.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(missing, ["docs"], "{report:#?}");
    assert!(report.sound, "{report:#?}");
    assert_eq!(count(&db, RIGHT), 10);
}

/// Writes random bytes to random places, and checks that each run ends with a new file or an error.
#[test]
fn whatever_is_in_a_file_it_ends() {
    let fixture = DoctorFixture::new();
    let whole = fixture.at("whole.db");
    make(&whole, &FileEncryption::None, "PRAGMA page_size = 1024");
    let content = std::fs::read(&whole).unwrap();
    let mut state = 1_u64;
    let mut random = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(state >> 33).unwrap() % end
    };
    let path = fixture.at("a.db");
    let out = path.with_extension("out");
    let mut saved = 0;
    for round in 0..60 {
        let mut bytes = content.clone();
        for _ in 0..=random(12) {
            // The bytes are single ones, or pages that start like pages of a tree.
            let size = if round % 2 == 0 { 1 } else { 1_024 };
            let start = random(bytes.len() / size) * size;
            for byte in &mut bytes[start..start + size] {
                *byte = u8::try_from(random(256)).unwrap();
            }
            if size > 1 {
                bytes[start] = [2, 5, 10, 13][random(4)];
                bytes[start + 3] = 0;
            }
        }
        std::fs::write(&path, bytes).unwrap();
        let options = RecoverOptions::default();
        match recover(&path, &FileEncryption::None, &out, options, |_| {}) {
            Ok(report) => saved += u32::from(report.saved_rows_count > 500),
            Err(error) => {
                assert!(matches!(error, Error::NothingRecovered { .. }), "round {round}: {error}");
            }
        }
        drop(std::fs::remove_file(&out));
    }
    assert!(saved > 50, "{saved}");
}
