//! Defines the query for which indexes are tried.

use rusqlite::types::Value;

/// A query, with the values of its parameters if they are known.
#[derive(Clone, Copy)]
pub(crate) struct AnalyzedQuery<'a> {
    pub(crate) sql: &'a str,
    pub(crate) values: Option<&'a [Value]>,
    /// Whether the values in the text are also part of the program's own text.
    pub(crate) is_verbatim: bool,
}
