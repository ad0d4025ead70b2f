//! `warren actual`: the operator's side of what Actual Budget's apps keep here.

mod import;

use clap::Subcommand;

use crate::output::Output;

/// Take over what a server of Actual Budget has.
#[derive(Subcommand)]
pub(crate) enum Command {
    Import(import::Import),
}

pub(crate) fn run(command: &Command, output: Output) -> anyhow::Result<()> {
    match command {
        Command::Import(arguments) => import::run(arguments, output),
    }
}
