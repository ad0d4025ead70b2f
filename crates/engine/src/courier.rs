//! Answers callers in bulk, away from the writer.
//!
//! Waking a task from a thread outside its runtime costs the runtime's lock and often a system
//! call; from a thread of the runtime it is a push to a queue of that thread's own. So where there
//! is a multi-threaded tokio runtime, a task in it answers, a whole batch at a time, while the
//! writer runs the next. Elsewhere the writer's thread answers.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::job::EndedBatch;

/// Batches whose answers wait; past them the writer answers itself.
const BATCHES_WAITING_MAX: usize = 64;

#[derive(Clone)]
pub(crate) struct Courier(Option<mpsc::Sender<EndedBatch>>);

impl Courier {
    /// Finds out where it was called.
    pub(crate) fn start() -> Self {
        let Ok(runtime) = Handle::try_current() else { return Self(None) };
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread {
            // Its one thread may be the one that blocks for an answer.
            return Self(None);
        }
        let (sender, mut receiver) = mpsc::channel::<EndedBatch>(BATCHES_WAITING_MAX);
        runtime.spawn(async move {
            while let Some(batch) = receiver.recv().await {
                batch.answer();
            }
        });
        Self(Some(sender))
    }

    /// Answers every caller of a batch.
    pub(crate) fn deliver(&self, batch: EndedBatch) {
        match &self.0 {
            Some(courier) => match courier.try_send(batch) {
                Ok(()) => {}
                Err(TrySendError::Full(batch) | TrySendError::Closed(batch)) => batch.answer(),
            },
            None => batch.answer(),
        }
    }
}
