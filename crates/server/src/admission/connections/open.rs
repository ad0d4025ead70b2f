//! The state of an open connection: the event that it waits for, and a signal to close it.

use std::cmp::Reverse;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;
use tokio::time::Instant;

/// An open connection, shared by all parts that handle it.
pub(crate) struct OpenConnection {
    stage: Mutex<ConnectionStage>,
    close: Notify,
}

/// The event that a connection waits for, and since when. In this order connections are closed when
/// permits are short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConnectionStage {
    /// The connection waits for its client: for a request, the rest of one, or until a response is
    /// read.
    Client(Instant),
    /// The connection waits for an event that it will send in a response that has begun.
    Event(Instant),
    /// The connection waits for the server's work. The oldest is closest to its end.
    Work(Reverse<Instant>),
}

impl OpenConnection {
    /// Creates the state of a connection whose client has just arrived.
    pub(crate) fn new() -> Self {
        Self { stage: Mutex::new(ConnectionStage::Client(Instant::now())), close: Notify::new() }
    }

    pub(crate) fn stage(&self) -> ConnectionStage {
        *self.lock()
    }

    /// Records that the server waits for the client, without a pause since this time.
    pub(crate) fn waits_for_client(&self, since: Instant) {
        *self.lock() = ConnectionStage::Client(since);
    }

    /// Records that the client waits for an event.
    pub(crate) fn waits_for_event(&self) {
        let mut stage = self.lock();
        if !matches!(*stage, ConnectionStage::Event(_)) {
            *stage = ConnectionStage::Event(Instant::now());
        }
    }

    /// Records that the client waits for the server.
    pub(crate) fn works(&self) {
        let mut stage = self.lock();
        if !matches!(*stage, ConnectionStage::Work(_)) {
            *stage = ConnectionStage::Work(Reverse(Instant::now()));
        }
    }

    pub(crate) fn close(&self) {
        self.close.notify_one();
    }

    /// Waits until [`Self::close`] is called.
    pub(crate) async fn closed(&self) {
        self.close.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionStage> {
        self.stage.lock().expect("no code panics while it holds this lock")
    }
}

impl ConnectionStage {
    /// Whether closing the connection loses only an incomplete request.
    pub(crate) fn is_idle(self) -> bool {
        matches!(self, Self::Client(_))
    }
}
