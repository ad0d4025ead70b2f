//! The write-ahead log and its index, from outside: how long, how far copied, who reads from where
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

/// Read marks in an index.
const MARKS_COUNT: usize = 5;
/// A mark that nobody has set.
const MARK_UNUSED: u32 = 0xffff_ffff;
/// Two copies of the index's header, then what checkpoints and readers share.
const INDEX_SIZE: usize = 136;

/// A `-wal` file.
#[derive(Clone, Debug)]
pub(crate) struct WalFileInfo {
    pub(crate) bytes: u64,
    pub(crate) modified: Option<SystemTime>,
    /// Of the pages in it; `None` while it is empty.
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

/// Frames that are looked at: of a WAL of 16 GB, at the usual size of a page.
const FRAMES_MAX: usize = 1 << 22;
const HEADER_SIZE: u64 = 32;
const FRAME_HEADER_SIZE: usize = 24;

/// What the WAL beside a database has committed: how many pages the database then had, and which of
/// them are in the WAL. `None` if it has committed nothing.
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
        // Behind the last frame are those of the WAL's last life, with other salts.
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

/// What a `-shm` file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WalIndex {
    /// Counts the transactions.
    pub(crate) change: u32,
    /// The last committed frame.
    pub(crate) frames_count: u32,
    /// How many of them are in the main file.
    pub(crate) copied_count: u32,
    marks: [u32; MARKS_COUNT],
}

impl WalIndex {
    pub(crate) fn read(database: &Path) -> Option<Self> {
        Self::parse(&read_prefix(&side_file_path(database, "-shm"), INDEX_SIZE)?)
    }

    /// In the byte order of the machine that wrote it, which is this one.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let at = |offset: usize| {
            let bytes = bytes.get(offset..offset + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().expect("four bytes")))
        };
        // Torn, while somebody writes it: not to be believed.
        let is_whole = bytes.len() >= INDEX_SIZE && bytes[..48] == bytes[48..96];
        let is_initialised = is_whole && bytes[12] == 1;
        let mut marks = [0; MARKS_COUNT];
        for (index, mark) in marks.iter_mut().enumerate() {
            *mark = at(100 + 4 * index)?;
        }
        let index = Self { change: at(8)?, frames_count: at(16)?, copied_count: at(96)?, marks };
        Some(index).filter(|_| is_initialised)
    }

    /// Up to which frame a reader with this mark sees the WAL; the first mark is of those who need
    /// no WAL.
    pub(crate) fn mark(&self, index: u8) -> Option<u32> {
        self.marks.get(usize::from(index)).copied().filter(|mark| *mark != MARK_UNUSED)
    }
}

/// Up to so many bytes from the start of a regular file. Of a pipe, whose opening would wait for a
/// writer, nothing.
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
