//! Messages on their way into a vault: in order, hashed, each timestamp once.

use crdt::{Fingerprint, FingerprintWindow, Message, Timestamp};

use crate::error::{Error, Result, TIMESTAMPS_NAMED_MAX};

/// Messages to store. Making one sorts and hashes: some milliseconds for a full request.
#[derive(Clone, Debug, Default)]
pub struct MessageBatch {
    /// By timestamp, each once: neighbouring inserts touch the same page of the index, and writers
    /// of one vault take its rows in the same order.
    pub(crate) entries: Vec<BatchEntry>,
    /// What the entries add to each window, by window.
    pub(crate) windows: Vec<(FingerprintWindow, Fingerprint)>,
    pub(crate) sum: Fingerprint,
    /// Of all contents.
    pub(crate) bytes: u64,
    /// Messages that were in the request once more.
    pub(crate) repeated: u64,
    /// The sequence number after which nothing may have arrived, if that matters.
    pub(crate) expected_cursor: Option<u64>,
}

/// A message with its hash ([`Fingerprint::from_message`]).
#[derive(Clone, Debug)]
pub(crate) struct BatchEntry {
    pub(crate) message: Message,
    pub(crate) fingerprint: Fingerprint,
}

impl MessageBatch {
    /// [`Error::TimestampConflict`] if one timestamp comes with two contents.
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

    /// To be stored only if nothing has arrived after this cursor: else [`Error::StaleCursor`].
    #[must_use]
    pub fn with_expected_cursor(self, cursor: Option<u64>) -> Self {
        Self { expected_cursor: cursor, ..self }
    }

    /// Of messages with one timestamp the first stays, whatever the others say.
    pub fn new_keeping_first(mut messages: Vec<Message>) -> Self {
        let count = messages.len();
        // Stable: what came first stays first.
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

    /// The timestamps, in order.
    pub fn timestamps(&self) -> impl Iterator<Item = Timestamp> {
        self.entries.iter().map(|entry| entry.message.timestamp)
    }

    fn push(&mut self, message: Message) {
        let fingerprint = Fingerprint::from_message(message.timestamp, &message.content);
        let entry = BatchEntry { message, fingerprint };
        self.add(&entry);
        self.entries.push(entry);
    }

    /// Adds an entry, later than those before it, to the sums.
    pub(crate) fn add(&mut self, entry: &BatchEntry) {
        let window = FingerprintWindow::for_timestamp(entry.message.timestamp);
        match self.windows.last_mut() {
            Some((last, sum)) if *last == window => *sum += entry.fingerprint,
            _ => self.windows.push((window, entry.fingerprint)),
        }
        self.sum += entry.fingerprint;
        self.bytes += entry.message.content.len() as u64;
    }

    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
