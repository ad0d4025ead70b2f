//! The catalogue's entries for problems in a file: pages, tables, indexes, statistics.

use super::entry::CatalogueEntry;
use super::finding_code::FindingCode;
use crate::report::severity::Severity::{Error, Info, Warning};

pub(super) const CONTENT: &[CatalogueEntry] = &[
    CatalogueEntry {
        code: FindingCode::AutoVacuumOff,
        severity: Info,
        title: "auto_vacuum is off in a file with many free pages",
        why: "Without auto_vacuum, only VACUUM returns free pages to the file system. It rewrites \
              the whole file and locks it during that time. With INCREMENTAL, free pages can be \
              returned in small steps.",
        reference: "https://sqlite.org/pragma.html#pragma_auto_vacuum",
        detection: "The file has the finding fragmented, and its header says that auto_vacuum is \
              off.",
        fix: "If rows are deleted regularly: PRAGMA auto_vacuum = INCREMENTAL, one VACUUM, and \
              then PRAGMA incremental_vacuum from time to time. It adds a small cost to each \
              change of the file's size.",
    },
    CatalogueEntry {
        code: FindingCode::BlobBeforeColumns,
        severity: Warning,
        title: "large values are stored before small columns",
        why: "A row that does not fit on its page continues in a chain of overflow pages. To read \
              a column after a large value, SQLite follows that chain from its start, page by \
              page.",
        reference: "https://sqlite.org/fileformat.html#cell_payload_overflow_pages",
        detection: "Sampled rows show where columns start: on average, a small column (64 bytes or \
              less) starts one overflow page or more into the row. The cost is measured on these \
              rows, in memory, with the current order of columns and with the small columns first.",
        fix: "Re-create the table with the large columns last, or move them to a separate table.",
    },
    CatalogueEntry {
        code: FindingCode::CipherUnauthenticated,
        severity: Info,
        title: "the cipher does not authenticate its pages",
        why: "aes256cbc prevents others from reading the file, but not from changing it: a changed \
              page decrypts to other data without an error. chacha20, aegis, ascon128 and \
              sqlcipher store an authentication tag with each page.",
        reference: "https://utelle.github.io/SQLite3MultipleCiphers/docs/ciphers/cipher_overview/",
        detection: "The file opens as aes256cbc.",
        fix: "VACUUM INTO a file with another cipher.",
    },
    CatalogueEntry {
        code: FindingCode::DescendingIgnored,
        severity: Warning,
        title: "DESC in an index is ignored",
        why: "Schema formats below 4 have no descending indexes: DESC is accepted, but ignored. A \
              query that needs the descending order sorts.",
        reference: "https://sqlite.org/fileformat.html#schema_format_number",
        detection: "The schema format in the header is below 4, and an index has a descending \
              column.",
        fix: "PRAGMA legacy_file_format = OFF, then VACUUM.",
    },
    CatalogueEntry {
        code: FindingCode::ForeignKeyMismatch,
        severity: Error,
        title: "a foreign key refers to columns that are not a unique key",
        why: "The columns that a foreign key refers to must be the primary key or have a UNIQUE \
              index on exactly these columns. Otherwise, with foreign keys on, each write to these \
              tables fails with \"foreign key mismatch\".",
        reference: "https://sqlite.org/foreignkeys.html#fk_indexes",
        detection: "PRAGMA foreign_key_check reports it.",
        fix: "Create a UNIQUE index on the columns of the parent table.",
    },
    CatalogueEntry {
        code: FindingCode::ForeignKeyParentAbsent,
        severity: Info,
        title: "a foreign key refers to a table that is not in the file",
        why: "Foreign keys are checked only on connections that turn them on. Some programs keep \
              the parent table in another file, which they attach, or use foreign keys only as \
              documentation; Fossil does both. Or the parent table was dropped.",
        reference: "https://sqlite.org/foreignkeys.html",
        detection: "No table in the file has the name that the foreign key refers to. The rows of \
              a table with such a foreign key are not checked.",
        fix: "None, unless the parent table is missing by mistake.",
    },
    CatalogueEntry {
        code: FindingCode::ForeignKeyUnindexed,
        severity: Warning,
        title: "a foreign key has no index on its own columns",
        why: "When a parent row is deleted or its key changes, SQLite searches for its child rows. \
              Without an index on their foreign key, it scans the child table for each parent row.",
        reference: "https://sqlite.org/foreignkeys.html#fk_indexes",
        detection: "No index starts with the columns of the foreign key, and its table has about \
              10,000 rows or more. There is no cost if foreign keys are off, or if parent rows are \
              never deleted and their keys never change.",
        fix: "Create an index on these columns.",
    },
    CatalogueEntry {
        code: FindingCode::ForeignKeyViolated,
        severity: Warning,
        title: "rows refer to rows that do not exist",
        why: "SQLite checks foreign keys only on connections that turn them on. The program that \
              wrote these rows did not; or it writes 0 for \"none\", and uses foreign keys only as \
              documentation.",
        reference: "https://sqlite.org/pragma.html#pragma_foreign_key_check",
        detection: "PRAGMA foreign_key_check, table by table, smallest first, in at most half of \
              the remaining time. At most 1,000 rows are counted in each table.",
        fix: "If the program relies on its foreign keys: fix the rows, then PRAGMA foreign_keys = \
              ON on every connection.",
    },
    CatalogueEntry {
        code: FindingCode::Fragmented,
        severity: Warning,
        title: "a large part of the file is free pages",
        why: "Pages of deleted rows stay in the file until it is vacuumed. Because of them the \
              file is larger, and its rows are more scattered, than necessary.",
        reference: "https://sqlite.org/lang_vacuum.html",
        detection: "Free pages, as counted in the file's header, are 15 % of the file or more, and \
              1 MB or more.",
        fix: "VACUUM; or, with auto_vacuum = INCREMENTAL, PRAGMA incremental_vacuum.",
    },
    CatalogueEntry {
        code: FindingCode::IdentityUnset,
        severity: Info,
        title: "application_id or user_version is not set",
        why: "application_id identifies the type of a file, also for file(1). user_version is the \
              version of its schema, unless a migration tool stores that elsewhere.",
        reference: "https://sqlite.org/pragma.html#pragma_application_id",
        detection: "At least one of them is 0 in the header, and there is a table of a migration \
              tool.",
        fix: "PRAGMA application_id and PRAGMA user_version, once.",
    },
    CatalogueEntry {
        code: FindingCode::IndexCollation,
        severity: Warning,
        title: "an index sorts with another collation than its column",
        why: "SQLite uses an index only for comparisons with the collation of the index. A \
              comparison uses the collation of its column, so such an index serves only queries \
              with a COLLATE clause.",
        reference: "https://sqlite.org/queryplanner.html",
        detection: "The collation of the first column of the index differs from that of the \
              column.",
        fix: "Declare the collation on the column, add COLLATE to the queries, or drop the index.",
    },
    CatalogueEntry {
        code: FindingCode::IndexDuplicate,
        severity: Warning,
        title: "an index is a copy of another",
        why: "Every insert and delete updates each index, and each index takes space. The planner \
              uses one of the two. A UNIQUE or PRIMARY KEY constraint creates its own index, and \
              an INTEGER PRIMARY KEY is the order of the table.",
        reference: "https://sqlite.org/lang_createtable.html#unique_constraints",
        detection: "Both have the same columns with the same collations and directions; neither is \
              partial or on an expression. A unique index is not reported as a copy of one that is \
              not unique.",
        fix: "Drop the index that a CREATE INDEX statement created.",
    },
    CatalogueEntry {
        code: FindingCode::IndexPrefix,
        severity: Warning,
        title: "an index is the start of another",
        why: "An index on (a, b) serves every query that an index on (a) serves. The shorter index \
              is slightly faster for queries by a alone, but it takes space and slows down each \
              write.",
        reference: "https://sqlite.org/queryplanner.html#_multi_column_indices",
        detection: "The columns of the index are the first columns of another index, with the same \
              collations and directions, and the index has about 100 kB or more.",
        fix: "Drop it, unless queries by that column alone are the main use of the file.",
    },
    CatalogueEntry {
        code: FindingCode::IndexSingleValue,
        severity: Info,
        title: "all rows have the same value in an index",
        why: "An index whose column has only one value finds all rows or none.",
        reference: "https://sqlite.org/lang_analyze.html",
        detection: "sqlite_stat1 shows it, for 1,000 rows or more: there are as many rows per \
              value as rows.",
        fix: "Drop it; or, if it serves to find the few rows that will have another value, make it \
              partial.",
    },
    CatalogueEntry {
        code: FindingCode::PageSizeSmall,
        severity: Info,
        title: "pages are smaller than 4,096 bytes",
        why: "Small pages mean deeper trees and more calls for the same rows. In our measurements, \
              the speed of transactions on pages of 1,024 bytes was 0.85, and on pages of 2,048 \
              bytes 0.92, of the speed on pages of 4,096 bytes.",
        reference: "https://sqlite.org/pgszchng2016.html",
        detection: "The page size in the header. Only files of 10 MB or more.",
        fix: "PRAGMA page_size = 4096, then VACUUM. It takes effect only outside WAL mode.",
    },
    CatalogueEntry {
        code: FindingCode::PagesHalfEmpty,
        severity: Warning,
        title: "the pages of a table or an index are less than half full",
        why: "Rows that were deleted here and there leave free space in their pages, and only rows \
              with neighboring keys fill it again. The page cache then contains half as many rows.",
        reference: "https://sqlite.org/lang_vacuum.html",
        detection: "Sampled leaf pages are less than 50 % full, and there is 1 MB of them or more. \
              Rows inserted in random order fill pages to about 69 %.",
        fix: "VACUUM.",
    },
    CatalogueEntry {
        code: FindingCode::QueryIndexMissing,
        severity: Warning,
        title: "a query would use an index that does not exist",
        why: "Without it, SQLite reads every row of a table, sorts, or builds a temporary index \
              for this one query.",
        reference: "https://sqlite.org/queryplanner.html",
        detection: "For each --query, and each statement of --queries, whose plan has a SCAN, a \
              temporary B-tree or an automatic index: indexes on up to three of the columns that \
              it reads, and on its expressions, orders and LIKEs, are tried. The planner must use \
              one of them, and the plan must lose such a step. This happens in an empty copy of \
              the schema, with the statistics of the file and, for the tried indexes, estimates \
              from sampled rows. If the values of a query are known, and no program has the file \
              open, the query then runs in memory without the index and with it, and with covering \
              and partial indexes; an index that saves nothing is not advised. For --queries, an \
              index that the other advised indexes make redundant is left out.",
        fix: "CREATE INDEX as in the finding, then ANALYZE.",
    },
    CatalogueEntry {
        code: FindingCode::QueryScans,
        severity: Info,
        title: "a query reads a whole table or sorts, and no index helps",
        why: "Its time grows with the table. That is correct for a query that needs all rows.",
        reference: "https://sqlite.org/eqp.html",
        detection: "As for query_index_missing, but the planner uses none of the indexes, or the \
              plan keeps its steps.",
        fix: "Select fewer rows, or select rows by a column.",
    },
    CatalogueEntry {
        code: FindingCode::StatisticsAbsent,
        severity: Warning,
        title: "indexes have no statistics",
        why: "If two indexes could serve a query, the planner compares them by their statistics. \
              Without statistics, it guesses from their definitions.",
        reference: "https://sqlite.org/lang_analyze.html",
        detection: "A table with about 10,000 rows or more, and with two or more non-unique \
              indexes, has no row in sqlite_stat1.",
        fix: "PRAGMA optimize = 0x10002 once; then PRAGMA optimize when a connection closes, or \
              once a day.",
    },
    CatalogueEntry {
        code: FindingCode::StatisticsStale,
        severity: Warning,
        title: "the statistics are out of date",
        why: "The planner calculates with the row counts of the last ANALYZE, not with the current \
              ones.",
        reference: "https://sqlite.org/pragma.html#pragma_optimize",
        detection: "The row counts in sqlite_stat1 and those estimated from a sample differ by a \
              factor of 10 or more, from 10,000 rows on. At this factor, PRAGMA optimize would \
              analyze again.",
        fix: "ANALYZE; then PRAGMA optimize when a connection closes, or once a day.",
    },
];
