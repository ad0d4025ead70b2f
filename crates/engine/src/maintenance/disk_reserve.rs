//! Keeps disk space in reserve for the moment when the disk is full.
//!
//! On a full disk, even operations that free space fail: a checkpoint needs some for the pages that
//! it moves, a deletion for its own frames. So a file of some megabytes is kept, and removed when a
//! write finds the disk full. While it is missing, callers should refuse to store new data
//! ([`crate::Databases::is_disk_full`]), so that the space serves its purpose. The file is
//! re-created once there is twice as much free space as it takes.
//!
//! # Not here
//! - Detecting that the disk is full → `database/recover.rs`. Checking for free space →
//!   `scheduler.rs`.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::error::{Error, Result, io};
use crate::system::directory::directory_of;
use crate::system::fs_type::free_bytes;
use crate::system::side_files::remove_if_there;

/// The size of the pieces that the file is written in. All have the same random content, so that no
/// file system compresses them, and are longer than what one compresses at a time.
const PIECE_BYTES: usize = 1 << 20;

/// The free space that is needed before the reserve is re-created, in multiples of its size.
const ROOM_FACTOR: u64 = 2;

#[derive(Default)]
pub(crate) struct DiskReserve {
    file: Mutex<Option<ReserveFile>>,
    is_released: AtomicBool,
}

#[derive(Clone)]
struct ReserveFile {
    path: PathBuf,
    bytes: u64,
}

impl DiskReserve {
    /// Reserves `bytes` in the file `path` from now on. Without space for them, the disk counts as
    /// full from the beginning, and this returns `false`.
    pub(crate) fn allocate(&self, path: PathBuf, bytes: u64) -> Result<bool> {
        let file = ReserveFile { path, bytes };
        let has_room = file.is_whole() || file.has_free_space()?;
        if has_room {
            file.make()?;
        }
        *self.lock() = Some(file);
        self.is_released.store(!has_room, Ordering::Release);
        Ok(has_room)
    }

    /// Releases the reserve. Returns `true` if this call did so; the caller must then schedule a
    /// refill.
    pub(crate) fn release(&self) -> bool {
        let file = self.lock();
        let Some(file) = &*file else { return false };
        if self.is_released.swap(true, Ordering::AcqRel) {
            return false;
        }
        if let Err(error) = remove_if_there(&file.path) {
            tracing::error!(%error, "cannot release the disk reserve");
        }
        tracing::error!(path = %file.path.display(), "the disk is full: released the disk reserve");
        true
    }

    /// Re-creates the reserve if there is enough space. Returns `false` if this must be tried
    /// again.
    pub(crate) fn refill(&self) -> bool {
        let file = self.lock();
        let Some(file) = &*file else { return true };
        match file.has_free_space().and_then(|has_room| if has_room { file.make() } else { Ok(()) })
        {
            Ok(()) if file.is_whole() => {
                self.is_released.store(false, Ordering::Release);
                tracing::info!(path = %file.path.display(), "restored the disk reserve");
                true
            }
            Ok(()) => false,
            Err(error) => {
                tracing::warn!(%error, "cannot restore the disk reserve");
                false
            }
        }
    }

    /// Returns whether the reserve was released and is not restored yet.
    pub(crate) fn is_released(&self) -> bool {
        self.is_released.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Option<ReserveFile>> {
        self.file.lock().expect("no code panics while it holds this lock")
    }
}

impl ReserveFile {
    fn is_whole(&self) -> bool {
        self.path.metadata().is_ok_and(|metadata| metadata.len() == self.bytes)
    }

    fn has_free_space(&self) -> Result<bool> {
        Ok(free_bytes(directory_of(&self.path))? >= self.bytes.saturating_mul(ROOM_FACTOR))
    }

    /// Creates the file on the disk, unless it is complete. A file that cannot be completed is
    /// removed.
    fn make(&self) -> Result<()> {
        if self.is_whole() {
            return Ok(());
        }
        self.write().inspect_err(|_| drop(fs::remove_file(&self.path)))
    }

    fn write(&self) -> Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        let random = |error: getrandom::Error| Error::Io {
            path: self.path.clone(),
            source: std::io::Error::other(error.to_string()),
        };
        getrandom::fill(&mut piece).map_err(random)?;
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&self.path)?;
            let mut left = self.bytes;
            while left > 0 {
                let count = usize::try_from(left).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
                file.write_all(&piece[..count])?;
                left -= count as u64;
            }
            // Some file systems check for free space only now.
            file.sync_all()
        };
        write().map_err(io(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_kept_given_away_once_and_refilled() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk-reserve");
        let reserve = DiskReserve::default();
        assert!(!reserve.release(), "none is kept");
        assert!(reserve.allocate(path.clone(), 3_000_000).unwrap());
        assert_eq!(path.metadata().unwrap().len(), 3_000_000);
        assert!(reserve.release());
        assert!(!path.exists() && reserve.is_released());
        assert!(!reserve.release(), "it is gone already");
        assert!(reserve.refill());
        assert!(path.exists() && !reserve.is_released());
    }

    #[test]
    fn a_disk_without_room_for_it_counts_as_full() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk-reserve");
        let reserve = DiskReserve::default();
        assert!(!reserve.allocate(path.clone(), u64::MAX).unwrap());
        assert!(reserve.is_released() && !path.exists());
        assert!(!reserve.refill());
    }
}
