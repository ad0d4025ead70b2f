//! Which budgets an account has, for its operator; and a deleted one brought back.
//!
//! # Not here
//! - What the budgets' messages mean: no server knows. With the key of one that is encrypted,
//!   `export` does.

use std::sync::Arc;

use accounts::{Accounts, UnlockedAccount};
use crdt::Timestamp;
use sync_store::{BoxError, GatewaySnapshot, MessageBatch, Vault, Vaults};
use tokio::runtime::Handle;

use crate::gateway_state::{BudgetState, DamagedGatewayState};
use crate::since;
use crate::trie::{DamagedTrie, MerkleTrie};

/// Messages, and bytes of their contents, that are in memory at one time.
const PAGE_COUNT_MAX: usize = 10_000;
const PAGE_BYTES_MAX: usize = 1 << 20;

/// Why it cannot be told or done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InventoryError {
    /// No budget has this id or name.
    #[error("{what} {named} not found")]
    NotFound {
        /// What kind was looked for.
        what: &'static str,
        /// What was asked for.
        named: String,
    },
    /// More than one budget has this name.
    #[error("more than one budget is named {named}: use an id, {}", ids.join(" or "))]
    Ambiguous {
        /// What was asked for.
        named: String,
        /// Their file ids.
        ids: Vec<String>,
    },
    /// Nothing is to be brought back.
    #[error("the budget {named} is not deleted")]
    NotDeleted {
        /// What was asked for.
        named: String,
    },
    /// The accounts refused.
    #[error(transparent)]
    Accounts(#[from] accounts::Error),
    /// A vault refused.
    #[error(transparent)]
    Store(#[from] sync_store::Error),
    /// A budget's record cannot be read.
    #[error(transparent)]
    Record(#[from] DamagedGatewayState),
    /// A budget's trie cannot be read.
    #[error(transparent)]
    Trie(#[from] DamagedTrie),
}

/// An account's budgets on its data directory. Its calls block.
pub struct BudgetInventory<'a> {
    /// Of the data directory.
    pub accounts: &'a Accounts,
    /// Of the same.
    pub vaults: &'a Vaults,
    /// Where vaults work.
    pub runtime: &'a Handle,
    /// The account.
    pub unlocked: &'a UnlockedAccount,
}

/// A budget as it is listed.
#[derive(Clone, Debug)]
pub struct BudgetListing {
    /// Its record.
    pub budget: BudgetState,
    /// Since the last reset.
    pub messages_count: u64,
    /// Of the messages' contents.
    pub content_bytes: u64,
    /// Whether the trie is that of the messages, by its root; `None` if that was not asked.
    pub is_verified: Option<bool>,
}

/// A budget with its vault, as it was when it was read.
pub struct StoredBudget {
    /// Its record.
    pub budget: BudgetState,
    pub(crate) vault: Vault,
    pub(crate) snapshot: GatewaySnapshot,
}

impl BudgetInventory<'_> {
    /// All budgets in the order in which they were made, deleted ones, too. Verifying reads all
    /// messages.
    pub fn list(&self, verify: bool) -> Result<Vec<BudgetListing>, InventoryError> {
        let listed = self.stored()?.into_iter();
        listed.map(|stored| self.runtime.block_on(stored.describe(verify))).collect()
    }

    /// The budgets that are not deleted.
    pub fn all(&self) -> Result<Vec<StoredBudget>, InventoryError> {
        let mut stored = self.stored()?;
        stored.retain(|stored| !stored.budget.is_deleted);
        Ok(stored)
    }

    /// A budget by its name, if it is not deleted, or by its file id or group id.
    pub fn find(&self, named: &str) -> Result<StoredBudget, InventoryError> {
        find(self.stored()?, named, "budget", |budget| !budget.is_deleted)
    }

    /// Shows a deleted budget to the apps again, with everything that it held.
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
            // None as long as its first upload has not come to its end.
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

/// An id names any budget; a name, only one that is wanted.
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

    /// Whether the trie's root is that of all messages.
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
