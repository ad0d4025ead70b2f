//! What an open connection waits for, and how it is told to close.

use std::cmp::Reverse;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;
use tokio::time::Instant;

/// A connection, for all who have to do with it.
pub(crate) struct OpenConnection {
    stage: Mutex<ConnectionStage>,
    close: Notify,
}

/// What a connection waits for, since when. In order: the first closes first where places are
/// short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConnectionStage {
    /// For its client: a request, the rest of one, or that an answer is taken.
    Client(Instant),
    /// For something that happens, of which its client is told in an answer that has begun.
    Event(Instant),
    /// For the server's work. The oldest is nearest to its end.
    Work(Reverse<Instant>),
}

impl OpenConnection {
    /// That of a client who has just come.
    pub(crate) fn new() -> Self {
        Self { stage: Mutex::new(ConnectionStage::Client(Instant::now())), close: Notify::new() }
    }

    pub(crate) fn stage(&self) -> ConnectionStage {
        *self.lock()
    }

    /// The server waits for the client, as if it had done so since then without a pause.
    pub(crate) fn waits_for_client(&self, since: Instant) {
        *self.lock() = ConnectionStage::Client(since);
    }

    /// The client waits for news.
    pub(crate) fn waits_for_event(&self) {
        let mut stage = self.lock();
        if !matches!(*stage, ConnectionStage::Event(_)) {
            *stage = ConnectionStage::Event(Instant::now());
        }
    }

    /// The client waits for the server.
    pub(crate) fn works(&self) {
        let mut stage = self.lock();
        if !matches!(*stage, ConnectionStage::Work(_)) {
            *stage = ConnectionStage::Work(Reverse(Instant::now()));
        }
    }

    pub(crate) fn close(&self) {
        self.close.notify_one();
    }

    /// Waits until somebody has closed it.
    pub(crate) async fn closed(&self) {
        self.close.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionStage> {
        self.stage.lock().expect("no code panics while it holds this lock")
    }
}

impl ConnectionStage {
    /// Whether nothing is lost with the connection but what its client has sent of a request.
    pub(crate) fn is_idle(self) -> bool {
        matches!(self, Self::Client(_))
    }
}
