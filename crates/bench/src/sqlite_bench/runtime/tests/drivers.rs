//! Tests that every available driver follows Format 12: Python's with the Python of `make test`,
//! and those that `warren bench runtime --competitors bench/competitors --setup` built in this
//! repository.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::competitors::process::{self, DriverProgram};
use crate::sqlite_bench::plan::LabPlan as PlanOfFile;
use crate::sqlite_bench::runtime::place::find;
use crate::sqlite_bench::runtime::*;

const ROWS: i64 = 10;
const SEED: u32 = 4_294_967_295;
const BODY_BYTES: usize = 8;
/// A time limit longer than the work of any test.
const LONG: Duration = Duration::from_secs(30);

static DRIVERS: LazyLock<Vec<LabDriver>> = LazyLock::new(|| {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let competitors = root.join("bench/competitors");
    let built = find(
        &DriverFolders::in_repository(competitors.clone()),
        MissingPolicy::Absent(SETUP),
        &ProgressBar::hidden(),
    );
    let python = python();
    let of_python = ["apsw-sqlite3mc", "python-sqlite3"].map(|name| {
        let arguments = vec![competitors.join(name).join("lab.py")];
        LabDriver::start(DriverProgram { program: python.clone().into(), arguments }).unwrap()
    });
    let of_node = built.present.into_iter().filter(|driver| driver.about.runtime.contains("node"));
    of_python.into_iter().chain(of_node).collect()
});

/// Returns the Python that has the packages of `tests/requirements.txt`.
fn python() -> OsString {
    let venv = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/venv/bin/python");
    let python = std::env::var_os("WARREN_PYTHON").unwrap_or_else(|| venv.into());
    assert!(Path::new(&python).is_file(), "`make test` installs it; WARREN_PYTHON names another");
    python
}

/// A file with `ROWS` rows.
struct DriverFixture {
    _folder: TempDir,
    path: PathBuf,
    cipher: Option<&'static str>,
}

impl DriverFixture {
    fn new(cipher: Option<&'static str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lab.sqlite");
        let fixture = Self { _folder: folder, path, cipher };
        let db = fixture.open();
        db.execute_batch(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, number INTEGER, day NUMERIC, body BLOB);
             CREATE TABLE also (id INTEGER PRIMARY KEY, of INTEGER)",
        )
        .unwrap();
        for id in 1..=ROWS {
            db.execute("INSERT INTO t VALUES (?, 0, NULL, x'')", [id]).unwrap();
        }
        fixture
    }

    /// Opens the file like Warren does.
    fn open(&self) -> Connection {
        let db = Connection::open(&self.path).unwrap();
        if let Some(cipher) = self.cipher {
            execute_plan::unlock(&db, cipher, KEY).unwrap();
        }
        db
    }

    /// Returns a plan. Each step has the names of its operations, the operations per transaction,
    /// and its longest time.
    fn plan(&self, steps: &[(&[&str], usize, f64)]) -> PlanOfFile {
        let step = |(cycle, transaction, seconds): &(&[&str], usize, f64)| {
            json!({
                "name": cycle.join(" "), "cycle": cycle, "transaction": transaction,
                "warmup_seconds": 0.0, "seconds": seconds,
            })
        };
        let plan = json!({
            "database": self.path, "cipher": self.cipher, "key": self.cipher.map(|_| KEY),
            "settings": [["busy_timeout", "1234"], ["journal_mode", "WAL"],
                         ["synchronous", "NORMAL"], ["cache_size", "-4000"]],
            "rows": ROWS, "body_bytes": BODY_BYTES, "seed": SEED,
            "samples": { "day": [1, null, "x", 2.5] },
            "operations": {
                "insert": [{ "sql": "INSERT INTO t VALUES (?, ?, ?, ?)",
                             "bind": ["new", "row", "day", "body"] },
                           { "sql": "INSERT INTO also VALUES (?, ?)", "bind": ["new", "row"] }],
                "count": [{ "sql": "UPDATE t SET number = number + 1 WHERE id = 1", "bind": [] },
                          { "sql": "SELECT * FROM t WHERE id = ?", "bind": ["row"] }],
                "delete": [{ "sql": "DELETE FROM t WHERE id = ?", "bind": ["last"] },
                           { "sql": "DELETE FROM also WHERE id = ?", "bind": ["last"] }],
            },
            "steps": steps.iter().map(step).collect::<Vec<_>>(),
            "clean": ["UPDATE t SET day = 'clean' WHERE id = 2"],
        });
        serde_json::from_value(plan).unwrap()
    }

    /// Returns all inserted rows as text, ordered by id.
    fn inserted(&self) -> Vec<String> {
        let db = self.open();
        let sql = "SELECT concat_ws(',', t.id, number, typeof(day), day, hex(body), of) \
                   FROM t JOIN also ON also.id = t.id WHERE t.id > ? ORDER BY t.id";
        let mut rows = db.prepare(sql).unwrap();
        let rows = rows.query_map([ROWS], |row| row.get(0)).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    }

    fn number<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        self.open().query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

