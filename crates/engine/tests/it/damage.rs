//! Tests of damaged pages, which do not read back as they were written: how they are found, and
//! which rows a repair keeps.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, thread};

use engine::{
    DamagePolicy, Database, Durability, EngineLimits, Error, FileEncryption, MaintenanceRun,
    Migration,
};

use crate::{EngineFixture, encryption, fixture_with};

const ROWS: i64 = 400;
const PAGE_BYTES: usize = 4_096;
/// Number of attempts; together they take up to a minute, because the machine may be busy.
const ATTEMPTS_MAX: usize = 6_000;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(10);

const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT UNIQUE) STRICT;
          CREATE TABLE named (name TEXT PRIMARY KEY, x INTEGER) STRICT, WITHOUT ROWID;
          CREATE TABLE sum (id INTEGER PRIMARY KEY, count INTEGER NOT NULL) STRICT;
          INSERT INTO sum VALUES (1, 0)",
}];

fn repair() -> DamagePolicy {
    DamagePolicy::Repair(Arc::new(|db| {
        db.execute("UPDATE sum SET count = (SELECT count(*) FROM t)", [])?;
        Ok(())
    }))
}

fn scrubbing(scrub_time: Duration) -> EngineFixture {
    fixture_with(EngineLimits {
        workers_count: 2,
        idle_time: Duration::MAX,
        scrub_time,
        ..EngineLimits::default()
    })
}

fn open(
    fixture: &EngineFixture,
    damage: DamagePolicy,
    encryption: FileEncryption,
) -> Arc<Database> {
    fixture.open_with("a.db", |options| {
        options.encryption = encryption;
        options.migrations = MIGRATIONS;
        options.damage = damage;
    })
}

/// Writes rows, some of them with pages of their own, and leaves free pages.
fn fill(database: &Database) {
    let fill = database.write::<_, Error, _>(Durability::Os, |db| {
        let numbers =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)";
        let rows = format!(
            "INSERT INTO t {numbers} SELECT i, printf('%08d', i) || hex(zeroblob(
                 CASE WHEN i % 50 = 0 THEN 6000 ELSE 100 END)) FROM n"
        );
        db.execute(&rows, [ROWS])?;
        let names = "INSERT INTO named {numbers} SELECT printf('name %d', i), i FROM n";
        db.execute(&names.replace("{numbers}", numbers), [ROWS])?;
        db.execute("CREATE TABLE gone AS SELECT * FROM t", [])?;
        db.execute("DROP TABLE gone", [])?;
        db.execute("UPDATE sum SET count = ?1", [ROWS])?;
        Ok(())
    });
    fill.wait().unwrap();
}

/// Counts the correct rows and names, and returns them with the count that `repair` restores.
fn counts(database: &Database) -> (i64, i64, i64) {
    let read = database.read::<_, Error>(|db| {
        let check: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        assert_eq!(check, "ok");
        let sql = "SELECT (SELECT count(*) FROM t WHERE x LIKE printf('%08d', id) || '0%'),
                          (SELECT count(*) FROM named WHERE name = printf('name %d', x)),
                          (SELECT count FROM sum)";
        Ok(db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?)
    });
    read.unwrap()
}

/// Overwrites a page with noise, as a disk might. Another process does it: in this one, closing the
/// file would release the locks that the connections hold.
fn spoil(path: &Path, page: usize) {
    let noise: Vec<u8> =
        (0..PAGE_BYTES).map(|place| (place * 7 % 251).try_into().unwrap()).collect();
    let mut dd = Command::new("dd");
    dd.arg(format!("of={}", path.display())).arg(format!("bs={}", noise.len()));
    dd.arg(format!("seek={}", page - 1)).args(["conv=notrunc", "status=none"]);
    let mut child = dd.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&noise).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Returns the number of a page with rows of `t`.
fn page_of_rows(database: &Database) -> usize {
    let sql = "SELECT max(pageno) FROM dbstat WHERE name = 't' AND pagetype = 'leaf'";
    let page = database.read::<_, Error>(|db| Ok(crate::number(db, sql))).unwrap();
    page.try_into().unwrap()
}

fn pages_count(path: &Path) -> usize {
    usize::try_from(path.metadata().unwrap().len()).unwrap() / PAGE_BYTES
}

fn damaged(path: &Path) -> PathBuf {
    engine::quarantine_path(path)
}

/// Waits until a damaged file was quarantined and the database accepts writes.
fn wait_for_repair(database: &Database) {
    let is_repaired = (0..ATTEMPTS_MAX).any(|_| {
        thread::park_timeout(ATTEMPT_INTERVAL);
        damaged(database.path()).exists() && !database.health().is_poisoned
    });
    assert!(is_repaired, "{:?}", database.poison_cause());
}

