//! Tests of snapshots: the rows that readers see and how long they keep them, other writers, the
//! WAL.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use engine::{Database, Durability, Error, StaticStatement, open_connection};
use rusqlite::Connection;

use crate::bank::{self, BankTransfer, SMALL_WAL, WAL_LIMIT, is_balanced};
use crate::seed::{random, within_time};
use crate::{encryption, fixture, insert, number, sum};

/// Upper limit for something that takes about 10 ms, the time for which a snapshot is kept. Taking
/// this long is a fault, even where every core and the disk are busy.
const SOON: Duration = Duration::from_mins(1);

#[expect(clippy::disallowed_methods, reason = "measures how long the engine takes")]
fn now() -> Instant {
    Instant::now()
}

/// Polls until `is_so` returns `true`. Returns how long that took.
fn soon(mut is_so: impl FnMut() -> bool) -> Duration {
    let start = now();
    while !is_so() {
        assert!(start.elapsed() < SOON);
        thread::yield_now();
    }
    start.elapsed()
}

/// Opens another connection, as another program would.
fn other_connection(database: &Database) -> Connection {
    open_connection(database.path(), &encryption(), SMALL_WAL, false, false).unwrap().0
}

#[test]
fn a_read_sees_each_write_that_was_answered_before_it_began() {
    const WRITES: i64 = 2_000;
    static ADD: StaticStatement = StaticStatement::new("UPDATE t SET x = x + 1");
    static READ: StaticStatement = StaticStatement::new("SELECT x FROM t");
    within_time(|| {
        let fixture = fixture();
        let database = fixture.open_with("a.db", |options| options.profile = SMALL_WAL);
        insert(&database, 0).wait().unwrap();
        let answered = AtomicI64::new(0);
        let read = || {
            let at_least = answered.load(Ordering::SeqCst);
            let seen = database.read::<i64, Error>(|db| {
                Ok(db.statement(&READ)?.query_row([], |row| row.get(0))?)
            });
            let seen = seen.unwrap();
            assert!(seen >= at_least, "{seen} after {at_least}");
            seen
        };
        let writing = Arc::new(());
        thread::scope(|scope| {
            let writes = Arc::downgrade(&writing);
            // As many readers as there are connections, and one more, which waits.
            for _ in 0..5 {
                let (read, writes) = (&read, Weak::clone(&writes));
                scope.spawn(move || {
                    while writes.strong_count() > 0 {
                        read();
                    }
                });
            }
            for x in 1..=WRITES {
                let write = database.write::<_, Error, _>(Durability::Os, |db| {
                    Ok(db.statement(&ADD)?.execute([])?)
                });
                write.wait().unwrap();
                answered.store(x, Ordering::SeqCst);
                assert_eq!(read(), x);
            }
            // A panic above drops `writing` too, so the other threads end.
            drop(writing);
        });
    });
}

#[test]
fn a_hot_reader_soon_sees_what_another_program_wrote() {
    within_time(|| {
        let fixture = fixture();
        let database = fixture.open("a.db");
        let other = other_connection(&database);
        for x in 1..=20 {
            // The reader is used again and again, so its snapshot is kept.
            for _ in 0..100 {
                assert_eq!(sum(&database), x - 1);
            }
            other.execute("INSERT OR REPLACE INTO t VALUES (1, ?1)", [x]).unwrap();
            soon(|| sum(&database) == x);
        }
    });
}

#[test]
fn so_does_one_that_hardly_ever_rests() {
    const READ: Duration = Duration::from_millis(4);
    /// Number of reads that together take longer than a snapshot may be kept.
    const READS_MAX: usize = 4;
    within_time(|| {
        let fixture = fixture();
        let database = fixture.open("a.db");
        let other = other_connection(&database);
        let read = || {
            let end = now() + READ;
            let sum = database.read::<_, Error>(|db| {
                let sum = number(db, "SELECT coalesce(sum(x), 0) FROM t");
                while now() < end {
                    std::hint::spin_loop();
                }
                Ok(sum)
            });
            sum.unwrap()
        };
        for x in 1..=10 {
            for _ in 0..5 {
                assert_eq!(read(), x - 1);
            }
            other.execute("INSERT OR REPLACE INTO t VALUES (1, ?1)", [x]).unwrap();
            assert!((0..READS_MAX).any(|_| read() == x));
        }
    });
}

