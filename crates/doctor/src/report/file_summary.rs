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
    /// A rollback journal of any mode: no file says which.
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

/// How the file was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileOpenMode {
    /// Without locks, and without its WAL.
    Immutable,
    /// Without locks, as the next program would find it; what is written stays in memory.
    Overlay,
    /// With locks, next to other programs.
    Shared,
}

/// Which file was examined. What could not be read is null.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct FileSummary {
    /// The path, without symbolic links.
    pub path: String,
    /// The size of the main file.
    pub file_bytes: u64,
    /// The size of the `-wal` file; null without one.
    pub wal_bytes: Option<u64>,
    /// The size of a page.
    pub page_bytes: Option<u32>,
    /// How many pages there are, free ones and those of the WAL included.
    pub pages_count: Option<u64>,
    /// How many pages are free.
    pub free_pages_count: Option<u64>,
    /// The kind of its journal.
    pub journal: Option<JournalKind>,
    /// The name of the cipher; `none` if the file is not encrypted.
    pub cipher: Option<&'static str>,
    /// The version of the SQLite that wrote last.
    pub sqlite_version: Option<String>,
    /// How many ordinary tables there are.
    pub tables_count: Option<usize>,
    /// How many indexes there are, automatic ones included.
    pub indexes_count: Option<usize>,
    /// The type of the file system, as Linux names it.
    pub file_system: Option<String>,
    /// The other processes that have it open, as far as this user may see.
    pub processes: Vec<ProcessInfo>,
    /// How it was opened; null if the content was not looked at.
    pub open_mode: Option<FileOpenMode>,
    /// Whether the file changed while it was looked at.
    pub changed_meanwhile: bool,
}
