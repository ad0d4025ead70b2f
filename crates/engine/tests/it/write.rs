//! Tests of batches: isolation, limits, durability.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use engine::{Database, Durability, Error, WriteFuture};
use rusqlite::Connection;

use crate::{EngineFixture, fixture, hold, insert, number, sum, wait_for_all};

/// Queues `transaction` between inserts of 1 and 4 in one batch. Returns the results of the three.
fn between<T: Send + 'static>(
    fixture: &EngineFixture,
    transaction: impl Fn(&Connection) -> Result<T, Error> + Send + 'static,
) -> (Arc<Database>, [Result<(), Error>; 3]) {
    let database = fixture.open("a.db");
    let release = hold(&database);
    let first = insert(&database, 1);
    let middle = database.write(Durability::Os, move |db| transaction(db).map(drop));
    let last = insert(&database, 4);
    drop(release);
    let results = [first.wait(), middle.wait(), last.wait()];
    assert!(database.stats().batches <= 3, "the first two are in one batch");
    (database, results)
}

#[test]
fn a_failing_transaction_rolls_back_alone() {
    let fixture = fixture();
    let (database, [first, middle, last]) = between(&fixture, |db| {
        db.execute("INSERT INTO t (x) VALUES (2)", [])?;
        db.execute("INSERT INTO t (x) VALUES (1)", [])?;
        Ok(())
    });
    assert!(matches!(middle, Err(Error::Sqlite { .. })), "{middle:?}");
    first.and(last).unwrap();
    assert_eq!(sum(&database), 5);
    assert_eq!(database.stats().batches, 2);
}

#[test]
fn a_panicking_transaction_rolls_back_alone() {
    let fixture = fixture();
    let (database, [first, middle, last]) = between(&fixture, |db| -> Result<(), Error> {
        db.execute("INSERT INTO t (x) VALUES (2)", [])?;
        panic!("as the test wants");
    });
    assert!(matches!(middle, Err(Error::Panicked)), "{middle:?}");
    first.and(last).unwrap();
    assert_eq!(sum(&database), 5);
    assert_eq!(database.stats().batches, 2);
}

#[test]
fn a_closure_cannot_end_the_batch() {
    for sql in [
        "COMMIT",
        "COMMIT -- engine",
        "END",
        "ROLLBACK",
        "BEGIN",
        "RELEASE engine_transaction",
        "ROLLBACK TO Engine_Transaction",
    ] {
        let fixture = fixture();
        let (database, [first, middle, last]) = between(&fixture, move |db| {
            db.execute("INSERT INTO t (x) VALUES (2)", [])?;
            Ok(db.execute_batch(sql)?)
        });
        assert!(matches!(middle, Err(Error::Sqlite { .. })), "{sql}: {middle:?}");
        first.and(last).unwrap();
        assert_eq!(sum(&database), 5, "{sql}");
    }
}

#[test]
fn a_closure_may_use_savepoints_of_its_own() {
    let fixture = fixture();
    let (database, results) = between(&fixture, |db| {
        db.execute_batch(
            "SAVEPOINT mine; INSERT INTO t (x) VALUES (2); ROLLBACK TO mine;
             INSERT INTO t (x) VALUES (8); SAVEPOINT left_open; INSERT INTO t (x) VALUES (16)",
        )?;
        Ok(())
    });
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(sum(&database), 29);
}

#[test]
fn a_rollback_by_sqlite_acknowledges_nothing_of_what_ran_and_the_rest_goes_on() {
    let fixture = fixture();
    let (database, [first, middle, last]) = between(&fixture, |db| {
        db.execute("INSERT OR ROLLBACK INTO t (x) VALUES (1)", []).unwrap_err();
        Ok(())
    });
    assert!(matches!(first, Err(Error::RolledBack { .. })), "{first:?}");
    assert!(matches!(middle, Err(Error::RolledBack { .. })), "{middle:?}");
    last.unwrap();
    assert_eq!(sum(&database), 4);
}

#[test]
fn a_full_disk_acknowledges_nothing_of_what_ran() {
    let fixture = fixture();
    let (database, [first, middle, last]) = between(&fixture, |db| {
        db.query_row("PRAGMA max_page_count = 1", [], |_| Ok(()))?;
        let full = db.execute("INSERT INTO t (x) VALUES (zeroblob(1000000))", []);
        db.query_row("PRAGMA max_page_count = 1000000", [], |_| Ok(()))?;
        full?;
        Ok(())
    });
    assert!(matches!(first, Err(Error::RolledBack { .. })), "{first:?}");
    assert!(matches!(middle, Err(Error::DiskFull { .. })), "{middle:?}");
    last.unwrap();
    assert_eq!(sum(&database), 4);
    assert!(!database.stats().is_poisoned);
}

