//! Tests of migrations that `Databases::open` runs.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use engine::{Databases, Durability, EngineLimits, Error, Migration};

use crate::{encryption, fixture, number, options};

/// Environment variable of the children: the database's path.
const DATABASE: &str = "ENGINE_TEST_MIGRATIONS_DATABASE";

const ONE: Migration = Migration { version: 1, sql: "CREATE TABLE a (x)" };
const TWO: Migration = Migration { version: 2, sql: "ALTER TABLE a ADD COLUMN y" };
const BROKEN: Migration = Migration { version: 2, sql: "DROP TABLE a; SELECT nonsense" };

#[test]
fn a_file_is_migrated_forward_and_never_back() {
    let fixture = fixture();
    let path = fixture.directory.path().join("a.db");
    let open =
        |migrations| fixture.databases.open(&path, || options(|o| o.migrations = migrations));
    drop(open(&[ONE]).unwrap());
    fixture.databases.close(&path).unwrap();

    let error = open(&[ONE, BROKEN]).err().unwrap();
    assert!(matches!(error, Error::Sqlite { context: "migration", .. }), "{error}");
    assert_eq!(fixture.databases.open_count(), 0, "a failed open leaves its slot free");

    let database = open(&[ONE, TWO]).unwrap();
    database.read::<_, Error>(|db| Ok(db.prepare("SELECT x, y FROM a").map(drop)?)).unwrap();
    drop(database);
    fixture.databases.close(&path).unwrap();

    let error = open(&[ONE]).err().unwrap();
    assert!(matches!(error, Error::SchemaTooNew { found: 2, known: 1 }), "{error}");
    let (db, _) =
        engine::open_connection(&path, &encryption(), engine::Profile::SERVER, true, false)
            .unwrap();
    assert_eq!(crate::number(&db, "PRAGMA user_version"), 2);
}

#[test]
fn any_two_processes_may_open_a_fresh_database_at_once() {
    const PROCESSES: i64 = 4;
    for _ in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let start = |_| -> Child {
            let mut child = Command::new(std::env::current_exe().unwrap());
            let child = child.args(["migrations::child", "--exact", "--nocapture"]);
            // The harness's lines about its tests would appear between the lines of this process.
            child.env(DATABASE, &path).stdout(Stdio::null()).spawn().unwrap()
        };
        let children: Vec<_> = (0..PROCESSES).map(start).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        let (db, _) =
            engine::open_connection(&path, &encryption(), engine::Profile::SERVER, true, false)
                .unwrap();
        assert_eq!(number(&db, "SELECT count(*) FROM a"), PROCESSES);
        assert_eq!(number(&db, "PRAGMA auto_vacuum"), 2, "what only an empty file takes");
    }
}

/// One of the processes. Without its variable, as in an ordinary test run, it does nothing.
#[test]
fn child() {
    let Some(path) = std::env::var_os(DATABASE).map(PathBuf::from) else { return };
    let databases = Databases::start(EngineLimits::default()).unwrap();
    let options = || options(|options| options.migrations = &[ONE, TWO]);
    let database = databases.open(&path, options).unwrap();
    let insert = database.write::<_, Error, _>(Durability::Disk, |db| {
        Ok(db.execute("INSERT INTO a VALUES (1, 2)", []).map(drop)?)
    });
    insert.wait().unwrap();
}