#[test]
fn scrubbing_finds_damage_and_the_rows_that_can_be_read_are_carried_over() {
    let fixture = scrubbing(Duration::ZERO);
    let database = open(&fixture, repair(), encryption());
    fill(&database);
    let path = database.path().to_owned();
    assert_eq!(database.health().page_bytes, PAGE_BYTES as u64);
    // The first run starts its count and moves everything into the file; the next one reads all of
    // it.
    maintain_until(&database, |done| {
        let count = done.unwrap().pages_scrubbed;
        (count.abs_diff(pages_count(&path) as u64) <= 1).then_some(())
    });
    let page = page_of_rows(&database);
    spoil(&path, page);
    let spoilt = fs::read(&path).unwrap();
    let error = maintain_until(&database, Result::err);
    assert!(error.to_string().contains(&format!("page {page} of")), "{error}");
    assert!(database.health().is_damaged);
    wait_for_repair(&database);
    assert!(!database.health().is_damaged);
    assert_eq!(fs::read(damaged(&path)).unwrap(), spoilt);
    let (rows, names, count) = counts(&database);
    assert_eq!(count, rows, "the function was called");
    assert!((ROWS - 50..ROWS).contains(&rows), "{rows} rows");
    assert_eq!(names, ROWS);
    let done = database.health().maintenance;
    assert_eq!((done.damaged, done.repaired), (1, 1));
    assert_eq!(fixture.databases.maintenance().repaired, 1);
    // The database works like any other.
    fill_again(&database);
    assert_eq!(counts(&database), (ROWS, ROWS, rows));
    assert_eq!(database.maintain().unwrap().pages_scrubbed, 0, "it is new");
    maintain_until(&database, |done| (done.unwrap().pages_scrubbed > 0).then_some(()));
}

/// Runs maintenance until `wanted` returns a value. Maintenance gives way to all other work of the
/// database, so on a busy machine it takes several runs.
fn maintain_until<T>(
    database: &Database,
    mut wanted: impl FnMut(Result<MaintenanceRun, Error>) -> Option<T>,
) -> T {
    let found = (0..ATTEMPTS_MAX).find_map(|_| {
        let found = wanted(database.maintain());
        if found.is_none() {
            thread::park_timeout(ATTEMPT_INTERVAL);
        }
        found
    });
    found.expect("maintenance has the database for itself at times")
}

