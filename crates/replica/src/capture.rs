//! Captures the changes of programs in tracked tables: triggers record them, and timestamping turns
//! them into messages.

pub(crate) mod pending_change;
pub(crate) mod provisional_keys;
pub(crate) mod renumber;
pub(crate) mod timestamping;
pub(crate) mod triggers;
