//! Loom models of databases between their callers and the workers (`queue.rs`, `run_queue.rs`).

use std::sync::Arc;

use loom::thread::{self, JoinHandle};

use crate::error::{Error, Result};
use crate::job::{CompletedBatch, Durability, WriteFuture, WriteJob, job};
use crate::observed::ObservedValues;
use crate::open::transaction::Transaction;
use crate::queue::{BoundedQueue, QueuePushError};
use crate::run_queue::RunQueue;
use crate::system::thread_sync::Mutex;
use crate::{TestAlarm, check, is_ready, poll, wait};

/// Number of jobs that a worker takes; it runs one of them and puts the rest back.
const BATCH_COUNT_MAX: usize = 2;
/// Limit of the queue, above the number of writes of any model.
const QUEUE_COUNT_MAX: usize = 10;

struct ModelDatabase {
    queue: BoundedQueue<WriteJob>,
    /// The writer; `None` once the database is closed.
    writer: Mutex<Option<()>>,
    ready: Arc<RunQueue<Arc<Self>>>,
    /// Numbers of the closures that ran. loom does not switch threads at this lock.
    ran: std::sync::Mutex<Vec<u32>>,
}

impl ModelDatabase {
    fn write(self: &Arc<Self>, number: u32) -> WriteFuture<u32, Error> {
        self.write_with(number, || {})
    }

    fn write_with(
        self: &Arc<Self>,
        number: u32,
        closure: impl Fn() + Send + 'static,
    ) -> WriteFuture<u32, Error> {
        let this = Arc::downgrade(self);
        let (job, pending) = job(Durability::Os, move |_: &Transaction<'_>| {
            closure();
            this.upgrade().unwrap().ran.lock().unwrap().push(number);
            Ok(number)
        });
        match self.queue.push(job) {
            Ok(true) => self.ready.push(Arc::clone(self)),
            Ok(false) => {}
            Err(QueuePushError::Closed(job)) => drop(job),
            Err(QueuePushError::Full(_)) => panic!("it is long enough"),
        }
        pending
    }

    fn work(&self) -> bool {
        let slot = self.writer.lock().unwrap();
        if slot.is_none() {
            return false;
        }
        assert!(self.run_batch(), "it was scheduled twice");
        self.queue.unschedule()
    }

    /// Runs a step of maintenance. Returns `false` if a worker has the database, or will have it.
    fn maintain(self: &Arc<Self>) -> bool {
        if !self.queue.try_schedule() {
            return false;
        }
        let writer = self.writer.try_lock().expect("no worker has the turn");
        thread::yield_now();
        drop(writer);
        if self.queue.unschedule() {
            self.ready.push(Arc::clone(self));
        }
        true
    }

    fn close(&self) {
        self.queue.close();
        let mut slot = self.writer.lock().unwrap();
        if slot.take().is_some() {
            while self.run_batch() {}
        }
    }

    fn run_batch(&self) -> bool {
        let mut jobs = self.queue.take(BATCH_COUNT_MAX).into_iter();
        let Some(first) = jobs.next() else { return false };
        first.run(&Transaction::default());
        self.queue.put_back(jobs);
        CompletedBatch::new(vec![first]).complete();
        true
    }

    fn ran(&self) -> Vec<u32> {
        self.ran.lock().unwrap().clone()
    }

    /// Checks that no job waits, and that the next write would schedule the database.
    fn is_at_rest(&self) -> bool {
        let (job, _pending) = job(Durability::Os, |_: &Transaction<'_>| Ok::<_, Error>(0));
        self.queue.take(1).is_empty() && matches!(self.queue.push(job), Ok(true))
    }
}

struct WorkerThreads {
    ready: Arc<RunQueue<Arc<ModelDatabase>>>,
    threads: Vec<JoinHandle<()>>,
}

impl WorkerThreads {
    fn start(count: usize) -> Self {
        let ready = Arc::new(RunQueue::<Arc<ModelDatabase>>::new(count));
        let threads = (0..count).map(|worker| {
            let ready = Arc::clone(&ready);
            thread::spawn(move || {
                let mut unfinished = None;
                while let Some(database) = ready.next(worker, unfinished.take()) {
                    unfinished = database.work().then_some(database);
                }
            })
        });
        let threads = threads.collect();
        Self { ready, threads }
    }

