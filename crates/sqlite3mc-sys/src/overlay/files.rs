//! The files of one overlay: their content on the disk, and the blocks that were written since.
//!
//! # Invariants
//! - A file on the disk is opened for reading only, and only if it is a regular file: opening a
//!   pipe would wait for its writer.
//! - The bytes that all files of the overlay hold are counted, and never exceed its limit.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::OFlags;

/// Size of a block, the unit that is kept in memory: SQLite's default page.
const BLOCK_SIZE: usize = 4096;

type OverlayBlock = Box<[u8; BLOCK_SIZE]>;

/// Files of an overlay by name. A name that is missing here stands for the file on the disk.
pub(super) struct OverlayFiles {
    /// Files that the overlay has opened or deleted; `None` is a deleted one.
    by_name: HashMap<PathBuf, Option<Arc<Mutex<OverlayFile>>>>,
    room: Arc<OverlayRoom>,
}

/// Memory that the files of one overlay may hold.
struct OverlayRoom {
    bytes_max: u64,
    held_bytes: AtomicU64,
}

/// Error of a write for which the overlay has no memory left.
#[derive(Debug)]
pub(super) struct OverlayFull;

impl OverlayFiles {
    pub(super) fn new(bytes_max: u64) -> Self {
        let room = OverlayRoom { bytes_max, held_bytes: AtomicU64::new(0) };
        Self { by_name: HashMap::new(), room: Arc::new(room) }
    }

    /// Opens the file of this name. A missing one is created if `create` is set.
    pub(super) fn open(
        &mut self,
        path: &Path,
        create: bool,
    ) -> io::Result<Arc<Mutex<OverlayFile>>> {
        let found = match self.by_name.get(path) {
            Some(Some(file)) => return Ok(Arc::clone(file)),
            Some(None) => Err(ErrorKind::NotFound.into()),
            None => open_regular(path),
        };
        let disk = match found {
            Ok(disk) => Some(disk),
            Err(error) if create && error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let file = Arc::new(Mutex::new(OverlayFile::new(disk, Arc::clone(&self.room))?));
        self.by_name.insert(path.to_owned(), Some(Arc::clone(&file)));
        Ok(file)
    }

    pub(super) fn delete(&mut self, path: &Path) {
        self.by_name.insert(path.to_owned(), None);
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        match self.by_name.get(path) {
            Some(file) => file.is_some(),
            None => path.metadata().is_ok_and(|metadata| metadata.is_file()),
        }
    }
}

/// One file of an overlay.
pub(super) struct OverlayFile {
    /// The file on the disk; `None` if only the overlay has it.
    disk: Option<File>,
    /// Number of bytes of the file on the disk that still count: fewer than all after a truncation.
    disk_bytes: u64,
    bytes: u64,
    /// Written blocks by number; each block is complete.
    blocks: BTreeMap<u64, OverlayBlock>,
    room: Arc<OverlayRoom>,
}

impl OverlayFile {
    fn new(disk: Option<File>, room: Arc<OverlayRoom>) -> io::Result<Self> {
        let bytes = disk.as_ref().map_or(Ok(0), |disk| disk.metadata().map(|it| it.len()))?;
        Ok(Self { disk, disk_bytes: bytes, bytes, blocks: BTreeMap::new(), room })
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Fills the buffer from `offset` on. Returns the number of bytes that the file has there; the
    /// rest is zeros.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let known = left.min(buffer.len());
        buffer[known..].fill(0);
        for (number, within, part) in blocks_mut(&mut buffer[..known], offset) {
            match self.blocks.get(&number) {
                Some(block) => part.copy_from_slice(&block[within..within + part.len()]),
                None => self.read_disk(part, number * size_of_block() + as_u64(within))?,
            }
        }
        Ok(known)
    }

    /// Writes `bytes` at `offset`; the file grows where needed.
    pub(super) fn write(
        &mut self,
        bytes: &[u8],
        offset: u64,
    ) -> io::Result<Result<(), OverlayFull>> {
        let end = offset + as_u64(bytes.len());
        let mut rest = bytes;
        let mut at = offset;
        while !rest.is_empty() {
            let (number, within) = place(at);
            let size = rest.len().min(BLOCK_SIZE - within);
            let (part, later) = rest.split_at(size);
            let Some(block) = self.block_mut(number)? else { return Ok(Err(OverlayFull)) };
            block[within..within + size].copy_from_slice(part);
            rest = later;
            at += as_u64(size);
        }
        if !bytes.is_empty() {
            self.bytes = self.bytes.max(end);
        }
        Ok(Ok(()))
    }

    /// Sets the length of the file: it becomes shorter, or longer by zeros.
    pub(super) fn truncate(&mut self, bytes: u64) {
        let (number, within) = place(bytes);
        // The rest of the block must be zeros, in case the file grows again.
        if let Some(block) = self.blocks.get_mut(&number) {
            block[within..].fill(0);
        }
        let gone = self.blocks.split_off(&(number + u64::from(within > 0)));
        self.room.give_back(gone.len());
        self.disk_bytes = self.disk_bytes.min(bytes);
        self.bytes = bytes;
    }

    /// Returns the block with its current content, or `None` if the overlay is full.
    fn block_mut(&mut self, number: u64) -> io::Result<Option<&mut OverlayBlock>> {
        if !self.blocks.contains_key(&number) {
            if !self.room.take_block() {
                return Ok(None);
            }
            let mut block = Box::new([0; BLOCK_SIZE]);
            self.read_disk(&mut *block, number * size_of_block())?;
            self.blocks.insert(number, block);
        }
        Ok(self.blocks.get_mut(&number))
    }

