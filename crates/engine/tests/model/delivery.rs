//! Batches on their way from the writer to the task that answers (`courier.rs`).

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use loom::thread;

use crate::courier::{Receiver, channel};
use crate::error::{Error, Result};
use crate::job::{Durability, EndedBatch, Pending, job};
use crate::seen::Seen;
use crate::transaction::Transaction;
use crate::{Alarm, check, wait};

fn batch(number: u32) -> (EndedBatch, Pending<u32, Error>) {
    let (queued, pending) = job(Durability::Os, move |_: &Transaction<'_>| Ok::<_, Error>(number));
    queued.run(&Transaction::default());
    (EndedBatch::new(vec![queued]), pending)
}

/// Says whether the receiver got it, or its caller was answered by the writer.
fn send(sender: &crate::courier::Sender, batch: EndedBatch) -> bool {
    let refused = sender.send(batch);
    refused.map_err(EndedBatch::answer).is_ok()
}

/// What the task does, `count_max` times at most.
fn answer(receiver: &Receiver, count_max: usize) -> usize {
    let mut count = 0;
    while count < count_max {
        let alarm = Alarm::new();
        let waker = Waker::from(Arc::clone(&alarm));
        match receiver.poll(&Context::from_waker(&waker)) {
            Poll::Ready(Some(batch)) => {
                batch.answer();
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
    let seen = Seen::default();
    let record = seen.recorder();
    check(move || {
        let (sender, receiver) = channel();
        let runtime = thread::spawn(move || {
            // It was polled once, and is dropped while it waits, or with what it did not take.
            let waker = Waker::from(Alarm::new());
            let polled = receiver.poll(&Context::from_waker(&waker));
            if let Poll::Ready(Some(batch)) = polled {
                batch.answer();
            }
        });
        let ((first, of_first), (second, of_second)) = (batch(1), batch(2));
        let sent = [send(&sender, first), send(&sender, second)];
        // The sender lives on, as in a database that stays open.
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
