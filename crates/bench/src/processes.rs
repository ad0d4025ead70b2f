//! Reads other processes' use of processor time and memory from Linux's `/proc`.

use std::collections::BTreeMap;
use std::fs;

/// A process, or the processes that it started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessUsage {
    pub(crate) root: u32,
    pub(crate) part: ProcessScope,
}

/// The processes that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessScope {
    Root,
    /// The processes that the root started, for a root that does no work itself.
    Children,
}

/// The value of `sysconf(_SC_CLK_TCK)`, which has always been 100 on Linux.
const TICKS_PER_SECOND: f64 = 100.0;

impl ProcessUsage {
    /// Returns this process.
    pub(crate) fn own() -> Self {
        Self { root: std::process::id(), part: ProcessScope::Root }
    }

    /// Returns the processor time so far, in seconds, of the processes that still run.
    pub(crate) fn cpu_seconds(self) -> f64 {
        self.all().into_iter().filter_map(cpu_ticks).sum::<f64>() / TICKS_PER_SECOND
    }

    /// Returns the megabytes in memory.
    pub(crate) fn memory_mb(self) -> f64 {
        self.all().into_iter().filter_map(|pid| status_mb(pid, "VmRSS:")).sum()
    }

    /// Returns the sum of each process's peak memory, in megabytes.
    pub(crate) fn memory_peak_mb(self) -> Option<f64> {
        self.all().into_iter().map(|pid| status_mb(pid, "VmHWM:")).sum()
    }

    fn all(self) -> Vec<u32> {
        if self.part == ProcessScope::Root {
            return vec![self.root];
        }
        let parents = parents();
        let mut all = vec![self.root];
        let mut index = 0;
        while index < all.len() {
            let parent = all[index];
            all.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(pid, _)| *pid));
            index += 1;
        }
        all.split_off(1)
    }
}

/// Returns the parent of each process.
fn parents() -> BTreeMap<u32, u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| Some((pid, stat_field(pid, 1)?.parse().ok()?))).collect()
}

fn cpu_ticks(pid: u32) -> Option<f64> {
    let user: f64 = stat_field(pid, 11)?.parse().ok()?;
    let system: f64 = stat_field(pid, 12)?.parse().ok()?;
    Some(user + system)
}

/// Returns a field by its position after the name, which may contain any character.
fn stat_field(pid: u32, index: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(index).map(str::to_owned)
}

/// Returns this process's peak memory, in bytes.
pub fn memory_peak_bytes() -> Option<u64> {
    status_bytes(std::process::id(), "VmHWM:")
}

#[expect(clippy::cast_precision_loss, reason = "memories stay far below 2⁵³ bytes")]
fn status_mb(pid: u32, name: &str) -> Option<f64> {
    Some(status_bytes(pid, name)? as f64 / 1e6)
}

fn status_bytes(pid: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_counts_until_it_ends() {
        let own = ProcessUsage::own();
        assert!(own.memory_mb() > 1.0 && own.cpu_seconds() >= 0.0);
        assert!(own.memory_peak_mb().unwrap() > 1.0);
        assert!(memory_peak_bytes().unwrap() > 1_000_000);
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let without = ProcessUsage { part: ProcessScope::Children, ..own };
        assert!(without.all().contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!without.all().contains(&child.id()));
    }
}
