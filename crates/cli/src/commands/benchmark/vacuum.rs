//! Implements `warren bench vacuum`: measures VACUUM and the effect of `auto_vacuum`.

use anyhow::Context;
use bench::sqlite_bench::vacuum::{self, VacuumBenchPart, VacuumBenchPlan};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::bench_output::print_and_save;
use super::measure_args::MeasureArgs;
use crate::output::Printer;

/// Measure VACUUM and the effect of `auto_vacuum`.
///
/// Rewrites a file with VACUUM and VACUUM INTO, encrypted and not, with each location of VACUUM's
/// temporary files: seconds and peak memory. Then inserts and deletes messages under each
/// `auto_vacuum` mode: speed, size, fragmentation. Saves `warren-vacuum.json` and
/// `warren-vacuum.html` (with charts).
#[derive(Args)]
#[command(
    mut_arg("rounds_min", |arg| arg.default_value("3")),
    mut_arg("seconds", |arg| arg.default_value("2")),
    after_help = "Examples:\n  warren bench vacuum --work-dir /mnt/disk\n  \
                  warren bench vacuum --megabytes 100 --cipher aegis --rounds-min 8\n  \
                  warren bench vacuum --only churn --minutes 3"
)]
pub(crate) struct BenchVacuumArgs {
    /// File size before VACUUM. The disk needs five times as much free space.
    #[arg(long, default_value_t = 1_000, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..))]
    megabytes: u64,
    /// Cipher of the encrypted file: chacha20, aes256cbc, aegis, sqlcipher or ascon128.
    #[arg(long, default_value = "chacha20", value_name = "CIPHER")]
    cipher: engine::Cipher,
    /// Messages in the file of the part `churn`.
    #[arg(long, default_value_t = 2_000, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(100..))]
    churn_rows: i64,
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<VacuumPartArg>,
    #[command(flatten)]
    method: MeasureArgs,
}

/// A value of `--only`: a `VacuumBenchPart`.
#[derive(Clone, Copy)]
struct VacuumPartArg(VacuumBenchPart);

impl ValueEnum for VacuumPartArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(VacuumBenchPart::Vacuum), Self(VacuumBenchPart::Churn)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            VacuumBenchPart::Vacuum => PossibleValue::new("vacuum").help("rewriting a file"),
            VacuumBenchPart::Churn => {
                PossibleValue::new("churn").help("auto_vacuum under inserts and deletes")
            }
        })
    }
}

pub(crate) fn run(arguments: &BenchVacuumArgs, output: Printer) -> anyhow::Result<()> {
    let plan = VacuumBenchPlan {
        method: arguments.method.method()?,
        megabytes: arguments.megabytes,
        cipher: arguments.cipher.name().to_owned(),
        churn_rows: arguments.churn_rows,
        program: std::env::current_exe().context("cannot find the path of this program")?,
        only: arguments.only.iter().map(|part| part.0).collect(),
    };
    let report = vacuum::run(&plan, &output.progress())?;
    print_and_save(report, &arguments.method.places.report_dir, output)
}
