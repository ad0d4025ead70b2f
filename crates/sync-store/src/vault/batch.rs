//! Batches of messages for a vault: sorted, hashed, each timestamp once.

use crdt::{Fingerprint, FingerprintWindow, Message, Timestamp};

use crate::error::{Error, Result, TIMESTAMPS_NAMED_MAX};

/// Messages to store. Creating a batch sorts and hashes them, which takes some milliseconds for a
/// full request.
#[derive(Clone, Debug, Default)]
pub struct MessageBatch {
    /// The messages by timestamp, each once: neighboring inserts touch the same page of the index,
    /// and writers of one vault lock its rows in the same order.
    pub(crate) entries: Vec<BatchEntry>,
    /// The sum that the entries add to each window, by window.
    pub(crate) windows: Vec<(FingerprintWindow, Fingerprint)>,
    pub(crate) sum: Fingerprint,
    /// The size of all contents in bytes.
    pub(crate) bytes: u64,
    /// The number of messages that the request repeated.
    pub(crate) repeated: u64,
    /// The sequence number after which no message may have arrived, if required.
    pub(crate) expected_cursor: Option<u64>,
}

/// A message with its hash ([`Fingerprint::from_message`]).
#[derive(Clone, Debug)]
pub(crate) struct BatchEntry {
    pub(crate) message: Message,
    pub(crate) fingerprint: Fingerprint,
}

impl MessageBatch {
    /// Creates a batch. Returns [`Error::TimestampConflict`] if one timestamp has two contents.
    pub fn new(mut messages: Vec<Message>) -> Result<Self> {
        messages.sort_by_key(|message| message.timestamp);
        let mut batch = Self { entries: Vec::with_capacity(messages.len()), ..Self::default() };
        let mut conflicts: Vec<Timestamp> = Vec::new();
        for message in messages {
            match batch.entries.last() {
                Some(last) if last.message.timestamp != message.timestamp => batch.push(message),
                None => batch.push(message),
                Some(last) if last.message.content == message.content => batch.repeated += 1,
                Some(_) => conflicts.push(message.timestamp),
            }
        }
        conflicts.dedup();
        conflicts.truncate(TIMESTAMPS_NAMED_MAX);
        if conflicts.is_empty() {
            Ok(batch)
        } else {
            Err(Error::TimestampConflict { timestamps: conflicts })
        }
    }

    /// Sets the expected cursor. If messages have arrived after it, storing returns
    /// [`Error::StaleCursor`].
    #[must_use]
    pub fn with_expected_cursor(self, cursor: Option<u64>) -> Self {
        Self { expected_cursor: cursor, ..self }
    }

    /// Creates a batch that keeps the first of several messages with one timestamp and ignores the
    /// others.
    pub fn new_keeping_first(mut messages: Vec<Message>) -> Self {
        let count = messages.len();
        // The sort is stable: the message that came first stays first.
        messages.sort_by_key(|message| message.timestamp);
        messages.dedup_by_key(|message| message.timestamp);
        let repeated = (count - messages.len()) as u64;
        let entries = Vec::with_capacity(messages.len());
        let mut batch = Self { entries, repeated, ..Self::default() };
        for message in messages {
            batch.push(message);
        }
        batch
    }

    /// Returns the timestamps in order.
    pub fn timestamps(&self) -> impl Iterator<Item = Timestamp> {
        self.entries.iter().map(|entry| entry.message.timestamp)
    }

    fn push(&mut self, message: Message) {
        let fingerprint = Fingerprint::from_message(message.timestamp, &message.content);
        let entry = BatchEntry { message, fingerprint };
        self.add(&entry);
        self.entries.push(entry);
    }

    /// Adds an entry, which must be later than those before it, to the sums.
    pub(crate) fn add(&mut self, entry: &BatchEntry) {
        let window = FingerprintWindow::for_timestamp(entry.message.timestamp);
        match self.windows.last_mut() {
            Some((last, sum)) if *last == window => *sum += entry.fingerprint,
            _ => self.windows.push((window, entry.fingerprint)),
        }
        self.sum += entry.fingerprint;
        self.bytes += entry.message.content.len() as u64;
    }

    /// Whether the batch has no messages.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