#[test]
fn a_profile_that_never_flushes_refuses_to_make_a_write_durable() {
    let fixture = fixture();
    let database = fixture.open_with("a.db", |options| {
        options.profile = engine::Profile::by_name("synchronous-off").unwrap();
    });
    insert(&database, 1).wait().unwrap();
    let durable = database.write::<_, Error, _>(Durability::Disk, |db| {
        Ok(db.execute("INSERT INTO t (x) VALUES (2)", []).map(drop)?)
    });
    let error = durable.wait().unwrap_err();
    assert!(matches!(error, Error::NeverFlushed { profile: "synchronous-off" }), "{error}");
    assert_eq!(sum(&database), 1);
}

#[test]
fn a_violated_deferred_foreign_key_fails_its_own_transaction() {
    const SCHEMA: engine::Migration = engine::Migration {
        version: 1,
        sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, x UNIQUE);
              CREATE TABLE child (t REFERENCES t DEFERRABLE INITIALLY DEFERRED)",
    };
    let fixture = fixture();
    let database = fixture.open_with("a.db", |options| options.migrations = &[SCHEMA]);
    let child = |sql: &'static str| {
        database.write::<_, Error, _>(Durability::Os, move |db| Ok(db.execute_batch(sql)?))
    };
    let release = hold(&database);
    let first = insert(&database, 1);
    let orphan = child("INSERT INTO t (x) VALUES (2); INSERT INTO child VALUES (99)");
    let parent_later = child("INSERT INTO child VALUES (50); INSERT INTO t VALUES (50, 4)");
    drop(release);
    first.wait().unwrap();
    let error = orphan.wait().unwrap_err();
    let Error::Sqlite { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.sqlite_error_code(), Some(rusqlite::ErrorCode::ConstraintViolation));
    parent_later.wait().unwrap();
    assert_eq!(sum(&database), 5);
    assert!(!database.stats().is_poisoned);
}

#[test]
fn a_full_queue_is_busy_and_what_was_accepted_is_run() {
    let fixture = fixture();
    let database = fixture.open_with("a.db", |options| options.limits.queue_count_max = 3);
    let release = hold(&database);
    let writes: Vec<WriteFuture<(), Error>> = (0..5).map(|x| insert(&database, x)).collect();
    drop(release);
    let results: Vec<_> = writes.into_iter().map(WriteFuture::wait).collect();
    assert!(results[..3].iter().all(Result::is_ok), "{results:?}");
    assert!(results[3..].iter().all(|result| matches!(result, Err(Error::Busy))), "{results:?}");
    assert_eq!((sum(&database), database.stats().queue_count_max_seen), (3, 3));
    assert_eq!(database.stats().refused, 2);
}

#[test]
fn many_producers_are_all_answered_and_share_commits() {
    const PRODUCERS: i64 = 8;
    const WRITES: i64 = 500;
    let fixture = fixture();
    let database = fixture.open("a.db");
    let barrier = Barrier::new(usize::try_from(PRODUCERS).unwrap());
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (database, barrier) = (&database, &barrier);
            scope.spawn(move || {
                barrier.wait();
                let write = |index| insert(database, producer * WRITES + index);
                let writes: Vec<_> = (0..WRITES).map(write).collect();
                wait_for_all(writes);
            });
        }
    });
    let all = PRODUCERS * WRITES;
    assert_eq!(sum(&database), all * (all - 1) / 2);
    let stats = database.stats();
    assert_eq!(stats.transactions, u64::try_from(all).unwrap());
    assert!(stats.batches < stats.transactions / 2, "{stats:?}");
}

#[test]
fn a_dropped_answer_does_not_cancel_the_write() {
    let fixture = fixture();
    let database = fixture.open("a.db");
    let release = hold(&database);
    drop(insert(&database, 1));
    let last = insert(&database, 2);
    drop(release);
    last.wait().unwrap();
    assert_eq!(sum(&database), 3);
}

#[test]
fn a_batch_is_as_durable_as_its_strictest_member_asks() {
    let fixture = fixture();
    let database = fixture.open("a.db");
    let write = |durability| -> WriteFuture<(), Error> { database.write(durability, |_| Ok(())) };
    let flushes = |durability| {
        // A disk in memory flushes before any caller waits.
        let before = database.stats().flushes;
        write(durability).wait().unwrap();
        database.stats().flushes - before
    };
    assert_eq!(flushes(Durability::Os), 0);
    assert_eq!(flushes(Durability::Disk), 1);
    assert_eq!(flushes(Durability::Os), 0);

    let release = hold(&database);
    let before = database.stats().flushes;
    let [os, disk] = [Durability::Os, Durability::Disk].map(write);
    drop(release);
    os.wait().unwrap();
    let flushed = database.stats().flushes - before;
    assert_eq!(flushed, 1, "it waits for the one that it shares a commit with");
    disk.wait().unwrap();
}

