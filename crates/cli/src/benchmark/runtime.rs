//! `warren bench runtime`.

use std::path::PathBuf;

use clap::Args;

use crate::output::Output;

/// The same work through SQLite libraries of Node and Python.
#[derive(Args)]
#[command(after_help = "Example:\n  warren bench runtime --setup")]
pub(crate) struct Arguments {
    /// Build and install the drivers, and say which there are; measure nothing.
    ///
    /// Fetches four releases of Node and the libraries from npm and PyPI, and compiles the native
    /// ones for each Node, which needs a C++ compiler and takes some 15 minutes. A second time it
    /// does what is left to do.
    #[arg(long)]
    setup: bool,
    /// Where the drivers are: `bench/rivals` of Warren's repository.
    #[arg(long, default_value = "bench/rivals", value_name = "DIR")]
    rivals: PathBuf,
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<()> {
    let drivers = bench::lab::runtime::setup(&arguments.rivals, &output.progress());
    output.line(format_args!("{drivers}"));
    output.value(&drivers)
}
