//! `warren bench cipher`.

use bench::sqlite_bench::cipher::{self, CipherBenchPart, CipherBenchPlan};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::bench_output::print_and_save;
use super::measure_args::MeasureArgs;
use crate::output::Printer;

/// What each cipher costs: warm, cold, and when a file is opened.
///
/// Does the same work with every cipher that this SQLite has and with none. Saves the results as
/// `warren-cipher.json` and, with charts, as `warren-cipher.html`.
#[derive(Args)]
#[command(after_help = "Example:\n  warren bench cipher --folder /mnt/disk\n  \
                        warren bench cipher --ciphers chacha20,aegis --rows 200000\n  \
                        warren bench cipher --only open --minutes 1")]
pub(crate) struct BenchCipherArgs {
    /// Messages in the file. 20,000 of 3,500 bytes are larger than the page cache.
    #[arg(long, default_value_t = 20_000, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(10..))]
    rows: i64,
    /// Bytes of a message's body.
    #[arg(long, default_value_t = 3_500, value_name = "BYTES")]
    body_bytes: usize,
    /// Measure only these, as `PRAGMA cipher` names them.
    #[arg(long, value_delimiter = ',', value_name = "CIPHERS")]
    ciphers: Vec<String>,
    /// Make only these tables.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<CipherPartArg>,
    #[command(flatten)]
    method: MeasureArgs,
}

/// `CipherBenchPart`, as the command line names it.
#[derive(Clone, Copy)]
struct CipherPartArg(CipherBenchPart);

impl ValueEnum for CipherPartArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(CipherBenchPart::Warm), Self(CipherBenchPart::Cold), Self(CipherBenchPart::Open)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            CipherBenchPart::Warm => {
                PossibleValue::new("warm").help("inserts, lists, reads, updates, deletes")
            }
            CipherBenchPart::Cold => {
                PossibleValue::new("cold").help("reads that find nothing in memory")
            }
            CipherBenchPart::Open => PossibleValue::new("open").help("raw keys and passphrases"),
        })
    }
}

pub(crate) fn run(arguments: &BenchCipherArgs, output: Printer) -> anyhow::Result<()> {
    let plan = CipherBenchPlan {
        method: arguments.method.method()?,
        rows: arguments.rows,
        body_bytes: arguments.body_bytes,
        ciphers: arguments.ciphers.clone(),
        only: arguments.only.iter().map(|part| part.0).collect(),
    };
    let report = cipher::run(&plan, &output.progress())?;
    print_and_save(&report, &arguments.method.places.report, output)
}
