//! `warren`, the one binary: reads flags, wires the crates together, prints.
//! One file per command parses its flags and prints its result; what it does is in the crates.
#![forbid(unsafe_code)]

mod account;
mod actual;
mod backup;
#[cfg(feature = "bench")]
mod benchmark;
mod client;
mod clock;
mod command;
mod completions;
mod conflicts;
mod doctor;
mod hardening;
mod history;
mod inspect;
mod key;
#[cfg(not(feature = "bench"))]
mod left_out;
mod man;
mod output;
mod password;
mod phrase;
mod postgres;
mod recover;
mod serve;
mod signals;
mod status;
mod sync;
mod track;
#[cfg(feature = "bench")]
mod tune;
mod vacuum;
mod vault;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::command::Command;
use crate::output::Output;

/// SQLite that syncs: each user's data in an encrypted database of its own, all devices in step.
#[derive(Parser)]
#[command(name = "warren", version, propagate_version = true, after_help = output::START)]
struct Arguments {
    /// Print one JSON value instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return output::report_usage(&error, Arguments::command()),
    };
    let output = Output { json: arguments.json };
    let command = arguments.command;
    output.exit(hardening::harden(&command).and_then(|()| command.run(output)))
}