/// The commit flushes where no WAL could be flushed after it.
#[test]
fn a_commit_flushes_by_itself_where_there_is_no_wal_to_flush() {
    static JOURNAL: engine::Profile =
        engine::Profile { name: "journal", about: "", base: &[], changes: &[] };
    static NORMAL: engine::Profile = engine::Profile {
        changes: &[engine::PragmaSetting {
            name: "synchronous",
            value: "NORMAL",
            read_back: "1",
            scope: engine::PragmaScope::Always,
        }],
        ..JOURNAL
    };
    let fixture = fixture();
    let database = fixture.open_with("a.db", |options| options.profile = &NORMAL);
    let synchronous = |durability| {
        database.write::<_, Error, _>(durability, |db| Ok(number(db, "PRAGMA synchronous")))
    };
    assert_eq!(synchronous(Durability::Os).wait().unwrap(), 1);
    assert_eq!(synchronous(Durability::Disk).wait().unwrap(), 2);
    assert_eq!(synchronous(Durability::Os).wait().unwrap(), 1);
    assert_eq!(database.stats().flushes, 0);
}

#[test]
fn a_batch_stops_at_its_count_and_at_its_time() {
    let fixture = fixture();
    let by_count = fixture.open_with("count.db", |options| options.limits.batch_count_max = 2);
    let by_time =
        fixture.open_with("time.db", |options| options.limits.batch_time_max = Duration::ZERO);
    for (database, batches) in [(by_count, 3), (by_time, 5)] {
        let release = hold(&database);
        let writes: Vec<_> = (0..5).map(|x| insert(&database, x)).collect();
        drop(release);
        wait_for_all(writes);
        assert_eq!(database.stats().batches, 1 + batches, "{:?}", database.path());
    }
}

#[test]
fn a_hot_database_does_not_starve_another() {
    let fixture = crate::fixture_with(engine::EngineLimits {
        workers_count: 1,
        ..engine::EngineLimits::default()
    });
    let hot = fixture.open_with("hot.db", |options| options.limits.batch_count_max = 10);
    let cold = fixture.open("cold.db");
    let ran = Arc::new(AtomicI64::new(0));
    let release = hold(&hot);
    let hot_writes: Vec<WriteFuture<(), Error>> = (0..1_000)
        .map(|_| {
            let ran = Arc::clone(&ran);
            hot.write(Durability::Os, move |_| {
                ran.fetch_add(1, Ordering::SeqCst);
                Ok(())
            })
        })
        .collect();
    let ran_before: WriteFuture<i64, Error> =
        cold.write(Durability::Os, move |_| Ok(ran.load(Ordering::SeqCst)));
    drop(release);
    assert!(ran_before.wait().unwrap() <= 10, "the other database had its turn after one batch");
    wait_for_all(hot_writes);
}

#[test]
fn a_read_sees_one_snapshot_and_cannot_write() {
    let fixture = fixture();
    let database = fixture.open("a.db");
    insert(&database, 1).wait().unwrap();
    database
        .read::<_, Error>(|db| {
            let before = number(db, "SELECT sum(x) FROM t");
            insert(&database, 2).wait()?;
            assert_eq!((before, number(db, "SELECT sum(x) FROM t")), (1, 1));
            db.execute("INSERT INTO t (x) VALUES (4)", []).unwrap_err();
            Ok(())
        })
        .unwrap();
    assert_eq!(sum(&database), 3);
    assert_eq!(database.stats().readers_open, 1);
}

#[test]
fn a_panicking_read_gives_its_reader_back() {
    let fixture = fixture();
    let database = fixture.open_with("a.db", |options| options.readers_count_max = 1);
    insert(&database, 1).wait().unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        database.read::<(), Error>(|_| panic!("as the test wants"))
    }));
    panicked.unwrap_err();
    insert(&database, 2).wait().unwrap();
    assert_eq!(sum(&database), 3, "the reader has left the snapshot that the panic left behind");
}

#[test]
fn readers_past_the_limit_wait_for_one_to_come_back() {
    let fixture = fixture();
    let database = fixture.open_with("a.db", |options| options.readers_count_max = 2);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(sum(&database), 0));
        }
    });
    assert!((1..=2).contains(&database.stats().readers_open));
}
