//! Opens a damaged file to salvage its readable content: on an overlay, behind a filter that
//! returns zeros for pages that cannot be read.
//!
//! In a file with a key, page 1 usually proves the key. If page 1 is lost, the other pages do: one
//! that the cipher authenticates or, with a cipher that does not authenticate, one that looks like
//! a page of a B-tree. Page 1 is then replaced by an empty one with the same settings, as far as
//! they are known: eight bytes of its header are not encrypted, and may have survived.
//!
//! # Invariants
//! - Nothing is written to the disk.
//! - A WAL has been moved into the file, in memory, so each page is in the main file, behind the
//!   filter.
//!
//! # Not here
//! - Salvaging the content → `doctor::recover`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::Connection;
use sqlite3mc_sys::FilteredConnection;

use super::{
    Cipher, FileEncryption, KeyOrPassphrase, Result, candidates, connect_overlay, io, open_overlay,
    sqlite, wrong_key,
};

/// A damaged file, opened for recovery.
pub struct RecoverySource {
    /// The connection through which the file is read.
    pub database: FilteredConnection,
    /// The cipher of the file, or `None` if it is not encrypted.
    pub cipher: Option<Cipher>,
    /// Whether page 1, which contains the root of the schema, can be read.
    pub has_page_1: bool,
}

/// All page sizes, the most frequent first. Each is tried unless the header names one.
const PAGE_SIZES: [usize; 8] = [4096, 1024, 8192, 2048, 16_384, 32_768, 65_536, 512];
/// The offset in the header where its unencrypted part starts: page size, file format, reserved
/// bytes, and three numbers that are the same in every file.
const PLAIN_START: usize = 16;
const FIXED_FRACTIONS: [u8; 3] = [64, 32, 32];
/// The maximum number of pages that are read to see whether a key fits.
const PROBES_MAX: u32 = 256;

/// Opens a damaged file. Returns [`crate::Error::WrongKey`] if nothing in it can be read with this
/// key.
///
/// If the file is not encrypted, its header may be damaged: SQLite's recovery extension replaces it
/// when it starts, and until then the connection reads nothing.
pub fn open_for_recovery(path: &Path, encryption: &FileEncryption) -> Result<RecoverySource> {
    let path = path.canonicalize().map_err(io(path))?;
    let opened = open_overlay(&path, encryption).and_then(|(db, cipher)| {
        let page_size = prepare(&db)?;
        filter(db, page_size, cipher, None)
    });
    match (opened, encryption.secret()) {
        (Err(error), secret) if error.is_damage() => match secret {
            None => without_header(&path),
            Some((secret, named)) => without_page_1(&path, secret, named),
        },
        (opened, _) => opened,
    }
}

/// Reads page 1 and the WAL or journal that a writer has left. Returns the page size.
fn prepare(db: &Connection) -> Result<usize> {
    tolerate(db)?;
    // SQLite then uses the real length of a file whose header claims a greater one.
    db.query_row("PRAGMA page_count", [], |_| Ok(())).map_err(sqlite("first read"))?;
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    db.query_row(checkpoint, [], |_| Ok(())).map_err(sqlite("reading the WAL"))?;
    let size = db.query_row("PRAGMA page_size", [], |row| row.get::<_, u32>(0));
    Ok(usize::try_from(size.map_err(sqlite("page_size"))?).expect("a page is small"))
}

fn tolerate(db: &Connection) -> Result<()> {
    db.execute_batch("PRAGMA writable_schema = ON").map_err(sqlite("writable_schema"))
}

fn filter(
    db: Connection,
    page_size: usize,
    cipher: Option<Cipher>,
    page_1: Option<Vec<u8>>,
) -> Result<RecoverySource> {
    let has_page_1 = page_1.is_none();
    let database = FilteredConnection::new(db, page_size, cipher.is_some(), page_1);
    Ok(RecoverySource { database: database.map_err(sqlite("filter"))?, cipher, has_page_1 })
}

fn without_header(path: &Path) -> Result<RecoverySource> {
    let db = connect_overlay(path, None)?;
    tolerate(&db)?;
    filter(db, PAGE_SIZES[0], None, None)
}

