//! Reads the committed frames of a WAL without the database's key: the checksums cover the
//! ciphertext (<https://sqlite.org/fileformat2.html#walformat>).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{Error, Result, io};
use crate::system::side_files::side_file_path;

const WAL_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The magic number of a WAL; its lowest bit gives the byte order in which checksums are computed.
const WAL_MAGIC: u32 = 0x377f_0682;

/// The header of a WAL, which is another one after each restart, because its salts are random.
pub(super) type WalHeader = [u8; WAL_HEADER_BYTES];

/// Reads the header of a WAL. Returns `None` while the WAL is empty.
pub(super) fn read_wal_header(database: &Path, wal: &File) -> Result<Option<WalHeader>> {
    let mut header = [0; WAL_HEADER_BYTES];
    match wal.read_exact_at(&mut header, 0) {
        Ok(()) => Ok(Some(header)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(io(&side_file_path(database, "-wal"))(error)),
    }
}

/// The committed part of a WAL.
#[derive(Default)]
pub(super) struct CommittedFrames {
    pub(super) page_bytes: u32,
    /// The position in the WAL of the latest content of each page.
    pub(super) pages: BTreeMap<u32, u64>,
    /// The number of pages of the database after the last commit; `None` if nothing is committed.
    pub(super) database_pages: Option<u32>,
}

/// Reads frames as long as their checksums and salts are right, and keeps the committed ones.
/// `on_frame` is called with the length of each frame.
pub(super) fn read_frames<E: From<Error>>(
    database: &Path,
    wal: &File,
    mut on_frame: impl FnMut(u64) -> Result<(), E>,
) -> Result<CommittedFrames, E> {
    let path = side_file_path(database, "-wal");
    let Some(header) = read_wal_header(database, wal)? else {
        return Ok(CommittedFrames::default());
    };
    let Some(mut checksum) = WalChecksum::from_header(&header) else {
        return Ok(CommittedFrames::default());
    };
    let page_bytes = u32_at(&header, 8);
    let mut frames = CommittedFrames { page_bytes, ..CommittedFrames::default() };
    let mut uncommitted = BTreeMap::new();
    // The length is that of this moment, because a writer may append faster than this reads.
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
            Err(error) => return Err(io(&path)(error).into()),
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
        on_frame(frame.len() as u64)?;
        let commit_pages = u32_at(head, 4);
        if commit_pages > 0 {
            frames.pages.append(&mut uncommitted);
            frames.database_pages = Some(commit_pages);
        }
    }
    Ok(frames)
}

/// The checksum of a WAL: <https://sqlite.org/fileformat2.html#checksum_algorithm>
struct WalChecksum {
    is_big_endian: bool,
    sums: (u32, u32),
}

impl WalChecksum {
    /// Begins the checksum with a WAL's header. Returns `None` if the header is torn, or not that
    /// of a WAL.
    fn from_header(header: &WalHeader) -> Option<Self> {
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

/// Reads a number, which is big-endian in a WAL.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
