//! `warren`, the one binary: reads flags, wires the crates together, prints.
//! One file per command parses its flags and prints its result; what it does is in the crates.
#![forbid(unsafe_code)]

mod args;
mod command;
mod commands;
mod hardening;
mod output;
mod signals;

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
        Err(error) => return output::usage::report_usage(&error, CliArgs::command()),
    };
    let output = Printer { json: arguments.json };
    let command = arguments.command;
    output.exit(hardening::harden(&command).and_then(|()| command.run(output, CliArgs::command)))
}
