//! Describes the tables of this file, and how devices declare them to each other.

pub(crate) mod affinity;
pub(crate) mod column_default;
pub(crate) mod ddl;
pub(crate) mod declaration;
pub(crate) mod left_out;
pub(crate) mod missing_constraints;
pub(crate) mod references;
pub(crate) mod remote_tables;
pub(crate) mod schema_conflict;
pub(crate) mod tracked_table;
pub(crate) mod unique;
