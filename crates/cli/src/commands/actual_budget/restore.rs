//! Implements `warren actual-budget restore`: restores a budget that was deleted in an app.

use clap::Args;
use serde::Serialize;
use utoipa::ToSchema;

use super::budget_account::{BudgetAccountArgs, inventory};
use crate::output::Printer;

/// Restore a budget that was deleted in an app.
///
/// The budget reappears in the apps at once, also while the server is running.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren actual-budget restore Home --data /srv/warren\n  \
                        warren actual-budget restore 0d3cb2f4-8b8b-4f3e-a3c9-3d2a7a0f1e55")]
pub(crate) struct BudgetRestoreArgs {
    /// Name of the budget, or its id if several deleted budgets have the same name.
    budget: String,
    #[command(flatten)]
    account: BudgetAccountArgs,
}

/// The output of `warren actual-budget restore`: the budget that the apps list again.
#[derive(Serialize, ToSchema)]
pub(crate) struct BudgetRestoreOutput {
    /// The permanent id of the budget.
    file_id: String,
    /// The name that the apps show; null if they gave none.
    name: Option<String>,
}

pub(crate) fn run(arguments: &BudgetRestoreArgs, output: Printer) -> anyhow::Result<()> {
    let (data_dir, unlocked) = arguments.account.unlock()?;
    let budget = inventory(&data_dir, &unlocked).restore(&arguments.budget)?;
    let name = budget.name.as_deref().unwrap_or(&budget.file_id);
    output.line(format_args!("restored {name}; the apps list it again"));
    output.json(&BudgetRestoreOutput { file_id: budget.file_id, name: budget.name })
}
