//! Defines the summary of the file that was examined.

use std::fmt;

use serde::Serialize;
use utoipa::ToSchema;

use crate::environment::processes::ProcessInfo;

/// The kind of journal that a database has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JournalKind {
    /// A write-ahead log.
    Wal,
    /// A rollback journal. The file does not store which of its modes is used.
    Rollback,
}

impl fmt::Display for JournalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Wal => "wal",
            Self::Rollback => "rollback",
        })
    }
}

/// The way in which the file was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileOpenMode {
    /// The file was opened without locks and without its WAL.
    Immutable,
    /// The file was opened without locks, as the next program would find it; writes stay in memory.
    Overlay,
    /// The file was opened with locks, alongside other programs.
    Shared,
}

/// The summary of the file that was examined. Values that could not be read are null.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct FileSummary {
    /// The path of the file, without symbolic links.
    pub path: String,
    /// The size of the main file in bytes.
    pub file_bytes: u64,
    /// The size of the `-wal` file in bytes; null if there is none.
    pub wal_bytes: Option<u64>,
    /// The size of a page in bytes; null if it could not be read.
    pub page_bytes: Option<u32>,
    /// The number of pages, including free ones and those in the WAL; null if it could not be read.
    pub pages_count: Option<u64>,
    /// The number of free pages; null if it could not be read.
    pub free_pages_count: Option<u64>,
    /// The kind of journal that the file has; null if it could not be read.
    pub journal: Option<JournalKind>,
    /// The name of the cipher: `none` if the file is not encrypted, null if it could not be read.
    pub cipher: Option<&'static str>,
    /// The version of the SQLite library that last wrote to the file; null if it could not be read.
    pub sqlite_version: Option<String>,
    /// The number of ordinary tables; null if it could not be read.
    pub tables_count: Option<usize>,
    /// The number of indexes, including automatic ones; null if it could not be read.
    pub indexes_count: Option<usize>,
    /// The type of the file system, as named by Linux; null if it could not be read.
    pub file_system: Option<String>,
    /// The other processes that have the file open, as far as this user can see them.
    pub processes: Vec<ProcessInfo>,
    /// The way in which the file was opened; null if its content was not examined.
    pub open_mode: Option<FileOpenMode>,
    /// Whether the file changed during the examination.
    pub changed_meanwhile: bool,
}
