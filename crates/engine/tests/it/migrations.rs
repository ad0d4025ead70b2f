//! Migrations through `Databases::open`.

use engine::{Error, Migration};

use crate::{encryption, fixture, options};

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
