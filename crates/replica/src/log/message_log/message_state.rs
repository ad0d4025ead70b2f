//! Defines the values of a message's columns `merge_state` and `sent`.

/// `warren_message.merge_state`: the message is not merged into the row states yet.
pub(crate) const UNMERGED: i64 = 0;

/// `warren_message.merge_state`: the message is merged into the row states.
pub(crate) const MERGED: i64 = 1;

/// `warren_message.merge_state`: the message cannot be read here and is never shown.
pub(crate) const REJECTED: i64 = 2;

/// `warren_message.sent`: the server lacks the message.
pub(crate) const UNSENT: i64 = 0;

/// `warren_message.sent`: the server rejects the timestamp as invalid. (1: the server has it.)
pub(crate) const SET_ASIDE: i64 = 2;
