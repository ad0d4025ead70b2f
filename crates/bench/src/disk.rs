//! Whether a disk has room for what is to be measured: asked before anything is made, not found out
//! when the disk is full.

use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use indicatif::DecimalBytes;

/// An I/O error ([`io::ErrorKind::StorageFull`]) if less than `needed` bytes are free in `folder`;
/// `what` needs them.
pub(crate) fn check(folder: &Path, needed: u64, what: &str) -> anyhow::Result<()> {
    let free = rustix::fs::statvfs(folder).context("cannot read the free disk space")?;
    let free = free.f_bavail * free.f_frsize;
    if free >= needed {
        return Ok(());
    }
    let message = format!(
        "not enough disk space in {} for {what}: {} needed, {} free",
        folder.display(),
        DecimalBytes(needed),
        DecimalBytes(free)
    );
    Err(io::Error::new(io::ErrorKind::StorageFull, message).into())
}

/// Bytes that may be written while something is measured for so long: what a fast disk takes, with
/// a fifth more for the work around what is measured.
pub(crate) fn written_in(duration: Duration) -> u64 {
    const BYTES_PER_MILLISECOND: u64 = 1_200_000;
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).saturating_mul(BYTES_PER_MILLISECOND)
}
