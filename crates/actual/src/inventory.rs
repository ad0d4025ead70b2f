//! Which budgets an account has, for its operator.
//!
//! # Not here
//! - What the budgets' messages mean: no server knows.

use accounts::{Accounts, Unlocked};
use crdt::Timestamp;
use sync_store::{Vault, Vaults};
use tokio::runtime::Handle;

use crate::record::{Budget, DamagedRecord};
use crate::since;
use crate::trie::{DamagedTrie, Trie};

/// Messages, and bytes of their contents, that are in memory at one time.
const PAGE_COUNT_MAX: usize = 10_000;
const PAGE_BYTES_MAX: usize = 1 << 20;

/// Why it cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum Unlisted {
    /// The accounts refused.
    #[error(transparent)]
    Accounts(#[from] accounts::Error),
    /// A vault refused.
    #[error(transparent)]
    Store(#[from] sync_store::Error),
    /// A budget's record cannot be read.
    #[error(transparent)]
    Record(#[from] DamagedRecord),
    /// A budget's trie cannot be read.
    #[error(transparent)]
    Trie(#[from] DamagedTrie),
}

/// A budget.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its record.
    pub budget: Budget,
    /// Since the last reset.
    pub messages_count: u64,
    /// Of the messages' contents.
    pub messages_bytes: u64,
    /// Whether the trie is that of the messages, by its root; `None` if that was not asked.
    pub is_verified: Option<bool>,
}

/// All budgets of an account in the order in which they were made, deleted ones, too; blocks.
/// Verifying reads all messages.
pub fn list(
    accounts: &Accounts,
    vaults: &Vaults,
    runtime: &Handle,
    unlocked: &Unlocked,
    verify: bool,
) -> Result<Vec<Listed>, Unlisted> {
    let mut budgets = Vec::new();
    for id in accounts.children(unlocked.account)? {
        let vault = vaults.open(&unlocked.child(&id))?;
        budgets.extend(runtime.block_on(look(&vault, verify))?);
    }
    let place = |listed: &Listed| (listed.budget.created_ms, listed.budget.file_id.clone());
    budgets.sort_by_key(place);
    Ok(budgets)
}

/// `None` if its first upload has not come to its end.
async fn look(vault: &Vault, verify: bool) -> Result<Option<Listed>, Unlisted> {
    let recorded = vault.record().await?;
    let Some((budget, trie)) = Budget::decode_record(&recorded.record)? else { return Ok(None) };
    let is_verified = if verify {
        Some(Trie::decode(trie)?.root() == root(vault, recorded.cursor).await?)
    } else {
        None
    };
    let state = vault.state().await?;
    Ok(Some(Listed {
        budget,
        messages_count: state.fingerprint.count,
        messages_bytes: state.bytes,
        is_verified,
    }))
}

/// What a trie's root is that stands for all messages.
async fn root(vault: &Vault, cursor: u64) -> Result<Option<i32>, Unlisted> {
    let (mut trie, mut next) = (Trie::new(), Some(Timestamp::ZERO));
    while let Some(start) = next {
        let page = vault.since(start, cursor, PAGE_COUNT_MAX, PAGE_BYTES_MAX).await?;
        for message in &page {
            trie.insert(message.timestamp);
        }
        next = page.last().and_then(|last| since::following(last.timestamp));
    }
    Ok(trie.root())
}
