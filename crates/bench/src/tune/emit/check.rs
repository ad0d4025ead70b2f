//! Defines the queries of a snippet on a live connection, in the order of its output
//! (`docs/reference/formats/19-settings.md`).
//!
//! # Not here
//! - Reading the output → `doctor`, `settings.rs`.

/// The PRAGMAs as lines of a snippet: each returns rows of one column, or no rows if the library
/// does not support it.
pub(super) const PRAGMAS: [&str; 4] = [
    "journal_mode synchronous busy_timeout foreign_keys cache_size mmap_size temp_store",
    "temp_store_directory secure_delete auto_vacuum encoding page_size wal_autocheckpoint",
    "journal_size_limit locking_mode analysis_limit recursive_triggers trusted_schema",
    "cell_size_check query_only compile_options cipher cipher_version",
];

/// The query for all other values, whose rows are lines of output. It contains no double quotes
/// and no backticks.
pub(super) const QUERY: [&str; 2] = [
    "SELECT 'sqlite_version=' || sqlite_version() UNION ALL",
    "SELECT 'file=' || file FROM pragma_database_list WHERE seq = 0",
];

/// Returns the PRAGMAs as one text over several lines.
pub(super) fn pragmas(margin: &str) -> String {
    PRAGMAS.join(&format!("\n{margin}"))
}

/// Returns the query as one text over several lines.
pub(super) fn query(margin: &str) -> String {
    QUERY.join(&format!("\n{margin}"))
}

/// Returns the snippet below a comment on its purpose.
pub(super) fn explained(comment: &str, code: &str) -> String {
    let lines = [
        "Call this with a connection that your program opened. Save the output, and run",
        "`warren doctor app.db --settings FILE`.",
    ];
    lines.map(|line| format!("{comment} {line}\n")).concat() + code
}
