//! Implements `warren actual-budget`: manages the data of Actual Budget's apps for the operator.

mod budget_account;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod restore;

use clap::Subcommand;

use crate::output::Printer;

/// Import budgets from an Actual Budget server; list, export and restore budgets.
#[derive(Subcommand)]
pub(crate) enum ActualBudgetCommand {
    Import(import::BudgetImportArgs),
    List(list::BudgetListArgs),
    Export(export::BudgetExportArgs),
    Restore(restore::BudgetRestoreArgs),
}

pub(crate) fn run(command: &ActualBudgetCommand, output: Printer) -> anyhow::Result<()> {
    match command {
        ActualBudgetCommand::Import(arguments) => import::run(arguments, output),
        ActualBudgetCommand::List(arguments) => list::run(arguments, output),
        ActualBudgetCommand::Export(arguments) => export::run(arguments, output),
        ActualBudgetCommand::Restore(arguments) => restore::run(arguments, output),
    }
}
