//! Defines the arguments for the account that owns the budgets, and the output line of a budget.

use accounts::UnlockedAccount;
use actual::inventory::BudgetInventory;
use clap::Args;
use doctor::counted;
use indicatif::DecimalBytes;

use crate::args::data_dir::{DataDir, StorageArgs};
use crate::args::password::PasswordSource;

/// The account that owns the budgets, in the data directory.
#[derive(Args)]
pub(crate) struct BudgetAccountArgs {
    /// Account that owns the budgets.
    #[arg(long, default_value = "actual", value_name = "LOGIN")]
    login: String,
    #[command(flatten)]
    password: PasswordSource,
    #[command(flatten)]
    place: StorageArgs,
}

impl BudgetAccountArgs {
    pub(crate) fn unlock(&self) -> anyhow::Result<(DataDir, UnlockedAccount)> {
        let data_dir = DataDir::open(&self.place)?;
        let unlocked = data_dir.unlock(&self.login, &self.password)?;
        Ok((data_dir, unlocked))
    }
}

pub(crate) fn inventory<'a>(
    data_dir: &'a DataDir,
    unlocked: &'a UnlockedAccount,
) -> BudgetInventory<'a> {
    let (accounts, vaults, runtime) = (&data_dir.accounts, &data_dir.vaults, data_dir.runtime());
    BudgetInventory { accounts, vaults, runtime, unlocked }
}

/// The description of an imported or listed budget for people.
pub(crate) struct BudgetLine<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) file_id: &'a str,
    pub(crate) messages_count: u64,
    pub(crate) file_bytes: Option<u64>,
    pub(crate) is_encrypted: bool,
    pub(crate) is_deleted: bool,
    pub(crate) is_reset: bool,
}

impl BudgetLine<'_> {
    pub(crate) fn line(&self) -> String {
        let name = self.name.unwrap_or(self.file_id);
        let file = match self.file_bytes {
            Some(bytes) => format!("file of {}", DecimalBytes(bytes)),
            None => "no file".to_owned(),
        };
        let marks = [
            (self.is_encrypted, ", encrypted by the apps"),
            (self.is_deleted, ", deleted"),
            (self.is_reset, ", reset but not uploaded since"),
        ];
        let marks: String = marks.iter().filter(|mark| mark.0).map(|mark| mark.1).collect();
        let messages = counted(self.messages_count, "message", "messages");
        format!("{name}: {messages}, {file}{marks}")
    }
}
