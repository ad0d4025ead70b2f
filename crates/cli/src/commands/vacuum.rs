//! Implements `warren vacuum`: makes any SQLite file as small as its content.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use doctor::{FileHolder, counted, file_holders};
use engine::{Error, VacuumMethod, clock};
use indicatif::DecimalBytes;
use protocol::ErrorCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::args::key_args::CipherKeyArgs;
use crate::output::{CommandError, Printer};
use crate::signals;

/// Compact a SQLite file that no program has open, and verify the result.
///
/// Writes a compact copy next to the file, compares the two, and replaces the file. Settings stored
/// in the file, its owner and its permissions are kept.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren vacuum app.db\n  \
                        warren vacuum app.db --in-place --temp-store memory\n  \
                        warren vacuum mail.db --key-file key.hex --json")]
pub(crate) struct VacuumArgs {
    /// SQLite file to compact.
    file: PathBuf,
    #[command(flatten)]
    key: CipherKeyArgs,
    /// Use SQLite's VACUUM on the file itself. Takes two to three times as long, but other programs
    /// may have the file open for reading.
    #[arg(long)]
    in_place: bool,
    /// Location of the temporary copy of --in-place: `memory`, or `file` (in the directory
    /// `SQLITE_TMPDIR`, or SQLite's default location).
    #[arg(long, value_name = "LOCATION", requires = "in_place", default_value = "file")]
    temp_store: TempStore,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TempStore {
    File,
    Memory,
}

/// The output of `warren vacuum`.
#[derive(Serialize, ToSchema)]
pub(crate) struct VacuumOutput {
    /// The path of the file, as given on the command line.
    path: String,
    /// The method that compacted the file.
    method: VacuumMethodName,
    /// The number of rows after compaction, which was verified to equal the number before.
    rows_count: u64,
    /// The duration of the compaction in milliseconds.
    duration_ms: u64,
    /// The peak memory of the process in bytes; null in a build without the benchmarks.
    peak_memory_bytes: Option<u64>,
    /// The size of the file and its WAL before the compaction, in bytes.
    before_bytes: u64,
    /// The size of the file and its WAL after the compaction, in bytes.
    after_bytes: u64,
}

/// The method that compacts a file.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum VacuumMethodName {
    /// The file is replaced by a compact copy.
    Copy,
    /// The statement `VACUUM` runs on the file itself.
    InPlace,
}

pub(crate) fn run(arguments: &VacuumArgs, output: Printer) -> anyhow::Result<()> {
    signals::remove_temporary_files_first()?;
    let file = &arguments.file;
    let encryption = arguments.key.encryption(file)?;
    let (method, method_name) = if arguments.in_place {
        let in_memory = arguments.temp_store == TempStore::Memory;
        (VacuumMethod::InPlace { in_memory }, VacuumMethodName::InPlace)
    } else {
        // This check avoids useless work; the engine checks again right before the copy replaces
        // the file.
        check_unused(file)?;
        (VacuumMethod::Copy, VacuumMethodName::Copy)
    };
    let spinner = output.spinner(format_args!("compacting {}", file.display()));
    let start = clock::now();
    let mut found = Vec::new();
    let is_unused = || {
        found = file_holders(file);
        if found.is_empty() { Ok(()) } else { Err(Error::Busy) }
    };
    let vacuumed = engine::vacuum(file, &encryption, method, is_unused);
    let duration = start.elapsed();
    spinner.finish_and_clear();
    let vacuumed = vacuumed.map_err(|error| match error {
        Error::Busy if found.is_empty() => file_in_use_error(file, &file_holders(file)),
        Error::Busy => file_in_use_error(file, &found),
        error => error.into(),
    })?;
    let report = VacuumOutput {
        path: file.display().to_string(),
        method: method_name,
        rows_count: vacuumed.rows,
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        peak_memory_bytes: memory_peak_bytes(),
        before_bytes: vacuumed.bytes_before,
        after_bytes: vacuumed.bytes_after,
    };
    print(&report, duration, output);
    output.json(&report)
}

fn print(report: &VacuumOutput, duration: Duration, output: Printer) {
    let VacuumOutput { path, rows_count, before_bytes, after_bytes, .. } = report;
    let method = match report.method {
        VacuumMethodName::Copy => "copy",
        VacuumMethodName::InPlace => "in-place",
    };
    let peak = report
        .peak_memory_bytes
        .map_or(String::new(), |bytes| format!(", peak memory {}", DecimalBytes(bytes)));
    output.line(format_args!(
        "{path}: {} before, {} after ({method}, {:.1} s{peak})",
        DecimalBytes(*before_bytes),
        DecimalBytes(*after_bytes),
        duration.as_secs_f64()
    ));
    let rows = counted(*rows_count, "row", "rows");
    output.line(format_args!("verified: no errors; {rows}, as before"));
}

#[cfg(feature = "bench")]
use bench::memory_peak_bytes;

/// Returns `None`, because a build without the benchmarks measures nothing.
#[cfg(not(feature = "bench"))]
fn memory_peak_bytes() -> Option<u64> {
    None
}

fn check_unused(file: &Path) -> anyhow::Result<()> {
    file.metadata().with_context(|| file.display().to_string())?;
    let holders = file_holders(file);
    if holders.is_empty() { Ok(()) } else { Err(file_in_use_error(file, &holders)) }
}

/// Returns the error for a file that these processes have open.
fn file_in_use_error(file: &Path, holders: &[FileHolder]) -> anyhow::Error {
    let who: Vec<String> = holders.iter().map(FileHolder::to_string).collect();
    let who = if who.is_empty() {
        "a process that is not visible to this user".to_owned()
    } else {
        who.join("; ")
    };
    let message = format!("{} is open in {who}", file.display());
    CommandError::new(ErrorCode::Busy, message).with_hint("stop it and try again").into()
}
