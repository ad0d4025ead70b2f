//! What a figure was measured on.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The machine, the system and the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MachineInfo {
    /// The processor, as it names itself.
    pub processor: String,
    /// How many cores this process may use.
    pub cores_count: usize,
    /// The release of the operating system's kernel.
    pub kernel: String,
    /// The file system of the measured folder.
    pub file_system: String,
    /// Warren's version.
    #[schema(value_type = String)]
    pub version: Cow<'static, str>,
    /// Warren's commit, with `-dirty` at its end if files were changed.
    #[schema(value_type = String)]
    pub commit: Cow<'static, str>,
    /// SQLite's version.
    #[schema(value_type = String)]
    pub sqlite: Cow<'static, str>,
    /// How SQLite was compiled, as it says itself.
    pub compile_options: Vec<String>,
}

impl MachineInfo {
    /// This one.
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

    /// Whether rates measured on one may be compared with those of the other.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let Self { processor, cores_count, file_system, .. } = self;
        (processor, cores_count, file_system)
            == (&other.processor, &other.cores_count, &other.file_system)
    }
}

/// Two lines: the machine, the program.
impl fmt::Display for MachineInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processor, cores_count, kernel, file_system, .. } = self;
        let Self { version, commit, sqlite, .. } = self;
        writeln!(f, "{processor}, {cores_count} cores, Linux {kernel}, {file_system}")?;
        write!(f, "warren {version} ({commit}), SQLite {sqlite}")
    }
}

/// How the SQLite behind this connection was compiled, sorted.
pub(crate) fn compile_options(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT compile_options FROM pragma_compile_options ORDER BY 1";
    db.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}
