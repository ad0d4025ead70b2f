//! Loom models of batches on their way from the writer to the task that answers (`completion.rs`).

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use loom::thread;

use crate::completion::{CompletionReceiver, channel};
use crate::error::{Error, Result};
use crate::job::{CompletedBatch, Durability, WriteFuture, job};
use crate::observed::ObservedValues;
use crate::open::transaction::Transaction;
use crate::{TestAlarm, check, wait};

fn batch(number: u32) -> (CompletedBatch, WriteFuture<u32, Error>) {
    let (queued, pending) = job(Durability::Os, move |_: &Transaction<'_>| Ok::<_, Error>(number));
    queued.run(&Transaction::default());
    (CompletedBatch::new(vec![queued]), pending)
}

/// Sends `batch`. Returns `true` if the receiver got it, and `false` if the writer answered its
/// caller.
fn send(sender: &crate::completion::CompletionSender, batch: CompletedBatch) -> bool {
    let refused = sender.send(batch);
    refused.map_err(CompletedBatch::complete).is_ok()
}

/// Receives and completes batches as the engine's task does, at most `count_max`.
fn answer(receiver: &CompletionReceiver, count_max: usize) -> usize {
    let mut count = 0;
    while count < count_max {
        let alarm = TestAlarm::new();
        let waker = Waker::from(Arc::clone(&alarm));
        match receiver.poll(&Context::from_waker(&waker)) {
            Poll::Ready(Some(batch)) => {
                batch.complete();
                count += 1;
            }
            Poll::Ready(None) => break,
            Poll::Pending => alarm.wait(),
        }
    }
    count
}

/// The runtime may end before, between and after the batches that are sent.
#[test]
fn a_receiver_that_goes_away_leaves_no_caller_without_an_answer() {
    let seen = ObservedValues::default();
    let record = seen.recorder();
    check(move || {
        let (sender, receiver) = channel();
        let runtime = thread::spawn(move || {
            // The task was polled once, and is dropped while it waits, or with a batch that it did
            // not take.
            let waker = Waker::from(TestAlarm::new());
            let polled = receiver.poll(&Context::from_waker(&waker));
            if let Poll::Ready(Some(batch)) = polled {
                batch.complete();
            }
        });
        let ((first, of_first), (second, of_second)) = (batch(1), batch(2));
        let sent = [send(&sender, first), send(&sender, second)];
        // The sender stays alive, as in a database that stays open.
        assert_eq!([wait(of_first), wait(of_second)].map(Result::unwrap), [1, 2]);
        runtime.join().unwrap();
        record(sent);
        drop(sender);
    });
    assert_eq!(seen.all(), [[false, false], [true, false], [true, true]]);
}

#[test]
fn a_task_that_waits_is_woken_for_every_batch_and_for_the_end() {
    check(|| {
        let (sender, receiver) = channel();
        let task = thread::spawn(move || answer(&receiver, usize::MAX));
        let ((first, of_first), (second, of_second)) = (batch(1), batch(2));
        assert!(send(&sender, first) && send(&sender, second));
        drop(sender);
        assert_eq!(task.join().unwrap(), 2);
        assert_eq!([wait(of_first), wait(of_second)].map(Result::unwrap), [1, 2]);
    });
}
