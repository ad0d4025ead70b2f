//! What is known of the file, to judge a program's settings by.

use std::path::PathBuf;

use crate::program::settings::ConnectionSettings;
/// What settings are judged by.
pub(crate) struct ConnectionFacts<'a> {
    pub(crate) settings: &'a ConnectionSettings,
    pub(crate) is_wal: bool,
    pub(crate) page_bytes: u64,
    /// Of the pages that are not free.
    pub(crate) content_bytes: u64,
    pub(crate) free_bytes: u64,
    pub(crate) auto_vacuum: i64,
    pub(crate) encoding: String,
    /// Tables with foreign keys.
    pub(crate) referring: Vec<String>,
    pub(crate) is_encrypted: bool,
    /// That programs can still have.
    pub(crate) memory_bytes: Option<u64>,
    /// Other processes that have the file open.
    pub(crate) users_count: usize,
    /// Where the program's temporary files go, and whether that is memory.
    pub(crate) temp: Option<(PathBuf, bool)>,
    /// The file of the connection, if that is another one.
    pub(crate) other_file: Option<String>,
}
