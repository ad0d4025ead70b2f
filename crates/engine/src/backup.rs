//! A copy of a database's file while others write to it, without its key.
//!
//! The pages that the WAL holds are those of the file, encrypted alike, and its checksums are of
//! that ciphertext (<https://sqlite.org/fileformat2.html#walformat>). So a copy needs no key: the
//! file as it is, and over it the pages of the WAL up to its last commit. What it needs is that the
//! WAL is not moved into the file and started anew meanwhile. Whoever copies holds a `flock` on the
//! WAL, and whoever is about to move it waits for that ([`WalGate`]): in any process, and however
//! either ends.
//!
//! A copy `cp` would make holds neither: the file and its WAL are then of different moments.
//!
//! # Invariants
//! - A copy that is given out is the database as one commit left it, in a file without a WAL, and on
//!   the disk.
//! - If the WAL was started anew all the same, by a program that knows no gate, nothing is given
//!   out.
//!
//! # Not here
//! - What there is to be copied, and the manifest → `warren backup`.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crate::clock;
use crate::compact::beside;
use crate::error::{Error, Result, io};
use crate::swap::{DirectoryLock, is_unsupported, sync_directory};

/// How long a copy waits for a checkpoint that is under way.
const GATE_WAIT_MAX: Duration = Duration::from_secs(30);
const GATE_POLL: Duration = Duration::from_millis(5);
/// How long a database that is opened waits for a copy of what was left of it.
const LEFT_WAIT_MAX: Duration = Duration::from_secs(10);

/// How often a copy is begun anew because the file was opened or closed meanwhile.
const TRIES_MAX: u32 = 100;

const WAL_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The lowest bit says in which byte order checksums are computed.
const WAL_MAGIC: u32 = 0x377f_0682;

/// Passed by whoever moves a WAL into its file, and closed by whoever copies both.
pub(crate) struct WalGate {
    wal: Arc<File>,
    /// How many are inside; a `flock` is one for all of this process.
    inside: Mutex<u32>,
}

/// The WAL may be moved until this is dropped.
pub(crate) struct WalPass(Option<Arc<WalGate>>);

impl WalPass {
    /// For a database that has no WAL.
    pub(crate) fn without_wal() -> Self {
        Self(None)
    }
}

impl WalGate {
    pub(crate) fn new(wal: Arc<File>) -> Arc<Self> {
        Arc::new(Self { wal, inside: Mutex::default() })
    }

    /// `None`: a copy is being made.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<WalPass> {
        let mut inside = self.inside();
        if *inside == 0 && matches!(self.wal.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            return None;
        }
        *inside += 1;
        Some(WalPass(Some(Arc::clone(self))))
    }

    fn inside(&self) -> MutexGuard<'_, u32> {
        self.inside.lock().expect("no code panics while it holds this lock")
    }
}

impl Drop for WalPass {
    fn drop(&mut self) {
        let Some(gate) = &self.0 else { return };
        let mut inside = gate.inside();
        *inside -= 1;
        if *inside == 0
            && let Err(error) = gate.wal.unlock()
        {
            tracing::warn!(%error, "unlocking a WAL");
        }
    }
}

/// The same for a WAL that was left: waits for a copy that is being made of it. `None` if there is
/// none any more.
pub(crate) fn enter_left(database: &Path) -> Result<Option<File>> {
    let path = beside(database, "-wal");
    let wal = match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        wal => wal.map_err(io(&path))?,
    };
    let until = clock::now() + LEFT_WAIT_MAX;
    loop {
        match wal.try_lock_shared() {
            Err(TryLockError::WouldBlock) if clock::now() >= until => return Err(Error::Busy),
            Err(TryLockError::WouldBlock) => thread::park_timeout(GATE_POLL),
            // Where there are no such locks, nobody waits for any.
            _ => return Ok(Some(wal)),
        }
    }
}

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiedFile {
    /// The size of the copy.
    pub bytes: u64,
    /// Pages of it that were in the WAL.
    pub wal_pages: u64,
}

/// Copies a database that others may be writing to into a new file. Needs no key, and opens no
/// connection: this process must not have the database open, because closing a descriptor of the
/// same file drops the locks that its connections hold.
///
/// [`Error::Busy`] if it is opened and closed all the time, or a checkpoint does not end.
pub fn copy_file(database: &Path, to: &Path) -> Result<CopiedFile> {
    let _no_swap = DirectoryLock::shared(database)?;
    for _ in 0..TRIES_MAX {
        if let Some(copied) = try_copy(database, to)? {
            sync_directory(to)?;
            return Ok(copied);
        }
    }
    Err(Error::Busy)
}

/// `None`: the WAL came, went or was started anew meanwhile.
fn try_copy(database: &Path, to: &Path) -> Result<Option<CopiedFile>> {
    let wal = lock_wal(database)?;
    let before = wal.as_ref().map(|wal| read_wal_header(database, wal)).transpose()?;
    let mut source = File::open(database).map_err(io(database))?;
    let mut target = File::create(to).map_err(io(to))?;
    std::io::copy(&mut source, &mut target).map_err(io(to))?;
    let Some(wal) = wal else {
        // Whoever has opened it since may have changed the file.
        let is_closed = !beside(database, "-wal").exists();
        return if is_closed { finish(&target, to, 0).map(Some) } else { Ok(None) };
    };
    let frames = read_frames(database, &wal)?;
    if let Some(commit_pages) = frames.database_pages {
        let page_bytes = u64::from(frames.page_bytes);
        let mut content = vec![0; frames.page_bytes as usize];
        for (&page, &at) in &frames.pages {
            wal.read_exact_at(&mut content, at).map_err(io(&beside(database, "-wal")))?;
            let offset = (u64::from(page) - 1) * page_bytes;
            target.write_all_at(&content, offset).map_err(io(to))?;
        }
        target.set_len(u64::from(commit_pages) * page_bytes).map_err(io(to))?;
    }
    // Last: what was read is of the WAL that was there from the beginning.
    if read_wal_header(database, &wal)? != before.flatten() {
        return Ok(None);
    }
    finish(&target, to, frames.pages.len() as u64).map(Some)
}

