//! The catalogue's entries for problems around a file: its journals, its locks, its disks.

use super::entry::CatalogueEntry;
use super::finding_code::FindingCode;
use crate::report::severity::Severity::{Error, Info, Warning};

pub(super) const ENVIRONMENT: &[CatalogueEntry] = &[
    CatalogueEntry {
        code: FindingCode::CompanionIrregular,
        severity: Error,
        title: "the path of a journal, a WAL or a shm file is not a regular file",
        why: "SQLite opens the -journal and -wal of a file by name. If that is a pipe, SQLite \
              waits forever for a writer; if it is a directory, opening it fails.",
        reference: "https://sqlite.org/tempfiles.html",
        detection: "The file's path with -journal, -wal or -shm appended is a pipe, a device, a \
              socket or a directory.",
        fix: "Find out which program created it, and remove it.",
    },
    CatalogueEntry {
        code: FindingCode::DatabaseLocked,
        severity: Error,
        title: "a process keeps the database locked",
        why: "While one connection has a write transaction open, no other connection can write; \
              others wait for busy_timeout and then fail with \"database is locked\". Without WAL, \
              readers block writers, too.",
        reference: "https://sqlite.org/lockingv3.html",
        detection: "The lock is in /proc/locks each time it is read during one second, while \
              nothing is committed. The finding names the process.",
        fix: "Let that process commit. Keep transactions short, start write transactions with \
              BEGIN IMMEDIATE, and set busy_timeout on every connection.",
    },
    CatalogueEntry {
        code: FindingCode::DiskTooSmall,
        severity: Warning,
        title: "the disk of the file has no room for a VACUUM",
        why: "VACUUM may need up to twice the size of the file: for a temporary copy, and for a \
              journal or WAL of all pages.",
        reference: "https://sqlite.org/lang_vacuum.html",
        detection: "The free space for this user on the file's disk is less than twice the size of \
              the file. Only files of 1 MB or more.",
        fix: "Free up space, or VACUUM INTO another disk.",
    },
    CatalogueEntry {
        code: FindingCode::ExclusiveMode,
        severity: Info,
        title: "a process keeps the file locked for itself",
        why: "With locking_mode = EXCLUSIVE, a connection keeps its lock between transactions, as \
              browsers do with their files. No other program can open the file during that time. A \
              BEGIN EXCLUSIVE that has not written yet looks the same from outside.",
        reference: "https://sqlite.org/pragma.html#pragma_locking_mode",
        detection: "An EXCLUSIVE lock is present each time the locks are read during one second, \
              while nothing is committed, in WAL mode or without the journal of a transaction.",
        fix: "None, unless another program needs to open the file.",
    },
    CatalogueEntry {
        code: FindingCode::FileEmpty,
        severity: Error,
        title: "the file has no content (0 bytes)",
        why: "SQLite treats it as a new database, and every query fails with \"no such table\". \
              Opening a wrong path creates such a file, and truncating a file leaves one. The next \
              program that opens it deletes a journal next to it.",
        reference: "https://sqlite.org/howtocorrupt.html",
        detection: "The file size is 0.",
        fix: "Before any program opens it, find the file that was intended, or restore a backup.",
    },
    CatalogueEntry {
        code: FindingCode::FileTruncated,
        severity: Error,
        title: "the file is shorter than its header says",
        why: "Pages at its end are missing, so SQLite calls the whole file malformed. Incomplete \
              copies, full disks and interrupted downloads leave such files.",
        reference: "https://sqlite.org/fileformat.html#in_header_database_size",
        detection: "The page count in the header (if it was written together with the rest of the \
              header), times the page size, is larger than the file; or the last transaction in \
              the WAL counts pages that are neither in the WAL nor in the file.",
        fix: "Copy the file again from a complete copy, or restore a backup; or save the rest: \
              warren recover FILE NEW.",
    },
    CatalogueEntry {
        code: FindingCode::HardLinked,
        severity: Warning,
        title: "the file has another name (a hard link)",
        why: "SQLite keeps the journal and the WAL next to the name under which the file was \
              opened. A program that opens another name of the same file does not see them: it \
              reads half a transaction, and overwrites it.",
        reference: "https://sqlite.org/howtocorrupt.html#_multiple_links_to_the_same_file",
        detection: "The link count of the file is 2 or more. The finding lists other names in the \
              same directory.",
        fix: "Use one name, and delete the others.",
    },
    CatalogueEntry {
        code: FindingCode::HotJournal,
        severity: Error,
        title: "a transaction was started and never ended",
        why: "A rollback journal contains the pages as they were before the transaction. While it \
              exists, the file contains half a transaction, and the next program that opens the \
              file for writing restores the pages. Copying the file without the journal, or \
              deleting the journal, leaves a corrupt file.",
        reference: "https://sqlite.org/atomiccommit.html#_rollback",
        detection: "There is a -journal file that is not empty and whose header is not zeroed, and \
              no process holds a lock for writing.",
        fix: "Open the file once with a program that may write to it and, if it is encrypted, has \
              its key. Never delete the journal.",
    },
    CatalogueEntry {
        code: FindingCode::NetworkFileSystem,
        severity: Warning,
        title: "the file is on a network file system",
        why: "SQLite relies on the locks of the file system. On many network file systems, locks \
              do not work between machines, and two writers then corrupt the file. WAL needs \
              memory that all its users share, so it works on one machine only.",
        reference: "https://sqlite.org/useovernet.html",
        detection: "The type of the mount that contains the file: NFS, SMB, 9p, sshfs and others.",
        fix: "Keep the file on a local disk, and access it through a server.",
    },
    CatalogueEntry {
        code: FindingCode::NotWal,
        severity: Info,
        title: "the file has no WAL",
        why: "With a rollback journal, readers and writers wait for each other, and each \
              transaction flushes to disk at least twice. With WAL they do not wait, and a \
              transaction flushes once, or, with synchronous = NORMAL, not at all.",
        reference: "https://sqlite.org/wal.html",
        detection: "One process has the file open, and the header says that the file is not in WAL \
              mode.",
        fix: "PRAGMA journal_mode = WAL, once; the file keeps this setting.",
    },
    CatalogueEntry {
        code: FindingCode::RollbackJournalShared,
        severity: Warning,
        title: "several programs share a file without WAL",
        why: "With a rollback journal, a writer waits until all readers have finished, and readers \
              wait for the writer. With several programs, this causes \"database is locked\". With \
              WAL, readers never wait.",
        reference: "https://sqlite.org/wal.html",
        detection: "Two or more processes have the file open, and the header says that the file is \
              not in WAL mode.",
        fix: "PRAGMA journal_mode = WAL, once; and busy_timeout on every connection.",
    },
    CatalogueEntry {
        code: FindingCode::TempTooSmall,
        severity: Warning,
        title: "the temporary directory has no room for a VACUUM",
        why: "VACUUM writes a copy of the file to the temporary directory, and the sorting for \
              large indexes uses it, too. If it is too small, as a /tmp in memory often is, these \
              fail with \"database or disk is full\".",
        reference: "https://sqlite.org/tempfiles.html",
        detection: "The first writable directory of SQLITE_TMPDIR, TMPDIR, /var/tmp, /usr/tmp and \
              /tmp has less free space than the size of the file. Only files of 1 MB or more. \
              Which directory a program uses depends on its own environment.",
        fix: "Set SQLITE_TMPDIR to a directory with enough space, for example on the disk of the \
              file.",
    },
    CatalogueEntry {
        code: FindingCode::WalDeleted,
        severity: Error,
        title: "a process writes to a WAL that was deleted",
        why: "A file that is deleted while a program has it open continues to exist without a \
              name. The program commits to it without an error; when the program ends, all these \
              commits are lost.",
        reference: "https://sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use",
        detection: "A process that has the file open has a descriptor of its -wal that Linux marks \
              as deleted.",
        fix: "Do not end the program. Let it checkpoint; or copy the file and, from \
              /proc/PID/fd/N, its WAL.",
    },
    CatalogueEntry {
        code: FindingCode::WalLarge,
        severity: Warning,
        title: "the WAL is large, and no reader pins it",
        why: "A WAL file keeps the largest size that it ever had, unless journal_size_limit is \
              set. Without checkpoints, it grows without limit.",
        reference: "https://sqlite.org/wal.html#avoiding_excessively_large_wal_files",
        detection: "The WAL has 4,000 pages or more, and is larger than the file or than 100 MB; \
              no reader pins it.",
        fix: "PRAGMA wal_checkpoint(TRUNCATE) once; journal_size_limit on the connections that \
              write; wal_autocheckpoint not 0.",
    },
    CatalogueEntry {
        code: FindingCode::WalLeftBehind,
        severity: Warning,
        title: "a program left a WAL behind",
        why: "The last connection that closes moves the WAL into the file and deletes it. If the \
              program was killed, or only read, the WAL stays, with transactions that the main \
              file does not have.",
        reference: "https://sqlite.org/wal.html#the_wal_file",
        detection: "There is a WAL with content, and no process has the file or its -shm file \
              open.",
        fix: "Open the file once, with its key if it is encrypted, and checkpoint. When you copy \
              the file, copy the -wal file, too.",
    },
    CatalogueEntry {
        code: FindingCode::WalPinned,
        severity: Warning,
        title: "a reader pins the WAL: checkpoints cannot pass it",
        why: "A checkpoint cannot go past the pages that the oldest reader still needs. While a \
              read transaction stays open, the WAL grows in spite of checkpoints.",
        reference: "https://sqlite.org/wal.html#avoiding_excessively_large_wal_files",
        detection: "While the doctor watches (one second), a process keeps a read mark before the \
              last frame; the WAL has 4,000 pages or more, and not all of them are copied into the \
              file.",
        fix: "End the transaction of that process: a SELECT that was never finished or reset, or a \
              BEGIN without COMMIT.",
    },
];
