//! A query that is looked at.

use rusqlite::types::Value;

/// A query, with the values of its parameters if they are known.
#[derive(Clone, Copy)]
pub(crate) struct AnalyzedQuery<'a> {
    pub(crate) sql: &'a str,
    pub(crate) values: Option<&'a [Value]>,
    /// A value in its text stands in the program's text, too.
    pub(crate) is_verbatim: bool,
}
