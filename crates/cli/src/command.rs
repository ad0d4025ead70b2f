//! Defines the list of commands.

use std::path::Path;

use clap::{Command, Subcommand};

use crate::commands::doctor::doctor_args;
use crate::commands::{
    account, actual_budget, backup, command_reference, completions, conflicts, device, doctor,
    erase, history, inspect, json_schema, mail, man, recover, recovery_phrase, serve, status,
    storage, sync, track, vacuum,
};
#[cfg(feature = "bench")]
use crate::commands::{benchmark, tune};
#[cfg(not(feature = "bench"))]
use crate::commands::{not_built as benchmark, not_built as tune};
use crate::output::Printer;

#[derive(Subcommand)]
pub(crate) enum CliCommand {
    Serve(Box<serve::LayeredServeArgs>),
    #[command(subcommand)]
    Account(account::AccountCommand),
    #[command(subcommand)]
    ActualBudget(actual_budget::ActualBudgetCommand),
    #[command(subcommand)]
    Device(device::DeviceCommand),
    #[command(subcommand)]
    Mail(mail::MailCommand),
    Track(track::TrackArgs),
    Untrack(track::UntrackArgs),
    Sync(sync::SyncArgs),
    Clone(sync::CloneArgs),
    Status(status::StatusArgs),
    Inspect(inspect::InspectArgs),
    Doctor(Box<doctor_args::DoctorArgs>),
    Recover(recover::RecoverArgs),
    Conflicts(conflicts::ConflictsArgs),
    History(history::HistoryArgs),
    RecoveryPhrase(recovery_phrase::RecoveryPhraseArgs),
    Vacuum(vacuum::VacuumArgs),
    #[command(subcommand)]
    Storage(storage::StorageCommand),
    Erase(erase::EraseArgs),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
    Tune(tune::TuneArgs),
    #[command(subcommand)]
    Bench(benchmark::BenchCommand),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    JsonSchema(json_schema::JsonSchemaArgs),
    Settings(serve::settings::SettingsTableArgs),
    CommandReference(command_reference::CommandReferenceArgs),
}

impl CliCommand {
    /// Runs the command. Errors of SQLite get the name of the file as context. `whole` builds the
    /// definition of all commands, for those that document them.
    pub(crate) fn run(self, output: Printer, whole: fn() -> Command) -> anyhow::Result<()> {
        let file = self.tracked_file().map(|file| file.display().to_string());
        let result = self.run_unnamed(output, whole);
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
            Self::RecoveryPhrase(arguments) => &arguments.tracked,
            Self::Erase(arguments) => &arguments.tracked,
            _ => return None,
        };
        Some(&tracked.file)
    }

    fn run_unnamed(self, output: Printer, whole: fn() -> Command) -> anyhow::Result<()> {
        match self {
            Self::Serve(arguments) => serve::run(&arguments, output),
            Self::Account(command) => account::run(command, output),
            Self::ActualBudget(command) => actual_budget::run(&command, output),
            Self::Device(command) => device::run(command, output),
            Self::Mail(command) => mail::run(&command, output),
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
            Self::RecoveryPhrase(arguments) => recovery_phrase::run(&arguments, output),
            Self::Vacuum(arguments) => vacuum::run(&arguments, output),
            Self::Storage(command) => storage::run(command, output),
            Self::Erase(arguments) => erase::run(&arguments, output),
            Self::Backup(arguments) => backup::back_up(&arguments, output),
            Self::Restore(arguments) => backup::restore(&arguments, output),
            Self::Tune(arguments) => tune::run(&arguments, output),
            Self::Bench(command) => benchmark::run(command, output),
            Self::Completions(arguments) => completions::run(&arguments, whole(), output),
            Self::Man(arguments) => man::run(&arguments, whole(), output),
            Self::JsonSchema(arguments) => json_schema::run(&arguments, output),
            Self::CommandReference(arguments) => {
                command_reference::run(&arguments, whole(), output)
            }
            Self::Settings(arguments) => serve::settings::markdown_table::run(&arguments, output),
        }
    }
}

fn is_about_file(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<replica::Error>();
    error.is_some_and(|error| {
        use replica::Error as E;
        matches!(error, E::Sqlite(_) | E::WrongKey | E::NotADatabase)
    })
}