/// Converts a count to SQLite's integer type.
fn signed(count: u64) -> i64 {
    count.try_into().unwrap()
}

fn check(of: impl Fn(&LabDriver)) {
    assert!(DRIVERS.len() >= 2);
    for driver in DRIVERS.iter() {
        // The name is shown if the check fails.
        println!("{}", driver.about);
        of(driver);
    }
}

#[test]
fn a_driver_does_what_warren_itself_does() {
    check(|driver| {
        let (ours, theirs) = (DriverFixture::new(None), DriverFixture::new(None));
        let plan = |fixture: &DriverFixture| fixture.plan(&[(&["count", "insert"], 101, 0.01)]);
        execute_plan::execute_plan(&plan(&ours)).unwrap();
        let answer = driver.run(&plan(&theirs)).unwrap();
        let [step] = &answer.steps[..] else { panic!("a step") };
        assert_eq!((step.name.as_str(), step.operations % 101), ("count insert", 0));
        assert!(step.seconds >= 0.01 && step.cpu_seconds.is_some_and(|cpu| cpu > 0.0), "{step:?}");
        assert!(step.slowest_us > 0.0 && step.slowest_us <= step.seconds * 1e6, "{step:?}");

        let inserted = step.operations / 2;
        let counted = theirs.number::<i64>("SELECT number FROM t WHERE id = 1");
        assert_eq!(counted, signed(step.operations - inserted));
        assert_eq!(theirs.number::<String>("SELECT day FROM t WHERE id = 2"), "clean");

        let (ours, theirs) = (ours.inserted(), theirs.inserted());
        assert_eq!(theirs.len() as u64, inserted);
        let both = ours.len().min(theirs.len());
        assert!(both >= 50, "{both}");
        assert_eq!(theirs[..both], ours[..both]);
    });
}

#[test]
fn a_step_ends_when_nothing_is_left_to_take() {
    check(|driver| {
        let fixture = DriverFixture::new(None);
        let (first, second): (&[_], &[_]) = (&["insert"], &["count", "delete"]);
        let plan = fixture.plan(&[(first, 10, 0.01), (second, 7, 60.0), (second, 1, 60.0)]);
        let answer = driver.run(&plan).unwrap();
        let [inserted, deleted, nothing] = &answer.steps[..] else { panic!("three steps") };
        // The step ends in the middle of the last pair: `count` ran, and `delete` did not.
        assert_eq!(deleted.operations, 2 * inserted.operations + 1);
        assert!(nothing.operations <= 1, "{nothing:?}");
        assert_eq!(fixture.number::<i64>("SELECT count(*) FROM t"), ROWS);
        assert_eq!(fixture.number::<i64>("SELECT max(id) FROM t"), ROWS);
        assert_eq!(fixture.number::<i64>("SELECT count(*) FROM also"), 0);
    });
}

#[test]
fn settings_are_read_back() {
    check(|driver| {
        let fixture = DriverFixture::new(None);
        let settings = driver.run(&fixture.plan(&[])).unwrap().settings;
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
            let fixture = DriverFixture::new(Some(cipher));
            let plan = fixture.plan(&[(&["insert", "count"], 1, 0.01)]);
            let ran = driver.run(&plan);
            if !driver.about.ciphers.iter().any(|has| has == cipher) {
                let error = format!("{:#}", ran.unwrap_err());
                assert!(error.contains(&format!("it has no {cipher}")), "{error}");
                return;
            }
            let inserted = ran.unwrap().steps[0].operations.div_ceil(2);
            let rows = ROWS + signed(inserted);
            assert_eq!(fixture.number::<i64>("SELECT count(*) FROM t"), rows);
            assert_eq!(fixture.number::<String>("PRAGMA integrity_check"), "ok");
            assert!(!std::fs::read(&fixture.path).unwrap().starts_with(b"SQLite format 3"));

            let mut wrong = plan;
            wrong.key = Some(KEY.replace('0', "1"));
            driver.run(&wrong).unwrap_err();
        });
    }
}

#[test]
fn what_goes_wrong_is_a_line_of_json_and_a_status() {
    check(|driver| {
        let fixture = DriverFixture::new(None);
        let plan = fixture.plan(&[(&["count"], 1, 0.01)]);
        let plan = serde_json::to_value(plan).unwrap();
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
