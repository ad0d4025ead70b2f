//! Every driver that can be had does what Format 12 says: Python's with the Python of `make test`,
//! and what `warren bench runtime --setup` built on this machine.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::rivals::process::{self, Program};

const ROWS: i64 = 10;
const SEED: u32 = 4_294_967_295;
const BODY_BYTES: usize = 8;
const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
/// Longer than any test works.
const LONG: Duration = Duration::from_secs(30);

static DRIVERS: LazyLock<Vec<Driver>> = LazyLock::new(|| {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let rivals = root.join("bench/rivals");
    let built = find(&rivals, &root.join("target/rivals"), Missing::Absent, &ProgressBar::hidden());
    let python = python();
    let of_python = ["apsw-sqlite3mc", "python-sqlite3"].map(|name| {
        let arguments = vec![rivals.join(name).join("lab.py")];
        Driver::start(Program { program: python.clone().into(), arguments }).unwrap()
    });
    of_python.into_iter().chain(built.present).collect()
});

/// With the packages of `tests/requirements.txt`.
fn python() -> OsString {
    let venv = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/venv/bin/python");
    let python = std::env::var_os("WARREN_PYTHON").unwrap_or_else(|| venv.into());
    assert!(Path::new(&python).is_file(), "`make test` installs it; WARREN_PYTHON names another");
    python
}

/// A file with `ROWS` rows.
struct Bed {
    _folder: TempDir,
    path: PathBuf,
    cipher: Option<&'static str>,
}

impl Bed {
    fn new(cipher: Option<&'static str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lab.sqlite");
        let bed = Self { _folder: folder, path, cipher };
        let db = bed.open();
        db.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, number INTEGER, day, body BLOB)")
            .unwrap();
        for id in 1..=ROWS {
            db.execute("INSERT INTO t VALUES (?, 0, NULL, x'')", [id]).unwrap();
        }
        bed
    }

    fn open(&self) -> Connection {
        let db = Connection::open(&self.path).unwrap();
        if let Some(cipher) = self.cipher {
            db.pragma_update(None, "cipher", cipher).unwrap();
            db.pragma_update(None, "hexkey", format!("7261773a{KEY}")).unwrap();
        }
        db
    }

    /// Names of the operations of each step, operations of a transaction, the longest time.
    fn plan(&self, steps: &[(&[&str], usize, f64)]) -> Value {
        let step = |(cycle, transaction, seconds): &(&[&str], usize, f64)| {
            json!({
                "name": cycle.join(" "), "cycle": cycle, "transaction": transaction,
                "warmup_seconds": 0.0, "seconds": seconds,
            })
        };
        json!({
            "database": self.path, "cipher": self.cipher, "key": self.cipher.map(|_| KEY),
            "settings": [["busy_timeout", "1234"], ["journal_mode", "WAL"],
                         ["synchronous", "NORMAL"], ["cache_size", "-4000"]],
            "rows": ROWS, "body_bytes": BODY_BYTES, "seed": SEED,
            "samples": { "day": [1, null, "x", 2.5] },
            "operations": {
                "insert": [{ "sql": "INSERT INTO t VALUES (?, ?, ?, ?)",
                             "bind": ["new", "row", "day", "body"] }],
                "count": [{ "sql": "UPDATE t SET number = number + 1 WHERE id = 1", "bind": [] },
                          { "sql": "SELECT * FROM t WHERE id = ?", "bind": ["row"] }],
                "delete": [{ "sql": "DELETE FROM t WHERE id = ?", "bind": ["last"] }],
            },
            "steps": steps.iter().map(step).collect::<Vec<_>>(),
            "clean": ["UPDATE t SET day = 'clean' WHERE id = 2"],
        })
    }

    fn number<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        self.open().query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

/// The random numbers of Format 12.
fn random(mut state: u32) -> impl Iterator<Item = u32> {
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    })
}

/// As SQLite has it.
fn signed(count: u64) -> i64 {
    count.try_into().unwrap()
}

fn check(of: impl Fn(&Driver)) {
    assert!(DRIVERS.len() >= 2);
    for driver in DRIVERS.iter() {
        // Shown if it fails.
        println!("{}", driver.about);
        of(driver);
    }
}

