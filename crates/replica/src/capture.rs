//! What programs change in tracked tables: recorded by triggers, then made into messages.

pub(crate) mod pending_change;
pub(crate) mod provisional_keys;
pub(crate) mod renumber;
pub(crate) mod timestamping;
pub(crate) mod triggers;
