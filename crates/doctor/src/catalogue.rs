//! Everything that the doctor can find: one row per code.
//!
//! # Invariants
//! - A code, once given out, keeps its meaning; the table is in their order (asserted by a test).
//! - The severity of a code is the severity of every finding of it.

use serde::Serialize;

use crate::finding::Severity::{self, Error, Warning};

/// What is to be known of a code.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Entry {
    /// Stable, `snake_case`.
    pub code: &'static str,
    /// Of every finding with it.
    pub severity: Severity,
    /// What it is.
    pub title: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// Where that is from.
    pub source: &'static str,
    /// How it is found, with the thresholds.
    pub how: &'static str,
    /// What to do about it, in general; a finding says it for the file.
    pub mend: &'static str,
}

/// The entry of a code.
pub fn entry(code: &str) -> Option<&'static Entry> {
    CATALOGUE.iter().find(|entry| entry.code == code)
}

/// Every code, in alphabetical order.
pub const CATALOGUE: &[Entry] = &[
    Entry {
        code: "blob_before_columns",
        severity: Warning,
        title: "large values stand before small columns",
        why: "A row that does not fit its page goes on in a chain of overflow pages. To read a \
              column behind a large value, SQLite walks that chain from its start, one page after \
              the other.",
        source: "https://sqlite.org/fileformat.html#cell_payload_overflow_pages",
        how: "In sampled rows, where the columns begin: on average, a small column (64 bytes or \
              less) is one overflow page or more into the row. The cost is measured on these rows, \
              in memory, as they are and with the small columns first.",
        mend: "Make the table anew with the large columns last, or put them into a table of their \
               own.",
    },
    Entry {
        code: "database_locked",
        severity: Error,
        title: "a process keeps the database locked",
        why: "While one connection has a write transaction open, no other can write; they wait for \
              busy_timeout and then get \"database is locked\". Without WAL, readers hold up \
              writers, too.",
        source: "https://sqlite.org/lockingv3.html",
        how: "The lock is seen in /proc/locks, again and again for a second, and is there each \
              time, while nothing is committed. The process is named.",
        mend: "Let that process commit, or end it. Keep transactions short, begin those that write \
               with BEGIN IMMEDIATE, and set busy_timeout on every connection.",
    },
    Entry {
        code: "file_empty",
        severity: Error,
        title: "the file has no bytes",
        why: "SQLite takes it for a new database and answers every query with \"no such table\". \
              A file becomes so when it is opened under a wrong name, or when somebody truncates \
              it; a journal beside it is deleted by the next who opens it.",
        source: "https://sqlite.org/howtocorrupt.html",
        how: "Its size is 0.",
        mend: "Find the file that was meant, or restore a backup, before any program opens it.",
    },
    Entry {
        code: "file_truncated",
        severity: Error,
        title: "the file is shorter than its header says",
        why: "Pages at its end are gone: SQLite calls the whole file malformed. Half a copy, a \
              full disk or a broken download make such files.",
        source: "https://sqlite.org/fileformat.html#in_header_database_size",
        how: "The page count of the header, where it was written together with the rest of it, \
              times the page size; and there is no WAL that could hold the rest.",
        mend: "Copy the file again from where it is whole, or restore a backup; the shell's \
               .recover saves what is left.",
    },
    Entry {
        code: "fragmented",
        severity: Warning,
        title: "much of the file is free pages",
        why: "Pages of deleted rows stay in the file until it is vacuumed. They make it larger, \
              and its rows more scattered, than they need be.",
        source: "https://sqlite.org/lang_vacuum.html",
        how: "Free pages, as the file's header counts them, are 15 % of the file or more, and 1 MB \
              or more.",
        mend: "VACUUM; or, with auto_vacuum = INCREMENTAL, PRAGMA incremental_vacuum.",
    },
    Entry {
        code: "page_broken",
        severity: Error,
        title: "a page fails integrity",
        why: "The file is damaged: rows are lost or wrong, and writing to it spreads that.",
        source: "https://sqlite.org/howtocorrupt.html",
        how: "PRAGMA quick_check, table by table, the smallest first, as far as the time goes; \
              pages sampled from the others. In an encrypted file, a page whose tag is not its \
              own cannot be read.",
        mend: "Take a copy of all files first. Restore a backup, or save what can be read with \
               the shell's .recover.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_everything_is_said() {
        assert!(CATALOGUE.is_sorted_by(|a, b| a.code < b.code));
        for entry in CATALOGUE {
            let is_snake = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(entry.code.chars().all(is_snake), "{}", entry.code);
            assert!(entry.source.starts_with("https://"), "{}", entry.code);
            let Entry { title, why, how, mend, .. } = entry;
            assert!([why, how, mend].iter().all(|text| text.ends_with('.')), "{}", entry.code);
            assert!(!title.ends_with('.') && !title.is_empty(), "{}", entry.code);
        }
    }
}
