//! What is broken in a file: pages, indexes, constraints, declarations.

use super::entry::CatalogueEntry;
use super::finding_code::FindingCode;
use crate::report::severity::Severity::{Error, Warning};

pub(super) const INTEGRITY: &[CatalogueEntry] = &[
    CatalogueEntry {
        code: FindingCode::CompanionForeign,
        severity: Error,
        title: "a journal or a WAL next to the file belongs to another file",
        why: "SQLite finds a journal and a WAL by their names. One that was left by another \
              database, or by another state of this one (a backup was put in the file's place), \
              is played into the file by the next program that opens it.",
        reference: "https://sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use",
        detection: "In memory, the file fails the integrity check together with what is beside it, \
              and passes alone.",
        fix: "Copy both, then move the journal or the WAL away before any program opens the file.",
    },
    CatalogueEntry {
        code: FindingCode::ConstraintViolated,
        severity: Error,
        title: "rows violate a constraint of their table",
        why: "CHECK, NOT NULL and the types of a STRICT table hold for what is written while they \
              are declared and checked: rows from before, or from a program that had turned the \
              checks off, may break them.",
        reference: "https://sqlite.org/pragma.html#pragma_integrity_check",
        detection: "PRAGMA integrity_check says so. CHECK constraints can be looked at only where \
              no other program has the file open.",
        fix: "Find the rows, and mend or delete them.",
    },
    CatalogueEntry {
        code: FindingCode::IndexBroken,
        severity: Error,
        title: "an index and its table differ",
        why: "A query that goes by the index misses rows or finds wrong ones, one that scans the \
              table does not: the same question has two answers. A table's rows are whole.",
        reference: "https://sqlite.org/lang_reindex.html",
        detection: "PRAGMA integrity_check says so; in tables that are too large for the time, 200 \
              sampled rows are looked up in each index.",
        fix: "REINDEX, which makes the index anew from the table.",
    },
    CatalogueEntry {
        code: FindingCode::PageBroken,
        severity: Error,
        title: "a page fails the integrity check",
        why: "The file is damaged: rows are lost or wrong, and writing to it spreads that.",
        reference: "https://sqlite.org/howtocorrupt.html",
        detection: "PRAGMA integrity_check, if its estimated time fits three fifths of what is \
              left of the budget. If not, table by table, the smallest first, in full or without \
              the indexes; sampled pages of the others; and the list of free pages. In an \
              encrypted file, a page whose tag is not its own cannot be read.",
        fix: "Take a copy of all files first. Restore a backup, or save what can be read into a \
              new file: warren recover FILE NEW.",
    },
    CatalogueEntry {
        code: FindingCode::SequenceExhausted,
        severity: Error,
        title: "an AUTOINCREMENT table has used its last number",
        why: "AUTOINCREMENT gives each row a number above all that ever were. After \
              9223372036854775807 there is none: no row can be inserted without a number of its own.",
        reference: "https://sqlite.org/autoinc.html",
        detection: "sqlite_sequence has that number.",
        fix: "Give the rows with such numbers others, and set the table's row in sqlite_sequence.",
    },
    CatalogueEntry {
        code: FindingCode::TriggerBroken,
        severity: Error,
        title: "a trigger refers to something that does not exist",
        why: "SQLite reads a trigger when a statement on its table is compiled. Where it names a \
              table or a column that was dropped, that statement fails, whatever it does.",
        reference: "https://sqlite.org/lang_createtrigger.html",
        detection: "An INSERT, an UPDATE and a DELETE on each table that has triggers are \
              compiled, not run.",
        fix: "Drop the trigger, or make it anew.",
    },
    CatalogueEntry {
        code: FindingCode::UniqueViolated,
        severity: Error,
        title: "a unique index has the same value twice",
        why: "Programs and the query planner trust that there is one such row. VACUUM and REINDEX \
              fail on it.",
        reference: "https://sqlite.org/pragma.html#pragma_integrity_check",
        detection: "PRAGMA integrity_check says so.",
        fix: "Delete or change all rows but one of each value; then REINDEX.",
    },
    CatalogueEntry {
        code: FindingCode::ViewBroken,
        severity: Warning,
        title: "a view refers to something that does not exist",
        why: "A view is text until it is asked for. Where it names a table or a column that was \
              dropped, each query of it fails; and SQLite refuses to rename tables or columns \
              while there is such a view.",
        reference: "https://sqlite.org/lang_createview.html",
        detection: "A query of each view is compiled, not run.",
        fix: "Drop the view, or make it anew.",
    },
    CatalogueEntry {
        code: FindingCode::VirtualTableBroken,
        severity: Error,
        title: "a full-text index or an R-tree is inconsistent",
        why: "A search by it misses rows, or finds what was deleted. Where triggers keep it up to \
              date, a change that went past them is enough.",
        reference: "https://sqlite.org/fts5.html#the_integrity_check_command",
        detection: "PRAGMA integrity_check, which asks FTS3 to FTS5 and R-trees for their own \
              check; and the integrity-check command of FTS5, which compares an index with its \
              content table, if no other program has the file open.",
        fix: "INSERT INTO t (t) VALUES ('rebuild') for full-text indexes; others are made anew.",
    },
];