fn fill_again(database: &Database) {
    let fill = database.write::<_, Error, _>(Durability::Disk, |db| {
        db.execute(
            "INSERT OR IGNORE INTO t WITH RECURSIVE n(i) AS
                 (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
             SELECT i, printf('%08d', i) || '0' FROM n",
            [ROWS],
        )?;
        Ok(())
    });
    fill.wait().unwrap();
}

#[test]
fn whichever_page_is_damaged_a_database_comes_back_by_itself() {
    let fixture = scrubbing(Duration::MAX);
    let database = open(&fixture, repair(), encryption());
    fill(&database);
    let path = database.path().to_owned();
    fixture.databases.close(&path).unwrap();
    drop(database);
    let whole = fs::read(&path).unwrap();
    let (mut free_count, mut lost_all_count) = (0, 0);
    for page in 1..=pages_count(&path) {
        fs::write(&path, &whole).unwrap();
        spoil(&path, page);
        let database = open(&fixture, repair(), encryption());
        // The reads are those of a client's requests, until one of them meets the damage.
        let read = database.read::<_, Error>(|db| {
            let sql = "SELECT count(*) + total(length(x)) FROM t NOT INDEXED";
            db.query_row(sql, [], |row| row.get::<_, f64>(0))?;
            let sql = "SELECT count(*) FROM t INDEXED BY sqlite_autoindex_t_1 WHERE x > ''";
            db.query_row(sql, [], |row| row.get::<_, i64>(0))?;
            db.query_row("SELECT count(*) FROM named", [], |row| row.get::<_, i64>(0))?;
            Ok(db.query_row("SELECT count(*) FROM sum", [], |row| row.get::<_, i64>(0))?)
        });
        if let Err(error) = read {
            assert!(error.is_temporary(), "page {page}: {error}");
            wait_for_repair(&database);
        } else if !damaged(&path).exists() {
            // No request reads this page; only a full scan finds the damage.
            let found = database.repair_damage().unwrap();
            // On a busy machine, maintenance may have found and repaired it first.
            assert!(found.is_none() || damaged(&path).exists());
            free_count += usize::from(!damaged(&path).exists());
        }
        let (rows, names, count) = counts(&database);
        if damaged(&path).exists() {
            assert_eq!(count, rows, "page {page}");
        }
        // A damaged leaf loses its own rows, and a damaged root those of all its leaves.
        for count in [rows, names] {
            lost_all_count += usize::from(count == 0);
            assert!(count == 0 || count > ROWS / 4, "page {page}: {rows} rows, {names} names");
        }
        fixture.databases.close(&path).unwrap();
        if damaged(&path).exists() {
            fs::remove_file(damaged(&path)).unwrap();
        }
    }
    assert!(free_count > 10, "{free_count} pages hold nothing");
    assert_eq!(lost_all_count, 4, "of the first page both tables, and of each root one");
}

#[test]
fn a_page_that_holds_nothing_is_not_damaged() {
    let fixture = scrubbing(Duration::ZERO);
    let database = open(&fixture, repair(), encryption());
    fill(&database);
    database.maintain().unwrap();
    let path = database.path().to_owned();
    // The last page is a leaf of the freelist; only the trunk page before it holds page numbers.
    assert!(database.health().free_pages > 2);
    spoil(&path, pages_count(&path));
    database.maintain().unwrap();
    assert!(!database.health().is_damaged);
    assert!(!damaged(&path).exists());
}

#[test]
fn a_file_that_does_not_open_is_put_aside_once() {
    let fixture = scrubbing(Duration::MAX);
    let database = open(&fixture, repair(), encryption());
    fill(&database);
    let path = database.path().to_owned();
    fixture.databases.close(&path).unwrap();
    drop(database);
    let garbage = vec![0x5a; 3 * PAGE_BYTES];
    fs::write(&path, &garbage).unwrap();
    let database = open(&fixture, repair(), encryption());
    assert_eq!(counts(&database), (0, 0, 0));
    assert_eq!(fs::read(damaged(&path)).unwrap(), garbage);
    fixture.databases.close(&path).unwrap();
    drop(database);
    // If a file was quarantined before, a person should check the disk first.
    fs::write(&path, &garbage).unwrap();
    let again = fixture.databases.open(&path, || {
        crate::options(|options| {
            options.migrations = MIGRATIONS;
            options.damage = repair();
        })
    });
    assert!(matches!(again, Err(Error::AlreadyQuarantined { .. })));
    assert_eq!(fs::read(&path).unwrap(), garbage);
}

#[test]
fn without_a_repair_damage_is_told_and_writes_go_on() {
    let fixture = scrubbing(Duration::ZERO);
    let database = open(&fixture, DamagePolicy::Report, FileEncryption::None);
    fill(&database);
    database.maintain().unwrap();
    let path = database.path().to_owned();
    spoil(&path, page_of_rows(&database));
    // On a busy machine, one run does not reach the damaged page.
    while !database.health().is_damaged {
        drop(database.maintain());
    }
    assert!(!database.health().is_poisoned);
    assert!(!damaged(&path).exists());
    let write = database.write::<_, Error, _>(Durability::Disk, |db| {
        Ok(db.execute("UPDATE sum SET count = 0", [])?)
    });
    assert_eq!(write.wait().unwrap(), 1);
}

#[test]
fn how_far_scrubbing_has_come_is_kept_in_the_file() {
    const MONTH: Duration = Duration::from_hours(30 * 24);
    let fixture = scrubbing(MONTH);
    let database = open(&fixture, repair(), encryption());
    fill(&database);
    let has_progress = || {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'scrub_progress'";
        database.read::<_, Error>(|db| Ok(crate::number(db, sql))).unwrap() == 1
    };
    maintain_until(&database, |done| {
        assert_eq!(done.unwrap().pages_scrubbed, 0, "new");
        has_progress().then_some(())
    });
    let path = database.path().to_owned();
    let pages = pages_count(&path) as u64;
    // The test moves the last scrub ten days back, and to page 5.
    let set = database.write::<_, Error, _>(Durability::Os, |db| {
        let sql = "UPDATE scrub_progress
                   SET next_page = 5, scrubbed_until_ms = scrubbed_until_ms - 864000000";
        Ok(db.execute(sql, [])?)
    });
    assert_eq!(set.wait().unwrap(), 1);
    fixture.databases.close(&path).unwrap();
    drop(database);
    let database = open(&fixture, repair(), encryption());
    let mut scrubbed = 0;
    maintain_until(&database, |done| {
        scrubbed += done.unwrap().pages_scrubbed;
        (scrubbed.abs_diff(pages.div_ceil(3)) <= 1).then_some(())
    });
    assert_eq!(database.maintain().unwrap().pages_scrubbed, 0);
    let next = database.read::<_, Error>(|db| {
        let sql = "SELECT next_page FROM scrub_progress";
        Ok(db.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(next.unwrap().cast_unsigned(), 5 + scrubbed);
}
