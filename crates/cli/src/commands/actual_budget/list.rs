//! Implements `warren actual-budget list`: lists the budgets of an account.

use actual::inventory::BudgetListing;
use clap::Args;
use serde::Serialize;
use utoipa::ToSchema;

use super::budget_account::{BudgetAccountArgs, BudgetLine, inventory};
use crate::output::{NonZeroExit, Printer};

/// List the budgets of an account, including deleted ones.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren actual-budget list --data /srv/warren\n  \
                        warren actual-budget list --verify --password-file secret.txt --json")]
pub(crate) struct BudgetListArgs {
    /// Check each budget's Merkle trie against its messages. Exits with status 4 if any differs.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    account: BudgetAccountArgs,
}

/// A budget in the output of `warren actual-budget list`.
#[derive(Serialize, ToSchema)]
pub(crate) struct BudgetListItem {
    /// The permanent id of the budget.
    file_id: String,
    /// The id that the apps gave to the budget's messages; null after a reset.
    group_id: Option<String>,
    /// The name that the apps show; null if they gave none.
    name: Option<String>,
    /// Whether the apps encrypt the budget.
    encrypted: bool,
    /// Whether a user deleted the budget.
    deleted: bool,
    /// The number of messages since the last reset.
    messages_count: u64,
    /// The size of the messages' contents in bytes.
    content_bytes: u64,
    /// The size of the file that an app uploaded last, in bytes; null if there is none.
    file_bytes: Option<u64>,
    /// Whether the Merkle trie matches the messages; null without `--verify`.
    verified: Option<bool>,
}

impl From<&BudgetListing> for BudgetListItem {
    fn from(listed: &BudgetListing) -> Self {
        let budget = &listed.budget;
        Self {
            file_id: budget.file_id.clone(),
            group_id: budget.group_id.clone(),
            name: budget.name.clone(),
            encrypted: budget.key.id.is_some(),
            deleted: budget.is_deleted,
            messages_count: listed.messages_count,
            content_bytes: listed.content_bytes,
            file_bytes: budget.file.map(|file| file.bytes),
            verified: listed.is_verified,
        }
    }
}

pub(crate) fn run(arguments: &BudgetListArgs, output: Printer) -> anyhow::Result<()> {
    let (data_dir, unlocked) = arguments.account.unlock()?;
    let budgets = inventory(&data_dir, &unlocked).list(arguments.verify)?;
    for listed in &budgets {
        output.line(format_args!("{}", describe(listed)));
    }
    output.json(&budgets.iter().map(BudgetListItem::from).collect::<Vec<_>>())?;
    verdict(&budgets)
}

fn verdict(budgets: &[BudgetListing]) -> anyhow::Result<()> {
    NonZeroExit::if_differing(budgets.iter().any(|listed| listed.is_verified == Some(false)))
}

fn describe(listed: &BudgetListing) -> String {
    let budget = &listed.budget;
    let shown = BudgetLine {
        name: budget.name.as_deref(),
        file_id: &budget.file_id,
        messages_count: listed.messages_count,
        file_bytes: budget.file.map(|file| file.bytes),
        is_encrypted: budget.key.id.is_some(),
        is_deleted: budget.is_deleted,
        is_reset: budget.group_id.is_none(),
    };
    let verified = match listed.is_verified {
        Some(true) => "; trie verified",
        Some(false) => "; the trie does not match the messages: choose Reset sync in an app",
        None => "",
    };
    shown.line() + verified
}

#[cfg(test)]
mod tests {
    use actual::gateway_state::BudgetState;

    use super::*;

    #[test]
    fn a_budget_that_differs_ends_with_a_status_of_its_own() {
        let listed = |is_verified| BudgetListing {
            budget: BudgetState::default(),
            messages_count: 0,
            content_bytes: 0,
            is_verified,
        };
        assert!(verdict(&[]).is_ok());
        assert!(verdict(&[listed(None), listed(Some(true))]).is_ok());
        let error = verdict(&[listed(Some(true)), listed(Some(false))]).unwrap_err();
        assert_eq!(error.downcast_ref::<NonZeroExit>().unwrap().0, 4);
    }
}
