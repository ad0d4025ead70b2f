//! A file system for SQLite that reads the disk and never writes to it: a database can be
//! recovered, changed and repaired there to see the result.
//!
//! The main file, its journal and its WAL are opened for reading only; a connection's writes,
//! truncations and deletions are kept in memory while that connection is open. So a hot journal is
//! rolled back and a WAL is read as SQLite would do it, and the files stay unchanged.
//!
//! SQLite knows a file of an overlay by a name of its own, `NUMBER:PATH`: its journal and its WAL
//! have the same number, and so the same overlay.
//!
//! # Invariants
//! - Nothing is created, written, truncated or deleted on the disk, temporary files included: a
//!   file without a name is refused, so a connection needs `temp_store = MEMORY`.
//! - An overlay opens no other file except super-journals: `ATTACH` and `VACUUM INTO` fail.
//! - The content in memory has a limit; beyond it, writes fail with `SQLITE_FULL`.
//! - An overlay has one connection and takes no lock on the disk: the caller must ensure that no
//!   process writes to the files in the meantime, or check afterwards whether one did.
//! - There is no shared memory: a database in WAL mode opens with `locking_mode = EXCLUSIVE`.
//!
//! # Not here
//! - The content of the files → `overlay/files.rs`. Keys: SQLite Multiple Ciphers puts its own
//!   layer on top, as on every VFS.

mod files;

use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use rusqlite::ffi;

use files::{OverlayFile, OverlayFiles, lock};

/// Name of the VFS that a connection opens, encryption included.
const VFS_NAME: &str = "multipleciphers-warren-overlay";
const OWN_NAME: &CStr = c"warren-overlay";
/// Limit of the bytes that all files of an overlay may hold in memory together.
const BYTES_MAX: u64 = 512 << 20;
/// Limit of a path as in the VFS of Unix, including the number.
const PATH_BYTES_MAX: c_int = 1024;
const SECTOR_SIZE: c_int = 4096;

/// Open overlays, by number.
static OVERLAYS: LazyLock<Mutex<HashMap<u64, OverlayFiles>>> = LazyLock::new(Mutex::default);
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

/// Returns a new name for `path`, which opens an overlay on it once, and the name of the VFS. The
/// name is the part of a URI behind `file:`, not yet escaped. The path must be absolute.
pub fn overlay(path: &Path) -> rusqlite::Result<(Vec<u8>, &'static str)> {
    static REGISTERED: OnceLock<c_int> = OnceLock::new();
    crate::check(*REGISTERED.get_or_init(register))?;
    let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut name = format!("{number}:").into_bytes();
    name.extend_from_slice(path.as_os_str().as_bytes());
    Ok((name, VFS_NAME))
}

/// Registers the VFS with SQLite, for as long as the process runs.
fn register() -> c_int {
    // SAFETY: both may be called at any time; a registered VFS is never moved or unregistered here.
    let base = unsafe {
        let code = ffi::sqlite3_initialize();
        if code != ffi::SQLITE_OK {
            return code;
        }
        ffi::sqlite3_vfs_find(std::ptr::null())
    };
    if base.is_null() {
        return ffi::SQLITE_ERROR;
    }
    let vfs = Box::leak(Box::new(ffi::sqlite3_vfs {
        iVersion: 1,
        szOsFile: c_int::try_from(size_of::<OpenFile>()).expect("it is small"),
        mxPathname: PATH_BYTES_MAX,
        pNext: std::ptr::null_mut(),
        zName: OWN_NAME.as_ptr(),
        pAppData: base.cast(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_path_name),
        // Extensions cannot be loaded here.
        xDlOpen: None,
        xDlError: None,
        xDlSym: None,
        xDlClose: None,
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(last_error),
        xCurrentTimeInt64: None,
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    }));
    // SAFETY: the VFS is complete and is never moved or freed.
    unsafe { ffi::sqlite3_vfs_register(vfs, 0) }
}

/// Splits the name of an overlay's file into number and path; another name (that of a
/// super-journal, which a journal may contain) is only a path.
fn parts(name: &CStr) -> (Option<u64>, &Path) {
    let bytes = name.to_bytes();
    let colon = bytes.iter().position(|byte| *byte == b':').unwrap_or(0);
    let number = std::str::from_utf8(&bytes[..colon]).ok().and_then(|text| text.parse().ok());
    let path = if number.is_some() { &bytes[colon + 1..] } else { bytes };
    (number, Path::new(OsStr::from_bytes(path)))
}

