//! Describes the machine on which a figure was measured.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The machine, the operating system and the program of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MachineInfo {
    /// The name that the processor reports.
    pub processor: String,
    /// The number of processor cores that the benchmark may use.
    pub cores_count: usize,
    /// The release of the operating system's kernel.
    pub kernel: String,
    /// The type of the measured folder's file system.
    pub file_system: String,
    /// The version of Warren.
    #[schema(value_type = String)]
    pub version: Cow<'static, str>,
    /// The commit of Warren's source code, followed by `-dirty` if files were changed.
    #[schema(value_type = String)]
    pub commit: Cow<'static, str>,
    /// The version of the SQLite in Warren.
    #[schema(value_type = String)]
    pub sqlite: Cow<'static, str>,
    /// The compile options that SQLite reports, sorted.
    pub compile_options: Vec<String>,
}

impl MachineInfo {
    /// Describes this machine; `folder` is on the measured file system.
    pub(crate) fn here(folder: &Path) -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
        let processor =
            processor.map_or("unknown", |name| name.trim_start_matches([' ', '\t', ':']));
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let options = Connection::open_in_memory().and_then(|db| compile_options(&db));
        Self {
            processor: processor.to_owned(),
            cores_count: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel.trim().to_owned(),
            file_system: engine::fs_type(folder).unwrap_or_else(|| "unknown".to_owned()),
            version: env!("CARGO_PKG_VERSION").into(),
            commit: env!("WARREN_COMMIT").into(),
            sqlite: rusqlite::version().into(),
            compile_options: options.unwrap_or_default(),
        }
    }

    /// Returns whether rates measured on one machine may be compared with rates of the other.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let Self { processor, cores_count, file_system, .. } = self;
        (processor, cores_count, file_system)
            == (&other.processor, &other.cores_count, &other.file_system)
    }
}

/// Formats two lines: the machine and the program.
impl fmt::Display for MachineInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processor, cores_count, kernel, file_system, .. } = self;
        let Self { version, commit, sqlite, .. } = self;
        writeln!(f, "{processor}, {cores_count} cores, Linux {kernel}, {file_system}")?;
        write!(f, "warren {version} ({commit}), SQLite {sqlite}")
    }
}

/// Returns the compile options of the SQLite behind this connection, sorted.
pub(crate) fn compile_options(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT compile_options FROM pragma_compile_options ORDER BY 1";
    db.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}