    fn open(&self) -> Arc<ModelDatabase> {
        Arc::new(ModelDatabase {
            queue: BoundedQueue::new(QUEUE_COUNT_MAX),
            writer: Mutex::new(Some(())),
            ready: Arc::clone(&self.ready),
            ran: std::sync::Mutex::default(),
        })
    }

    fn stop(self) {
        self.ready.stop();
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn every_caller_is_answered_once_and_in_order() {
    check(|| {
        let workers = WorkerThreads::start(1);
        let database = workers.open();
        let other = Arc::clone(&database);
        let caller = thread::spawn(move || wait(other.write(1)).unwrap());
        let pending = [database.write(2), database.write(3)];
        assert_eq!(pending.map(|pending| wait(pending).unwrap()), [2, 3]);
        assert_eq!(caller.join().unwrap(), 1);
        let mut ran = database.ran();
        ran.retain(|number| *number != 1);
        assert_eq!((ran, database.ran().len()), (vec![2, 3], 3));
        workers.stop();
        assert!(database.is_at_rest());
    });
}

#[test]
fn a_write_that_comes_during_a_step_of_maintenance_is_run_after_it() {
    let seen: ObservedValues<Vec<u32>> = ObservedValues::default();
    let record = seen.recorder();
    check(move || {
        let workers = WorkerThreads::start(1);
        let database = workers.open();
        let other = Arc::clone(&database);
        let caller = thread::spawn(move || wait(other.write(1)).unwrap());
        let steps = [database.maintain(), database.maintain()];
        assert_eq!(caller.join().unwrap(), 1);
        record(steps.iter().map(|step| u32::from(*step)).collect());
        workers.stop();
        assert!(database.is_at_rest());
    });
    assert_eq!(seen.all(), [vec![0, 0], vec![0, 1], vec![1, 0], vec![1, 1]]);
}

/// A batch of one database waits for a batch of another, so both workers must be awake, even if one
/// worker has taken the second database and put the first behind it, unfinished.
#[test]
fn no_worker_sleeps_while_a_database_waits() {
    check(|| {
        let workers = WorkerThreads::start(2);
        let (first, second) = (workers.open(), workers.open());
        let has_ended = TestAlarm::new();
        let (end, condition) = (Arc::clone(&has_ended), has_ended);
        let pending = [
            first.write(1),
            first.write_with(2, move || end.ring()),
            second.write_with(3, move || condition.wait()),
        ];
        assert_eq!(pending.map(|pending| wait(pending).unwrap()), [1, 2, 3]);
        workers.stop();
        assert!(first.is_at_rest() && second.is_at_rest());
    });
}

#[test]
fn a_database_with_more_to_do_goes_to_the_back() {
    check(|| {
        let ready = RunQueue::new(1);
        ready.push("first");
        ready.push("second");
        assert_eq!(ready.next(0, None), Some("first"));
        assert_eq!(ready.next(0, Some("first")), Some("second"));
        assert_eq!(ready.next(0, None), Some("first"));
    });
}

#[test]
fn stopped_workers_end_when_nothing_is_left() {
    check(|| {
        let workers = WorkerThreads::start(2);
        let (first, second) = (workers.open(), workers.open());
        let pending = [first.write(1), first.write(2), second.write(3)];
        workers.stop();
        let alarm = TestAlarm::new();
        let answers = pending.map(|mut pending| is_ready(poll(&mut pending, &alarm)).unwrap());
        assert_eq!(answers, [1, 2, 3]);
    });
}

#[test]
fn a_write_beside_close_is_run_or_refused() {
    let seen = ObservedValues::default();
    let record = seen.recorder();
    check(move || {
        let workers = WorkerThreads::start(1);
        let database = workers.open();
        let other = Arc::clone(&database);
        let caller = thread::spawn(move || {
            let pending = [other.write(1), other.write(2)];
            pending.map(|pending| stored(wait(pending)))
        });
        database.close();
        let ran = database.ran();
        let answers: Vec<u32> = caller.join().unwrap().into_iter().flatten().collect();
        // Every accepted write has run when closing ends, and none runs afterwards.
        assert_eq!(answers, ran);
        record(ran);
        workers.stop();
        assert_eq!(answers, database.ran());
    });
    assert_eq!(seen.all(), [vec![], vec![1], vec![1, 2]]);
}

/// Returns the number that was stored, or `None` if the write was refused.
fn stored(answer: Result<u32>) -> Option<u32> {
    match answer {
        Ok(number) => Some(number),
        Err(Error::Closed) => None,
        Err(error) => panic!("{error}"),
    }
}
