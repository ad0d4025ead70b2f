//! Describes the state of a file, and the processes that have it open.

use std::path::Path;

use doctor::{FileHolder, file_holders};
use serde::Serialize;
use utoipa::ToSchema;

use crate::output::Printer;

/// The fragmentation of a file, the size of its WAL, and the processes that have it open.
#[derive(Serialize, ToSchema)]
pub(crate) struct FileHealth {
    /// The fraction of the file that consists of free pages, from 0 to 1.
    fragmentation_ratio: f64,
    /// The size of the WAL in bytes.
    wal_bytes: u64,
    /// The other processes that have the file open.
    holders: Vec<FileHolder>,
}

/// The sizes of a file.
pub(crate) struct FileStats<'a> {
    pub(crate) path: &'a Path,
    pub(crate) file_bytes: u64,
    pub(crate) free_bytes: u64,
    pub(crate) wal_bytes: u64,
}

impl FileStats<'_> {
    /// Prints the state of the file, and returns it.
    pub(crate) fn describe(&self, output: Printer) -> FileHealth {
        let Self { path, file_bytes, free_bytes, wal_bytes } = *self;
        #[expect(clippy::cast_precision_loss, reason = "sizes stay far below 2⁵³")]
        let fragmentation_ratio =
            if file_bytes == 0 { 0.0 } else { free_bytes as f64 / file_bytes as f64 };
        let percent = fragmentation_ratio * 100.0;
        output.line(format_args!("fragmentation {percent:.1} %; WAL {wal_bytes} bytes"));
        let holders = file_holders(path);
        for holder in &holders {
            output.line(format_args!("open in {holder}"));
        }
        FileHealth { fragmentation_ratio, wal_bytes, holders }
    }
}
