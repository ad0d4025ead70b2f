//! Links SQLite Multiple Ciphers under rusqlite, and wraps the C functions that rusqlite does not
//! know.
//!
//! `build.rs` compiles the library, and SQLite's recovery extension with it; for wasm32,
//! `sqlite-wasm-rs` compiles the library alone. This file holds the only `unsafe` code of the
//! project: the C functions that rusqlite does not wrap.
//!
//! # Invariants
//! - A key never becomes SQL text: it is passed to `sqlite3_key_v2` as bytes, in a buffer that is
//!   zeroized.
//! - No thread encrypts before the library has chosen an implementation of `ChaCha20`
//!   (`choose_chacha20`): every connection with a key passes `unlock` or `encrypt_anew` first.
//!
//! # Not here
//! - The cipher, the settings and the signs of a wrong key → `engine::open_connection`.
#![expect(
    unsafe_code,
    reason = "C functions that rusqlite does not wrap; each call says why it is sound"
)]

#[cfg(unix)]
mod overlay;
#[cfg(not(target_family = "wasm"))]
mod page_filter;
#[cfg(not(target_family = "wasm"))]
mod recovery;

use std::ffi::{CStr, c_char, c_int, c_void};

#[cfg(unix)]
pub use overlay::overlay;
#[cfg(not(target_family = "wasm"))]
pub use page_filter::FilteredConnection;
#[cfg(not(target_family = "wasm"))]
pub use recovery::{DatabaseRecovery, RecoveredValue, RecoveryOptions, stand_in_collation};
use rusqlite::{Connection, ffi};
#[cfg(target_family = "wasm")]
use sqlite_wasm_rs as _;
use zeroize::Zeroizing;

unsafe extern "C" {
    fn sqlite3_key_v2(
        db: *mut ffi::sqlite3,
        schema: *const c_char,
        key: *const c_void,
        key_size: c_int,
    ) -> c_int;
    fn sqlite3_rekey_v2(
        db: *mut ffi::sqlite3,
        schema: *const c_char,
        key: *const c_void,
        key_size: c_int,
    ) -> c_int;
    #[cfg(not(target_family = "wasm"))]
    fn sqlite3mcChaCha20HwAccelerated() -> c_int;
    fn sqlite3mc_vfs_create(real_name: *const c_char, make_default: c_int) -> c_int;
}

/// Prefix with which `sqlite3mc` takes bytes as the key itself, so that it derives none.
const RAW_PREFIX: &[u8; 4] = b"raw:";
const RAW_KEY_SIZE: usize = 4 + 32;

/// Sets the key of the main database. A wrong key is noticed at the first read, not here.
///
/// `aes256cbc` has no raw keys: it derives one from the first 32 bytes of its input, prefix
/// included, so 28 bytes of the key count there.
pub fn set_key(db: &Connection, raw_key: &[u8; 32]) -> rusqlite::Result<()> {
    unlock(db, &*raw_key_bytes(raw_key))
}

/// Sets the passphrase of the main database, from which the cipher derives the key: that takes some
/// 50 ms of processor time for `chacha20`, and four times as much for `sqlcipher`. A wrong
/// passphrase is noticed at the first read.
pub fn set_passphrase(db: &Connection, passphrase: &[u8]) -> rusqlite::Result<()> {
    unlock(db, passphrase)
}

/// Makes files of another VFS encryptable: registers `multipleciphers-NAME` on top of it, as the
/// default VFS.
pub fn register_encrypted_vfs(name: &CStr) -> rusqlite::Result<()> {
    // SAFETY: the name ends in a NUL and outlives the call, which copies it.
    check(unsafe { sqlite3mc_vfs_create(name.as_ptr(), 1) })
}

/// Lets the library choose an implementation of `ChaCha20`, in one thread while all others wait.
///
/// Otherwise the library chooses at the first use, without a lock: it first records that it has
/// chosen and then its choice, and a second thread in between calls a null pointer (`sqlite3mc`
/// 2.6.1, `stream_chacha20.c`, as gcc 12 compiles it; a server crashed in this way in its first
/// second).
fn choose_chacha20() {
    #[cfg(not(target_family = "wasm"))]
    {
        static CHOSEN: std::sync::Once = std::sync::Once::new();
        CHOSEN.call_once(|| {
            // SAFETY: it takes no arguments, and its results can be used only here and afterwards.
            unsafe { sqlite3mcChaCha20HwAccelerated() };
        });
    }
}

fn unlock(db: &Connection, key: &[u8]) -> rusqlite::Result<()> {
    choose_chacha20();
    let Ok(size) = c_int::try_from(key.len()) else { return check(ffi::SQLITE_TOOBIG) };
    // SAFETY: the handle is valid while `db` is borrowed, and only this thread uses it
    // (`Connection` is not Sync); the buffer is as long as `size` says and outlives the call, which
    // copies what it stores; the schema name ends in a NUL.
    let code = unsafe { sqlite3_key_v2(db.handle(), c"main".as_ptr(), key.as_ptr().cast(), size) };
    check(code)
}

/// Encrypts the main database again, under `raw_key`. The connection must have no open transaction,
/// and a file that was not encrypted must not be in WAL mode.
pub fn rekey(db: &Connection, raw_key: &[u8; 32]) -> rusqlite::Result<()> {
    encrypt_anew(db, &*raw_key_bytes(raw_key))
}

