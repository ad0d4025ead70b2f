//! Collects the facts about the file by which a program's settings are judged.

use std::path::PathBuf;

use crate::program::settings::ConnectionSettings;
/// The facts by which a program's settings are judged.
pub(crate) struct ConnectionFacts<'a> {
    pub(crate) settings: &'a ConnectionSettings,
    pub(crate) is_wal: bool,
    pub(crate) page_bytes: u64,
    /// The size of the pages that are not free.
    pub(crate) content_bytes: u64,
    pub(crate) free_bytes: u64,
    pub(crate) auto_vacuum: i64,
    pub(crate) encoding: String,
    /// The tables that declare foreign keys.
    pub(crate) referring: Vec<String>,
    pub(crate) is_encrypted: bool,
    /// The memory that is still available to programs.
    pub(crate) memory_bytes: Option<u64>,
    /// The number of other processes that have the file open.
    pub(crate) users_count: usize,
    /// The directory of the program's temporary files, and whether it is in memory.
    pub(crate) temp: Option<(PathBuf, bool)>,
    /// The file that the connection has open, if it is another one.
    pub(crate) other_file: Option<String>,
}
