//! `warren bench vacuum`.

use anyhow::Context;
use bench::sqlite_bench::vacuum::{self, VacuumBenchPart, VacuumBenchPlan};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::bench_output::print_and_save;
use super::measure_args::MeasureArgs;
use crate::output::Printer;

/// What VACUUM takes, by where its temporary files lie, and what `auto_vacuum` does.
///
/// Writes a file anew with VACUUM and VACUUM INTO, encrypted and not: seconds and peak memory; then
/// lets messages come and go under each `auto_vacuum`: speed, size, fragmentation. Saves the results
/// as `warren-vacuum.json` and, with charts, as `warren-vacuum.html`.
#[derive(Args)]
#[command(
    mut_arg("rounds_min", |arg| arg.default_value("3")),
    mut_arg("seconds", |arg| arg.default_value("2")),
    after_help = "Example:\n  warren bench vacuum --folder /mnt/disk\n  \
                  warren bench vacuum --megabytes 100 --cipher aegis --rounds-min 8\n  \
                  warren bench vacuum --only churn --minutes 3"
)]
pub(crate) struct BenchVacuumArgs {
    /// Size of the file before its VACUUM. Five times as much is needed on the disk.
    #[arg(long, default_value_t = 1_000, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..))]
    megabytes: u64,
    /// How the encrypted file is encrypted: `chacha20`, `aes256cbc`, `aegis`, `sqlcipher` or
    /// `ascon128`.
    #[arg(long, default_value = "chacha20", value_name = "CIPHER")]
    cipher: engine::Cipher,
    /// Messages in the file that `auto_vacuum` works on.
    #[arg(long, default_value_t = 2_000, value_name = "COUNT", value_parser = clap::value_parser!(i64).range(100..))]
    churn_rows: i64,
    /// Make only these tables.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<VacuumPartArg>,
    #[command(flatten)]
    method: MeasureArgs,
}

/// `VacuumBenchPart`, as the command line names it.
#[derive(Clone, Copy)]
struct VacuumPartArg(VacuumBenchPart);

impl ValueEnum for VacuumPartArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(VacuumBenchPart::Vacuum), Self(VacuumBenchPart::Churn)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            VacuumBenchPart::Vacuum => PossibleValue::new("vacuum").help("writing a file anew"),
            VacuumBenchPart::Churn => {
                PossibleValue::new("churn").help("auto_vacuum while messages come and go")
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
        program: std::env::current_exe().context("where warren itself is")?,
        only: arguments.only.iter().map(|part| part.0).collect(),
    };
    let report = vacuum::run(&plan, &output.progress())?;
    print_and_save(&report, &arguments.method.places.report, output)
}
