//! Implements `warren bench runtime`: runs the same workload through SQLite libraries for Node and
//! Python.

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

use anyhow::Context;
use bench::BenchOutput;
use bench::sqlite_bench::runtime::{self, DriverFolders, NotSetUp, RuntimeBenchPlan};
use clap::Args;
use engine::{Cipher, Profile};
use protocol::ErrorCode;

use super::bench_output::print_and_save;
use super::measure_args::MeasureArgs;
use crate::output::{CommandError, Printer};

/// Run the same workload through SQLite libraries for Node and Python.
///
/// Measures inserts, lists, reads, updates, deletes and a mix on a table of messages, with the same
/// settings through every library that --setup could build. The drivers are part of this program.
/// The first run asks before it downloads and builds the libraries that they need. Saves
/// `warren-runtime.json` and `warren-runtime.html` (with charts).
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren bench runtime --setup\n  warren bench runtime --minutes 30\n  \
                  warren bench runtime --only production --ciphers chacha20 --rows 1000"
)]
pub(crate) struct BenchRuntimeArgs {
    /// Build and install the drivers, list them, and exit.
    ///
    /// Downloads Node releases and libraries from npm and PyPI and compiles native modules for each
    /// Node. Requires npm, a C++ compiler, make, Python, 1 GB of disk, and about 15 minutes on two
    /// cores. Run again to resume. Everything goes into the directory `competitors` in
    /// `WARREN_CACHE` (default: `warren` in `XDG_CACHE_HOME` or `~/.cache`), which you can delete.
    #[arg(long)]
    setup: bool,
    /// PRAGMA configurations to run, by their names in `warren bench pragma`.
    #[arg(long, default_value = "baseline,production", value_delimiter = ',', value_name = "NAMES", value_parser = profile)]
    only: Vec<&'static Profile>,
    /// Ciphers to run; `none` for an unencrypted file.
    #[arg(
        long,
        default_value = "none,chacha20",
        value_delimiter = ',',
        value_name = "CIPHERS",
        value_parser = cipher
    )]
    ciphers: Vec<CipherOrNone>,
    /// Messages in the file, one table per count. 20,000 messages of 3,500 bytes exceed every
    /// cache.
    #[arg(long, default_values_t = [1_000, 20_000], value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(i64).range(10..))]
    rows: Vec<i64>,
    /// Size of a message body.
    #[arg(long, default_value_t = 3_500, value_name = "BYTES")]
    body_bytes: usize,
    /// Use the drivers in this directory (`bench/competitors` in Warren's repository) instead of
    /// the built-in drivers.
    #[arg(long, value_name = "DIR")]
    competitors: Option<PathBuf>,
    #[command(flatten)]
    method: MeasureArgs,
}

/// A cipher, or none for an unencrypted file.
#[derive(Clone, Copy)]
struct CipherOrNone(Option<Cipher>);

fn cipher(name: &str) -> Result<CipherOrNone, engine::UnknownCipher> {
    if name == "none" { Ok(CipherOrNone(None)) } else { Ok(CipherOrNone(Some(name.parse()?))) }
}

fn profile(name: &str) -> Result<&'static Profile, String> {
    Profile::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = Profile::all().map(|profile| profile.name).collect();
        format!("available profiles: {}", names.join(", "))
    })
}

pub(crate) fn run(arguments: BenchRuntimeArgs, output: Printer) -> anyhow::Result<()> {
    let place = match arguments.competitors {
        Some(folder) => DriverFolders::in_repository(folder),
        None => DriverFolders::shipped(&cache_folder()?)?,
    };
    if arguments.setup {
        let drivers = place.set_up(&output.progress())?;
        output.text(format_args!("{drivers}"));
        return output.json(&BenchOutput::Drivers(drivers));
    }
    if let Some(not_set_up) = place.not_set_up(&output.progress())?
        && wants_setup(not_set_up, output)?
    {
        let drivers = place.set_up(&output.progress())?;
        output.text(format_args!("{drivers}"));
    }
    let plan = RuntimeBenchPlan {
        method: arguments.method.method()?,
        rows: arguments.rows,
        body_bytes: arguments.body_bytes,
        configurations: arguments.only,
        ciphers: arguments.ciphers.iter().map(|encryption| encryption.0).collect(),
        place,
    };
    let report = runtime::run(&plan, &output.progress())?;
    print_and_save(report, &arguments.method.places.report_dir, output)
}

/// Asks the user at the terminal whether to install; without a terminal it is an error. After a no,
/// only the installed drivers are measured.
fn wants_setup(not_set_up: NotSetUp, output: Printer) -> anyhow::Result<bool> {
    if output.json || !std::io::stdin().is_terminal() {
        return Err(not_set_up.into());
    }
    for line in not_set_up.lines() {
        output.line(format_args!("{line}"));
    }
    output.line(format_args!(
        "Install them now? Type \"yes\"; otherwise only installed drivers are measured:"
    ));
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("cannot read standard input")?;
    Ok(["y", "yes"].contains(&line.trim().to_lowercase().as_str()))
}

/// Returns the directory for files that can be created again
/// (<https://specifications.freedesktop.org/basedir-spec/latest/>).
fn cache_folder() -> anyhow::Result<PathBuf> {
    let folder = |name: &str| {
        let folder = std::env::var_os(name).map(PathBuf::from);
        folder.filter(|folder| folder.is_absolute())
    };
    let of_system = || {
        let home = || folder("HOME").map(|home| home.join(".cache"));
        Some(folder("XDG_CACHE_HOME").or_else(home)?.join("warren"))
    };
    let found = folder("WARREN_CACHE").or_else(of_system);
    let none = || {
        CommandError::new(ErrorCode::NotInstalled, "there is no directory for the drivers")
            .with_hint("set HOME or WARREN_CACHE, or pass --competitors DIR")
    };
    Ok(found.ok_or_else(none)?)
}
