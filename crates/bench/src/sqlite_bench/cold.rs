//! Measures reads that find no pages in memory.
//!
//! # Invariants
//! - Each operation that counts begins with a new connection, whose page cache holds only the
//!   pages read to prepare statements (the schema, the statistics), and with the file dropped from
//!   the operating system's cache. Opening and preparing do not count.
//!
//! # Not here
//! - Caches below the operating system keep their content: that of a disk, or of a virtual
//!   machine's host.

use std::fs::File;
use std::io::{self, IoSliceMut, Write};
use std::path::Path;
use std::time::Duration;

use engine::clock::now;
use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags};

use super::execute_plan::time_once;
use super::plan::LabPlan;
use crate::measure::RoundSample;

/// Runs an operation of the plan repeatedly, each time cold, until the operations alone have taken
/// about `duration`, or ten times as long with the overhead.
pub(crate) fn read(
    plan: &LabPlan,
    operation: &str,
    duration: Duration,
) -> anyhow::Result<RoundSample> {
    const AROUND: u32 = 10;
    let file = File::open(&plan.database)?;
    // Only pages that are on the disk can be dropped.
    file.sync_all()?;
    let (start, mut count, mut elapsed) = (now(), 0_u32, Duration::ZERO);
    let mut plan = plan.clone();
    while count == 0 || (elapsed < duration && start.elapsed() < duration * AROUND) {
        drop_cached(&file)?;
        count += 1;
        // The multiplier of Knuth's hash spreads consecutive seeds, so that their rows are far
        // apart.
        plan.seed = count.wrapping_mul(2_654_435_761);
        elapsed += time_once(&plan, operation)?;
    }
    Ok(RoundSample::each(count.into(), elapsed))
}

/// Returns whether files in `folder` can be dropped from memory; not in a file system in memory.
pub(crate) fn is_possible(folder: &Path) -> anyhow::Result<bool> {
    const BYTES: usize = 1 << 20;
    let mut file = tempfile::tempfile_in(folder)?;
    file.write_all(&vec![7; BYTES])?;
    file.sync_all()?;
    drop_cached(&file)?;
    Ok(!is_cached(&file, (BYTES / 2) as u64)?)
}

fn drop_cached(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Returns whether a byte can be read without waiting for the disk; true where the system does not
/// support the query.
fn is_cached(file: &File, offset: u64) -> io::Result<bool> {
    let mut byte = [0];
    let mut buffers = [IoSliceMut::new(&mut byte)];
    match rustix::io::preadv2(file, &mut buffers, offset, ReadWriteFlags::NOWAIT) {
        Ok(read) => Ok(read > 0),
        Err(Errno::AGAIN) => Ok(false),
        Err(Errno::OPNOTSUPP) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite_bench::message::{BodyLayout, MailboxTable};

    /// Waits for a condition, because a busy disk keeps pages in memory for a while.
    fn soon(is_so: impl Fn() -> bool) -> bool {
        const WAIT_MAX: Duration = Duration::from_mins(2);
        let start = now();
        while !is_so() {
            if start.elapsed() > WAIT_MAX {
                return false;
            }
        }
        true
    }

    #[test]
    fn a_dropped_file_is_read_from_the_disk_and_in_memory_none_is() {
        // The folder of temporary files may be in memory, so it is not used here.
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let file_system = crate::machine::MachineInfo::here(folder).file_system;
        if ["btrfs", "ext4", "xfs"].contains(&file_system.as_str()) {
            assert!(soon(|| is_possible(folder).unwrap()));
            let mut file = tempfile::tempfile_in(folder).unwrap();
            file.write_all(&[1; 8_192]).unwrap();
            assert!(is_cached(&file, 4_096).unwrap());
            assert!(soon(|| {
                file.sync_all().unwrap();
                drop_cached(&file).unwrap();
                !is_cached(&file, 4_096).unwrap()
            }));
        }
        let shared = Path::new("/dev/shm");
        assert!(!shared.is_dir() || !is_possible(shared).unwrap());
    }

    #[test]
    fn each_cold_read_counts_and_what_is_around_it_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let mailbox = MailboxTable { layout: BodyLayout::Last, rows: 100, body_bytes: 100 };
        let path = folder.path().join("x.sqlite");
        mailbox.make(&path, &[], &None).unwrap();
        let plan = mailbox.plan(&path, &[], &None, vec![]);
        let start = now();
        let sample = read(&plan, "list", Duration::from_millis(5)).unwrap();
        let around = start.elapsed();
        assert!(sample.transactions > 0 && sample.elapsed < around, "{sample:?} in {around:?}");
        assert!(read(&plan, "nothing", Duration::ZERO).is_err());
    }
}
