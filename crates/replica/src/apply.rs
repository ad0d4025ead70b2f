//! Turns messages into rows: merges them into row states, and materializes those in the tables.

pub(crate) mod materialize;
pub(crate) mod merge;
pub(crate) mod row_state;
pub(crate) mod row_writer;
pub(crate) mod unseen;
pub(crate) mod visibility_override;
