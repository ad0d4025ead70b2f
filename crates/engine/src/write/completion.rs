//! Answers callers in bulk, away from the writer.
//!
//! Waking a task from a thread outside its runtime costs the runtime's lock and often a system
//! call; from a thread of the runtime it is a push to a queue of that thread's own. So where there
//! is a multi-threaded tokio runtime, a task in it answers, a whole batch at a time, while the
//! writer runs the next. Elsewhere the writer's thread answers.
//!
//! # Invariants
//! - Every batch is answered, whatever becomes of the runtime: its callers may be threads that have
//!   nothing to do with it. The task that ends closes the channel and answers what is in it; a
//!   closed channel takes nothing. One lock decides which of them answers a batch, which tokio's
//!   channels do not: what is sent while their receiver is dropped may stay in them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::coop;

use super::job::CompletedBatch;
use crate::system::thread_sync::{Mutex, MutexGuard};

/// Batches whose answers wait; past them the writer answers itself.
const BATCHES_WAITING_MAX: usize = 64;

#[derive(Clone)]
pub(crate) struct CompletionNotifier(Option<Arc<CompletionSender>>);

impl CompletionNotifier {
    /// Finds out where it was called.
    pub(crate) fn for_current_runtime() -> Self {
        let Ok(runtime) = Handle::try_current() else { return Self(None) };
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread {
            // Its one thread may be the one that blocks for an answer.
            return Self(None);
        }
        let (sender, receiver) = channel();
        runtime.spawn(async move {
            while let Some(batch) = poll_fn(|context| receiver.poll(context)).await {
                batch.complete();
                coop::consume_budget().await;
            }
        });
        Self(Some(Arc::new(sender)))
    }

    /// Answers every caller of a batch.
    pub(crate) fn notify(&self, batch: CompletedBatch) {
        let refused = match &self.0 {
            Some(sender) => sender.send(batch),
            None => Err(batch),
        };
        if let Err(batch) = refused {
            batch.complete();
        }
    }
}

/// A channel between the writers and the task.
pub(crate) fn channel() -> (CompletionSender, CompletionReceiver) {
    let channel = Arc::<CompletionChannel>::default();
    (CompletionSender(Arc::clone(&channel)), CompletionReceiver(channel))
}

#[derive(Default)]
struct CompletionChannel(Mutex<CompletionChannelState>);

#[derive(Default)]
struct CompletionChannelState {
    waiting: VecDeque<CompletedBatch>,
    /// Of the task, if it found nothing.
    waker: Option<Waker>,
    is_closed: bool,
}

impl CompletionChannel {
    fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        wake(state);
    }

    fn lock(&self) -> MutexGuard<'_, CompletionChannelState> {
        self.0.lock().expect("no code panics while it holds this lock")
    }
}

/// Under no lock: a waker is its runtime's code.
fn wake(mut state: MutexGuard<'_, CompletionChannelState>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The last one closes the channel, and the task ends.
pub(crate) struct CompletionSender(Arc<CompletionChannel>);

impl CompletionSender {
    /// A batch that the channel does not take is given back.
    pub(crate) fn send(&self, batch: CompletedBatch) -> Result<(), CompletedBatch> {
        let mut state = self.0.lock();
        if state.is_closed || state.waiting.len() >= BATCHES_WAITING_MAX {
            return Err(batch);
        }
        state.waiting.push_back(batch);
        wake(state);
        Ok(())
    }
}

impl Drop for CompletionSender {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Closes the channel when it is dropped, and answers what nobody will take out any more.
pub(crate) struct CompletionReceiver(Arc<CompletionChannel>);

impl CompletionReceiver {
    /// The oldest batch; `None` if there will be no more.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Option<CompletedBatch>> {
        let mut state = self.0.lock();
        let batch = state.waiting.pop_front();
        if batch.is_none() && !state.is_closed {
            state.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(batch)
    }
}

impl Drop for CompletionReceiver {
    fn drop(&mut self) {
        self.0.close();
        let left = std::mem::take(&mut self.0.lock().waiting);
        left.into_iter().for_each(CompletedBatch::complete);
    }
}
