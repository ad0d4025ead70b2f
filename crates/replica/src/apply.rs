//! From messages to rows: what has won in each cell, and what a table shows of it.

pub(crate) mod materialize;
pub(crate) mod merge;
pub(crate) mod row_state;
pub(crate) mod row_writer;
pub(crate) mod unseen;
pub(crate) mod visibility_override;
