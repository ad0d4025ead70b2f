//! What a snippet asks of a live connection, in the order in which it prints it
//! (`docs/reference/formats/19-settings.md`).
//!
//! # Not here
//! - Who reads it → `doctor`, `settings.rs`.

/// PRAGMAs, as the lines of a snippet: each answers with rows of one column, and those that a
/// library does not know with none.
pub(super) const PRAGMAS: [&str; 4] = [
    "journal_mode synchronous busy_timeout foreign_keys cache_size mmap_size temp_store",
    "temp_store_directory secure_delete auto_vacuum encoding page_size wal_autocheckpoint",
    "journal_size_limit locking_mode analysis_limit recursive_triggers trusted_schema",
    "cell_size_check query_only compile_options cipher cipher_version",
];

/// The rest that SQLite knows: rows that are lines. It has no double quotes, and no backticks.
pub(super) const QUERY: [&str; 2] = [
    "SELECT 'sqlite_version=' || sqlite_version() UNION ALL",
    "SELECT 'file=' || file FROM pragma_database_list WHERE seq = 0",
];

/// The PRAGMAs as one text over several lines.
pub(super) fn pragmas(margin: &str) -> String {
    PRAGMAS.join(&format!("\n{margin}"))
}

/// The query, likewise.
pub(super) fn query(margin: &str) -> String {
    QUERY.join(&format!("\n{margin}"))
}

/// The snippet, below what it is for.
pub(super) fn explained(comment: &str, code: &str) -> String {
    let lines = [
        "Call this with a connection that your program opened. Save the output, and run",
        "`warren doctor app.db --settings FILE`.",
    ];
    lines.map(|line| format!("{comment} {line}\n")).concat() + code
}
