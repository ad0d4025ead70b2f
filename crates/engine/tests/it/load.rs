//! Tests with many producers: results reach the right callers; a refused write leaves nothing
//! behind.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;

use engine::{Durability, EngineLimits, Error};
use rand::RngExt;

use crate::bank::{self, BankTransfer};
use crate::seed::{random, within_time};
use crate::{fixture, fixture_with, hold};

const PRODUCERS: usize = 16;

#[derive(Default)]
struct LoadOutcome {
    stored: BTreeSet<i64>,
    failed: u64,
    refused: u64,
}

/// Submits transfers, of which one in ten fails after it wrote, and waits for each answer after
/// `burst` others were submitted.
fn produce(
    database: &engine::Database,
    next_id: &AtomicI64,
    seed: u64,
    burst: usize,
) -> LoadOutcome {
    let mut random = crate::seed::seeded(seed);
    let mut outcome = LoadOutcome::default();
    for _ in 0..100 {
        let writes: Vec<_> = (0..burst)
            .map(|_| {
                let id = next_id.fetch_add(1, Ordering::SeqCst);
                let mut transfer = BankTransfer::random(id, &mut random);
                transfer.fails = random.random_ratio(1, 10);
                (transfer, transfer.submit(database, Durability::Os))
            })
            .collect();
        for (transfer, answer) in writes {
            match answer.wait() {
                Ok(id) => {
                    assert!(!transfer.fails);
                    assert_eq!(id, transfer.id);
                    outcome.stored.insert(id);
                }
                Err(Error::NotEncrypted { path }) => {
                    assert!(transfer.fails);
                    assert_eq!(path, bank::failure(transfer.id));
                    outcome.failed += 1;
                }
                Err(error) => {
                    assert!(matches!(error, Error::Busy), "{error}");
                    outcome.refused += 1;
                }
            }
        }
    }
    outcome
}

fn check(queue_count_max: usize, batch_count_max: usize) -> LoadOutcome {
    let mut random = random();
    let fixture = fixture_with(EngineLimits { workers_count: 3, ..EngineLimits::default() });
    let database = fixture.open_with("a.db", |options| {
        options.migrations = bank::SCHEMA;
        options.limits.queue_count_max = queue_count_max;
        options.limits.batch_count_max = batch_count_max;
    });
    let next_id = AtomicI64::new(1);
    let outcomes = thread::scope(|scope| {
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|index| {
                let (database, next_id, seed) = (&database, &next_id, random.random());
                scope.spawn(move || produce(database, next_id, seed, 1 + index))
            })
            .collect();
        producers.into_iter().map(|producer| producer.join().unwrap()).collect::<Vec<_>>()
    });
    let mut all = LoadOutcome::default();
    for mut outcome in outcomes {
        all.stored.append(&mut outcome.stored);
        all.failed += outcome.failed;
        all.refused += outcome.refused;
    }
    assert_eq!(database.read(|db| Ok::<_, Error>(bank::check(db))).unwrap(), all.stored);
    let stats = database.stats();
    assert_eq!(stats.transactions, all.stored.len() as u64);
    assert_eq!((stats.failed, stats.refused), (all.failed, all.refused));
    assert!(stats.queue_count_max_seen <= queue_count_max, "{stats:?}");
    let submitted = stats.transactions + stats.failed + stats.refused;
    assert_eq!(i64::try_from(submitted).unwrap() + 1, next_id.into_inner());
    all
}

#[test]
fn each_of_many_producers_hears_of_its_own() {
    within_time(|| assert_eq!(check(10_000, 1_000).refused, 0));
}

#[test]
fn what_a_full_queue_refuses_leaves_nothing() {
    within_time(|| {
        let outcome = check(20, 7);
        assert!(outcome.refused > 0 && !outcome.stored.is_empty());
    });
}

#[test]
fn a_refusal_is_there_at_once_and_the_queue_opens_again() {
    let fixture = fixture();
    let database = fixture.open_with("a.db", |options| options.limits.queue_count_max = 2);
    for round in 0..10 {
        let release = hold(&database);
        let accepted = [0, 1].map(|x| crate::insert(&database, round * 2 + x));
        let refused = std::pin::pin!(crate::insert(&database, -1));
        let answer = refused.poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(answer, Poll::Ready(Err(Error::Busy))), "{answer:?}");
        drop(release);
        crate::wait_for_all(accepted);
    }
    assert_eq!(crate::sum(&database), 190);
    assert_eq!(database.stats().refused, 10);
}