/// Encrypts the main database again, as [`rekey`] does, under a key that the cipher derives from a
/// passphrase.
pub fn rekey_passphrase(db: &Connection, passphrase: &[u8]) -> rusqlite::Result<()> {
    encrypt_anew(db, passphrase)
}

/// Decrypts the main database, which has no key afterwards. The connection must have no open
/// transaction.
pub fn remove_key(db: &Connection) -> rusqlite::Result<()> {
    encrypt_anew(db, &[])
}

fn encrypt_anew(db: &Connection, key: &[u8]) -> rusqlite::Result<()> {
    choose_chacha20();
    let Ok(size) = c_int::try_from(key.len()) else { return check(ffi::SQLITE_TOOBIG) };
    // SAFETY: as in `unlock`.
    let code =
        unsafe { sqlite3_rekey_v2(db.handle(), c"main".as_ptr(), key.as_ptr().cast(), size) };
    check(code)
}

/// Checks whether the open transaction violates a foreign key that is checked only at the commit.
pub fn has_deferred_violation(db: &Connection) -> rusqlite::Result<bool> {
    Ok(status(db, ffi::SQLITE_DBSTATUS_DEFERRED_FKS)? != 0)
}

/// Returns the error of this connection's last failed call, if no call has succeeded since.
pub fn last_error(db: &Connection) -> ffi::Error {
    // SAFETY: the handle is valid and this thread's alone, as in `unlock`.
    ffi::Error::new(unsafe { ffi::sqlite3_extended_errcode(db.handle()) })
}

/// Flushes the main database's file to the disk, as a checkpoint does at its end. It uses SQLite's
/// own descriptor: closing another descriptor of the same file would release the locks that this
/// process's connections hold on it.
pub fn flush_file(db: &Connection) -> rusqlite::Result<()> {
    let file = main_file(db)?;
    // SAFETY: an open database's file is an open file of its VFS until the connection is closed,
    // and its methods are null only if it is not open.
    let sync = unsafe { file.as_ref().and_then(|file| file.pMethods.as_ref()?.xSync) };
    // SAFETY: as above.
    sync.map_or(Ok(()), |sync| check(unsafe { sync(file, ffi::SQLITE_SYNC_NORMAL) }))
}

/// Returns the main database's open file.
fn main_file(db: &Connection) -> rusqlite::Result<*mut ffi::sqlite3_file> {
    let mut file: *mut ffi::sqlite3_file = std::ptr::null_mut();
    // SAFETY: the handle is valid and this thread's alone, as in `unlock`; this operation writes
    // one pointer, to `file`.
    let code = unsafe {
        ffi::sqlite3_file_control(
            db.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_FILE_POINTER,
            (&raw mut file).cast(),
        )
    };
    check(code)?;
    Ok(file)
}

/// Returns the number of bytes at the end of each page that SQLite does not use: the cipher
/// reserves them.
pub fn reserved_bytes(db: &Connection) -> rusqlite::Result<u8> {
    // A negative number sets nothing.
    let mut bytes: c_int = -1;
    // SAFETY: as in `main_file`; this operation reads and writes one number.
    let code = unsafe {
        ffi::sqlite3_file_control(
            db.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_RESERVE_BYTES,
            (&raw mut bytes).cast(),
        )
    };
    check(code)?;
    Ok(u8::try_from(bytes).unwrap_or_default())
}

/// Returns the number of bytes that this connection's page caches hold.
pub fn cache_bytes(db: &Connection) -> rusqlite::Result<usize> {
    let bytes = status(db, ffi::SQLITE_DBSTATUS_CACHE_USED)?;
    Ok(usize::try_from(bytes).expect("SQLite counts bytes from zero"))
}

/// Returns the number of pages that this connection has looked up, in its cache or not. The count
/// restarts from 0 at 2^32.
pub fn pages_looked_at(db: &Connection) -> rusqlite::Result<u32> {
    let hits = status(db, ffi::SQLITE_DBSTATUS_CACHE_HIT)?;
    Ok(hits.wrapping_add(status(db, ffi::SQLITE_DBSTATUS_CACHE_MISS)?).cast_unsigned())
}

fn status(db: &Connection, what: c_int) -> rusqlite::Result<c_int> {
    let (mut current, mut highest) = (0, 0);
    // SAFETY: the handle is valid and this thread's alone, as in `unlock`; both results are live
    // integers.
    let code =
        unsafe { ffi::sqlite3_db_status(db.handle(), what, &raw mut current, &raw mut highest, 0) };
    check(code)?;
    Ok(current)
}

fn raw_key_bytes(raw_key: &[u8; 32]) -> Zeroizing<[u8; RAW_KEY_SIZE]> {
    let mut key = Zeroizing::new([0; RAW_KEY_SIZE]);
    key[..RAW_PREFIX.len()].copy_from_slice(RAW_PREFIX);
    key[RAW_PREFIX.len()..].copy_from_slice(raw_key);
    key
}

fn check(code: c_int) -> rusqlite::Result<()> {
    if code == ffi::SQLITE_OK {
        Ok(())
    } else {
        Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None))
    }
}