fn finish(target: &File, to: &Path, wal_pages: u64) -> Result<CopiedFile> {
    target.sync_all().map_err(io(to))?;
    let bytes = target.metadata().map_err(io(to))?.len();
    Ok(CopiedFile { bytes, wal_pages })
}

/// The WAL, with its gate closed to others until it is dropped. `None` if there is none.
fn lock_wal(database: &Path) -> Result<Option<File>> {
    let path = beside(database, "-wal");
    let until = clock::now() + GATE_WAIT_MAX;
    loop {
        let wal = match File::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            wal => wal.map_err(io(&path))?,
        };
        match wal.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) if is_unsupported(&error) => {}
            Err(TryLockError::Error(error)) => return Err(io(&path)(error)),
            Err(TryLockError::WouldBlock) if clock::now() >= until => return Err(Error::Busy),
            Err(TryLockError::WouldBlock) => {
                thread::park_timeout(GATE_POLL);
                continue;
            }
        }
        // It may have been removed, and made anew, before it was locked.
        let locked = wal.metadata().map_err(io(&path))?;
        match path.metadata() {
            Ok(named) if named.ino() == locked.ino() && named.dev() == locked.dev() => {
                return Ok(Some(wal));
            }
            _ => {}
        }
    }
}

type WalHeader = [u8; WAL_HEADER_BYTES];

/// `None` while the WAL is empty.
fn read_wal_header(database: &Path, wal: &File) -> Result<Option<WalHeader>> {
    let mut header = [0; WAL_HEADER_BYTES];
    match wal.read_exact_at(&mut header, 0) {
        Ok(()) => Ok(Some(header)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(io(&beside(database, "-wal"))(error)),
    }
}

/// The committed part of a WAL.
#[derive(Default)]
struct CommittedFrames {
    page_bytes: u32,
    /// Where in the WAL the latest content of each page is.
    pages: BTreeMap<u32, u64>,
    /// Of the database after the last commit; `None` if nothing is committed.
    database_pages: Option<u32>,
}

/// Reads as far as checksums and salts are right, and keeps what was committed.
fn read_frames(database: &Path, wal: &File) -> Result<CommittedFrames> {
    let path = beside(database, "-wal");
    let Some(header) = read_wal_header(database, wal)? else {
        return Ok(CommittedFrames::default());
    };
    let Some(mut checksum) = WalChecksum::of_header(&header) else {
        return Ok(CommittedFrames::default());
    };
    let page_bytes = u32_at(&header, 8);
    let mut frames = CommittedFrames { page_bytes, ..CommittedFrames::default() };
    let mut uncommitted = BTreeMap::new();
    // As long as it is now: a writer may append faster than this reads.
    let length = wal.metadata().map_err(io(&path))?.len();
    let mut start = wal;
    start.seek(SeekFrom::Start(WAL_HEADER_BYTES as u64)).map_err(io(&path))?;
    let mut reader = std::io::BufReader::with_capacity(1 << 20, start.take(length));
    let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes as usize];
    let mut at = WAL_HEADER_BYTES as u64;
    loop {
        match reader.read_exact(&mut frame) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(io(&path)(error)),
        }
        let (head, content) = frame.split_at(FRAME_HEADER_BYTES);
        checksum.add(&head[..8]);
        checksum.add(content);
        let is_right = head[8..16] == header[16..24]
            && (u32_at(head, 16), u32_at(head, 20)) == checksum.value();
        let page = u32_at(head, 0);
        if !is_right || page == 0 {
            break;
        }
        uncommitted.insert(page, at + FRAME_HEADER_BYTES as u64);
        at += frame.len() as u64;
        let commit_pages = u32_at(head, 4);
        if commit_pages > 0 {
            frames.pages.append(&mut uncommitted);
            frames.database_pages = Some(commit_pages);
        }
    }
    Ok(frames)
}

/// <https://sqlite.org/fileformat2.html#checksum_algorithm>
struct WalChecksum {
    is_big_endian: bool,
    sums: (u32, u32),
}

impl WalChecksum {
    /// `None` if it is no WAL's header, or a torn one.
    fn of_header(header: &WalHeader) -> Option<Self> {
        let magic = u32_at(header, 0);
        let page_bytes = u32_at(header, 8);
        let is_known = magic & !1 == WAL_MAGIC;
        let is_page = page_bytes.is_power_of_two() && (512..=65_536).contains(&page_bytes);
        let mut checksum = Self { is_big_endian: magic & 1 == 1, sums: (0, 0) };
        checksum.add(&header[..24]);
        let is_whole = checksum.value() == (u32_at(header, 24), u32_at(header, 28));
        (is_known && is_page && is_whole).then_some(checksum)
    }

    /// Adds a multiple of eight bytes.
    fn add(&mut self, bytes: &[u8]) {
        let word = |bytes: &[u8]| {
            let word = bytes.try_into().expect("four bytes");
            if self.is_big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
        };
        let (mut first, mut second) = self.sums;
        for pair in bytes.chunks_exact(8) {
            first = first.wrapping_add(word(&pair[..4])).wrapping_add(second);
            second = second.wrapping_add(word(&pair[4..])).wrapping_add(first);
        }
        self.sums = (first, second);
    }

    fn value(&self) -> (u32, u32) {
        self.sums
    }
}

/// Numbers in a WAL are big-endian.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
