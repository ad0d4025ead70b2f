//! Answers callers in bulk, away from the writer.
//!
//! Waking a task from a thread outside its runtime costs the runtime's lock and often a system
//! call; from a thread of the runtime it is a push to a queue of that thread's own. So where there
//! is a multi-threaded tokio runtime, a task in it answers, a whole batch at a time, while the
//! writer runs the next. Elsewhere the writer's thread answers.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc;

use crate::job::Ended;

/// Batches whose answers wait; past them the writer answers itself.
const BATCHES_WAITING_MAX: usize = 64;

#[derive(Clone)]
pub(crate) struct Courier(Option<mpsc::Sender<Ended>>);

impl Courier {
    /// Finds out where it was called.
    pub(crate) fn start() -> Self {
        let Ok(runtime) = Handle::try_current() else { return Self(None) };
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread {
            // Its one thread may be the one that blocks for an answer.
            return Self(None);
        }
        let (sender, mut receiver) = mpsc::channel::<Ended>(BATCHES_WAITING_MAX);
        runtime.spawn(async move {
            while let Some(batch) = receiver.recv().await {
                drop(batch);
            }
        });
        Self(Some(sender))
    }

    /// Answers every caller of a batch: dropping does.
    pub(crate) fn deliver(&self, batch: Ended) {
        match &self.0 {
            // An error gives the batch back, and this drops it.
            Some(courier) => drop(courier.try_send(batch)),
            None => drop(batch),
        }
    }
}