#[test]
fn a_driver_inserts_the_values_that_the_seed_gives() {
    check(|driver| {
        let bed = Bed::new(None);
        let plan = bed.plan(&[(&["insert"], 1, 0.01), (&["count", "insert"], 7, 0.01)]);
        let answer = driver.run(&plan, LONG).unwrap();
        let [single, mixed] = &answer.steps[..] else { panic!("two steps") };
        assert_eq!((single.name.as_str(), mixed.name.as_str()), ("insert", "count insert"));
        assert!(single.operations > 0 && mixed.operations % 7 == 0, "{answer:?}");
        for step in &answer.steps {
            assert!(step.seconds >= 0.01 && step.cpu_seconds > 0.0, "{answer:?}");
            assert!(step.slowest_us > 0.0 && step.slowest_us <= step.seconds * 1e6, "{answer:?}");
        }
        // The cycle begins with `count`.
        let inserted = single.operations + mixed.operations / 2;
        let counted = mixed.operations - mixed.operations / 2;
        assert_eq!(bed.number::<i64>("SELECT number FROM t WHERE id = 1"), signed(counted));
        assert_eq!(bed.number::<String>("SELECT day FROM t WHERE id = 2"), "clean");

        let db = bed.open();
        let mut rows = db.prepare("SELECT * FROM t WHERE id > ? ORDER BY id").unwrap();
        let mut rows = rows.query([ROWS]).unwrap();
        let mut numbers = random(SEED);
        let body: Vec<u8> =
            random(1).take(BODY_BYTES).map(|number| number.to_le_bytes()[0]).collect();
        for index in 0..inserted {
            if index >= single.operations {
                // What `count` binds.
                numbers.next().unwrap();
            }
            let row = rows.next().unwrap().unwrap();
            assert_eq!(row.get::<_, i64>(0).unwrap(), ROWS + 1 + signed(index));
            let expected = 1 + i64::from(numbers.next().unwrap()) % ROWS;
            assert_eq!(row.get::<_, i64>(1).unwrap(), expected, "of row {index}");
            let day: rusqlite::types::Value = row.get(2).unwrap();
            match (numbers.next().unwrap() % 4, &day) {
                (0, rusqlite::types::Value::Integer(1)) | (1, rusqlite::types::Value::Null) => {}
                (0, rusqlite::types::Value::Real(one)) if one.to_bits() == 1f64.to_bits() => {}
                (2, rusqlite::types::Value::Text(text)) if text == "x" => {}
                (3, rusqlite::types::Value::Real(r)) if r.to_bits() == 2.5f64.to_bits() => {}
                other => panic!("drew {other:?} for row {index}"),
            }
            assert_eq!(row.get::<_, Vec<u8>>(3).unwrap(), body);
        }
        assert!(rows.next().unwrap().is_none());
    });
}

#[test]
fn a_step_ends_when_nothing_is_left_to_take() {
    check(|driver| {
        let bed = Bed::new(None);
        let (first, second): (&[_], &[_]) = (&["insert"], &["count", "delete"]);
        let plan = bed.plan(&[(first, 10, 0.01), (second, 7, 60.0), (second, 1, 60.0)]);
        let answer = driver.run(&plan, LONG).unwrap();
        let [inserted, deleted, nothing] = &answer.steps[..] else { panic!("three steps") };
        // Of the last pair, `count` is done and `delete` is not.
        assert_eq!(deleted.operations, 2 * inserted.operations + 1);
        assert!(nothing.operations <= 1, "{nothing:?}");
        assert_eq!(bed.number::<i64>("SELECT count(*) FROM t"), ROWS);
        assert_eq!(bed.number::<i64>("SELECT max(id) FROM t"), ROWS);
    });
}

#[test]
fn settings_are_read_back() {
    check(|driver| {
        let bed = Bed::new(None);
        let settings = driver.run(&bed.plan(&[]), LONG).unwrap().settings;
        let expected = json!({
            "busy_timeout": 1234, "journal_mode": "wal", "synchronous": 1, "cache_size": -4000,
        });
        assert_eq!(serde_json::to_value(settings).unwrap(), expected);
    });
}

#[test]
fn an_encrypted_file_is_written_with_its_key_and_stays_readable() {
    for cipher in ["chacha20", "aes256cbc", "aegis"] {
        check(|driver| {
            let bed = Bed::new(Some(cipher));
            let plan = bed.plan(&[(&["insert", "count"], 1, 0.01)]);
            let ran = driver.run(&plan, LONG);
            if !driver.about.ciphers.iter().any(|has| has == cipher) {
                let error = format!("{:#}", ran.unwrap_err());
                assert!(error.contains(&format!("it has no {cipher}")), "{error}");
                return;
            }
            let inserted = ran.unwrap().steps[0].operations.div_ceil(2);
            let rows = ROWS + signed(inserted);
            assert_eq!(bed.number::<i64>("SELECT count(*) FROM t"), rows);
            assert_eq!(bed.number::<String>("PRAGMA integrity_check"), "ok");
            assert!(!std::fs::read(&bed.path).unwrap().starts_with(b"SQLite format 3"));

            let mut wrong = plan;
            wrong["key"] = json!(KEY.replace('0', "1"));
            driver.run(&wrong, LONG).unwrap_err();
        });
    }
}

#[test]
fn what_goes_wrong_is_a_line_of_json_and_a_status() {
    check(|driver| {
        let bed = Bed::new(None);
        let plan = bed.plan(&[(&["count"], 1, 0.01)]);
        let changed = |pointer: &str, value: Value| {
            let mut plan = plan.clone();
            *plan.pointer_mut(pointer).unwrap() = value;
            plan.to_string()
        };
        for (input, expected) in [
            (changed("/database", json!("no/such.sqlite")), "no/such.sqlite"),
            (changed("/operations/count/0/sql", json!("SELECT * FROM none")), "no such table"),
            (changed("/operations/count/1/bind", json!(["nothing"])), "nothing"),
            (changed("/steps/0/cycle", json!(["nothing"])), "nothing"),
            ("{".to_owned(), ""),
        ] {
            let output = process::run(&mut driver.program.command(), &input, LONG).unwrap();
            let lines: Vec<&str> = output.stdout.lines().collect();
            let [line] = lines[..] else { panic!("{lines:?}") };
            let answer: Value = serde_json::from_str(line).unwrap();
            assert!(answer["error"].as_str().unwrap().contains(expected), "{line}");
            output.check().unwrap_err();
        }
    });
}
