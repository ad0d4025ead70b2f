//! Reads the content of a file: pages, B-trees, the schema, and the connection that reads them.

pub(crate) mod btree_page;
pub(crate) mod btree_sample;
pub(crate) mod check_error;
pub(crate) mod database_header;
pub(crate) mod opened_file;
pub(crate) mod opening;
pub(crate) mod record;
pub(crate) mod schema;
pub(crate) mod unreadable;
