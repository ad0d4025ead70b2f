//! What is wrong around a file: its journals, its locks, its disks.

use super::entry::CatalogueEntry;
use super::finding_code::FindingCode;
use crate::report::severity::Severity::{Error, Info, Warning};

pub(super) const ENVIRONMENT: &[CatalogueEntry] = &[
    CatalogueEntry {
        code: FindingCode::CompanionIrregular,
        severity: Error,
        title: "the path of a journal, a WAL or a shm file is not a regular file",
        why: "SQLite opens a file's -journal or -wal by its name. A pipe there makes it wait \
              without end for a writer; a directory makes it fail.",
        reference: "https://sqlite.org/tempfiles.html",
        detection: "The path with -journal, -wal or -shm behind it is a pipe, a device, a socket \
              or a directory.",
        fix: "See who made it, and remove it.",
    },
    CatalogueEntry {
        code: FindingCode::DatabaseLocked,
        severity: Error,
        title: "a process keeps the database locked",
        why: "While one connection has a write transaction open, no other can write; they wait \
              for busy_timeout and then get \"database is locked\". Without WAL, readers hold up \
              writers, too.",
        reference: "https://sqlite.org/lockingv3.html",
        detection: "The lock is seen in /proc/locks, again and again for a second, and is there \
              each time, while nothing is committed. The process is named.",
        fix: "Let that process commit. Keep transactions short, begin those that \
              write with BEGIN IMMEDIATE, and set busy_timeout on every connection.",
    },
    CatalogueEntry {
        code: FindingCode::DiskTooSmall,
        severity: Warning,
        title: "the disk of the file has no room for a VACUUM",
        why: "VACUUM may need as much as twice the size of the file: a temporary copy, and a \
              journal or WAL of all pages.",
        reference: "https://sqlite.org/lang_vacuum.html",
        detection: "Less than twice the size of the file is free for this user on its disk. Files \
              from 1 MB on.",
        fix: "Make room, or VACUUM INTO another disk.",
    },
    CatalogueEntry {
        code: FindingCode::ExclusiveMode,
        severity: Info,
        title: "a process keeps the file locked for itself",
        why: "With locking_mode = EXCLUSIVE a connection keeps its lock between transactions, as \
              browsers do with their files. No other program can open the file meanwhile. A \
              BEGIN EXCLUSIVE that has not written yet looks the same from outside.",
        reference: "https://sqlite.org/pragma.html#pragma_locking_mode",
        detection: "An EXCLUSIVE lock at each look for a second, while nothing is committed, in \
              WAL mode or with no journal of a transaction.",
        fix: "None, unless another program is to open the file.",
    },
    CatalogueEntry {
        code: FindingCode::FileEmpty,
        severity: Error,
        title: "the file has no content (0 bytes)",
        why: "SQLite takes it for a new database and answers every query with \"no such table\". \
              A file becomes so when it is opened under a wrong name, or when somebody truncates \
              it; a journal beside it is deleted by the next who opens it.",
        reference: "https://sqlite.org/howtocorrupt.html",
        detection: "Its size is 0.",
        fix: "Find the file that was meant, or restore a backup, before any program opens it.",
    },
    CatalogueEntry {
        code: FindingCode::FileTruncated,
        severity: Error,
        title: "the file is shorter than its header says",
        why: "Pages at its end are gone: SQLite calls the whole file malformed. Half a copy, a \
              full disk or a broken download make such files.",
        reference: "https://sqlite.org/fileformat.html#in_header_database_size",
        detection: "The page count of the header, where it was written together with the rest of \
              it, times the page size; or the page count of the last transaction in the WAL, where \
              neither it nor the file has all of these pages.",
        fix: "Copy the file again from where it is whole, or restore a backup; or save what is \
              left: warren recover FILE NEW.",
    },
    CatalogueEntry {
        code: FindingCode::HardLinked,
        severity: Warning,
        title: "the file has another name (a hard link)",
        why: "A journal and a WAL stand beside the name by which the file was opened. A program \
              that opens another name of the same file sees none of them: it reads half a \
              transaction, and writes over it.",
        reference: "https://sqlite.org/howtocorrupt.html#_multiple_links_to_the_same_file",
        detection: "The link count of the file is 2 or more. Other names in the same folder are \
              told.",
        fix: "Use one name, and delete the others.",
    },
    CatalogueEntry {
        code: FindingCode::HotJournal,
        severity: Error,
        title: "a transaction was started and never ended",
        why: "A rollback journal holds the pages as they were. While it is there, the file holds \
              half a transaction; the next program that opens the file for writing puts the \
              pages back. Who copies the file without the journal, or deletes the journal, is \
              left with a broken file.",
        reference: "https://sqlite.org/atomiccommit.html#_rollback",
        detection: "A -journal file that is not empty and whose header is not zeroed is beside the \
              file, and nobody holds a lock for writing.",
        fix: "Open the file once with a program that may write to it, and that has its key if it \
              is encrypted. Never delete the journal.",
    },
    CatalogueEntry {
        code: FindingCode::NetworkFileSystem,
        severity: Warning,
        title: "the file is on a network file system",
        why: "SQLite trusts the locks of the file system, and those of many network file systems \
              do not hold between machines: two writers then spoil the file. WAL needs memory \
              that all its users share, so it works on one machine only.",
        reference: "https://sqlite.org/useovernet.html",
        detection: "The type of the mount that holds the file: NFS, SMB, 9p, sshfs and others.",
        fix: "Keep the file on a local disk, and let a server answer for it.",
    },
    CatalogueEntry {
        code: FindingCode::NotWal,
        severity: Info,
        title: "the file has no WAL",
        why: "With a rollback journal readers and writers wait for each other, and each \
              transaction flushes to the disk at least twice. With WAL they do not wait, and a \
              transaction flushes once, or with synchronous = NORMAL not at all.",
        reference: "https://sqlite.org/wal.html",
        detection: "One process has the file open, and its header says that it is no WAL database.",
        fix: "PRAGMA journal_mode = WAL, once; the file keeps it.",
    },
    CatalogueEntry {
        code: FindingCode::RollbackJournalShared,
        severity: Warning,
        title: "several programs share a file without WAL",
        why: "With a rollback journal a writer waits until all readers are gone, and readers \
              wait for the writer: with several programs that is where \"database is locked\" \
              comes from. With WAL readers never wait.",
        reference: "https://sqlite.org/wal.html",
        detection: "Two processes or more have the file open, and its header says that it is no \
              WAL database.",
        fix: "PRAGMA journal_mode = WAL, once; and busy_timeout on every connection.",
    },
    CatalogueEntry {
        code: FindingCode::TempTooSmall,
        severity: Warning,
        title: "the temporary directory has no room for a VACUUM",
        why: "VACUUM writes a copy of the file into the temporary directory, sorts of large \
              indexes write there, too. A small /tmp, often in memory, ends them with \"database \
              or disk is full\".",
        reference: "https://sqlite.org/tempfiles.html",
        detection: "The first writable directory of SQLITE_TMPDIR, TMPDIR, /var/tmp, /usr/tmp and \
              /tmp has less room than the file is large. Files from 1 MB on. Which of them a \
              program uses depends on its own environment.",
        fix: "Set SQLITE_TMPDIR to a directory with room; on the disk of the file, for one.",
    },
    CatalogueEntry {
        code: FindingCode::WalDeleted,
        severity: Error,
        title: "a process writes to a WAL that was deleted",
        why: "A file that is deleted while a program has it open lives on without a name. The \
              program commits into it and notices nothing; when it ends, all of that is gone.",
        reference: "https://sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use",
        detection: "A process that has the file open has a descriptor of its -wal that Linux calls \
              deleted.",
        fix: "Do not end the program. Let it checkpoint; or copy the file and, from \
              /proc/PID/fd/N, its WAL.",
    },
    CatalogueEntry {
        code: FindingCode::WalLarge,
        severity: Warning,
        title: "the WAL is large, and no reader pins it",
        why: "A WAL keeps the largest size that it ever had, unless journal_size_limit is set; \
              and it grows without end where nobody checkpoints.",
        reference: "https://sqlite.org/wal.html#avoiding_excessively_large_wal_files",
        detection: "It has 4,000 pages or more, and is larger than the file or than 100 MB; no \
              reader pins it.",
        fix: "PRAGMA wal_checkpoint(TRUNCATE) once; journal_size_limit on the connections that \
              write; wal_autocheckpoint not 0.",
    },
    CatalogueEntry {
        code: FindingCode::WalLeftBehind,
        severity: Warning,
        title: "a program left a WAL behind",
        why: "The last connection that closes moves the WAL into the file and deletes it. If the \
              program was killed, or only read, the WAL stays, with transactions that the main \
              file has not.",
        reference: "https://sqlite.org/wal.html#the_wal_file",
        detection: "A WAL with content, and no process has the file or its -shm file open.",
        fix: "Open the file once, with its key if it is encrypted, and checkpoint; copy -wal \
              together with the file.",
    },
    CatalogueEntry {
        code: FindingCode::WalPinned,
        severity: Warning,
        title: "a reader pins the WAL: checkpoints cannot pass it",
        why: "A checkpoint cannot go past what the oldest reader still needs. While a read \
              transaction stays open the WAL grows, whatever is checkpointed.",
        reference: "https://sqlite.org/wal.html#avoiding_excessively_large_wal_files",
        detection: "A process holds a read mark behind the last frame for as long as the doctor \
              watches, a second; the WAL has 4,000 pages or more, not all copied.",
        fix: "End the transaction of that process: a SELECT that was never finished or reset, a \
              BEGIN without COMMIT.",
    },
];
