//! Tests of many databases: the registry, its limits, closing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use engine::{DatabaseKey, Durability, EngineLimits, Error, FileEncryption, open_connection};

use crate::{encryption, fixture, fixture_with, insert, number, options, sum, wait_for_all};

#[test]
fn fifty_databases_share_ten_handles_and_lose_nothing() {
    let fixture = fixture_with(EngineLimits {
        workers_count: 2,
        open_count_max: 10,
        ..EngineLimits::default()
    });
    for round in 1..=2 {
        for index in 0..50 {
            let database = fixture.open(&format!("{index}.db"));
            assert_eq!(sum(&database), (round - 1) * 100);
            insert(&database, round * 100).wait().unwrap();
            assert!(fixture.databases.open_count() <= 10);
        }
    }
    for index in 0..50 {
        assert_eq!(sum(&fixture.open(&format!("{index}.db"))), 300);
    }
    assert_eq!(fixture.databases.open_count(), 10);
}

#[test]
fn the_least_recently_used_is_closed_first() {
    let fixture = fixture_with(EngineLimits {
        workers_count: 1,
        open_count_max: 2,
        ..EngineLimits::default()
    });
    let opened = |name: &str| {
        let calls = AtomicUsize::new(0);
        let path = fixture.directory.path().join(name);
        let open = || {
            calls.fetch_add(1, Ordering::SeqCst);
            options(|_| {})
        };
        fixture.databases.open(&path, open).unwrap();
        calls.into_inner() == 1
    };
    assert!(opened("a") && opened("b"));
    assert!(!opened("a"), "still open, and used last from here on");
    assert!(opened("c"));
    assert!(!opened("a"));
    assert!(opened("b"));
}

#[test]
fn a_handle_in_use_is_not_closed_to_make_room() {
    let fixture = fixture_with(EngineLimits {
        workers_count: 1,
        open_count_max: 2,
        ..EngineLimits::default()
    });
    let held = [fixture.open("a"), fixture.open("b")];
    let path = fixture.directory.path().join("c");
    let error = fixture.databases.open(&path, || options(|_| {})).err().unwrap();
    assert!(matches!(error, Error::Busy), "{error}");
    for database in &held {
        insert(database, 1).wait().unwrap();
    }
    drop(held);
    fixture.databases.close(&fixture.directory.path().join("a")).unwrap();
    fixture.open("c");
}

#[test]
fn past_the_memory_budget_what_is_not_in_use_is_closed() {
    let fixture =
        fixture_with(EngineLimits { cache_bytes_max: 100_000, ..EngineLimits::default() });
    for index in 0..20 {
        let database = fixture.open(&format!("{index}.db"));
        database
            .write::<_, Error, _>(Durability::Os, |db| {
                db.execute("INSERT INTO t (x) VALUES (randomblob(50000))", [])?;
                Ok(())
            })
            .wait()
            .unwrap();
    }
    let open_count = fixture.databases.open_count();
    assert!(open_count < 10, "{open_count} open, {} bytes", fixture.databases.cache_bytes());
    fixture.databases.shutdown();
    assert_eq!(fixture.databases.cache_bytes(), 0);
}

#[test]
fn one_file_is_one_database_by_whatever_path() {
    let fixture = fixture();
    let directory = fixture.directory.path();
    let database = fixture.open("a.db");
    std::os::unix::fs::symlink(directory.join("a.db"), directory.join("link.db")).unwrap();
    std::fs::create_dir(directory.join("sub")).unwrap();
    for other in ["./a.db", "link.db", "sub/../a.db"] {
        assert!(Arc::ptr_eq(&database, &fixture.open(other)), "{other}");
    }
    assert_eq!(fixture.databases.open_count(), 1);
}

#[test]
fn threads_that_open_one_file_at_once_open_it_once() {
    let fixture = fixture();
    let calls = AtomicUsize::new(0);
    let barrier = Barrier::new(8);
    let path = fixture.directory.path().join("a.db");
    thread::scope(|scope| {
        for x in 0..8 {
            let (calls, barrier, path, databases) = (&calls, &barrier, &path, &fixture.databases);
            scope.spawn(move || {
                barrier.wait();
                let count = || {
                    calls.fetch_add(1, Ordering::SeqCst);
                    options(|_| {})
                };
                let database = databases.open(path, count).unwrap();
                insert(&database, x).wait().unwrap();
            });
        }
    });
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(sum(&fixture.open("a.db")), 28);
}

