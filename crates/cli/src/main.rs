//! `warren`, the one binary: reads flags, wires the crates together, prints.
//! One file per command parses its flags and prints its result; what it does is in the crates.
#![forbid(unsafe_code)]

mod account;
mod actual_budget;
mod backup;
#[cfg(feature = "bench")]
mod benchmark;
mod clock;
mod command;
mod completions;
mod conflicts;
mod device;
mod doctor;
mod hardening;
mod history;
mod inspect;
mod key_args;
mod man;
#[cfg(not(feature = "bench"))]
mod not_built;
mod output;
mod password;
mod postgres_args;
mod recover;
mod recovery_phrase;
mod serve;
mod signals;
mod status;
mod storage;
mod sync;
mod track;
#[cfg(feature = "bench")]
mod tune;
mod vacuum;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::command::CliCommand;
use crate::output::Printer;

/// SQLite that syncs: each user's data in an encrypted database of its own, all devices in step.
#[derive(Parser)]
#[command(name = "warren", version, propagate_version = true, after_help = output::START)]
struct CliArgs {
    /// Print one JSON value instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: CliCommand,
}

fn main() -> ExitCode {
    let arguments = match CliArgs::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return output::report_usage(&error, CliArgs::command()),
    };
    let output = Printer { json: arguments.json };
    let command = arguments.command;
    output.exit(hardening::harden(&command).and_then(|()| command.run(output)))
}
