//! Implements `warren bench cipher`: measures the cost of each cipher.

use bench::sqlite_bench::cipher::{self, CipherBenchPart, CipherBenchPlan};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::bench_output::print_and_save;
use super::measure_args::MeasureArgs;
use crate::output::Printer;

/// Measure the cost of each cipher: warm, cold, and when opening a file.
///
/// Runs the same workload with every cipher of this SQLite build and without encryption. Saves
/// `warren-cipher.json` and `warren-cipher.html` (with charts).
#[derive(Args)]
#[command(after_help = "Examples:\n  warren bench cipher --work-dir /mnt/disk\n  \
                        warren bench cipher --ciphers chacha20,aegis --rows 200000\n  \
                        warren bench cipher --only open --minutes 1")]
pub(crate) struct BenchCipherArgs {
    /// Messages in the file. 20,000 messages of 3,500 bytes exceed the page cache.
    #[arg(long, default_value_t = 20_000, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(10..))]
    rows: i64,
    /// Size of a message body.
    #[arg(long, default_value_t = 3_500, value_name = "BYTES")]
    body_bytes: usize,
    /// Measure only these ciphers, as named by `PRAGMA cipher`.
    #[arg(long, value_delimiter = ',', value_name = "CIPHERS")]
    ciphers: Vec<String>,
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<CipherPartArg>,
    #[command(flatten)]
    method: MeasureArgs,
}

/// A value of `--only`: a `CipherBenchPart`.
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
            CipherBenchPart::Cold => PossibleValue::new("cold").help("reads with a cold cache"),
            CipherBenchPart::Open => {
                PossibleValue::new("open").help("opening with raw keys and passphrases")
            }
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
    print_and_save(report, &arguments.method.places.report_dir, output)
}
