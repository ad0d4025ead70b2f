//! What is wrong with what a program sets on its connections.

use super::entry::CatalogueEntry;
use super::finding_code::FindingCode;
use crate::report::severity::Severity::{Error, Info, Warning};

pub(super) const CONNECTION: &[CatalogueEntry] = &[
    CatalogueEntry {
        code: FindingCode::BusyTimeoutAbsent,
        severity: Warning,
        title: "a connection does not wait for locks",
        why: "Only one connection writes at a time. One that finds the file locked waits for \
              busy_timeout; SQLite's default is 0, so it fails at once with \"database is locked\".",
        reference: "https://sqlite.org/pragma.html#pragma_busy_timeout",
        detection: "With --settings: busy_timeout is 0, and locking_mode is not EXCLUSIVE. A busy \
              handler of the program's own answers 0, too, and is not seen.",
        fix: "PRAGMA busy_timeout = 5000 on each connection: longer than a transaction should \
              take, shorter than a person waits. What runs in the background may wait a minute.",
    },
    CatalogueEntry {
        code: FindingCode::CacheLarge,
        severity: Warning,
        title: "a page cache may take most of the memory",
        why: "Each connection has a page cache of its own, which grows to cache_size and stays. When \
              memory is out, the system swaps or kills a process.",
        reference: "https://sqlite.org/pragma.html#pragma_cache_size",
        detection: "With --settings: the smaller of cache_size and the content is more than half \
              of the memory that Linux calls available now.",
        fix: "A smaller cache_size. The finding's number is a sixteenth of that memory, at most \
              256 MiB.",
    },
    CatalogueEntry {
        code: FindingCode::CacheSmall,
        severity: Info,
        title: "the page cache is small compared with the file",
        why: "What is not in the page cache is read from the system or the disk each time, and, in an \
              encrypted file, decrypted.",
        reference: "https://sqlite.org/pragma.html#pragma_cache_size",
        detection: "With --settings: content of 64 MiB or more, 8 times cache_size or more; and \
              the least of the content, a sixteenth of the available memory and 256 MiB is 4 times \
              cache_size or more. A memory map of the whole file counts as a cache.",
        fix: "A larger cache_size, divided by the number of connections; `warren tune` measures \
              what it gains.",
    },
    CatalogueEntry {
        code: FindingCode::CheckpointsOff,
        severity: Info,
        title: "a connection never moves the WAL into the file",
        why: "With wal_autocheckpoint 0, commits do not checkpoint. That is right where something else \
              does, such as Litestream; otherwise the WAL grows without end.",
        reference: "https://sqlite.org/wal.html#automatic_checkpoint",
        detection: "With --settings: wal_autocheckpoint is 0 or less, and the file has a WAL.",
        fix: "PRAGMA wal_autocheckpoint = 1000, SQLite's default, unless something else \
              checkpoints.",
    },
    CatalogueEntry {
        code: FindingCode::DoubleQuotedStrings,
        severity: Info,
        title: "a misspelled column in double quotes is taken as a string",
        why: "SQLite takes \"name\" for the text 'name' where no column is called so. A misspelt name \
              is then no error, and the query finds nothing.",
        reference: "https://sqlite.org/quirks.html#double_quoted_string_literals_are_accepted",
        detection: "With --settings: the library's compile options have no DQS=0. A program can \
              have it refused at run time, which is not seen.",
        fix: "Single quotes around texts; SQLITE_DBCONFIG_DQS_DML and _DDL, or a library compiled \
               with DQS=0.",
    },
    CatalogueEntry {
        code: FindingCode::EncodingWide,
        severity: Info,
        title: "text is stored as UTF-16",
        why: "Latin text takes two bytes a character instead of one, in the file and in the cache.",
        reference: "https://sqlite.org/pragma.html#pragma_encoding",
        detection: "With --settings: encoding is UTF-16.",
        fix: "Copy the content into a new file that is UTF-8; a file keeps its encoding.",
    },
    CatalogueEntry {
        code: FindingCode::EncryptionIneffective,
        severity: Error,
        title: "the program expects the file to be encrypted, and it is not",
        why: "SQLite ignores PRAGMAs that it does not know. A library without ciphers so ignores \
              PRAGMA key and cipher, and writes everything in plain.",
        reference: "https://sqlite.org/pragma.html",
        detection: "With --settings that have a line wanted.cipher=NAME: the file opens without a \
              key.",
        fix: "A build of SQLite that has the cipher, and then a key for the file.",
    },
    CatalogueEntry {
        code: FindingCode::ForeignKeysOff,
        severity: Warning,
        title: "foreign keys are declared, and the connection does not enforce them",
        why: "foreign_keys is OFF by default, and a setting of each connection: what the schema says \
              about references is then not done, neither refusals nor ON DELETE CASCADE.",
        reference: "https://sqlite.org/foreignkeys.html#fk_enable",
        detection: "With --settings: foreign_keys is 0, and a table declares one.",
        fix: "PRAGMA foreign_keys = ON on each connection, after rows that refer to nothing are \
               mended (foreign_key_violated).",
    },
    CatalogueEntry {
        code: FindingCode::JournalModeUnsafe,
        severity: Warning,
        title: "transactions have no journal on the disk",
        why: "With journal_mode OFF or MEMORY nothing on the disk can take a half-written transaction \
              back: a program that is killed in the middle leaves a broken file.",
        reference: "https://sqlite.org/pragma.html#pragma_journal_mode",
        detection: "With --settings: journal_mode is off or memory, of a file.",
        fix: "PRAGMA journal_mode = WAL, or DELETE.",
    },
    CatalogueEntry {
        code: FindingCode::SecureDeleteOff,
        severity: Info,
        title: "deleted content stays in the file",
        why: "SQLite marks deleted content as free and writes over it some time later; until then it \
              can be read in the file, in copies and in backups. With secure_delete ON it writes zeros \
              at once.",
        reference: "https://sqlite.org/pragma.html#pragma_secure_delete",
        detection: "With --settings: secure_delete is 0.",
        fix: "PRAGMA secure_delete = ON on each connection that deletes, and VACUUM once for what \
              is there; or FAST, which leaves free pages as they are.",
    },
    CatalogueEntry {
        code: FindingCode::SettingIneffective,
        severity: Warning,
        title: "a setting had no effect",
        why: "Where SQLite cannot do what a PRAGMA says, most answer with the old value and no error: \
              auto_vacuum after the first page was written, foreign_keys within a transaction, WAL on \
              a network disk.",
        reference: "https://sqlite.org/pragma.html",
        detection: "With --settings that have lines wanted.NAME=VALUE: the connection, or of \
              auto_vacuum and page_size the file, answers otherwise.",
        fix: "auto_vacuum and page_size by VACUUM, others where the finding says.",
    },
    CatalogueEntry {
        code: FindingCode::SettingsMismatch,
        severity: Warning,
        title: "the settings belong to another file",
        why: "A program that was given a relative or a wrong path opens another file, or makes a new \
              one, and nothing says so.",
        reference: "https://sqlite.org/c3ref/open.html",
        detection: "With --settings: the connection's file is another than this one, or none; or \
              page_size, encoding or journal_mode are not those of the file.",
        fix: "See which file the program opens; print its settings again.",
    },
    CatalogueEntry {
        code: FindingCode::SqliteFaulty,
        severity: Warning,
        title: "the program's SQLite has a bug that can lose data",
        why: "Two faults that lose data were found in versions that are in wide use. Both are rare, and \
              neither is seen when it strikes.",
        reference: "https://sqlite.org/wal.html#walresetbug",
        detection: "With --settings: sqlite_version is 3.7.0 to 3.51.2 without 3.44.6 and 3.50.7 \
              and later patches of these, with a WAL; or 3.35.0 to 3.37.1, with temporary files in \
              memory.",
        fix: "Update the library. A distribution may have put the fix into an older version.",
    },
    CatalogueEntry {
        code: FindingCode::SynchronousLow,
        severity: Info,
        title: "synchronous is NORMAL with a rollback journal",
        why: "With a WAL, NORMAL keeps the file whole. With a rollback journal there is a very small \
              chance that a power loss at the wrong time breaks it.",
        reference: "https://sqlite.org/pragma.html#pragma_synchronous",
        detection: "With --settings: synchronous is 1, and journal_mode is delete, truncate or \
              persist.",
        fix: "PRAGMA journal_mode = WAL, or synchronous = FULL.",
    },
    CatalogueEntry {
        code: FindingCode::SynchronousOff,
        severity: Warning,
        title: "nothing is flushed to the disk",
        why: "With synchronous OFF the system writes in any order: a power loss leaves a file of which \
              some pages are new and some are old.",
        reference: "https://sqlite.org/pragma.html#pragma_synchronous",
        detection: "With --settings: synchronous is 0.",
        fix: "PRAGMA synchronous = NORMAL with a WAL, otherwise FULL.",
    },
    CatalogueEntry {
        code: FindingCode::TempInMemory,
        severity: Warning,
        title: "temporary files would take much of the memory",
        why: "VACUUM writes a copy of all content into a temporary file. Where that is in memory \
              (temp_store = MEMORY, /dev/shm, a /tmp of type tmpfs), it takes as much of it.",
        reference: "https://sqlite.org/tempfiles.html",
        detection: "With --settings: temporary files are in memory, and the content is more than a \
              quarter of what Linux calls available now.",
        fix: "temp_store = FILE and SQLITE_TMPDIR on a disk, or `warren vacuum`.",
    },
    CatalogueEntry {
        code: FindingCode::TempUnencrypted,
        severity: Info,
        title: "temporary files of an encrypted file are on the disk",
        why: "Some libraries with ciphers write temporary files in plain: SQLite3 Multiple Ciphers \
              before version 2.6.",
        reference: "https://sqlite.org/tempfiles.html",
        detection: "With --settings: the file is encrypted, and temporary files are not kept in \
              memory.",
        fix: "PRAGMA temp_store = MEMORY on each connection, or a library that encrypts them.",
    },
    CatalogueEntry {
        code: FindingCode::ThreadsUnsafe,
        severity: Info,
        title: "the library is compiled without locks between threads",
        why: "Built with THREADSAFE=0, SQLite may be used from one thread only; two break memory, even \
              on connections of their own.",
        reference: "https://sqlite.org/threadsafe.html",
        detection: "With --settings: the library's compile options have THREADSAFE=0.",
        fix: "One thread, or a library compiled with THREADSAFE=1 or 2.",
    },
];
