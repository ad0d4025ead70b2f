//! `warren actual`: the operator's side of what Actual Budget's apps keep here.

mod export;
mod import;
mod list;
mod restore;

use accounts::UnlockedAccount;
use actual::inventory::{self, BudgetInventory};
use clap::{Args, Subcommand};

use crate::account::{DataDir, StorageArgs};
use crate::output::{Printer, format_bytes};
use crate::password::PasswordSource;

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

/// The account whose budgets they are, on the data directory.
#[derive(Args)]
struct BudgetAccountArgs {
    /// The account that has the budgets.
    #[arg(long, default_value = "actual", value_name = "LOGIN")]
    login: String,
    #[command(flatten)]
    password: PasswordSource,
    #[command(flatten)]
    place: StorageArgs,
}

impl BudgetAccountArgs {
    fn unlock(&self) -> anyhow::Result<(DataDir, UnlockedAccount)> {
        let data_dir = DataDir::open(&self.place)?;
        let unlocked = data_dir.unlock(&self.login, &self.password)?;
        Ok((data_dir, unlocked))
    }
}

fn inventory<'a>(data_dir: &'a DataDir, unlocked: &'a UnlockedAccount) -> BudgetInventory<'a> {
    let (accounts, vaults, runtime) = (&data_dir.accounts, &data_dir.vaults, data_dir.runtime());
    BudgetInventory { accounts, vaults, runtime, unlocked }
}

/// With the code that the error behind it has.
fn with_code(error: inventory::InventoryError) -> anyhow::Error {
    match error {
        inventory::InventoryError::Accounts(error) => error.into(),
        inventory::InventoryError::Store(error) => error.into(),
        error => error.into(),
    }
}

/// What people are told of a budget, imported or listed.
struct BudgetLine<'a> {
    name: Option<&'a str>,
    file_id: &'a str,
    messages_count: u64,
    file_bytes: Option<u64>,
    is_encrypted: bool,
    is_deleted: bool,
    is_reset: bool,
}

impl BudgetLine<'_> {
    fn line(&self) -> String {
        let name = self.name.unwrap_or(self.file_id);
        let file = match self.file_bytes {
            Some(bytes) => format!("file of {}", format_bytes(bytes)),
            None => "no file".to_owned(),
        };
        let marks = [
            (self.is_encrypted, ", encrypted by the apps"),
            (self.is_deleted, ", deleted"),
            (self.is_reset, ", reset and not uploaded since"),
        ];
        let marks: String = marks.iter().filter(|mark| mark.0).map(|mark| mark.1).collect();
        format!("{name}: {} messages, {file}{marks}", self.messages_count)
    }
}
