//! Whether a disk has room for what is to be measured: asked before anything is made, not found out
//! when the disk is full.

use std::path::Path;

use anyhow::{Context, ensure};
use indicatif::HumanBytes;

/// Refuses if less than `needed` bytes are free in `folder`; `what` needs them.
pub(crate) fn check(folder: &Path, needed: u64, what: &str) -> anyhow::Result<()> {
    let free = rustix::fs::statvfs(folder).context("the folder to measure in")?;
    let free = free.f_bavail * free.f_frsize;
    ensure!(
        free >= needed,
        "{what} need {} of disk in {}, and {} are free",
        HumanBytes(needed),
        folder.display(),
        HumanBytes(free)
    );
    Ok(())
}