/// Calls `work` with the files of this name's overlay, or for other names with a temporary overlay.
fn with_files<T>(name: &CStr, work: impl FnOnce(&mut OverlayFiles, &Path) -> T) -> Option<T> {
    let (number, path) = parts(name);
    let Some(number) = number else { return Some(work(&mut OverlayFiles::new(BYTES_MAX), path)) };
    Some(work(lock(&OVERLAYS).get_mut(&number)?, path))
}

/// Open file as SQLite holds it: SQLite allocates its bytes, and `open` fills them.
#[repr(C)]
struct OpenFile {
    base: ffi::sqlite3_file,
    /// Pointer from `Box::into_raw`, valid until `close`.
    content: *mut OpenContent,
}

struct OpenContent {
    file: Arc<Mutex<OverlayFile>>,
    /// Number of the overlay that ends when this file, its main file, is closed.
    ends: Option<u64>,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(take_lock),
    xUnlock: Some(take_lock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// Returns the text that SQLite's name points to, if it is not null.
///
/// # Safety
/// The name is null, or points to a text that ends in a NUL and outlives the call.
unsafe fn text<'a>(name: *const c_char) -> Option<&'a CStr> {
    // SAFETY: this function's caller guarantees it.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
}

/// Returns the content of an open file.
///
/// # Safety
/// `file` was opened by `open` and not closed since, and SQLite calls for one file from one thread
/// at a time.
unsafe fn content<'a>(file: *mut ffi::sqlite3_file) -> &'a OpenContent {
    // SAFETY: `open` has created an `OpenFile` in it, whose content lives until `close`.
    unsafe { &*(*file.cast::<OpenFile>()).content }
}

unsafe extern "C" fn open(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes `szOsFile` bytes, and a name as `text` needs it, or null.
    let (file, name) = unsafe { (&mut *file.cast::<OpenFile>(), text(name)) };
    file.base.pMethods = std::ptr::null();
    let Some(name) = name else { return ffi::SQLITE_CANTOPEN };
    let is_main = flags & ffi::SQLITE_OPEN_MAIN_DB != 0;
    let number = parts(name).0;
    // A file without an overlay (`ATTACH`, `VACUUM INTO`) would lose its writes.
    if number.is_none() && flags & ffi::SQLITE_OPEN_SUPER_JOURNAL == 0 {
        return ffi::SQLITE_CANTOPEN;
    }
    let ends = number.filter(|_| is_main);
    if let Some(number) = ends {
        let mut overlays = lock(&OVERLAYS);
        if overlays.contains_key(&number) {
            return ffi::SQLITE_CANTOPEN;
        }
        overlays.insert(number, OverlayFiles::new(BYTES_MAX));
    }
    let create = flags & ffi::SQLITE_OPEN_CREATE != 0 && !is_main;
    let opened = with_files(name, |files, path| files.open(path, create));
    let Some(Ok(opened)) = opened else {
        ends.map(|number| lock(&OVERLAYS).remove(&number));
        return ffi::SQLITE_CANTOPEN;
    };
    file.content = Box::into_raw(Box::new(OpenContent { file: opened, ends }));
    file.base.pMethods = &raw const METHODS;
    // SAFETY: the pointer is null, or has room for a number.
    if let Some(flags_out) = unsafe { flags_out.as_mut() } {
        *flags_out = flags;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: an open file of ours, whose content came from a box and is not used afterwards:
    // SQLite closes once.
    let content = unsafe { Box::from_raw((*file.cast::<OpenFile>()).content) };
    content.ends.map(|number| lock(&OVERLAYS).remove(&number));
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    size: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    let (Ok(size), Ok(offset)) = (usize::try_from(size), u64::try_from(offset)) else {
        return ffi::SQLITE_IOERR_READ;
    };
    // SAFETY: SQLite's buffer has room for `size` bytes, which nothing else uses during the call,
    // and which are initialized once they are zeros.
    let (content, buffer) = unsafe {
        buffer.cast::<u8>().write_bytes(0, size);
        (content(file), std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size))
    };
    match lock(&content.file).read(buffer, offset) {
        Ok(known) if known == size => ffi::SQLITE_OK,
        Ok(_) => ffi::SQLITE_IOERR_SHORT_READ,
        Err(_) => ffi::SQLITE_IOERR_READ,
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    size: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    let (Ok(size), Ok(offset)) = (usize::try_from(size), u64::try_from(offset)) else {
        return ffi::SQLITE_IOERR_WRITE;
    };
    // SAFETY: SQLite passes `size` bytes that outlive the call.
    let (content, bytes) =
        unsafe { (content(file), std::slice::from_raw_parts(bytes.cast::<u8>(), size)) };
    match lock(&content.file).write(bytes, offset) {
        Ok(Ok(())) => ffi::SQLITE_OK,
        Ok(Err(files::OverlayFull)) => ffi::SQLITE_FULL,
        Err(_) => ffi::SQLITE_IOERR_WRITE,
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    let Ok(size) = u64::try_from(size) else { return ffi::SQLITE_IOERR_TRUNCATE };
    // SAFETY: an open file of ours.
    lock(&unsafe { content(file) }.file).truncate(size);
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_size(
    file: *mut ffi::sqlite3_file,
    size: *mut ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: an open file of ours.
    let bytes = lock(&unsafe { content(file) }.file).bytes();
    let Ok(bytes) = i64::try_from(bytes) else { return ffi::SQLITE_IOERR_FSTAT };
    // SAFETY: SQLite passes a pointer with room for a number.
    unsafe { *size = bytes };
    ffi::SQLITE_OK
}

unsafe extern "C" fn sync(_file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    ffi::SQLITE_OK
}

/// Grants every lock: there is only one connection.
unsafe extern "C" fn take_lock(_file: *mut ffi::sqlite3_file, _level: c_int) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(
    _file: *mut ffi::sqlite3_file,
    is_held: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes a pointer with room for a number.
    unsafe { *is_held = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(
    _file: *mut ffi::sqlite3_file,
    _operation: c_int,
    _argument: *mut c_void,
) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_file: *mut ffi::sqlite3_file) -> c_int {
    SECTOR_SIZE
}

/// Returns the same as on Unix: without this a journal's header is as long as a sector, and the
/// encrypting layer takes one of 4,096 bytes for a page.
unsafe extern "C" fn device_characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn delete(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    _sync_directory: c_int,
) -> c_int {
    // SAFETY: a name as `text` needs it.
    let Some(name) = (unsafe { text(name) }) else { return ffi::SQLITE_IOERR_DELETE };
    with_files(name, OverlayFiles::delete);
    ffi::SQLITE_OK
}

unsafe extern "C" fn access(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    _flags: c_int,
    is_there: *mut c_int,
) -> c_int {
    // SAFETY: a name as `text` needs it.
    let Some(name) = (unsafe { text(name) }) else { return ffi::SQLITE_IOERR_ACCESS };
    let exists = with_files(name, |files, path| files.exists(path)).unwrap_or(false);
    // SAFETY: SQLite passes a pointer with room for a number.
    unsafe { *is_there = exists.into() };
    ffi::SQLITE_OK
}

/// Returns no error; the encrypting layer calls this without checking that it is set.
unsafe extern "C" fn last_error(
    _vfs: *mut ffi::sqlite3_vfs,
    _size: c_int,
    _text: *mut c_char,
) -> c_int {
    0
}

/// Copies the name, which is already the full path.
unsafe extern "C" fn full_path_name(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    size: c_int,
    full: *mut c_char,
) -> c_int {
    // SAFETY: a name as `text` needs it.
    let Some(name) = (unsafe { text(name) }) else { return ffi::SQLITE_CANTOPEN };
    let bytes = name.to_bytes_with_nul();
    if usize::try_from(size).is_ok_and(|size| size < bytes.len()) {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: the buffer has room for `size` bytes, and does not overlap the name.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), full, bytes.len()) };
    ffi::SQLITE_OK
}

/// Calls a function of the default VFS, which this VFS keeps as its data.
macro_rules! of_base {
    ($vfs:ident, $function:ident, $($argument:expr),*) => {
        // SAFETY: `register` has stored the default VFS there, which is never unregistered; the
        // arguments are SQLite's own.
        unsafe {
            let base = (*$vfs).pAppData.cast::<ffi::sqlite3_vfs>();
            match (*base).$function {
                Some(function) => function(base, $($argument),*),
                None => ffi::SQLITE_ERROR,
            }
        }
    };
}

unsafe extern "C" fn randomness(
    vfs: *mut ffi::sqlite3_vfs,
    size: c_int,
    bytes: *mut c_char,
) -> c_int {
    of_base!(vfs, xRandomness, size, bytes)
}

unsafe extern "C" fn sleep(vfs: *mut ffi::sqlite3_vfs, microseconds: c_int) -> c_int {
    of_base!(vfs, xSleep, microseconds)
}

unsafe extern "C" fn current_time(vfs: *mut ffi::sqlite3_vfs, days: *mut f64) -> c_int {
    of_base!(vfs, xCurrentTime, days)
}
