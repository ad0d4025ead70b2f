//! The list of commands.

use std::path::Path;

use clap::Subcommand;

use crate::output::Output;
use crate::{
    account, actual, backup, client, completions, conflicts, doctor, history, inspect, man, phrase,
    postgres, recover, serve, status, sync, track, vacuum, vault,
};
#[cfg(feature = "bench")]
use crate::{benchmark, tune};
#[cfg(not(feature = "bench"))]
use crate::{left_out as benchmark, left_out as tune};

#[derive(Subcommand)]
pub(crate) enum Command {
    Serve(Box<serve::LayeredArguments>),
    #[command(subcommand)]
    Account(account::Command),
    #[command(subcommand)]
    Actual(actual::Command),
    #[command(subcommand)]
    Client(client::Command),
    Track(track::Track),
    Untrack(track::Untrack),
    Sync(sync::Sync),
    Clone(sync::Clone),
    Status(status::Arguments),
    Inspect(inspect::Arguments),
    Doctor(Box<doctor::Arguments>),
    Recover(recover::Arguments),
    Conflicts(conflicts::Arguments),
    History(history::Arguments),
    Phrase(phrase::Arguments),
    Vacuum(vacuum::Arguments),
    #[command(subcommand)]
    Vault(vault::Command),
    Backup(backup::Backup),
    Restore(backup::Restore),
    #[command(subcommand)]
    Postgres(postgres::Command),
    Tune(tune::Tune),
    #[command(subcommand)]
    Bench(benchmark::Command),
    Completions(completions::Completions),
    Man(man::Man),
    Settings(serve::settings::Table),
}

impl Command {
    /// Runs it. What SQLite refuses is told with the name of the file that it is about.
    pub(crate) fn run(self, output: Output) -> anyhow::Result<()> {
        let file = self.tracked_file().map(|file| file.display().to_string());
        let result = self.run_unnamed(output);
        match (result, file) {
            (Err(error), Some(file)) if is_about_file(&error) => Err(error.context(file)),
            (result, _) => result,
        }
    }

    fn tracked_file(&self) -> Option<&Path> {
        let tracked = match self {
            Self::Track(arguments) => &arguments.tracked,
            Self::Untrack(arguments) => &arguments.tracked,
            Self::Sync(arguments) => &arguments.tracked,
            Self::Clone(arguments) => &arguments.tracked,
            Self::Status(arguments) => &arguments.tracked,
            Self::Conflicts(arguments) => &arguments.tracked,
            Self::History(arguments) => &arguments.tracked,
            Self::Phrase(arguments) => &arguments.tracked,
            _ => return None,
        };
        Some(&tracked.file)
    }

    fn run_unnamed(self, output: Output) -> anyhow::Result<()> {
        match self {
            Self::Serve(arguments) => serve::run(&arguments, output),
            Self::Account(command) => account::run(command, output),
            Self::Actual(command) => actual::run(&command, output),
            Self::Client(command) => client::run(command, output),
            Self::Track(arguments) => track::track(&arguments, output),
            Self::Untrack(arguments) => track::untrack(&arguments, output),
            Self::Sync(arguments) => sync::sync(&arguments, output),
            Self::Clone(arguments) => sync::clone(&arguments, output),
            Self::Status(arguments) => status::run(&arguments, output),
            Self::Inspect(arguments) => inspect::run(&arguments, output),
            Self::Doctor(arguments) => doctor::run(&arguments, output),
            Self::Recover(arguments) => recover::run(&arguments, output),
            Self::Conflicts(arguments) => conflicts::run(&arguments, output),
            Self::History(arguments) => history::run(&arguments, output),
            Self::Phrase(arguments) => phrase::run(&arguments, output),
            Self::Vacuum(arguments) => vacuum::run(&arguments, output),
            Self::Vault(command) => vault::run(command, output),
            Self::Backup(arguments) => backup::back_up(&arguments, output),
            Self::Restore(arguments) => backup::restore(&arguments, output),
            Self::Postgres(command) => postgres::run(&command, output),
            Self::Tune(arguments) => tune::run(&arguments, output),
            Self::Bench(command) => benchmark::run(command, output),
            Self::Completions(arguments) => completions::run(&arguments, output),
            Self::Man(arguments) => man::run(&arguments, output),
            Self::Settings(arguments) => serve::settings::table::run(&arguments, output),
        }
    }
}

fn is_about_file(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<replica::Error>();
    error.is_some_and(|error| matches!(error, replica::Error::Sqlite(_) | replica::Error::WrongKey))
}
