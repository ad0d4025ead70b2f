//! `warren bench runtime`.

use bench::lab::runtime::{self, Plan};
use clap::Args;
use engine::{Cipher, Profile};

use super::method::MethodArguments;
use super::{Rivals, finish};
use crate::output::Output;

/// The same work through SQLite libraries of Node and Python.
///
/// Inserts, lists, reads, updates, deletes and a mix, over a table of messages, with the same
/// settings through every library that `--setup` could build. Saves the results as
/// `warren-runtime.json` and, with charts, as `warren-runtime.html`.
#[derive(Args)]
#[command(
    after_help = "Example:\n  warren bench runtime --setup\n  warren bench runtime --minutes 30\n  \
                  warren bench runtime --only production --cipher chacha20 --rows 1000"
)]
pub(crate) struct Arguments {
    /// Build and install the drivers, and say which there are; measure nothing.
    ///
    /// Fetches releases of Node and the libraries from the registries of npm and pip, and compiles
    /// the native ones for each Node. Needs npm, a C++ compiler, make and Python, 1 GB of disk, and
    /// some 15 minutes of two cores. A second time it does what is left to do.
    #[arg(long)]
    setup: bool,
    /// Which sets of PRAGMAs, by the names of `warren bench pragma`.
    #[arg(long, default_value = "baseline,production", value_delimiter = ',', value_name = "NAMES", value_parser = profile)]
    only: Vec<&'static Profile>,
    /// Which ciphers; `none` for a file that is not encrypted.
    #[arg(
        long,
        default_value = "none,chacha20",
        value_delimiter = ',',
        value_name = "CIPHERS",
        value_parser = cipher
    )]
    cipher: Vec<Encryption>,
    /// Messages in the file, for each size. 20,000 of 3,500 bytes are larger than every cache.
    #[arg(long, default_values_t = [1_000, 20_000], value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(i64).range(10..))]
    rows: Vec<i64>,
    /// Bytes of a message's body.
    #[arg(long, default_value_t = 3_500, value_name = "BYTES")]
    body_bytes: usize,
    #[command(flatten)]
    rivals: Rivals,
    #[command(flatten)]
    method: MethodArguments,
}

/// A cipher, or none.
#[derive(Clone, Copy)]
struct Encryption(Option<Cipher>);

fn cipher(name: &str) -> Result<Encryption, engine::UnknownCipher> {
    if name == "none" { Ok(Encryption(None)) } else { Ok(Encryption(Some(name.parse()?))) }
}

fn profile(name: &str) -> Result<&'static Profile, String> {
    Profile::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = Profile::ALL.iter().map(|profile| profile.name).collect();
        format!("there are {}", names.join(", "))
    })
}

pub(crate) fn run(arguments: Arguments, output: Output) -> anyhow::Result<()> {
    let progress = output.progress();
    if arguments.setup {
        let drivers = runtime::setup(&arguments.rivals.rivals, &progress);
        output.text(format_args!("{drivers}"));
        return output.value(&drivers);
    }
    let plan = Plan {
        method: arguments.method.method()?,
        rows: arguments.rows,
        body_bytes: arguments.body_bytes,
        configurations: arguments.only,
        ciphers: arguments.cipher.iter().map(|encryption| encryption.0).collect(),
        rivals: arguments.rivals.rivals,
    };
    let report = runtime::run(&plan, &progress)?;
    finish(&report, &arguments.method.places.report, output)
}
