//! Notifies the callers of completed batches in bulk, where possible away from the writer's thread.
//!
//! Waking a task from a thread outside its runtime takes the runtime's lock and often a system
//! call; from a thread of the runtime, it is a push to that thread's own queue. So where there is a
//! multi-threaded tokio runtime, a task in it notifies the callers of a whole batch at a time,
//! while the writer runs the next batch. Elsewhere the writer's thread notifies them.
//!
//! # Invariants
//! - The callers of every batch are notified, whatever happens to the runtime: they may be threads
//!   outside of it. When the task ends, it closes the channel and completes the batches in it; a
//!   closed channel accepts none. One lock decides which side completes a batch. Tokio's channels
//!   do not guarantee that: a value that is sent while the receiver is dropped may stay in them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::coop;

use super::job::CompletedBatch;
use crate::system::thread_sync::{Mutex, MutexGuard};

/// The number of completed batches that may wait for the task; the writer completes further ones.
const BATCHES_WAITING_MAX: usize = 64;

#[derive(Clone)]
pub(crate) struct CompletionNotifier(Option<Arc<CompletionSender>>);

impl CompletionNotifier {
    /// Creates a notifier that uses the runtime of the calling thread, if it has several threads.
    pub(crate) fn for_current_runtime() -> Self {
        let Ok(runtime) = Handle::try_current() else { return Self(None) };
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread {
            // The only thread of this runtime may be the one that blocks for an answer.
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

    /// Notifies every caller of a batch.
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

/// Creates a channel between the writers and the task.
pub(crate) fn channel() -> (CompletionSender, CompletionReceiver) {
    let channel = Arc::<CompletionChannel>::default();
    (CompletionSender(Arc::clone(&channel)), CompletionReceiver(channel))
}

#[derive(Default)]
struct CompletionChannel(Mutex<CompletionChannelState>);

#[derive(Default)]
struct CompletionChannelState {
    waiting: VecDeque<CompletedBatch>,
    /// The waker of the task, if it found no batch.
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

/// Wakes the task without holding the lock, because a waker is code of its runtime.
fn wake(mut state: MutexGuard<'_, CompletionChannelState>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The writers' side of the channel; dropping it closes the channel, and the task ends.
pub(crate) struct CompletionSender(Arc<CompletionChannel>);

impl CompletionSender {
    /// Sends a batch, or returns it if the channel does not accept it.
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

/// The task's side of the channel; dropping it closes the channel and completes the batches in it.
pub(crate) struct CompletionReceiver(Arc<CompletionChannel>);

impl CompletionReceiver {
    /// Returns the oldest batch, or `None` if no more batches will arrive.
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
