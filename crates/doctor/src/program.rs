//! Reads the information about a program: the settings of its connections, and its query log.

pub(crate) mod settings;
pub(crate) mod sql;
pub(crate) mod workload;
