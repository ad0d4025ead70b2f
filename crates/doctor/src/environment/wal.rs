//! Reads a WAL and its index from outside: the size, the checkpointed part and the read marks
//! (<https://sqlite.org/walformat.html>).
//!
//! # Invariants
//! - The files are read and closed before a connection of this process has them open: closing a
//!   descriptor drops the process's own locks.

use std::collections::HashSet;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

use engine::side_file_path;
use rustix::fs::OFlags;

use crate::file::database_header::u32_at;

/// The number of read marks in an index.
const MARKS_COUNT: usize = 5;
/// The value of a read mark that is not in use.
const MARK_UNUSED: u32 = 0xffff_ffff;
/// The size of two copies of the index's header, and of the data that checkpoints and readers
/// share.
const INDEX_SIZE: usize = 136;

/// A `-wal` file.
#[derive(Clone, Debug)]
pub(crate) struct WalFileInfo {
    pub(crate) bytes: u64,
    pub(crate) modified: Option<SystemTime>,
    /// The size of the pages in the WAL; `None` while it is empty.
    pub(crate) page_size: Option<u32>,
}

impl WalFileInfo {
    pub(crate) fn read(database: &Path) -> Option<Self> {
        let path = side_file_path(database, "-wal");
        let metadata = path.metadata().ok().filter(Metadata::is_file)?;
        let header = read_prefix(&path, 32).unwrap_or_default();
        let is_wal = u32_at(&header, 0).is_some_and(|magic| magic & !1 == 0x377f_0682);
        let page_size = u32_at(&header, 8).filter(|_| is_wal);
        let (bytes, modified) = (metadata.len(), metadata.modified().ok());
        Some(Self { bytes, modified, page_size })
    }
}

/// The maximum number of frames that are read: those of a WAL of 16 GB with the usual page size.
const FRAMES_MAX: usize = 1 << 22;
const HEADER_SIZE: u64 = 32;
const FRAME_HEADER_SIZE: usize = 24;

/// Returns the page count of the database after the last commit in its WAL, and the pages that are
/// in the WAL. Returns `None` if the WAL contains no commit.
pub(crate) fn committed(database: &Path) -> Option<(u32, HashSet<u32>)> {
    let file = open_regular(&side_file_path(database, "-wal"))?;
    let read = |offset: u64| {
        let mut bytes = [0; FRAME_HEADER_SIZE];
        file.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    };
    let header = read(0)?;
    let salts = |bytes: &[u8], at: usize| Some((u32_at(bytes, at)?, u32_at(bytes, at + 4)?));
    let (page_size, own) = (u32_at(&header, 8)?, salts(&header, 16)?);
    let frame_size = u64::try_from(FRAME_HEADER_SIZE).ok()? + u64::from(page_size);
    let (mut found, mut pages, mut pending) = (None, HashSet::new(), Vec::new());
    for index in 0..FRAMES_MAX {
        let index = u64::try_from(index).ok()?;
        let offset = HEADER_SIZE + index * frame_size;
        // After the last frame follow frames from before the WAL was reset, with other salts.
        let Some(frame) = read(offset).filter(|frame| salts(frame, 8) == Some(own)) else { break };
        pending.push(u32_at(&frame, 0)?);
        let committed = u32_at(&frame, 4)?;
        if committed > 0 {
            pages.extend(pending.drain(..));
            found = Some(committed);
        }
    }
    Some((found?, pages))
}

/// The content of a `-shm` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WalIndex {
    /// A counter of the transactions.
    pub(crate) change: u32,
    /// The number of the last committed frame.
    pub(crate) frames_count: u32,
    /// The number of frames that are copied into the main file.
    pub(crate) copied_count: u32,
    marks: [u32; MARKS_COUNT],
}

impl WalIndex {
    pub(crate) fn read(database: &Path) -> Option<Self> {
        Self::parse(&read_prefix(&side_file_path(database, "-shm"), INDEX_SIZE)?)
    }

    /// Parses an index in the byte order of the machine that wrote it, which is this one.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let at = |offset: usize| {
            let bytes = bytes.get(offset..offset + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().expect("four bytes")))
        };
        // While a process writes the header, the two copies differ, and cannot be trusted.
        let is_whole = bytes.len() >= INDEX_SIZE && bytes[..48] == bytes[48..96];
        let is_initialised = is_whole && bytes[12] == 1;
        let mut marks = [0; MARKS_COUNT];
        for (index, mark) in marks.iter_mut().enumerate() {
            *mark = at(100 + 4 * index)?;
        }
        let index = Self { change: at(8)?, frames_count: at(16)?, copied_count: at(96)?, marks };
        Some(index).filter(|_| is_initialised)
    }

    /// Returns the frame up to which a reader with this mark sees the WAL. Readers that need no WAL
    /// use the first mark.
    pub(crate) fn mark(&self, index: u8) -> Option<u32> {
        self.marks.get(usize::from(index)).copied().filter(|mark| *mark != MARK_UNUSED)
    }
}

/// Reads up to this number of bytes from the start of a regular file. A pipe returns `None`,
/// because opening it would wait for a writer.
pub(crate) fn read_prefix(path: &Path, size: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(size);
    let limit = u64::try_from(size).unwrap_or(u64::MAX);
    open_regular(path)?.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn open_regular(path: &Path) -> Option<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}
