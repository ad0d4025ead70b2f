//! Lists an account's budgets for the operator, and restores deleted ones.
//!
//! # Not here
//! - The meaning of the budgets' messages, which no server knows. `export` reads them, for an
//!   encrypted budget with its key.

use std::sync::Arc;

use accounts::{Accounts, UnlockedAccount};
use crdt::Timestamp;
use sync_store::{BoxError, GatewaySnapshot, MessageBatch, Vault, Vaults};
use tokio::runtime::Handle;

use crate::gateway_state::{BudgetState, DamagedGatewayState};
use crate::since;
use crate::trie::{DamagedTrie, MerkleTrie};

/// Limits of a page of messages in memory: their count, and the bytes of their contents.
const PAGE_COUNT_MAX: usize = 10_000;
const PAGE_BYTES_MAX: usize = 1 << 20;

/// The reason why budgets cannot be listed or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InventoryError {
    /// No budget has this id or name.
    #[error("{what} {named} not found")]
    NotFound {
        /// The kind of budget that was searched for.
        what: &'static str,
        /// The id or name that was searched for.
        named: String,
    },
    /// More than one budget has this name.
    #[error("more than one budget is named {named}: use an id, {}", ids.join(" or "))]
    Ambiguous {
        /// The name that was searched for.
        named: String,
        /// The file ids of these budgets.
        ids: Vec<String>,
    },
    /// The budget is not deleted, so it cannot be restored.
    #[error("the budget {named} is not deleted")]
    NotDeleted {
        /// The id or name that was searched for.
        named: String,
    },
    /// The accounts returned an error.
    #[error(transparent)]
    Accounts(#[from] accounts::Error),
    /// A vault returned an error.
    #[error(transparent)]
    Store(#[from] sync_store::Error),
    /// A budget's gateway state cannot be read.
    #[error(transparent)]
    Record(#[from] DamagedGatewayState),
    /// A budget's trie cannot be read.
    #[error(transparent)]
    Trie(#[from] DamagedTrie),
}

/// The budgets of an account in a data directory. Its methods block.
pub struct BudgetInventory<'a> {
    /// The accounts of the data directory.
    pub accounts: &'a Accounts,
    /// The vaults of the same data directory.
    pub vaults: &'a Vaults,
    /// The runtime on which vaults work.
    pub runtime: &'a Handle,
    /// The account whose budgets are listed.
    pub unlocked: &'a UnlockedAccount,
}

/// An entry in the list of budgets.
#[derive(Clone, Debug)]
pub struct BudgetListing {
    /// The gateway state of the budget.
    pub budget: BudgetState,
    /// The number of messages since the last reset.
    pub messages_count: u64,
    /// The size of the messages' contents in bytes.
    pub content_bytes: u64,
    /// Whether the trie's root is that of the messages; `None` if this was not verified.
    pub is_verified: Option<bool>,
}

/// A budget with its vault, as it was when it was read.
pub struct StoredBudget {
    /// The gateway state of the budget.
    pub budget: BudgetState,
    pub(crate) vault: Vault,
    pub(crate) snapshot: GatewaySnapshot,
}

impl BudgetInventory<'_> {
    /// Lists all budgets in order of creation, including deleted ones. Verifying reads all
    /// messages.
    pub fn list(&self, verify: bool) -> Result<Vec<BudgetListing>, InventoryError> {
        let listed = self.stored()?.into_iter();
        listed.map(|stored| self.runtime.block_on(stored.describe(verify))).collect()
    }

    /// Returns the budgets that are not deleted.
    pub fn all(&self) -> Result<Vec<StoredBudget>, InventoryError> {
        let mut stored = self.stored()?;
        stored.retain(|stored| !stored.budget.is_deleted);
        Ok(stored)
    }

    /// Finds a budget by its file id or group id or, if it is not deleted, by its name.
    pub fn find(&self, named: &str) -> Result<StoredBudget, InventoryError> {
        find(self.stored()?, named, "budget", |budget| !budget.is_deleted)
    }

    /// Restores a deleted budget with all its contents, so that the apps show it again.
    pub fn restore(&self, named: &str) -> Result<BudgetState, InventoryError> {
        let stored = find(self.stored()?, named, "deleted budget", |budget| budget.is_deleted)?;
        if !stored.budget.is_deleted {
            return Err(InventoryError::NotDeleted { named: named.to_owned() });
        }
        let exchanged = self.runtime.block_on(stored.restore())?;
        Ok(exchanged)
    }

    fn stored(&self) -> Result<Vec<StoredBudget>, InventoryError> {
        let mut budgets = Vec::new();
        for id in self.accounts.sub_vaults(self.unlocked.account)? {
            let vault = self.vaults.open(&self.unlocked.sub_vault(&id))?;
            let snapshot = self.runtime.block_on(vault.gateway_state())?;
            // The state is empty until the first upload is complete.
            if let Some((budget, _)) = BudgetState::decode_record(&snapshot.state)? {
                budgets.push(StoredBudget { budget, vault, snapshot });
            }
        }
        let place = |stored: &StoredBudget| {
            let BudgetState { created_ms, file_id, .. } = &stored.budget;
            (*created_ms, file_id.clone())
        };
        budgets.sort_by_key(place);
        Ok(budgets)
    }
}

/// Finds a budget: an id matches any budget, a name only those for which `is_wanted` holds.
fn find(
    all: Vec<StoredBudget>,
    named: &str,
    what: &'static str,
    is_wanted: impl Fn(&BudgetState) -> bool,
) -> Result<StoredBudget, InventoryError> {
    let has_id =
        |budget: &BudgetState| budget.file_id == named || budget.group_id.as_deref() == Some(named);
    let has_name =
        |budget: &BudgetState| budget.name.as_deref() == Some(named) && is_wanted(budget);
    let (mut by_id, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|stored| has_id(&stored.budget));
    if let Some(stored) = by_id.pop() {
        return Ok(stored);
    }
    let mut by_name: Vec<_> =
        others.into_iter().filter(|stored| has_name(&stored.budget)).collect();
    let named = named.to_owned();
    if by_name.len() > 1 {
        let ids = by_name.into_iter().map(|stored| stored.budget.file_id).collect();
        return Err(InventoryError::Ambiguous { named, ids });
    }
    by_name.pop().ok_or(InventoryError::NotFound { what, named })
}

impl StoredBudget {
    async fn describe(&self, verify: bool) -> Result<BudgetListing, InventoryError> {
        let is_verified = if verify { Some(self.verify().await?) } else { None };
        let state = self.vault.summary().await?;
        Ok(BudgetListing {
            budget: self.budget.clone(),
            messages_count: state.fingerprint.count,
            content_bytes: state.bytes,
            is_verified,
        })
    }

    /// Returns whether the trie's root is that of all messages.
    async fn verify(&self) -> Result<bool, InventoryError> {
        let mut of_messages = MerkleTrie::new();
        let mut next = Some(Timestamp::ZERO);
        while let Some(start) = next {
            let cursor = self.snapshot.cursor;
            let page =
                self.vault.messages_from(start, cursor, PAGE_COUNT_MAX, PAGE_BYTES_MAX).await?;
            for message in &page {
                of_messages.insert(message.timestamp);
            }
            next = page.last().and_then(|last| since::following(last.timestamp));
        }
        let decoded = BudgetState::decode_record(&self.snapshot.state)?;
        let trie = decoded.map(|(_, trie)| MerkleTrie::decode(trie)).transpose()?;
        Ok(trie.is_some_and(|trie| trie.root() == of_messages.root()))
    }

    async fn restore(&self) -> Result<BudgetState, InventoryError> {
        let show = |record: &[u8], _: &[Timestamp]| {
            let found = BudgetState::decode_record(record)?;
            let (mut budget, trie) = found.ok_or_else(|| BoxError::from("budget not found"))?;
            budget.is_deleted = false;
            let mut record = Vec::with_capacity(record.len());
            budget.encode_header(&mut record);
            record.extend_from_slice(trie);
            Ok(record)
        };
        self.vault.exchange(MessageBatch::default(), Arc::new(show)).await?;
        Ok(BudgetState { is_deleted: false, ..self.budget.clone() })
    }
}