fn without_page_1(
    path: &Path,
    secret: KeyOrPassphrase<'_>,
    named: Option<Cipher>,
) -> Result<RecoverySource> {
    let file = File::open(path).map_err(io(path))?;
    let file_bytes = file.metadata().map_err(io(path))?.len();
    let mut start = [0; 24];
    // A header that the disk cannot read counts as all zeros.
    let survived = file.read_exact_at(&mut start, 0).ok().and_then(|()| PlainHeader::parse(&start));
    // The file is closed before SQLite opens it, because closing a descriptor drops locks.
    drop(file);
    for cipher in candidates(named.as_ref()) {
        for page_size in PAGE_SIZES {
            if survived.as_ref().is_some_and(|survived| survived.page_size != page_size) {
                continue;
            }
            let db = connect_overlay(path, Some((secret, *cipher)))?;
            tolerate(&db)?;
            let reserved = match &survived {
                Some(survived) => survived.reserved,
                None => sqlite3mc_sys::reserved_bytes(&db).map_err(sqlite("reserved bytes"))?,
            };
            let page_1 = empty_page_1(page_size, reserved, file_bytes);
            let source = filter(db, page_size, Some(*cipher), Some(page_1))?;
            if reads_something(source.database.connection(), *cipher) {
                return Ok(source);
            }
        }
    }
    Err(wrong_key(path))
}

/// The settings in the unencrypted part of page 1.
struct PlainHeader {
    page_size: usize,
    reserved: u8,
}

impl PlainHeader {
    fn parse(start: &[u8; 24]) -> Option<Self> {
        let plain = &start[PLAIN_START..];
        let page_size = match u16::from_be_bytes([plain[0], plain[1]]) {
            1 => 65_536,
            size => usize::from(size),
        };
        let is_whole = PAGE_SIZES.contains(&page_size) && plain[5..] == FIXED_FRACTIONS;
        is_whole.then(|| Self { page_size, reserved: plain[4] })
    }
}

/// Builds a page 1 of a database without tables
/// (<https://sqlite.org/fileformat.html#the_database_header>).
fn empty_page_1(page_size: usize, reserved: u8, file_bytes: u64) -> Vec<u8> {
    let mut page = vec![0; page_size];
    let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
    let pages_count = file_bytes / u64::try_from(page_size).expect("64 bits hold a size");
    let pages_count = u32::try_from(pages_count).unwrap_or(u32::MAX);
    // 65,536 is stored as 1, and the end of such a page as 0.
    let size = u16::try_from(page_size).unwrap_or(1);
    let end = u16::try_from(page_size - usize::from(reserved)).unwrap_or(0);
    put(0, b"SQLite format 3\0");
    put(PLAIN_START, &size.to_be_bytes());
    put(18, &[1, 1, reserved]);
    put(21, &FIXED_FRACTIONS);
    put(28, &pages_count.to_be_bytes());
    put(44, &4_u32.to_be_bytes());
    // The text encoding is UTF-8.
    put(56, &1_u32.to_be_bytes());
    // The page is a leaf of a table, without cells.
    put(100, &[13]);
    put(105, &end.to_be_bytes());
    page
}

/// Checks whether there is a page that only the right key makes readable.
fn reads_something(db: &Connection, cipher: Cipher) -> bool {
    // SQLite's first read recovers the WAL or journal that a writer has left.
    let count = db.query_row("PRAGMA page_count", [], |row| row.get::<_, u32>(0)).unwrap_or(0);
    let checkpoint = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    if checkpoint.is_err() {
        return false;
    }
    let step = count.div_ceil(PROBES_MAX).max(1);
    (2..=count).step_by(usize::try_from(step).unwrap_or(usize::MAX)).any(|number| {
        let sql = "SELECT data FROM sqlite_dbpage WHERE pgno = ?1";
        let page = db.query_row(sql, [number], |row| row.get::<_, Vec<u8>>(0));
        page.is_ok_and(|page| cipher.authenticates() || is_tree_page(&page))
    })
}

/// Checks whether a page looks like one of a B-tree; fewer than one in a million random pages do.
fn is_tree_page(page: &[u8]) -> bool {
    let number = |at: usize| usize::from(u16::from_be_bytes([page[at], page[at + 1]]));
    let pointers = match page[0] {
        2 | 5 => 12,
        10 | 13 => 8,
        _ => return false,
    };
    let (cells_count, content) = (number(3), number(5));
    cells_count > 0
        && (pointers + 2 * cells_count..page.len()).contains(&content)
        && (0..cells_count).all(|cell| (content..page.len()).contains(&number(pointers + 2 * cell)))
}
