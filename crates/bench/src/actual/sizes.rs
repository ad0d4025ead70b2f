//! Defines the schedules of the benchmark's messages: how many at a time, and how far apart.

use crate::message_generator::{MESSAGES_PER_TRANSACTION, MessageSchedule};

/// The schedule of an import: an app that imports 1,000 transactions takes about 8 s.
pub(crate) const IMPORT: MessageSchedule =
    MessageSchedule { at_once: MESSAGES_PER_TRANSACTION, before_ms: 8, step_ms: 8 };

/// The schedule of small syncs: one click per second, after an import.
pub(crate) const SMALL: MessageSchedule = MessageSchedule { step_ms: 1_000, ..IMPORT };
