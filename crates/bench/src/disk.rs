//! Checks the free disk space before any file is created, so that a benchmark does not fail
//! halfway.

use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use indicatif::DecimalBytes;

/// Returns an I/O error ([`io::ErrorKind::StorageFull`]) if less than `needed` bytes are free in
/// `folder`; `what` names their purpose.
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

/// Returns the bytes that may be written while something is measured for `duration`: the writes of
/// a fast disk, and a fifth more for the work around the measured work.
pub(crate) fn written_in(duration: Duration) -> u64 {
    const BYTES_PER_MILLISECOND: u64 = 1_200_000;
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).saturating_mul(BYTES_PER_MILLISECOND)
}
