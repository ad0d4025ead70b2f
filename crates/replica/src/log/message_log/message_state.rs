//! What the columns `merge_state` and `sent` of a message say.

/// `warren_message.merge_state`: the state does not have it yet.
pub(crate) const UNMERGED: i64 = 0;

/// The state has it.
pub(crate) const MERGED: i64 = 1;

/// It is no change here, and never shown.
pub(crate) const REJECTED: i64 = 2;

/// `warren_message.sent`: the server lacks it.
pub(crate) const UNSENT: i64 = 0;

/// The server calls its timestamp invalid. 1: it has it.
pub(crate) const SET_ASIDE: i64 = 2;
