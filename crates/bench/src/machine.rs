//! What a figure was measured on.

use std::fmt;
use std::path::Path;

use serde::Serialize;

/// The machine, the system and the program.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// As the processor names itself.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Operating system's kernel.
    pub kernel: String,
    /// The file system of the measured folder.
    pub file_system: String,
    /// Warren's version.
    pub version: &'static str,
    /// Warren's commit; `-dirty` if it was changed.
    pub commit: &'static str,
    /// SQLite's version.
    pub sqlite: &'static str,
}

impl Machine {
    /// This one.
    pub(crate) fn here(folder: &Path) -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
        let processor =
            processor.map_or("unknown", |name| name.trim_start_matches([' ', '\t', ':']));
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            processor: processor.to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel.trim().to_owned(),
            file_system: engine::file_system(folder).unwrap_or_else(|| "unknown".to_owned()),
            version: env!("CARGO_PKG_VERSION"),
            commit: env!("WARREN_COMMIT"),
            sqlite: rusqlite::version(),
        }
    }
}

/// Two lines: the machine, the program.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processor, cores, kernel, file_system, version, commit, sqlite } = self;
        writeln!(f, "{processor}, {cores} cores, Linux {kernel}, {file_system}")?;
        write!(f, "warren {version} ({commit}), SQLite {sqlite}")
    }
}
