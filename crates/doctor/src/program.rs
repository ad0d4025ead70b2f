//! What a program says of itself: the settings of its connections, and its log of queries.

pub(crate) mod settings;
pub(crate) mod sql;
pub(crate) mod workload;
