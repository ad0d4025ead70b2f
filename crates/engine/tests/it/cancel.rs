//! Tests of callers that disappear: dropped futures, aborted tasks, runtimes that end. Their writes
//! are executed all the same, and no other caller waits for them.

use std::collections::BTreeSet;
use std::pin::pin;
use std::process::Command;
use std::sync::mpsc;
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use engine::{Database, Durability, Error, WriteFuture};
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::runtime::{Builder, Runtime};

use crate::bank::{self, BankTransfer};
use crate::seed::{ReplayableRng, random, within_time};
use crate::{EngineFixture, fixture, hold, insert};

/// Environment variable that is set in the child.
const IS_CHILD: &str = "ENGINE_TEST_CANCEL_CHILD";

/// Runtime in which the registry is started; it decides which thread answers.
#[derive(Clone, Copy, Debug)]
enum RuntimeKind {
    /// The registry is started outside of any runtime.
    Thread,
    OneThreaded,
    ManyThreaded,
}

const PLACES: [RuntimeKind; 3] =
    [RuntimeKind::Thread, RuntimeKind::OneThreaded, RuntimeKind::ManyThreaded];

impl RuntimeKind {
    fn runtime(self) -> Option<Runtime> {
        let mut builder = match self {
            Self::Thread => return None,
            Self::OneThreaded => Builder::new_current_thread(),
            Self::ManyThreaded => Builder::new_multi_thread(),
        };
        Some(builder.worker_threads(2).enable_time().build().unwrap())
    }
}

fn start(runtime: Option<&Runtime>) -> (EngineFixture, Arc<Database>) {
    let _inside = runtime.map(Runtime::enter);
    let fixture = fixture();
    let database = fixture.open_with("a.db", |options| {
        options.migrations = bank::SCHEMA;
        options.limits.queue_count_max = usize::MAX;
    });
    (fixture, database)
}

/// Transfers with ids from 1, which many tasks and threads submit.
struct TransferLoad {
    database: Arc<Database>,
    /// The next id. The lock is held from the choice of an id until its transaction is in the
    /// queue, because shutting a runtime down in the background may stop a task between the two.
    next_id: Mutex<i64>,
}

impl TransferLoad {
    fn new(database: &Arc<Database>) -> Arc<Self> {
        Arc::new(Self { database: Arc::clone(database), next_id: Mutex::new(1) })
    }

    fn submit(&self, random: &mut StdRng) -> (i64, WriteFuture<i64, Error>) {
        let mut next_id = self.next_id.lock().unwrap();
        let id = *next_id;
        *next_id += 1;
        let durability = if random.random() { Durability::Os } else { Durability::Disk };
        (id, BankTransfer::random(id, random).submit(&self.database, durability))
    }

    /// Submits a transfer, and drops its answer at a random moment, or waits for it.
    async fn submit_and_perhaps_leave(&self, random: &mut StdRng) {
        let (id, answer) = self.submit(random);
        match random.random_range(0..7) {
            0 => drop(answer),
            1 => drop(poll_once(answer)),
            2 => {
                let answer = tokio::time::timeout(Duration::ZERO, answer).await;
                assert!(answer.is_err() || answer.unwrap().unwrap() == id);
            }
            3 => tokio::spawn(answer).abort(),
            4 => {
                let task = tokio::spawn(answer);
                tokio::task::yield_now().await;
                task.abort();
            }
            5 => {
                let (other_id, other) = self.submit(random);
                let first = first_of(answer, other).await.unwrap();
                assert!([id, other_id].contains(&first));
            }
            // The task that polls the answer first differs from the one that waits for it in the
            // end.
            _ => match poll_once(answer) {
                Ok(answer) => assert_eq!(answer.unwrap(), id),
                Err(answer) => assert_eq!(answer.await.unwrap(), id),
            },
        }
    }

    fn submit_and_wait_or_leave(&self, random: &mut StdRng) {
        let (id, answer) = self.submit(random);
        match random.random_range(0..4) {
            0 => drop(answer),
            1 => drop(poll_once(answer)),
            _ => match poll_once(answer) {
                Ok(answer) => assert_eq!(answer.unwrap(), id),
                Err(answer) => assert_eq!(answer.wait().unwrap(), id),
            },
        }
    }

    fn check(&self) {
        self.check_stored();
        assert_eq!(self.database.stats().failed, 0);
    }

    /// Checks that all transfers are stored completely.
    fn check_stored(&self) {
        let next_id = self.next_id.lock().unwrap();
        // The queue is first in, first out.
        let stored = self.database.write(Durability::Os, |db| Ok::<_, Error>(bank::check(db)));
        let expected = (1..*next_id).collect::<BTreeSet<_>>();
        // The lock is released first: the answer may pass through a runtime whose threads wait for
        // the lock.
        drop(next_id);
        assert_eq!(stored.wait().unwrap(), expected);
    }
}

/// Polls `answer` once. Returns it as `Err` if it is still pending.
fn poll_once(
    mut answer: WriteFuture<i64, Error>,
) -> Result<Result<i64, Error>, WriteFuture<i64, Error>> {
    match pin!(&mut answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Ok(answer),
        Poll::Pending => Err(answer),
    }
}

async fn first_of<F: Future>(one: F, other: F) -> F::Output {
    let (mut one, mut other) = (pin!(one), pin!(other));
    std::future::poll_fn(|context| match one.as_mut().poll(context) {
        Poll::Pending => other.as_mut().poll(context),
        ready @ Poll::Ready(_) => ready,
    })
    .await
}

