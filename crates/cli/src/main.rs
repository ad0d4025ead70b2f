//! Implements the program `warren`: parses flags, connects the crates, and prints results. One file
//! per command parses its flags and prints its result; the work is done by the crates.
#![forbid(unsafe_code)]

mod args;
mod command;
mod command_groups;
mod commands;
mod hardening;
mod json_schema;
mod output;
mod signals;

use std::process::ExitCode;

use clap::{Command, CommandFactory, FromArgMatches, Parser};

use crate::command::CliCommand;
use crate::output::Printer;

/// Sync SQLite files between devices.
///
/// Each user's data is kept in an encrypted database of its own.
#[derive(Parser)]
#[command(name = "warren", version, propagate_version = true, after_help = output::START)]
struct CliArgs {
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: CliCommand,
}

fn main() -> ExitCode {
    let matches = cli().try_get_matches();
    let arguments = match matches.and_then(|matches| CliArgs::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => return output::usage::report_usage(&error, cli()),
    };
    let output = Printer { json: arguments.json };
    let command = arguments.command;
    output.exit(hardening::harden(&command).and_then(|()| command.run(output, cli)))
}

fn cli() -> Command {
    command_groups::group_commands(CliArgs::command())
}
