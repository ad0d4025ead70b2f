//! `warren bench pragma`.

use bench::lab::pragma::Plan;
use clap::Args;

use super::finish;
use super::method::MethodArguments;
use crate::output::Output;

/// What SQLite's settings do, with intervals and verdicts.
///
/// Compares the published configurations and others with the production set, on this disk: inserts,
/// lists, reads, updates, deletes and a mix, over a table of messages. Saves the results as
/// `warren-pragma.json` and, with charts, as `warren-pragma.html`.
#[derive(Args)]
#[command(after_help = "Example:\n  warren bench pragma --minutes 5\n  \
                        warren bench pragma --rows 1000,50000 --precision 1 --folder /mnt/disk")]
pub(crate) struct Pragma {
    /// Messages in the file, for each size. 20,000 of 3,500 bytes are larger than every cache.
    #[arg(long, default_values_t = [1_000, 20_000], value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(i64).range(10..))]
    rows: Vec<i64>,
    /// Bytes of a message's body.
    #[arg(long, default_value_t = 3_500, value_name = "BYTES")]
    body_bytes: usize,
    #[command(flatten)]
    method: MethodArguments,
}

pub(crate) fn run(arguments: &Pragma, output: Output) -> anyhow::Result<()> {
    let plan = Plan {
        method: arguments.method.method()?,
        rows: arguments.rows.clone(),
        body_bytes: arguments.body_bytes,
    };
    let report = bench::lab::pragma::run(&plan, &output.progress())?;
    finish(&report, &arguments.method.places.report, output)
}
