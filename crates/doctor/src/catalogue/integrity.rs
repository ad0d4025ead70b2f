//! The catalogue's entries for damage in a file: pages, indexes, constraints, declarations.

use super::entry::CatalogueEntry;
use super::finding_code::FindingCode;
use crate::report::severity::Severity::{Error, Warning};

pub(super) const INTEGRITY: &[CatalogueEntry] = &[
    CatalogueEntry {
        code: FindingCode::CompanionForeign,
        severity: Error,
        title: "a journal or a WAL next to the file belongs to another file",
        why: "SQLite finds a journal and a WAL by name. If one is left over from another database, \
              or from another state of this one (a backup was put in its place), the next program \
              that opens the file applies it to the file.",
        reference: "https://sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use",
        detection: "In memory, the integrity check fails for the file together with the journal or \
              WAL, and passes for the file alone.",
        fix: "Copy both, then move the journal or WAL away before any program opens the file.",
    },
    CatalogueEntry {
        code: FindingCode::ConstraintViolated,
        severity: Error,
        title: "rows violate a constraint of their table",
        why: "CHECK, NOT NULL and the types of STRICT tables apply only to rows that are written \
              while they are declared and checked. Older rows, or rows of a program that had \
              turned the checks off, may violate them.",
        reference: "https://sqlite.org/pragma.html#pragma_integrity_check",
        detection: "PRAGMA integrity_check reports it. CHECK constraints can be checked only if no \
              other program has the file open.",
        fix: "Find the rows, and correct or delete them.",
    },
    CatalogueEntry {
        code: FindingCode::IndexBroken,
        severity: Error,
        title: "an index and its table differ",
        why: "A query that uses the index misses rows or finds wrong ones; a query that scans the \
              table does not. The same question has two answers. The rows of the table are intact.",
        reference: "https://sqlite.org/lang_reindex.html",
        detection: "PRAGMA integrity_check reports it; in tables that are too large for the time \
              limit, 200 sampled rows are looked up in each index.",
        fix: "REINDEX, which rebuilds the index from the table.",
    },
    CatalogueEntry {
        code: FindingCode::PageBroken,
        severity: Error,
        title: "a page fails the integrity check",
        why: "The file is damaged: rows are lost or wrong, and writing to the file spreads the \
              damage.",
        reference: "https://sqlite.org/howtocorrupt.html",
        detection: "PRAGMA integrity_check, if its estimated time is at most three fifths of the \
              remaining time. Otherwise: each table, smallest first, completely or without its \
              indexes; sampled pages of the other tables; and the list of free pages. In an \
              encrypted file, a page with a wrong authentication tag cannot be read.",
        fix: "First copy all files of the database. Then restore a backup, or save what can be \
              read into a new file: warren recover FILE NEW.",
    },
    CatalogueEntry {
        code: FindingCode::SequenceExhausted,
        severity: Error,
        title: "an AUTOINCREMENT table has used its last number",
        why: "AUTOINCREMENT gives each row a number above all earlier ones. After \
              9223372036854775807 there is none left, so a row without an explicit number cannot \
              be inserted.",
        reference: "https://sqlite.org/autoinc.html",
        detection: "sqlite_sequence contains that number.",
        fix: "Give other numbers to the rows with such numbers, and correct the table's row in \
              sqlite_sequence.",
    },
    CatalogueEntry {
        code: FindingCode::TriggerBroken,
        severity: Error,
        title: "a trigger refers to something that does not exist",
        why: "SQLite reads a trigger when it compiles a statement on its table. If the trigger \
              names a table or a column that was dropped, every such statement fails.",
        reference: "https://sqlite.org/lang_createtrigger.html",
        detection: "An INSERT, an UPDATE and a DELETE on each table that has triggers are \
              compiled, but not run.",
        fix: "Drop the trigger, or re-create it.",
    },
    CatalogueEntry {
        code: FindingCode::UniqueViolated,
        severity: Error,
        title: "a unique index has the same value twice",
        why: "Programs and the query planner rely on each value occurring only once. VACUUM and \
              REINDEX fail.",
        reference: "https://sqlite.org/pragma.html#pragma_integrity_check",
        detection: "PRAGMA integrity_check reports it.",
        fix: "Delete or change all rows but one of each value, then REINDEX.",
    },
    CatalogueEntry {
        code: FindingCode::ViewBroken,
        severity: Warning,
        title: "a view refers to something that does not exist",
        why: "A view is only text until it is queried. If it names a table or a column that was \
              dropped, every query of it fails, and SQLite refuses to rename tables or columns \
              while the view exists.",
        reference: "https://sqlite.org/lang_createview.html",
        detection: "A query of each view is compiled, but not run.",
        fix: "Drop the view, or re-create it.",
    },
    CatalogueEntry {
        code: FindingCode::VirtualTableBroken,
        severity: Error,
        title: "a full-text index or an R-tree is inconsistent",
        why: "A search misses rows, or finds deleted ones. If triggers keep the table up to date, \
              one change that bypassed them is enough.",
        reference: "https://sqlite.org/fts5.html#the_integrity_check_command",
        detection: "PRAGMA integrity_check, which also runs the checks of FTS3, FTS4, FTS5 and \
              R-tree tables; and the integrity-check command of FTS5, which compares an index with \
              its content table, if no other program has the file open.",
        fix: "For a full-text index, INSERT INTO t (t) VALUES ('rebuild'); re-create an R-tree.",
    },
];