    /// Reads the content on the disk; zeros where it has none.
    fn read_disk(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let left = usize::try_from(self.disk_bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let known = left.min(buffer.len());
        let (from_disk, rest) = buffer.split_at_mut(known);
        rest.fill(0);
        match &self.disk {
            Some(disk) => disk.read_exact_at(from_disk, offset),
            None => Ok(()),
        }
    }
}

impl OverlayRoom {
    /// Takes the memory of one more block. Returns `false` if the overlay is full.
    fn take_block(&self) -> bool {
        let held = self.held_bytes.fetch_add(size_of_block(), Ordering::Relaxed);
        let has_room = held + size_of_block() <= self.bytes_max;
        if !has_room {
            self.give_back(1);
        }
        has_room
    }

    fn give_back(&self, blocks: usize) {
        self.held_bytes.fetch_sub(as_u64(blocks) * size_of_block(), Ordering::Relaxed);
    }
}

impl Drop for OverlayFile {
    fn drop(&mut self) {
        self.room.give_back(self.blocks.len());
    }
}

/// Opens a regular file for reading. Any other file counts as missing; the call does not wait for a
/// pipe that has just taken the name.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::NotFound.into()) }
}

/// Locks a mutex, even if a panic has poisoned it: each change of a file is complete or an error.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Splits a buffer at this offset of a file into blocks: returns each block's number, the offset in
/// it at which the part begins, and the part.
fn blocks_mut(buffer: &mut [u8], offset: u64) -> impl Iterator<Item = (u64, usize, &mut [u8])> {
    let (_, within) = place(offset);
    let first = buffer.len().min(BLOCK_SIZE - within);
    let (head, tail) = buffer.split_at_mut(first);
    let parts = std::iter::once(head).chain(tail.chunks_mut(BLOCK_SIZE));
    let mut at = offset;
    parts.filter(|part| !part.is_empty()).map(move |part| {
        let (number, within) = place(at);
        at += as_u64(part.len());
        (number, within, part)
    })
}

/// Returns the number of the block that holds this byte, and the byte's place in it.
fn place(offset: u64) -> (u64, usize) {
    let within = offset % size_of_block();
    (offset / size_of_block(), usize::try_from(within).expect("a block is small"))
}

const fn size_of_block() -> u64 {
    BLOCK_SIZE as u64
}

fn as_u64(size: usize) -> u64 {
    u64::try_from(size).expect("64 bits hold a size")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares random reads, writes and truncations with those of a plain vector.
    #[test]
    fn a_file_is_what_a_vector_would_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let disk: Vec<u8> =
            (0..30_000_u32).map(|index| u8::try_from(index % 251).unwrap()).collect();
        std::fs::write(&path, &disk).unwrap();
        let mut state = 7_u64;
        let mut random = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % end
        };
        for _ in 0..20 {
            let mut files = OverlayFiles::new(1 << 20);
            let opened = files.open(&path, false).unwrap();
            let (mut file, mut expected) = (lock(&opened), disk.clone());
            for step in 0..200_u64 {
                let offset = random(40_000);
                let size = usize::try_from(random(9_000)).unwrap();
                let at = usize::try_from(offset).unwrap();
                match random(3) {
                    0 if size > 0 => {
                        let bytes = vec![u8::try_from(step % 256).unwrap(); size];
                        file.write(&bytes, offset).unwrap().unwrap();
                        expected.resize(expected.len().max(at + size), 0);
                        expected[at..at + size].copy_from_slice(&bytes);
                    }
                    1 if step % 7 == 0 => {
                        file.truncate(offset);
                        expected.resize(at, 0);
                    }
                    _ => {
                        let mut buffer = vec![1; size];
                        let known = file.read(&mut buffer, offset).unwrap();
                        let end = expected.len().min(at + size);
                        let left = expected.get(at..end).unwrap_or_default();
                        assert_eq!(&buffer[..known], left);
                        assert!(buffer[known..].iter().all(|byte| *byte == 0));
                    }
                }
                assert_eq!(file.bytes(), as_u64(expected.len()));
            }
            drop(file);
            drop(opened);
            let room = Arc::clone(&files.room);
            drop(files);
            assert_eq!(room.held_bytes.load(Ordering::Relaxed), 0);
        }
        assert_eq!(std::fs::read(&path).unwrap(), disk);
    }

    #[test]
    fn what_all_files_hold_is_limited() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = OverlayFiles::new(2 * size_of_block());
        let files = ["a", "b"].map(|name| files.open(&folder.path().join(name), true).unwrap());
        let write = |file: usize, block: u64| {
            lock(&files[file]).write(b"x", block * size_of_block()).unwrap().is_ok()
        };
        assert!(write(0, 7) && write(1, 0) && write(1, 0));
        assert!(!write(0, 0) && !write(1, 1));
        lock(&files[0]).truncate(0);
        assert!(write(1, 1));
    }

    #[test]
    fn what_is_deleted_is_gone_and_the_disk_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "abc").unwrap();
        let mut files = OverlayFiles::new(1 << 20);
        assert!(files.exists(&path));
        files.delete(&path);
        assert!(!files.exists(&path) && path.exists());
        assert!(files.open(&path, false).is_err());
        assert_eq!(lock(&files.open(&path, true).unwrap()).bytes(), 0);
    }
}