#[test]
fn callers_that_leave_lose_nothing_and_hold_up_nobody() {
    within_time(|| {
        for place in PLACES {
            let mut random = random();
            let runtime = place.runtime();
            let (fixture, database) = start(runtime.as_ref());
            let load = TransferLoad::new(&database);
            thread::scope(|scope| {
                for _ in 0..2 {
                    let (load, mut random) = (&load, random.fork());
                    scope.spawn(move || {
                        (0..500).for_each(|_| load.submit_and_wait_or_leave(&mut random));
                    });
                }
                if let Some(runtime) = &runtime {
                    run_tasks(runtime, &load, &mut random);
                }
            });
            load.check();
            fixture.databases.shutdown();
        }
    });
}

fn run_tasks(runtime: &Runtime, load: &Arc<TransferLoad>, random: &mut ReplayableRng) {
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (load, mut random) = (Arc::clone(load), random.fork());
            runtime.spawn(async move {
                for _ in 0..200 {
                    load.submit_and_perhaps_leave(&mut random).await;
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn a_runtime_that_ends_takes_no_answer_from_those_outside() {
    within_time(|| {
        for place in [RuntimeKind::OneThreaded, RuntimeKind::ManyThreaded] {
            for round in 0..20 {
                let mut random = random();
                let runtime = place.runtime().unwrap();
                let (_fixture, database) = start(Some(&runtime));
                let load = TransferLoad::new(&database);
                let release = (round % 2 == 0).then(|| hold(&database));
                let barrier = Barrier::new(3);
                thread::scope(|scope| {
                    for _ in 0..2 {
                        let (load, barrier, mut random) = (&load, &barrier, random.fork());
                        scope.spawn(move || {
                            let answers: Vec<_> =
                                (0..100).map(|_| load.submit(&mut random)).collect();
                            barrier.wait();
                            for (id, answer) in answers {
                                assert_eq!(answer.wait().unwrap(), id);
                            }
                            load.submit_and_wait_or_leave(&mut random);
                        });
                    }
                    for _ in 0..100 {
                        let (load, mut random) = (Arc::clone(&load), random.fork());
                        runtime.spawn(async move {
                            let (id, answer) = load.submit(&mut random);
                            assert_eq!(answer.await.unwrap(), id);
                        });
                    }
                    barrier.wait();
                    if round % 4 < 2 {
                        runtime.shutdown_background();
                    } else {
                        drop(runtime);
                    }
                    drop(release);
                });
                load.check();
            }
        }
    });
}

#[test]
fn a_blocked_runtime_holds_up_a_bounded_number_of_answers() {
    /// Number of writes: more batches than may wait for the runtime.
    const WRITES: i64 = 200;
    within_time(|| {
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let inside = runtime.enter();
        let fixture = fixture();
        drop(inside);
        let database = fixture.open_with("a.db", |options| options.limits.batch_count_max = 1);
        let (release, released) = mpsc::channel::<()>();
        let (started, is_started) = mpsc::channel();
        runtime.spawn(async move {
            started.send(()).unwrap();
            released.recv().unwrap_err();
        });
        is_started.recv().unwrap();
        let mut writes: Vec<_> = (0..WRITES).map(|x| insert(&database, x)).collect();
        writes.pop().unwrap().wait().unwrap();
        drop(release);
        crate::wait_for_all(writes);
        assert_eq!(crate::sum(&database), WRITES * (WRITES - 1) / 2);
    });
}

#[test]
fn a_write_whose_database_nobody_holds_is_run() {
    let fixture = fixture();
    let database = fixture.open("a.db");
    let release = hold(&database);
    let write = insert(&database, 1);
    drop(database);
    drop(release);
    write.wait().unwrap();
    assert_eq!(crate::sum(&fixture.open("a.db")), 1);
}

/// Value that panics when it is dropped.
struct PanicOnDrop;

impl Drop for PanicOnDrop {
    fn drop(&mut self) {
        // `resume_unwind` bypasses the panic hook, which would print the panic; two panics at once
        // would abort.
        if !thread::panicking() {
            std::panic::resume_unwind(Box::new("as the test wants"));
        }
    }
}

#[test]
fn what_panics_when_it_is_dropped_wedges_nothing() {
    // The test runs in a process of its own: a second panic while the first unwinds would end all
    // tests.
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["cancel::child", "--exact", "--quiet"])
        .env(IS_CHILD, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The process with the panics. Without its variable, as in an ordinary test run, it does nothing.
#[test]
fn child() {
    if std::env::var_os(IS_CHILD).is_none() {
        return;
    }
    within_time(|| {
        for place in PLACES {
            let runtime = place.runtime();
            let (fixture, database) = start(runtime.as_ref());
            let load = TransferLoad::new(&database);
            let mut random = random();
            for fails in [false, true] {
                let release = hold(&database);
                let captured = PanicOnDrop;
                drop(database.write::<_, Error, _>(Durability::Os, move |_| {
                    let _keep = &captured;
                    if fails { Err(Error::Busy) } else { Ok(()) }
                }));
                // The closure runs twice: the writer drops the first result, and the thread that
                // answers drops the second.
                drop(database.write::<_, Error, _>(Durability::Os, |_| Ok(PanicOnDrop)));
                let answers: Vec<_> = (0..10).map(|_| load.submit(&mut random)).collect();
                let failing = database.write::<(), Error, _>(Durability::Os, |db| {
                    db.execute("UPDATE account SET balance = 0", [])?;
                    Err(Error::Busy)
                });
                drop(release);
                for (id, answer) in answers {
                    assert_eq!(answer.wait().unwrap(), id);
                }
                assert!(matches!(failing.wait(), Err(Error::Busy)));
            }
            (0..100).for_each(|_| load.submit_and_wait_or_leave(&mut random));
            load.check_stored();
            fixture.databases.shutdown();
        }
    });
}
