//! Migrates schemas: numbered SQL scripts bring a new file, and one of any older version that is
//! still supported, to the newest version.
//!
//! The version is SQLite's `user_version`. Each migration and its version number commit in one
//! transaction, so a file is always at exactly one version.
//!
//! # Invariants
//! - Versions ascend strictly (asserted).
//! - A file from a later program is refused and not changed; so is a file that is older than the
//!   first migration.
//! - If two processes migrate one file at the same time, the second finds the version that the
//!   first has left: the version is read in the transaction that changes it.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::{Error, Result, sqlite};

/// A step in the history of a schema.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// The `user_version` that the file has afterwards; versions ascend from 1.
    pub version: u32,
    /// The statements of the step, without BEGIN and COMMIT.
    pub sql: &'static str,
}

/// Brings the file to the last version in `migrations`. If that is empty, the caller manages
/// versions.
pub(crate) fn migrate(db: &mut Connection, migrations: &[Migration]) -> Result<()> {
    assert!(
        migrations.iter().map(|migration| migration.version).is_sorted_by(|a, b| a < b),
        "migration versions ascend"
    );
    let (Some(first), Some(last)) = (migrations.first(), migrations.last()) else { return Ok(()) };
    let before = version(db).map_err(sqlite("user_version"))?;
    if before > 0 && before < first.version {
        return Err(Error::SchemaTooOld { found: before, oldest: first.version });
    }
    for migration in migrations.iter().filter(|migration| migration.version > before) {
        apply(db, migration).map_err(sqlite("migration"))?;
    }
    let found = version(db).map_err(sqlite("user_version"))?;
    if found > last.version {
        return Err(Error::SchemaTooNew { found, known: last.version });
    }
    Ok(())
}

/// Applies one migration, unless another process has already done so.
fn apply(db: &mut Connection, migration: &Migration) -> rusqlite::Result<()> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if version(&tx)? < migration.version {
        tx.execute_batch(migration.sql)?;
        tx.pragma_update(None, "user_version", migration.version)?;
    }
    tx.commit()
}

fn version(db: &Connection) -> rusqlite::Result<u32> {
    db.query_row("PRAGMA user_version", [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Migration =
        Migration { version: 1, sql: "CREATE TABLE a (x); INSERT INTO a VALUES (1);" };
    const TWO: Migration = Migration { version: 2, sql: "ALTER TABLE a ADD COLUMN y DEFAULT 2;" };
    const BROKEN: Migration = Migration { version: 3, sql: "DROP TABLE a; SELECT nonsense;" };

    fn sum(db: &Connection) -> i64 {
        db.query_row("SELECT sum(x + y) FROM a", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn an_older_file_gets_only_what_it_lacks() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, &[ONE]).unwrap();
        migrate(&mut db, &[ONE, TWO]).unwrap();
        assert_eq!((version(&db).unwrap(), sum(&db)), (2, 3));
        migrate(&mut db, &[ONE, TWO]).unwrap();
        assert_eq!((version(&db).unwrap(), sum(&db)), (2, 3));
    }

    #[test]
    fn a_failing_migration_leaves_the_version_before_it() {
        let mut db = Connection::open_in_memory().unwrap();
        let error = migrate(&mut db, &[ONE, TWO, BROKEN]).unwrap_err();
        assert!(matches!(error, Error::Sqlite { context: "migration", .. }), "{error}");
        assert_eq!((version(&db).unwrap(), sum(&db)), (2, 3));
    }

    #[test]
    fn a_file_from_a_later_program_is_refused() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, &[ONE, TWO]).unwrap();
        let error = migrate(&mut db, &[ONE]).unwrap_err();
        assert!(matches!(error, Error::SchemaTooNew { found: 2, known: 1 }), "{error}");
    }

    #[test]
    fn a_file_older_than_the_first_migration_is_refused_and_stays() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, &[ONE]).unwrap();
        let error = migrate(&mut db, &[TWO]).unwrap_err();
        assert!(matches!(error, Error::SchemaTooOld { found: 1, oldest: 2 }), "{error}");
        let expected = "schema version 1 is no longer supported (oldest supported: 2)";
        assert_eq!((error.to_string().as_str(), version(&db).unwrap()), (expected, 1));
    }

    #[test]
    #[should_panic(expected = "migration versions ascend")]
    fn versions_out_of_order_are_a_bug() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, &[TWO, ONE]).unwrap();
    }
}
