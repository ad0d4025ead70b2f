//! The write-ahead log and its index, from outside: how long, how far copied, who reads from where
//! (<https://sqlite.org/walformat.html>).
//!
//! # Invariants
//! - The files are read and closed before a connection of this process has them open: closing a
//!   descriptor drops the process's own locks.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::header::u32_at;

/// Read marks in an index.
pub(crate) const MARKS_COUNT: usize = 5;
/// A mark that nobody has set.
const MARK_UNUSED: u32 = 0xffff_ffff;
/// Two copies of the index's header, then what checkpoints and readers share.
const INDEX_SIZE: usize = 136;

/// A `-wal` file.
#[derive(Clone, Debug)]
pub(crate) struct Wal {
    pub(crate) bytes: u64,
    /// Of the pages in it; `None` while it is empty.
    pub(crate) page_size: Option<u32>,
}

impl Wal {
    pub(crate) fn of(database: &Path) -> Option<Self> {
        let path = beside(database, "-wal");
        let bytes = path.metadata().ok()?.len();
        let header = read_start(&path, 32).unwrap_or_default();
        let is_wal = u32_at(&header, 0).is_some_and(|magic| magic & !1 == 0x377f_0682);
        let page_size = u32_at(&header, 8).filter(|_| is_wal);
        Some(Self { bytes, page_size })
    }
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
    pub(crate) fn of(database: &Path) -> Option<Self> {
        Self::parse(&read_start(&beside(database, "-shm"), INDEX_SIZE)?)
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

/// `a.db-wal` of `a.db`.
pub(crate) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Up to so many bytes from the start of a file.
pub(crate) fn read_start(path: &Path, size: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(size);
    let limit = u64::try_from(size).unwrap_or(u64::MAX);
    File::open(path).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
