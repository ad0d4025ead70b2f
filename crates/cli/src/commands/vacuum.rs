//! `warren vacuum`: makes any SQLite file as small as its content.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use doctor::{FileHolder, file_holders};
use engine::{Error, VacuumMethod, clock};
use indicatif::DecimalBytes;
use serde_json::json;

use crate::args::key_args::CipherKeyArgs;
use crate::output::Printer;
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
    /// Use SQLite's VACUUM on the file itself. Takes two to three times as long, but allows
    /// readers.
    #[arg(long)]
    in_place: bool,
    /// Where VACUUM keeps its temporary copy: `memory`, or `file` (in `SQLITE_TMPDIR` or SQLite's
    /// default location).
    #[arg(long, value_name = "WHERE", requires = "in_place", default_value = "file")]
    temp_store: TempStore,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TempStore {
    File,
    Memory,
}

pub(crate) fn run(arguments: &VacuumArgs, output: Printer) -> anyhow::Result<()> {
    signals::remove_temporary_files_first()?;
    let file = &arguments.file;
    let encryption = arguments.key.encryption(file)?;
    let (way, name) = if arguments.in_place {
        (VacuumMethod::InPlace { in_memory: arguments.temp_store == TempStore::Memory }, "in-place")
    } else {
        // Before the work; the engine asks again right before the copy takes the file's place.
        check_unused(file)?;
        (VacuumMethod::Copy, "copy")
    };
    let spinner = output.spinner(format_args!("shrinking {}", file.display()));
    let start = clock::now();
    let mut found = Vec::new();
    let is_unused = || {
        found = file_holders(file);
        if found.is_empty() { Ok(()) } else { Err(Error::Busy) }
    };
    let vacuumed = engine::vacuum(file, &encryption, way, is_unused);
    let seconds = start.elapsed().as_secs_f64();
    spinner.finish_and_clear();
    let vacuumed = vacuumed.map_err(|error| match error {
        Error::Busy if found.is_empty() => file_in_use_error(file, &file_holders(file)),
        Error::Busy => file_in_use_error(file, &found),
        error => error.into(),
    })?;
    let (before, after) = (vacuumed.bytes_before, vacuumed.bytes_after);
    let peak = memory_peak_bytes();
    output.line(format_args!(
        "{}: {} before, {} after ({name}, {seconds:.1} s{})",
        file.display(),
        DecimalBytes(before),
        DecimalBytes(after),
        peak.map_or(String::new(), |bytes| format!(", {} of memory at most", DecimalBytes(bytes)))
    ));
    let rows = vacuumed.rows;
    output.line(format_args!("checked: sound, with all of its {rows} rows"));
    output.json(&json!({
        "file": file.display().to_string(),
        "way": name,
        "bytes_before": before,
        "bytes_after": after,
        "rows": rows,
        "seconds": seconds,
        "memory_peak_bytes": peak,
    }))
}

#[cfg(feature = "bench")]
use bench::memory_peak_bytes;

/// Nothing is measured in a build without the benchmarks.
#[cfg(not(feature = "bench"))]
fn memory_peak_bytes() -> Option<u64> {
    None
}

fn check_unused(file: &Path) -> anyhow::Result<()> {
    file.metadata().with_context(|| file.display().to_string())?;
    let holders = file_holders(file);
    if holders.is_empty() { Ok(()) } else { Err(file_in_use_error(file, &holders)) }
}

/// Says by whom, and what to do.
fn file_in_use_error(file: &Path, holders: &[FileHolder]) -> anyhow::Error {
    let who: Vec<String> = holders.iter().map(FileHolder::to_string).collect();
    let who = if who.is_empty() {
        "a process that this user cannot see".to_owned()
    } else {
        who.join("; ")
    };
    anyhow::Error::from(Error::Busy)
        .context(format!("{} is open in {who}; stop it and try again", file.display()))
}
