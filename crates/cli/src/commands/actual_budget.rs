//! `warren actual`: the operator's side of what Actual Budget's apps keep here.

mod budget_account;
mod export;
mod import;
mod list;
mod restore;

use clap::Subcommand;

use crate::output::Printer;

/// Take over what another server has of Actual Budget's apps; list, export and bring back budgets.
#[derive(Subcommand)]
pub(crate) enum ActualBudgetCommand {
    Import(import::BudgetImportArgs),
    List(list::BudgetListArgs),
    Export(export::BudgetExportArgs),
    Undelete(restore::BudgetRestoreArgs),
}

pub(crate) fn run(command: &ActualBudgetCommand, output: Printer) -> anyhow::Result<()> {
    match command {
        ActualBudgetCommand::Import(arguments) => import::run(arguments, output),
        ActualBudgetCommand::List(arguments) => list::run(arguments, output),
        ActualBudgetCommand::Export(arguments) => export::run(arguments, output),
        ActualBudgetCommand::Undelete(arguments) => restore::run(arguments, output),
    }
}
