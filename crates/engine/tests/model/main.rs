//! Loom models of the hand-off between callers and worker threads, in every order in which the
//! threads can run.
//!
//! The engine's own files are compiled again here, with loom's locks in place of std's. loom runs a
//! model again and again and switches threads at the locks, until it has seen every order with at
//! most `PREEMPTIONS_MAX` interruptions. A thread that waits for something that no other thread
//! will do is a deadlock, and loom panics.
//!
//! # Not here
//! - SQLite: a closure runs and writes nothing. `schedule.rs` repeats the few lines of
//!   `database.rs` and `databases.rs` around it.
//! - `WriteFuture::wait`, which polls like any other caller and parks a real thread.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "in a test, also in its helpers, a panic is the report"
)]

mod answer;
#[path = "../../src/write/completion.rs"]
#[expect(dead_code, reason = "the models do not use all of it")]
mod completion;
mod delivery;
#[path = "../../src/write/job.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models do not use all of it")]
mod job;
mod observed;
#[path = "../../src/write/queue.rs"]
#[expect(dead_code, reason = "the models do not use all of it")]
mod queue;
#[path = "../../src/write/run_queue.rs"]
mod run_queue;
mod schedule;

mod error {
    pub(crate) use engine::{Error, Result};
}

mod wal_file {
    /// Stand-in for the engine's proof, which only a flush creates.
    pub(crate) struct FlushProof;
}

mod system {
    pub(crate) mod thread_sync {
        pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    }
}

mod open {
    pub(crate) mod transaction {
        use std::marker::PhantomData;

        /// Stand-in for the engine's transaction, which needs a connection.
        #[derive(Default)]
        pub(crate) struct Transaction<'a>(PhantomData<&'a ()>);
    }
}

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::error::{Error, Result};
use crate::job::WriteFuture;
use crate::system::thread_sync::{Condvar, Mutex};

/// Number of times that a thread may be interrupted where it could have continued. loom's
/// documentation: two or three find most errors; each further one costs ten times the time.
const PREEMPTIONS_MAX: usize = 3;

/// Runs `model` in each order with at most `PREEMPTIONS_MAX` interruptions.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS_MAX);
    builder.check(model);
}

/// Alarm that rings once and releases the thread that waits for it.
struct TestAlarm {
    has_rung: Mutex<bool>,
    changed: Condvar,
}

impl TestAlarm {
    fn new() -> Arc<Self> {
        Arc::new(Self { has_rung: Mutex::new(false), changed: Condvar::new() })
    }

    fn ring(&self) {
        *self.has_rung.lock().unwrap() = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let mut has_rung = self.has_rung.lock().unwrap();
        while !*has_rung {
            has_rung = self.changed.wait(has_rung).unwrap();
        }
    }
}

impl Wake for TestAlarm {
    fn wake(self: Arc<Self>) {
        self.ring();
    }
}

fn poll(pending: &mut WriteFuture<u32, Error>, alarm: &Arc<TestAlarm>) -> Poll<Result<u32>> {
    let waker = Waker::from(Arc::clone(alarm));
    Pin::new(pending).poll(&mut Context::from_waker(&waker))
}

/// Returns the answer, which must be present when the waker is called.
fn wait(mut pending: WriteFuture<u32, Error>) -> Result<u32> {
    let alarm = TestAlarm::new();
    match poll(&mut pending, &alarm) {
        Poll::Ready(answer) => answer,
        Poll::Pending => {
            alarm.wait();
            is_ready(poll(&mut pending, &alarm))
        }
    }
}

fn is_ready(polled: Poll<Result<u32>>) -> Result<u32> {
    match polled {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("no answer where there must be one"),
    }
}

/// Checks the models themselves: loom finds the kind of error that they rely on it to find.
#[test]
#[should_panic(expected = "deadlock")]
fn a_lost_wakeup_is_found() {
    check(|| {
        let alarm = TestAlarm::new();
        let ringer = Arc::clone(&alarm);
        loom::thread::spawn(move || {
            ringer.changed.notify_all();
            *ringer.has_rung.lock().unwrap() = true;
        });
        alarm.wait();
    });
}
