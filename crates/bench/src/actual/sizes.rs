//! How many messages the parts of the benchmark take.

use crate::message_generator::{MESSAGES_PER_TRANSACTION, MessageSchedule};

/// An app that imports 1,000 transactions takes some 8 s for it.
pub(crate) const IMPORT: MessageSchedule =
    MessageSchedule { at_once: MESSAGES_PER_TRANSACTION, before_ms: 8, step_ms: 8 };

/// A click a second, after an import.
pub(crate) const SMALL: MessageSchedule = MessageSchedule { step_ms: 1_000, ..IMPORT };
