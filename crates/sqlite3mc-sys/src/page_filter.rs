//! Reads that a damaged file does not end: of a page that cannot be read there are zeros.
//!
//! A disk that has lost a sector, or a cipher that says that a page is not what was written, is an
//! error to SQLite, and to its recovery extension the end. A filter stands between a connection and
//! its main file. A page that failed once is never asked for again.
//!
//! A cipher's error also puts SQLite's pager into a state that lasts until the statement ends. So
//! all pages are to be touched, each in a statement of its own, before anything that cannot be begun
//! anew.
//!
//! # Invariants
//! - Nothing is written through it differently than without it.
//!
//! # Not here
//! - Where the file is read from: the connection's own VFS.

use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, ffi};

/// Reads of fewer bytes are of a header.
const PAGE_BYTES_MIN: usize = 512;

/// A connection whose main file is read through a filter.
pub struct FilteredConnection {
    // In the order in which they are dropped: the file is closed through the filter's methods.
    db: Connection,
    filter: Box<PageFilter>,
}

/// What takes the place of an open file's methods.
#[repr(C)]
struct PageFilter {
    /// First, so that a pointer to it is one to the filter.
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
    /// Puts the filter in. `page_1`, if given, is what page 1 is from here on, in the place of one
    /// that cannot be read, and as long as a page.
    pub fn new(
        db: Connection,
        page_size: usize,
        is_encrypted: bool,
        page_1: Option<Vec<u8>>,
    ) -> rusqlite::Result<Self> {
        let file = crate::main_file(&db)?;
        let unreadable = page_1.iter().map(|_| 1).collect();
        let state = FilterState { page_size, is_encrypted, page_1, unreadable };
        // SAFETY: an open database's file is an open file of its VFS until the connection is closed,
        // and its methods are null only if it is not open.
        let base = unsafe { (*file).pMethods };
        if base.is_null() || page_size < PAGE_BYTES_MIN {
            crate::check(ffi::SQLITE_CANTOPEN)?;
        }
        // SAFETY: not null, so the methods of an open file; they are plain numbers and pointers.
        let methods = ffi::sqlite3_io_methods { xRead: Some(read), ..unsafe { *base } };
        let filter = Box::new(PageFilter { methods, base, state: Mutex::new(state) });
        // SAFETY: nobody else uses the file meanwhile. The filter stays where it is until the
        // connection is closed, which `Self` sees to by the order of its fields.
        unsafe { (*file).pMethods = (&raw const *filter).cast() };
        Ok(Self { db, filter })
    }

    /// The connection.
    pub const fn connection(&self) -> &Connection {
        &self.db
    }

    /// The pages that could not be read up to here, by number.
    pub fn unreadable(&self) -> BTreeSet<u32> {
        self.filter.state().unreadable.clone()
    }
}

impl PageFilter {
    fn state(&self) -> MutexGuard<'_, FilterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills a part of one page, or all of it.
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
            // What is beyond the end is zeros; of an encrypted page, a part is of no use.
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
            // The pager knows of it already.
            _ => {
                if is_page {
                    state.unreadable.insert(number);
                }
                code
            }
        }
    }
}

// SAFETY: `base` points to methods that nobody changes and that outlive the open file.
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
    // SAFETY: the file is open, so its own methods are there; the buffer is as long as said.
    unsafe {
        match (*base).xRead {
            Some(read) => read(file, buffer.as_mut_ptr().cast(), size, offset),
            None => ffi::SQLITE_IOERR_READ,
        }
    }
}

/// Page by page: the layer that encrypts tells only of the last page of several.
unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    size: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    let (Ok(size), Ok(mut offset)) = (usize::try_from(size), u64::try_from(offset)) else {
        return ffi::SQLITE_IOERR_READ;
    };
    // SAFETY: the file has this method only with a filter in the place of its methods; SQLite's
    // buffer has room for `size` bytes, which nobody else uses meanwhile, and which have values once
    // they are zeros.
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
