//! What is wrong in a file: pages, tables, indexes, statistics.

use super::entry::CatalogueEntry;
use super::finding_code::FindingCode;
use crate::report::severity::Severity::{Error, Info, Warning};

pub(super) const CONTENT: &[CatalogueEntry] = &[
    CatalogueEntry {
        code: FindingCode::AutoVacuumOff,
        severity: Info,
        title: "auto_vacuum is off in a file with many free pages",
        why: "Without auto_vacuum, free pages go back to the file system by VACUUM alone, which \
              writes the whole file anew and locks it meanwhile. With INCREMENTAL they can be \
              given back in small steps.",
        reference: "https://sqlite.org/pragma.html#pragma_auto_vacuum",
        detection: "The file has the finding fragmented, and its header says that there is no \
              auto_vacuum.",
        fix: "Where rows are deleted all the time: PRAGMA auto_vacuum = INCREMENTAL, one \
              VACUUM, and then PRAGMA incremental_vacuum now and then. It costs a little at each \
              change of the file's size.",
    },
    CatalogueEntry {
        code: FindingCode::BlobBeforeColumns,
        severity: Warning,
        title: "large values are stored before small columns",
        why: "A row that does not fit its page goes on in a chain of overflow pages. To read a \
              column behind a large value, SQLite walks that chain from its start, one page \
              after the other.",
        reference: "https://sqlite.org/fileformat.html#cell_payload_overflow_pages",
        detection: "In sampled rows, where the columns begin: on average, a small column (64 bytes \
              or less) is one overflow page or more into the row. The cost is measured on these \
              rows, in memory, as they are and with the small columns first.",
        fix: "Make the table anew with the large columns last, or put them into a table of \
              their own.",
    },
    CatalogueEntry {
        code: FindingCode::CipherUnauthenticated,
        severity: Info,
        title: "the cipher does not authenticate its pages",
        why: "aes256cbc keeps others from reading the file, not from changing it: a changed page \
              decrypts to something, and nobody notices. chacha20, aegis, ascon128 and sqlcipher \
              keep a tag with each page.",
        reference: "https://utelle.github.io/SQLite3MultipleCiphers/docs/ciphers/cipher_overview/",
        detection: "The file opens as aes256cbc.",
        fix: "VACUUM INTO a file with another cipher.",
    },
    CatalogueEntry {
        code: FindingCode::DescendingIgnored,
        severity: Warning,
        title: "DESC in an index is ignored",
        why: "A schema of a format before 4 knows no descending indexes: DESC is read, and \
              ignored. A query that relies on it sorts.",
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
              index on exactly them. Otherwise, with foreign keys on, each write to these tables \
              fails with \"foreign key mismatch\".",
        reference: "https://sqlite.org/foreignkeys.html#fk_indexes",
        detection: "PRAGMA foreign_key_check says so.",
        fix: "A UNIQUE index on the columns of the parent.",
    },
    CatalogueEntry {
        code: FindingCode::ForeignKeyParentAbsent,
        severity: Info,
        title: "a foreign key refers to a table that is not in the file",
        why: "References are checked only where a connection turned that on. Some programs keep \
              the parent in another file, which they attach, or write references as \
              documentation; Fossil does both. Or the parent was dropped.",
        reference: "https://sqlite.org/foreignkeys.html",
        detection: "No table of the file has the name that the reference has. The rows of such a \
              table are not looked at.",
        fix: "None, unless the parent is missing by mistake.",
    },
    CatalogueEntry {
        code: FindingCode::ForeignKeyUnindexed,
        severity: Warning,
        title: "a foreign key has no index on its own columns",
        why: "When a parent row is deleted or its key changes, SQLite looks for its children. \
              Without an index on their columns it scans the table of the children, for each row.",
        reference: "https://sqlite.org/foreignkeys.html#fk_indexes",
        detection: "No index begins with the columns of the foreign key, and its table has about \
              10,000 rows or more. With foreign keys off, and in a table whose parents never go, \
              it costs nothing.",
        fix: "An index on these columns.",
    },
    CatalogueEntry {
        code: FindingCode::ForeignKeyViolated,
        severity: Warning,
        title: "rows refer to rows that do not exist",
        why: "SQLite checks foreign keys only on connections that turned it on. Whatever wrote \
              these rows had not; or it writes 0 for none, and means its references as \
              documentation.",
        reference: "https://sqlite.org/pragma.html#pragma_foreign_key_check",
        detection: "PRAGMA foreign_key_check, table by table, the smallest first, in at most half \
              of the time that is left; up to 1,000 rows are counted in each.",
        fix: "If the program means them: mend the rows, then PRAGMA foreign_keys = ON on every \
              connection.",
    },
    CatalogueEntry {
        code: FindingCode::Fragmented,
        severity: Warning,
        title: "a large part of the file is free pages",
        why: "Pages of deleted rows stay in the file until it is vacuumed. They make it larger, \
              and its rows more scattered, than they need be.",
        reference: "https://sqlite.org/lang_vacuum.html",
        detection: "Free pages, as the file's header counts them, are 15 % of the file or more, \
              and 1 MB or more.",
        fix: "VACUUM; or, with auto_vacuum = INCREMENTAL, PRAGMA incremental_vacuum.",
    },
    CatalogueEntry {
        code: FindingCode::IdentityUnset,
        severity: Info,
        title: "application_id or user_version is not set",
        why: "application_id tells what a file is, to file(1) too; user_version tells which \
              version of its schema it has, where a migration tool keeps that nowhere else.",
        reference: "https://sqlite.org/pragma.html#pragma_application_id",
        detection: "They are 0 in the header, and there is a table of a migration tool.",
        fix: "PRAGMA application_id and PRAGMA user_version, once.",
    },
    CatalogueEntry {
        code: FindingCode::IndexCollation,
        severity: Warning,
        title: "an index sorts with another collation than its column",
        why: "SQLite uses an index only for comparisons by the collation that the index has. A \
              comparison takes the collation of its column, so such an index serves only queries \
              that say COLLATE.",
        reference: "https://sqlite.org/queryplanner.html",
        detection: "The collation of the first column of the index differs from that of the \
              column.",
        fix: "Declare the collation on the column, or say COLLATE in the queries, or drop the \
              index.",
    },
    CatalogueEntry {
        code: FindingCode::IndexDuplicate,
        severity: Warning,
        title: "an index is a copy of another",
        why: "Each index is kept up to date by every insert and delete, and takes room. The \
              planner uses one of the two. A UNIQUE or PRIMARY KEY constraint makes an index by \
              itself, and an INTEGER PRIMARY KEY is the order of the table.",
        reference: "https://sqlite.org/lang_createtable.html#unique_constraints",
        detection: "The same columns with the same collations and directions; neither is partial \
              or on an expression; no unique index is given up for one that is not.",
        fix: "Drop the one that was created.",
    },
    CatalogueEntry {
        code: FindingCode::IndexPrefix,
        severity: Warning,
        title: "an index is the start of another",
        why: "An index on (a, b) answers what an index on (a) answers. The shorter one is a \
              little quicker for queries by a alone; it costs room and each write.",
        reference: "https://sqlite.org/queryplanner.html#_multi_column_indices",
        detection: "The columns of the index begin another index, with the same collations and \
              directions, and it has about 100 kB or more.",
        fix: "Drop it, unless queries by that column alone are what the file is for.",
    },
    CatalogueEntry {
        code: FindingCode::IndexSingleValue,
        severity: Info,
        title: "all rows have the same value in an index",
        why: "An index whose column has one value finds all rows or none.",
        reference: "https://sqlite.org/lang_analyze.html",
        detection: "sqlite_stat1 says so, of 1,000 rows or more: as many rows per value as there \
              are rows.",
        fix: "Drop it; or make it partial, where it is to find the few rows that will be \
              different.",
    },
    CatalogueEntry {
        code: FindingCode::PageSizeSmall,
        severity: Info,
        title: "pages are smaller than 4,096 bytes",
        why: "Small pages make deeper trees and more calls for the same rows. Measured here, \
              transactions on pages of 1,024 bytes ran at 0.85, and on 2,048 at 0.92, of the \
              speed on 4,096.",
        reference: "https://sqlite.org/pgszchng2016.html",
        detection: "The size in the header; files from 10 MB on.",
        fix: "PRAGMA page_size = 4096, then VACUUM, which takes effect outside WAL mode only.",
    },
    CatalogueEntry {
        code: FindingCode::PagesHalfEmpty,
        severity: Warning,
        title: "the pages of a table or an index are less than half full",
        why: "Rows that were deleted here and there leave room in their pages, which only rows \
              with neighbouring keys fill again. The cache then holds half as much.",
        reference: "https://sqlite.org/lang_vacuum.html",
        detection: "Sampled leaves are less than 50 % full, and there is 1 MB of them or more. \
              Rows inserted in any order fill pages to about 69 %.",
        fix: "VACUUM.",
    },
    CatalogueEntry {
        code: FindingCode::QueryIndexMissing,
        severity: Warning,
        title: "a query would use an index that does not exist",
        why: "Without it, SQLite reads every row of a table, or sorts, or builds an index for \
              the time of the query.",
        reference: "https://sqlite.org/queryplanner.html",
        detection: "For each --query, and each statement of --queries: its plan has a SCAN, a \
              temporary B-tree or an automatic index; and of all indexes on up to three of the \
              columns that it reads, and on the expressions, the orders and the LIKEs that it has, \
              the planner takes one, and the plan loses such a step. Tried in an empty copy of the \
              schema, with the statistics of the file and, for the indexes that are tried, \
              estimates from sampled rows. A query whose values are known, on a file that nobody \
              has open, then runs in memory without the index and with it, and with covering and \
              partial ones; what costs no less is not advised. Of a load, an index that the others \
              make needless is left out.",
        fix: "CREATE INDEX, as the finding says, and then ANALYZE.",
    },
    CatalogueEntry {
        code: FindingCode::QueryScans,
        severity: Info,
        title: "a query reads a whole table or sorts, and no index helps",
        why: "Its time grows with the table. For a query that needs all rows that is right.",
        reference: "https://sqlite.org/eqp.html",
        detection: "As query_index_missing, but the planner takes none of the indexes, or the plan \
              keeps its steps.",
        fix: "Ask for less, or by a column.",
    },
    CatalogueEntry {
        code: FindingCode::StatisticsAbsent,
        severity: Warning,
        title: "indexes have no statistics",
        why: "Where two indexes could serve a query, the planner compares them by statistics; \
              without, it guesses from their definitions.",
        reference: "https://sqlite.org/lang_analyze.html",
        detection: "A table with about 10,000 rows or more and two non-unique indexes or more has \
              no row in sqlite_stat1.",
        fix: "PRAGMA optimize = 0x10002 once; and PRAGMA optimize when a connection closes, or \
              once a day.",
    },
    CatalogueEntry {
        code: FindingCode::StatisticsStale,
        severity: Warning,
        title: "the statistics are out of date",
        why: "The planner takes the rows that ANALYZE counted for those that there are.",
        reference: "https://sqlite.org/pragma.html#pragma_optimize",
        detection: "The rows of sqlite_stat1 and those estimated from a sample differ by a factor \
              of 10 or more, from 10,000 rows on: where PRAGMA optimize would analyse again.",
        fix: "ANALYZE; and PRAGMA optimize when a connection closes, or once a day.",
    },
];
