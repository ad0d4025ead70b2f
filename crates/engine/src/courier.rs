//! Answers callers in bulk, away from the writer.
//!
//! Waking a task from a thread outside its runtime costs the runtime's lock and often a system
//! call; from a thread of the runtime it is a push to a queue of that thread's own. So where there
//! is a multi-threaded tokio runtime, a task in it answers, a whole batch at a time, while the
//! writer runs the next. Elsewhere the writer's thread answers.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc;

use crate::job::EndedBatch;

/// Batches whose answers wait; past them the writer answers itself.
const BATCHES_WAITING_MAX: usize = 64;

/// A batch on its way to the runtime. It is answered there, or, if the runtime ends before, when the
/// channel is dropped: its callers may be threads that have nothing to do with that runtime.
struct Delivery(Option<EndedBatch>);

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(batch) = self.0.take() {
            batch.answer();
        }
    }
}

#[derive(Clone)]
pub(crate) struct Courier(Option<mpsc::Sender<Delivery>>);

impl Courier {
    /// Finds out where it was called.
    pub(crate) fn start() -> Self {
        let Ok(runtime) = Handle::try_current() else { return Self(None) };
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread {
            // Its one thread may be the one that blocks for an answer.
            return Self(None);
        }
        let (sender, mut receiver) = mpsc::channel::<Delivery>(BATCHES_WAITING_MAX);
        runtime.spawn(async move {
            while let Some(delivery) = receiver.recv().await {
                drop(delivery);
            }
        });
        Self(Some(sender))
    }

    /// Answers every caller of a batch.
    pub(crate) fn deliver(&self, batch: EndedBatch) {
        match &self.0 {
            // An error gives the delivery back, and this drops it.
            Some(courier) => drop(courier.try_send(Delivery(Some(batch)))),
            None => batch.answer(),
        }
    }
}
