//! Loom models of one transaction between its caller and the writer (`job.rs`).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;

use loom::thread;

use crate::error::{Error, Result};
use crate::job::{CompletedBatch, Durability, UnflushedBatch, WriteFuture, WriteJob, job};
use crate::observed::ObservedValues;
use crate::open::transaction::Transaction;
use crate::wal_file::FlushProof;
use crate::{TestAlarm, check, is_ready, poll, wait};

fn queue(
    closure: impl Fn() -> Result<u32> + Send + 'static,
) -> (WriteJob, WriteFuture<u32, Error>) {
    job(Durability::Os, move |_: &Transaction<'_>| closure())
}

fn run(queued: WriteJob) {
    queued.run(&Transaction::default());
    CompletedBatch::new(vec![queued]).complete();
}

/// One executor may poll a task and then another one: the waker of the last poll counts.
#[test]
fn the_last_waker_is_called_or_the_answer_is_seen() {
    let seen = ObservedValues::default();
    let record = seen.recorder();
    check(move || {
        let (queued, mut pending) = queue(|| Ok(7));
        let writer = thread::spawn(move || run(queued));
        let (first, last) = (TestAlarm::new(), TestAlarm::new());
        let (polls, answer) = match poll(&mut pending, &first) {
            Poll::Ready(answer) => (1, answer),
            Poll::Pending => match poll(&mut pending, &last) {
                Poll::Ready(answer) => (2, answer),
                Poll::Pending => {
                    last.wait();
                    (3, is_ready(poll(&mut pending, &last)))
                }
            },
        };
        assert_eq!(answer.unwrap(), 7);
        record(polls);
        writer.join().unwrap();
    });
    assert_eq!(seen.all(), [1, 2, 3]);
}

#[test]
fn a_closure_that_runs_keeps_no_caller_from_polling() {
    check(|| {
        let has_polled = TestAlarm::new();
        let condition = Arc::clone(&has_polled);
        let (queued, mut pending) = queue(move || {
            condition.wait();
            Ok(7)
        });
        let writer = thread::spawn(move || run(queued));
        let alarm = TestAlarm::new();
        assert!(poll(&mut pending, &alarm).is_pending());
        has_polled.ring();
        alarm.wait();
        assert_eq!(is_ready(poll(&mut pending, &alarm)).unwrap(), 7);
        writer.join().unwrap();
    });
}

#[test]
fn an_executor_may_poll_under_a_lock_that_its_waker_takes() {
    check(|| {
        let (queued, mut pending) = queue(|| Ok(7));
        let writer = thread::spawn(move || run(queued));
        let alarm = TestAlarm::new();
        let mut polled = poll(&mut pending, &alarm);
        if polled.is_pending() {
            let _has_rung = alarm.has_rung.lock().unwrap();
            polled = poll(&mut pending, &alarm);
        }
        if polled.is_pending() {
            alarm.wait();
            polled = poll(&mut pending, &alarm);
        }
        assert_eq!(is_ready(polled).unwrap(), 7);
        writer.join().unwrap();
    });
}

#[test]
fn a_batch_answers_each_of_its_callers() {
    check(|| {
        let (first, of_first) = queue(|| Ok(1));
        let (second, of_second) = queue(|| Err(Error::Busy));
        let caller = thread::spawn(move || wait(of_first));
        let writer = thread::spawn(move || {
            first.run(&Transaction::default());
            second.run(&Transaction::default());
            CompletedBatch::new(vec![first, second]).complete();
        });
        assert!(matches!(wait(of_second), Err(Error::Busy)));
        assert_eq!(caller.join().unwrap().unwrap(), 1);
        writer.join().unwrap();
    });
}

#[test]
fn what_never_ran_is_answered() {
    check(|| {
        let (queued, pending) = queue(|| Ok(7));
        let writer = thread::spawn(move || drop(queued));
        assert!(matches!(wait(pending), Err(Error::Closed)));
        writer.join().unwrap();
    });
}

/// A panic between commit and flush drops the batch: no caller may learn that its write is on disk.
#[test]
fn a_batch_that_is_dropped_before_its_flush_answers_an_error() {
    check(|| {
        let (queued, pending) = queue(|| Ok(7));
        let writer = thread::spawn(move || {
            queued.run(&Transaction::default());
            let batch = UnflushedBatch::new(vec![queued]);
            let panicked = std::panic::catch_unwind(AssertUnwindSafe(move || {
                let _batch = batch;
                std::panic::resume_unwind(Box::new("between commit and flush"));
            }));
            panicked.unwrap_err();
        });
        assert!(matches!(wait(pending), Err(Error::Closed)));
        writer.join().unwrap();
    });
}

#[test]
fn a_flushed_batch_answers_what_was_returned() {
    check(|| {
        let (queued, pending) = queue(|| Ok(7));
        let writer = thread::spawn(move || {
            queued.run(&Transaction::default());
            UnflushedBatch::new(vec![queued]).acknowledge(&FlushProof).complete();
        });
        assert_eq!(wait(pending).unwrap(), 7);
        writer.join().unwrap();
    });
}

#[test]
fn a_caller_may_leave() {
    check(|| {
        let (queued, mut pending) = queue(|| Ok(7));
        let writer = thread::spawn(move || run(queued));
        let alarm = TestAlarm::new();
        // The dropped future leaves its waker behind, or takes the answer with it.
        drop(poll(&mut pending, &alarm));
        drop(pending);
        writer.join().unwrap();
        assert_eq!(Arc::strong_count(&alarm), 1);
    });
}

#[test]
fn what_a_closure_owns_does_not_wait_for_its_caller() {
    check(|| {
        let owned = Arc::new(());
        let of_closure = Arc::clone(&owned);
        let (queued, pending) = queue(move || {
            assert_eq!(Arc::strong_count(&of_closure), 2);
            Ok(7)
        });
        thread::spawn(move || run(queued)).join().unwrap();
        assert_eq!(Arc::strong_count(&owned), 1);
        assert_eq!(wait(pending).unwrap(), 7);
    });
}
