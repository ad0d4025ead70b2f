//! Implements `warren bench`: measures Warren and others side by side on this machine.

mod actual;
pub(crate) mod bench_output;
mod browser;
mod bulk;
mod checkpoint;
mod cipher;
mod compare;
mod mail;
mod measure_args;
mod pragma;
mod reconcile;
mod runtime;
mod sync;
mod tps;
mod vacuum;

use clap::Subcommand;

use crate::output::Printer;
use crate::signals;

/// Run benchmarks against baselines and competitors on this machine.
#[derive(Subcommand)]
pub(crate) enum BenchCommand {
    Actual(actual::BenchActualArgs),
    Browser(browser::BenchBrowserArgs),
    Bulk(bulk::BenchBulkArgs),
    Checkpoint(checkpoint::BenchCheckpointArgs),
    Cipher(cipher::BenchCipherArgs),
    Compare(compare::BenchCompareArgs),
    Mail(mail::BenchMailArgs),
    Pragma(pragma::BenchPragmaArgs),
    Reconcile(reconcile::BenchReconcileArgs),
    Runtime(runtime::BenchRuntimeArgs),
    Sync(sync::BenchSyncArgs),
    Tps(tps::BenchTpsArgs),
    Vacuum(vacuum::BenchVacuumArgs),
}

pub(crate) fn run(command: BenchCommand, output: Printer) -> anyhow::Result<()> {
    signals::remove_temporary_files_first()?;
    match command {
        BenchCommand::Actual(arguments) => actual::run(arguments, output),
        BenchCommand::Browser(arguments) => browser::run(arguments, output),
        BenchCommand::Bulk(arguments) => bulk::run(arguments, output),
        BenchCommand::Checkpoint(arguments) => checkpoint::run(&arguments, output),
        BenchCommand::Cipher(arguments) => cipher::run(&arguments, output),
        BenchCommand::Compare(arguments) => compare::run(&arguments, output),
        BenchCommand::Mail(arguments) => mail::run(arguments, output),
        BenchCommand::Pragma(arguments) => pragma::run(&arguments, output),
        BenchCommand::Reconcile(arguments) => reconcile::run(arguments, output),
        BenchCommand::Runtime(arguments) => runtime::run(arguments, output),
        BenchCommand::Sync(arguments) => sync::run(arguments, output),
        BenchCommand::Tps(arguments) => tps::run(arguments, output),
        BenchCommand::Vacuum(arguments) => vacuum::run(&arguments, output),
    }
}
