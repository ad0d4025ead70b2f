//! `warren`, the one binary: reads flags, wires the crates together, prints.
//! One file per command parses its flags and prints its result; what it does is in the crates.
#![forbid(unsafe_code)]

mod account;
mod benchmark;
mod client;
mod clock;
mod inspect;
mod output;
mod password;
mod serve;
mod status;
mod sync;
mod track;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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

#[derive(Subcommand)]
enum Command {
    Serve(serve::Arguments),
    #[command(subcommand)]
    Account(account::Command),
    #[command(subcommand)]
    Client(client::Command),
    Track(track::Track),
    Untrack(track::Untrack),
    Sync(sync::Sync),
    Clone(sync::Clone),
    Status(status::Arguments),
    Inspect(inspect::Arguments),
    #[command(subcommand)]
    Bench(benchmark::Command),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let output = Output { json: arguments.json };
    let result = match arguments.command {
        Command::Serve(arguments) => serve::run(arguments, output),
        Command::Account(command) => account::run(command, output),
        Command::Client(command) => client::run(command, output),
        Command::Track(arguments) => track::track(&arguments, output),
        Command::Untrack(arguments) => track::untrack(&arguments, output),
        Command::Sync(arguments) => sync::sync(&arguments, output),
        Command::Clone(arguments) => sync::clone(&arguments, output),
        Command::Status(arguments) => status::run(&arguments, output),
        Command::Inspect(arguments) => inspect::run(&arguments, output),
        Command::Bench(command) => benchmark::run(command, output),
    };
    output.exit(result)
}