#[test]
fn a_slow_open_holds_up_only_its_own_file() {
    let fixture = fixture();
    let (started_sender, started) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let slow = fixture.directory.path().join("slow.db");
    let (databases, slow) = (&fixture.databases, &slow);
    thread::scope(|scope| {
        scope.spawn(move || {
            let open = move || {
                started_sender.send(()).unwrap();
                released.recv().unwrap_err();
                options(|_| {})
            };
            insert(&databases.open(slow, open).unwrap(), 1).wait().unwrap();
        });
        started.recv().unwrap();
        insert(&fixture.open("other.db"), 1).wait().unwrap();
        drop(release);
    });
    assert_eq!(sum(&fixture.open("slow.db")), 1);
}

#[test]
fn an_open_that_panics_leaves_its_file_free() {
    let fixture = fixture();
    let path = fixture.directory.path().join("a.db");
    let open = || fixture.databases.open(&path, || panic!("as the test wants")).map(drop);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(open)).unwrap_err();
    assert_eq!(sum(&fixture.open("a.db")), 0);
}

#[test]
fn a_wrong_key_leaves_its_file_free() {
    let fixture = fixture();
    insert(&fixture.open("a.db"), 1).wait().unwrap();
    let path = fixture.directory.path().join("a.db");
    fixture.databases.close(&path).unwrap();
    let plain = || options(|options| options.encryption = FileEncryption::None);
    let error = fixture.databases.open(&path, plain).err().unwrap();
    assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
    let encryption = FileEncryption::Key { key: DatabaseKey::from_bytes([9; 32]), cipher: None };
    let wrong = || options(|options| options.encryption = encryption.clone());
    let error = fixture.databases.open(&path, wrong).err().unwrap();
    assert!(matches!(error, Error::WrongKey { .. }), "{error}");
    assert_eq!(sum(&fixture.open("a.db")), 1);
}

#[test]
fn shutdown_runs_and_answers_what_is_queued_and_leaves_no_wal() {
    let fixture = fixture();
    let database = fixture.open("a.db");
    let (release, released) = mpsc::channel::<()>();
    drop(database.write::<_, Error, _>(Durability::Os, move |_| {
        released.recv().unwrap_err();
        Ok(())
    }));
    let writes: Vec<_> = (1..=100).map(|x| insert(&database, x)).collect();
    thread::scope(|scope| {
        scope.spawn(|| fixture.databases.shutdown());
        drop(release);
    });
    wait_for_all(writes);

    let error = insert(&database, 1_000).wait().unwrap_err();
    assert!(matches!(error, Error::Closed), "{error}");
    let error = database.read::<(), Error>(|_| Ok(())).unwrap_err();
    assert!(matches!(error, Error::Closed), "{error}");
    let path = fixture.directory.path().join("b.db");
    let error = fixture.databases.open(&path, || options(|_| {})).err().unwrap();
    assert!(matches!(error, Error::Closed), "{error}");

    assert_eq!(std::fs::read_dir(fixture.directory.path()).unwrap().count(), 1, "only a.db");
    let (db, _) =
        open_connection(database.path(), &encryption(), database.profile(), true, false).unwrap();
    assert_eq!(number(&db, "SELECT sum(x) FROM t"), 5_050);
}

#[test]
fn an_answer_can_be_awaited() {
    let fixture = fixture();
    let database = fixture.open("a.db");
    let runtime = std::task::Waker::noop();
    let mut pending = std::pin::pin!(insert(&database, 1));
    fixture.databases.close(database.path()).unwrap();
    let answer = pending.as_mut().poll(&mut std::task::Context::from_waker(runtime));
    assert!(matches!(answer, std::task::Poll::Ready(Ok(()))), "{answer:?}");
}

#[test]
fn what_databases_did_is_counted_also_when_they_are_closed() {
    let fixture = fixture();
    let path = fixture.directory.path().join("a.db");
    assert!(fixture.databases.get_open(&path).is_none());
    for name in ["a.db", "b.db"] {
        let database = fixture.open(name);
        wait_for_all([insert(&database, 1), insert(&database, 2), insert(&database, 3)]);
    }
    assert_eq!(fixture.databases.get_open(&path).unwrap().path(), path.canonicalize().unwrap());
    let both = fixture.databases.list_open();
    assert_eq!(both.iter().filter(|database| database.upgrade().is_some()).count(), 2);
    let before = fixture.databases.totals();
    assert_eq!((before.transactions, before.failed, before.refused), (6, 0, 0));
    assert!((2..=6).contains(&before.batches), "{before:?}");

    fixture.databases.close(&path).unwrap();
    assert!(fixture.databases.get_open(&path).is_none(), "and it was not opened to be told");
    assert_eq!(fixture.databases.open_count(), 1);
    assert_eq!(fixture.databases.totals().transactions, 6);
}
