//! `warren actual-budget list`: the budgets of an account.

use actual::inventory::BudgetListing;
use clap::Args;
use serde_json::{Value, json};

use super::budget_account::{BudgetAccountArgs, BudgetLine, inventory, with_code};
use crate::output::{NonZeroExit, Printer};

/// Of `--verify`: a budget's trie is not that of its messages.
const STATUS_MISMATCH: u8 = 4;

/// List the budgets of an account, including deleted ones.
#[derive(Args)]
#[command(after_help = "Examples:\n  warren actual-budget list --data /srv/warren\n  \
                        warren actual-budget list --verify --password-file secret.txt --json")]
pub(crate) struct BudgetListArgs {
    /// Check each budget's Merkle trie against its messages. Exits with status 4 if one differs.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    account: BudgetAccountArgs,
}

pub(crate) fn run(arguments: &BudgetListArgs, output: Printer) -> anyhow::Result<()> {
    let (data_dir, unlocked) = arguments.account.unlock()?;
    let budgets = inventory(&data_dir, &unlocked).list(arguments.verify).map_err(with_code)?;
    for listed in &budgets {
        output.line(format_args!("{}", describe(listed)));
    }
    output.json(&budgets.iter().map(to_json).collect::<Vec<_>>())?;
    verdict(&budgets)
}

fn verdict(budgets: &[BudgetListing]) -> anyhow::Result<()> {
    let is_wrong = |listed: &BudgetListing| listed.is_verified == Some(false);
    if budgets.iter().any(is_wrong) { Err(NonZeroExit(STATUS_MISMATCH).into()) } else { Ok(()) }
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
        Some(false) => "; the trie is not that of the messages: choose Reset sync in an app",
        None => "",
    };
    shown.line() + verified
}

fn to_json(listed: &BudgetListing) -> Value {
    let budget = &listed.budget;
    json!({
        "file_id": budget.file_id,
        "group_id": budget.group_id,
        "name": budget.name,
        "is_encrypted": budget.key.id.is_some(),
        "is_deleted": budget.is_deleted,
        "messages_count": listed.messages_count,
        "messages_bytes": listed.messages_bytes,
        "file_bytes": budget.file.map(|file| file.bytes),
        "is_verified": listed.is_verified,
    })
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
            messages_bytes: 0,
            is_verified,
        };
        assert!(verdict(&[]).is_ok());
        assert!(verdict(&[listed(None), listed(Some(true))]).is_ok());
        let error = verdict(&[listed(Some(true)), listed(Some(false))]).unwrap_err();
        assert_eq!(error.downcast_ref::<NonZeroExit>().unwrap().0, 4);
    }
}