#[test]
fn the_snapshot_of_a_reader_that_rests_is_ended() {
    within_time(|| {
        let fixture = fixture();
        let database = fixture.open("a.db");
        let other = other_connection(&database);
        other.pragma_update(None, "busy_timeout", 0).unwrap();
        for x in 1..=20 {
            for _ in 0..100 {
                sum(&database);
            }
            other.execute("INSERT INTO t (x) VALUES (?1)", [x]).unwrap();
            // From here on, no caller reads or writes through the engine.
            soon(|| number(&other, "PRAGMA wal_checkpoint(TRUNCATE)") == 0);
            assert_eq!(engine::wal_bytes(database.path()), 0);
        }
    });
}

#[test]
fn the_wal_stays_short_under_load_with_readers() {
    /// Number of readers: more than most build machines have spare cores.
    const READERS: usize = 3;
    const BATCH: usize = 10;
    const RESETS: u64 = 10;
    within_time(|| {
        let mut random = random();
        let fixture = fixture();
        let database = fixture.open_with("a.db", |options| {
            options.migrations = bank::SCHEMA;
            options.profile = SMALL_WAL;
        });
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..READERS {
                scope.spawn(|| {
                    while !is_over.load(Ordering::SeqCst) {
                        let is_balanced = database.read(|db| Ok::<_, Error>(is_balanced(db)));
                        assert!(is_balanced.unwrap());
                    }
                });
            }
            let mut random = random.fork();
            let mut ids = 0..;
            // Writes until a WAL that never restarted would be many times as long: however slow the
            // machine is, the WAL's length follows the checkpoints.
            let is_short = || {
                let stats = database.stats();
                // A batch writes at least two pages.
                let written = 2 * stats.batches;
                let longest = u64::from(stats.wal_pages_max_seen);
                stats.checkpoint_pauses >= RESETS && longest < written / 4
            };
            while !is_short() {
                // Each write is flushed, as a checkpoint is, so a slow disk slows both.
                let submit =
                    |id| BankTransfer::random(id, &mut random).submit(&database, Durability::Disk);
                let writes: Vec<_> = ids.by_ref().take(BATCH).map(submit).collect();
                for write in writes {
                    write.wait().unwrap();
                }
            }
            is_over.store(true, Ordering::SeqCst);
        });
        let stats = database.stats();
        assert!(stats.wal_pages_max_seen >= WAL_LIMIT, "{stats:?}");
    });
}

#[test]
fn reads_wait_only_for_the_end_of_a_reset() {
    const RESETS: u64 = 5;
    within_time(|| {
        let fixture = fixture();
        let database = fixture.open_with("a.db", |options| options.profile = SMALL_WAL);
        for x in 0.. {
            insert(&database, x).wait().unwrap();
            let stats = database.stats();
            if stats.checkpoint_pauses >= RESETS {
                // No caller reads, so no pages were left to copy when reads were paused.
                assert_eq!(stats.pages_copied_with_reads_paused, 0, "{stats:?}");
                break;
            }
        }
    });
}

#[test]
fn a_long_read_lets_the_wal_grow_only_while_it_lasts() {
    within_time(|| {
        let fixture = fixture();
        let database = fixture.open_with("a.db", |options| {
            options.profile = SMALL_WAL;
            options.limits.batch_count_max = 1;
        });
        let next = AtomicI64::new(1);
        let write = || {
            let x = next.fetch_add(1, Ordering::SeqCst);
            insert(&database, x).wait().unwrap();
            x
        };
        write();
        let before = sum(&database);
        database
            .read::<_, Error>(|db| {
                assert_eq!(number(db, "SELECT sum(x) FROM t"), before);
                let limit = i64::from(WAL_LIMIT);
                for _ in 0..limit * 20 {
                    write();
                }
                assert_eq!(number(db, "SELECT sum(x) FROM t"), before);
                Ok(())
            })
            .unwrap();
        let pinned = database.stats().wal_pages_max_seen;
        assert!(pinned > WAL_LIMIT * 15, "{pinned}");

        let other = other_connection(&database);
        let frames = || {
            let sql = "PRAGMA wal_checkpoint(NOOP)";
            other.query_row(sql, [], |row| row.get::<_, u32>(1)).unwrap()
        };
        soon(|| {
            write();
            frames() < WAL_LIMIT
        });
        // From here on the WAL is overwritten from its beginning, for half of its length.
        let bytes = engine::wal_bytes(database.path());
        for _ in 0..WAL_LIMIT * 10 {
            write();
        }
        let all = write();
        assert_eq!(engine::wal_bytes(database.path()), bytes);
        assert_eq!(sum(&database), all * (all + 1) / 2);
    });
}
