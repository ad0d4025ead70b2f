//! Filters the reads of a damaged file, so that they continue: a page that cannot be read is all
//! zeros.
//!
//! If a disk has lost a sector, or a cipher finds that a page is not the one that was written,
//! SQLite reports an error, and its recovery extension stops. A filter is placed between a
//! connection and its main file. A page that failed once is never read again.
//!
//! A cipher's error also puts SQLite's pager into a state that lasts until the statement ends. So
//! every page must be read, each in a statement of its own, before any work that cannot be
//! restarted.
//!
//! # Invariants
//! - The filter does not change writes.
//!
//! # Not here
//! - Reading the file itself: the connection's own VFS.

use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, ffi};

/// A read of fewer bytes than this is one of a header.
const PAGE_BYTES_MIN: usize = 512;

/// Connection whose main file is read through a filter.
pub struct FilteredConnection {
    // The fields are in drop order: the file is closed through the filter's methods.
    db: Connection,
    filter: Box<PageFilter>,
}

/// Replacement for an open file's methods.
#[repr(C)]
struct PageFilter {
    /// The first field, so that a pointer to it is one to the filter.
    methods: ffi::sqlite3_io_methods,
    base: *const ffi::sqlite3_io_methods,
    state: Mutex<FilterState>,
}

struct FilterState {
    page_size: usize,
    is_encrypted: bool,
    page_1: Option<Vec<u8>>,
    unreadable: BTreeSet<u32>,
}

impl FilteredConnection {
    /// Installs the filter. `page_1`, if given, replaces a page 1 that cannot be read; it is as
    /// long as a page.
    pub fn new(
        db: Connection,
        page_size: usize,
        is_encrypted: bool,
        page_1: Option<Vec<u8>>,
    ) -> rusqlite::Result<Self> {
        let file = crate::main_file(&db)?;
        let unreadable = page_1.iter().map(|_| 1).collect();
        let state = FilterState { page_size, is_encrypted, page_1, unreadable };
        // SAFETY: an open database's file is an open file of its VFS until the connection is
        // closed, and its methods are null only if it is not open.
        let base = unsafe { (*file).pMethods };
        if base.is_null() || page_size < PAGE_BYTES_MIN {
            crate::check(ffi::SQLITE_CANTOPEN)?;
        }
        // SAFETY: the pointer is not null, so it is one to the methods of an open file, which are
        // plain numbers and pointers.
        let methods = ffi::sqlite3_io_methods { xRead: Some(read), ..unsafe { *base } };
        let filter = Box::new(PageFilter { methods, base, state: Mutex::new(state) });
        // SAFETY: nothing else uses the file during this call. The filter stays in place until the
        // connection is closed, which the order of `Self`'s fields ensures.
        unsafe { (*file).pMethods = (&raw const *filter).cast() };
        Ok(Self { db, filter })
    }

    /// Returns the connection that reads through the filter.
    pub const fn connection(&self) -> &Connection {
        &self.db
    }

    /// Returns the numbers of the pages that could not be read so far.
    pub fn unreadable(&self) -> BTreeSet<u32> {
        self.filter.state().unreadable.clone()
    }
}

impl PageFilter {
    fn state(&self) -> MutexGuard<'_, FilterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads one page, or a part of it, into `buffer`.
    fn read_page(&self, file: *mut ffi::sqlite3_file, buffer: &mut [u8], offset: u64) -> c_int {
        let mut state = self.state();
        let page_size = u64::try_from(state.page_size).expect("64 bits hold a size");
        let number = u32::try_from(offset / page_size + 1).unwrap_or(u32::MAX);
        if let Some(page) = state.page_1.as_ref().filter(|_| number == 1) {
            let at = usize::try_from(offset % page_size).expect("within a page");
            let known = page.get(at..).unwrap_or_default();
            let size = known.len().min(buffer.len());
            buffer[..size].copy_from_slice(&known[..size]);
            return ffi::SQLITE_OK;
        }
        if state.unreadable.contains(&number) {
            buffer.fill(0);
            return ffi::SQLITE_OK;
        }
        let is_page = buffer.len() >= PAGE_BYTES_MIN;
        let code = read_base(self.base, file, buffer, offset);
        match code & 0xff {
            ffi::SQLITE_OK => code,
            // Bytes beyond the end are zeros; a part of an encrypted page is useless.
            _ if code == ffi::SQLITE_IOERR_SHORT_READ => {
                if state.is_encrypted && is_page {
                    buffer.fill(0);
                }
                code
            }
            ffi::SQLITE_IOERR => {
                if is_page {
                    state.unreadable.insert(number);
                }
                buffer.fill(0);
                ffi::SQLITE_OK
            }
            // The error has already reached the pager.
            _ => {
                if is_page {
                    state.unreadable.insert(number);
                }
                code
            }
        }
    }
}

// SAFETY: `base` points to methods that never change and that outlive the open file.
unsafe impl Send for PageFilter {}

fn read_base(
    base: *const ffi::sqlite3_io_methods,
    file: *mut ffi::sqlite3_file,
    buffer: &mut [u8],
    offset: u64,
) -> c_int {
    let (Ok(size), Ok(offset)) = (c_int::try_from(buffer.len()), i64::try_from(offset)) else {
        return ffi::SQLITE_IOERR_READ;
    };
    // SAFETY: the file is open, so its own methods exist; the buffer is as long as `size` says.
    unsafe {
        match (*base).xRead {
            Some(read) => read(file, buffer.as_mut_ptr().cast(), size, offset),
            None => ffi::SQLITE_IOERR_READ,
        }
    }
}

/// Reads page by page: for several pages the encrypting layer reports only the error of the last
/// one.
unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    size: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    let (Ok(size), Ok(mut offset)) = (usize::try_from(size), u64::try_from(offset)) else {
        return ffi::SQLITE_IOERR_READ;
    };
    // SAFETY: the file has this method only with a filter in place of its methods; SQLite's buffer
    // has room for `size` bytes, which nothing else uses during the call, and which are initialized
    // once they are zeros.
    let (filter, mut rest) = unsafe {
        buffer.cast::<u8>().write_bytes(0, size);
        let filter = &*(*file).pMethods.cast::<PageFilter>();
        (filter, std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size))
    };
    let page_size = filter.state().page_size;
    let mut result = ffi::SQLITE_OK;
    while !rest.is_empty() {
        let within = usize::try_from(offset).map_or(0, |offset| offset % page_size);
        let length = rest.len().min(page_size - within);
        let (page, later) = rest.split_at_mut(length);
        let code = filter.read_page(file, page, offset);
        if code != ffi::SQLITE_OK {
            result = code;
        }
        offset += u64::try_from(length).expect("64 bits hold a size");
        rest = later;
    }
    result
}
