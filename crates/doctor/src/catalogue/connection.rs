//! The catalogue's entries for problems with the settings that a program uses on its connections.

use super::entry::CatalogueEntry;
use super::finding_code::FindingCode;
use crate::report::severity::Severity::{Error, Info, Warning};

pub(super) const CONNECTION: &[CatalogueEntry] = &[
    CatalogueEntry {
        code: FindingCode::BusyTimeoutAbsent,
        severity: Warning,
        title: "a connection does not wait for locks",
        why: "Only one connection can write at a time. A connection that finds the file locked \
              waits for busy_timeout. SQLite's default is 0, so it fails immediately with \
              \"database is locked\".",
        reference: "https://sqlite.org/pragma.html#pragma_busy_timeout",
        detection: "With --settings: busy_timeout is 0, and locking_mode is not EXCLUSIVE. If the \
              program has its own busy handler, busy_timeout is also 0; the handler cannot be \
              detected.",
        fix: "PRAGMA busy_timeout = 5000 on each connection: longer than a transaction should \
              take, but shorter than a person will wait. Background jobs may wait a minute.",
    },
    CatalogueEntry {
        code: FindingCode::CacheLarge,
        severity: Warning,
        title: "a page cache may take most of the memory",
        why: "Each connection has its own page cache, which grows to cache_size and does not \
              shrink. When memory runs out, the system swaps or kills a process.",
        reference: "https://sqlite.org/pragma.html#pragma_cache_size",
        detection: "With --settings: the smaller of cache_size and the size of the content is more \
              than half of the memory that Linux reports as available.",
        fix: "Set a smaller cache_size. The finding suggests a sixteenth of that memory, at most \
              256 MiB.",
    },
    CatalogueEntry {
        code: FindingCode::CacheSmall,
        severity: Info,
        title: "the page cache is small compared with the file",
        why: "Pages that are not in the page cache are read from the system or the disk each time \
              and, in an encrypted file, decrypted each time.",
        reference: "https://sqlite.org/pragma.html#pragma_cache_size",
        detection: "With --settings: the content is at least 64 MiB and at least 8 times \
              cache_size; and the smallest of the content, a sixteenth of the available memory and \
              256 MiB is at least 4 times cache_size. A memory map of the whole file counts as a \
              cache.",
        fix: "Set a larger cache_size, divided by the number of connections. `warren tune` \
              measures the gain.",
    },
    CatalogueEntry {
        code: FindingCode::CheckpointsOff,
        severity: Info,
        title: "a connection never moves the WAL into the file",
        why: "With wal_autocheckpoint 0, commits do not checkpoint. That is correct if something \
              else does, such as Litestream. Otherwise the WAL grows without limit.",
        reference: "https://sqlite.org/wal.html#automatic_checkpoint",
        detection: "With --settings: wal_autocheckpoint is 0 or less, and the file has a WAL.",
        fix: "PRAGMA wal_autocheckpoint = 1000 (SQLite's default), unless something else \
              checkpoints.",
    },
    CatalogueEntry {
        code: FindingCode::DoubleQuotedStrings,
        severity: Info,
        title: "a misspelled column in double quotes is taken as a string",
        why: "If no column is called name, SQLite reads \"name\" as the string 'name'. A \
              misspelled column then causes no error, and the query finds nothing.",
        reference: "https://sqlite.org/quirks.html#double_quoted_string_literals_are_accepted",
        detection: "With --settings: the library's compile options do not contain DQS=0. A program \
              can also reject such strings at run time, which cannot be detected.",
        fix: "Put strings in single quotes. Turn off SQLITE_DBCONFIG_DQS_DML and \
              SQLITE_DBCONFIG_DQS_DDL, or use a library compiled with DQS=0.",
    },
    CatalogueEntry {
        code: FindingCode::EncodingWide,
        severity: Info,
        title: "text is stored as UTF-16",
        why: "Latin text takes two bytes per character instead of one, in the file and in the \
              cache.",
        reference: "https://sqlite.org/pragma.html#pragma_encoding",
        detection: "With --settings: encoding is UTF-16.",
        fix: "Copy the content into a new file with the encoding UTF-8. The encoding of an \
              existing file cannot be changed.",
    },
    CatalogueEntry {
        code: FindingCode::EncryptionIneffective,
        severity: Error,
        title: "the program expects the file to be encrypted, and it is not",
        why: "SQLite ignores unknown PRAGMAs. A library without ciphers therefore ignores PRAGMA \
              key and PRAGMA cipher, and writes everything unencrypted.",
        reference: "https://sqlite.org/pragma.html",
        detection: "With --settings that contain a line wanted.cipher=NAME: the file opens without \
              a key.",
        fix: "Use a build of SQLite that has the cipher, then set a key for the file.",
    },
    CatalogueEntry {
        code: FindingCode::ForeignKeysOff,
        severity: Warning,
        title: "foreign keys are declared, and the connection does not enforce them",
        why: "foreign_keys is OFF by default and must be set on each connection. While it is OFF, \
              SQLite ignores the foreign keys in the schema: it neither rejects invalid rows nor \
              runs ON DELETE CASCADE.",
        reference: "https://sqlite.org/foreignkeys.html#fk_enable",
        detection: "With --settings: foreign_keys is 0, and a table declares a foreign key.",
        fix: "PRAGMA foreign_keys = ON on each connection, after fixing the rows that refer to \
              nothing (foreign_key_violated).",
    },
    CatalogueEntry {
        code: FindingCode::JournalModeUnsafe,
        severity: Warning,
        title: "transactions have no journal on the disk",
        why: "With journal_mode OFF or MEMORY, the disk has no journal to roll back a half-written \
              transaction: a program that is killed during a transaction leaves a corrupt file.",
        reference: "https://sqlite.org/pragma.html#pragma_journal_mode",
        detection: "With --settings: journal_mode is off or memory, unless the connection has \
              another file open, or none.",
        fix: "PRAGMA journal_mode = WAL, or DELETE.",
    },
    CatalogueEntry {
        code: FindingCode::SecureDeleteOff,
        severity: Info,
        title: "deleted content stays in the file",
        why: "SQLite marks deleted content as free and overwrites it later. Until then, it can be \
              read in the file, in copies and in backups. With secure_delete ON, SQLite overwrites \
              it with zeros immediately.",
        reference: "https://sqlite.org/pragma.html#pragma_secure_delete",
        detection: "With --settings: secure_delete is 0.",
        fix: "PRAGMA secure_delete = ON on each connection that deletes, and VACUUM once to remove \
              content that was deleted before. FAST is an alternative, but it does not overwrite \
              free pages.",
    },
    CatalogueEntry {
        code: FindingCode::SettingIneffective,
        severity: Warning,
        title: "a setting had no effect",
        why: "If SQLite cannot apply a PRAGMA, it usually returns the old value and no error: for \
              example for auto_vacuum after the first page was written, for foreign_keys within a \
              transaction, or for WAL on a network disk.",
        reference: "https://sqlite.org/pragma.html",
        detection: "With --settings that contain lines wanted.NAME=VALUE: the connection has \
              another value; for auto_vacuum and page_size, the file has another value.",
        fix: "auto_vacuum and page_size take effect with VACUUM; for other settings, see the \
              finding.",
    },
    CatalogueEntry {
        code: FindingCode::SettingsMismatch,
        severity: Warning,
        title: "the settings belong to another file",
        why: "A program that is given a relative or wrong path opens another file or creates a new \
              one, without an error.",
        reference: "https://sqlite.org/c3ref/open.html",
        detection: "With --settings: the connection has another file open, or none; or page_size, \
              encoding or journal_mode differ from those of this file.",
        fix: "Check which file the program opens, and print its settings again.",
    },
    CatalogueEntry {
        code: FindingCode::SqliteFaulty,
        severity: Warning,
        title: "the program's SQLite has a bug that can lose data",
        why: "Two bugs that lose data were found in widely used versions. Both are rare, and \
              neither is noticed when it occurs.",
        reference: "https://sqlite.org/wal.html#walresetbug",
        detection: "With --settings: sqlite_version is 3.7.0 to 3.51.2, but not 3.44.6, 3.50.7 or \
              a later patch of these, and the file is in WAL mode; or sqlite_version is 3.35.0 to \
              3.37.1, and temporary files are in memory.",
        fix: "Update the library. A distribution may have backported the fix to an older version.",
    },
    CatalogueEntry {
        code: FindingCode::SynchronousLow,
        severity: Info,
        title: "synchronous is NORMAL with a rollback journal",
        why: "With a WAL, the file stays consistent with NORMAL. With a rollback journal, there is \
              a very small chance that a power loss at the wrong time corrupts it.",
        reference: "https://sqlite.org/pragma.html#pragma_synchronous",
        detection: "With --settings: synchronous is 1, and journal_mode is delete, truncate or \
              persist.",
        fix: "PRAGMA journal_mode = WAL, or synchronous = FULL.",
    },
    CatalogueEntry {
        code: FindingCode::SynchronousOff,
        severity: Warning,
        title: "nothing is flushed to the disk",
        why: "With synchronous OFF, the system writes pages in any order: after a power loss, some \
              pages of the file are new and some are old.",
        reference: "https://sqlite.org/pragma.html#pragma_synchronous",
        detection: "With --settings: synchronous is 0.",
        fix: "PRAGMA synchronous = NORMAL with a WAL, otherwise FULL.",
    },
    CatalogueEntry {
        code: FindingCode::TempInMemory,
        severity: Warning,
        title: "temporary files would take much of the memory",
        why: "VACUUM writes a copy of all content to a temporary file. If that file is in memory \
              (temp_store = MEMORY, /dev/shm, or a /tmp of type tmpfs), the copy takes that much \
              memory.",
        reference: "https://sqlite.org/tempfiles.html",
        detection: "With --settings: temporary files are in memory, and the content is larger than \
              a quarter of the memory that Linux reports as available.",
        fix: "Use temp_store = FILE with SQLITE_TMPDIR on a disk, or `warren vacuum`.",
    },
    CatalogueEntry {
        code: FindingCode::TempUnencrypted,
        severity: Info,
        title: "temporary files of an encrypted file are on the disk",
        why: "Some libraries with ciphers write temporary files unencrypted: SQLite3 Multiple \
              Ciphers before version 2.6.",
        reference: "https://sqlite.org/tempfiles.html",
        detection: "With --settings: the file is encrypted, and temporary files are not kept in \
              memory.",
        fix: "PRAGMA temp_store = MEMORY on each connection, or a library that encrypts temporary \
              files.",
    },
    CatalogueEntry {
        code: FindingCode::ThreadsUnsafe,
        severity: Info,
        title: "the library is compiled without locks between threads",
        why: "SQLite compiled with THREADSAFE=0 may be used from one thread only. Using it from \
              two threads corrupts memory, even if each has its own connection.",
        reference: "https://sqlite.org/threadsafe.html",
        detection: "With --settings: the library's compile options have THREADSAFE=0.",
        fix: "Use one thread, or a library compiled with THREADSAFE=1 or 2.",
    },
];
