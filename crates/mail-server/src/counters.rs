//! The counters of the mail server since its start.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts events. Reading and counting need no order between the counters.
#[derive(Default)]
pub(crate) struct MailCounters {
    deliveries: AtomicU64,
    refused: AtomicU64,
    connections: AtomicU64,
}

impl MailCounters {
    /// Counts the answers for the recipients of a message.
    pub(crate) fn count_answers<E>(&self, answers: &[Result<(), E>]) {
        let refused = answers.iter().filter(|answer| answer.is_err()).count() as u64;
        self.refused.fetch_add(refused, Ordering::Relaxed);
        self.deliveries.fetch_add(answers.len() as u64 - refused, Ordering::Relaxed);
    }

    /// Counts a connection that was accepted.
    pub(crate) fn count_connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of recipients for whom a message was stored.
    pub(crate) fn deliveries(&self) -> u64 {
        self.deliveries.load(Ordering::Relaxed)
    }

    /// The number of recipients who were refused, as such or with their message.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}
