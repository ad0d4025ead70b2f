//! Imports the data of a published server, so that its apps continue with Warren unchanged: with
//! the same tokens, the same password and the same bytes to compare.
//!
//! ```text
//! source_server (account.sqlite) ─┐
//! password (check)                ├─► import ─► budget (file, messages, state) ─► vault
//! old_file (SQLite, unchanged)   ─┘
//! ```
//!
//! # Invariants
//! - Nothing in the old server's directories changes, so it can be started again at any time.
//! - The account gets its login at the very end. Until then it has another one, which no gateway
//!   uses: an interrupted import leaves only data that the next one removes.
//! - The old server's trie is imported unchanged if its root is that of the messages; otherwise the
//!   trie is rebuilt from them. Below the root it may correctly differ from a rebuilt one: a node
//!   whose hash has become 0 keeps its children, but not those that were pruned before.
//!
//! # Not here
//! - Checking whether the old server still runs: the caller checks which process has
//!   [`SourceServer::account_file`] open.

mod budget;
mod error;
mod old_file;
mod password;
mod report;
mod source_server;

use std::sync::Arc;

use accounts::{Accounts, DeviceToken, Login, Password, UnlockedAccount};
use sync_store::{MessageBatch, Vault, VaultDevice, Vaults};
use tokio::runtime::Handle;

pub use self::error::ImportError;
use self::report::ImportProgress;
pub use self::report::{
    ImportReport, ImportedBudget, OtherUsersAccess, OtherUsersBudget, RowExamples, SkippedData,
};
pub use self::source_server::SourceServer;

/// The suffix of an account's login during the import.
const UNFINISHED: &str = ".unfinished-import";
/// The name of devices whose tokens are imported.
const DEVICE_NAME: &str = "Actual, before the import";

/// The destination of an import.
pub struct ImportDestination<'a> {
    /// The accounts of the data directory.
    pub accounts: &'a Accounts,
    /// The vaults of the same data directory.
    pub vaults: &'a Vaults,
    /// The login of the account that will represent the old server's user; it must not exist yet.
    pub login: &'a Login,
    /// The runtime on which vaults work.
    pub runtime: &'a Handle,
}

/// Imports everything; blocks. `password` is the old server's, which the caller has checked
/// ([`SourceServer::check_password`]). `progress` receives the number of messages that are stored
/// and their total.
pub fn import(
    published: &SourceServer,
    to: &ImportDestination<'_>,
    password: &Password,
    now_ms: u64,
    mut progress: impl FnMut(u64, u64),
) -> Result<ImportReport, ImportError> {
    match to.accounts.find(to.login) {
        Err(accounts::Error::NotFound) => {}
        Ok(_) => return Err(accounts::Error::AccountExists.into()),
        Err(error) => return Err(error.into()),
    }
    let unfinished = Login::parse(&format!("{}{UNFINISHED}", to.login))?;
    let resumed = discard(to, &unfinished)?;
    let unlocked = to.accounts.add(&unfinished, password, now_ms)?;
    let filling = AccountImport { published, to, unlocked: &unlocked, now_ms };
    let filled = filling.run(&mut progress);
    let finished = filled.and_then(|report| {
        to.accounts.rename(&unlocked, to.login)?;
        Ok(ImportReport { resumed, ..report })
    });
    if finished.is_err()
        && let Err(error) = discard(to, &unfinished)
    {
        tracing::warn!(%error, "cannot remove an interrupted import; the next import removes it");
    }
    finished
}

/// Removes the remains of an interrupted import, the account last; false if there are none.
fn discard(to: &ImportDestination<'_>, unfinished: &Login) -> Result<bool, ImportError> {
    let account = match to.accounts.find(unfinished) {
        Err(accounts::Error::NotFound) => return Ok(false),
        found => found?,
    };
    for vault in to.accounts.sub_vaults(account.account)? {
        to.runtime.block_on(to.vaults.remove(&vault))?;
    }
    to.runtime.block_on(to.vaults.remove(&account.vault))?;
    to.accounts.remove(unfinished)?;
    Ok(true)
}

/// An account that is being filled.
struct AccountImport<'a> {
    published: &'a SourceServer,
    to: &'a ImportDestination<'a>,
    unlocked: &'a UnlockedAccount,
    now_ms: u64,
}

impl AccountImport<'_> {
    fn run(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<ImportReport, ImportError> {
        let published = self.published;
        let mut progress = ImportProgress::new(published.messages_count()?, progress);
        let mut budgets = Vec::new();
        let count = published.files.len() as u64;
        for (file, number) in published.files.iter().zip(1..) {
            let id = self.unlocked.sub_vault_id(&file.id);
            self.to.accounts.add_sub_vault(self.unlocked.account, &id)?;
            let vault = self.to.vaults.open(&self.unlocked.sub_vault(&id))?;
            // The old server lists budgets in order of creation, but without the time.
            let created_ms = (self.now_ms + number).saturating_sub(count);
            let taken = budget::import_budget(&vault, published, file, created_ms, &mut progress);
            budgets.push(self.to.runtime.block_on(taken)?);
        }
        let vault = self.to.vaults.open(self.unlocked)?;
        let owner = published.owner.encode_record();
        let update = Arc::new(move |_: &[u8], _: &[_]| Ok(owner.clone()));
        self.to.runtime.block_on(vault.exchange(MessageBatch::default(), update))?;
        let mut skipped = published.skipped.clone();
        let mut tokens_count = 0;
        for token in &published.tokens {
            match DeviceToken::from_foreign_text(token) {
                Ok(token) => self.register(&vault, &token)?,
                Err(_) => skipped.invalid_tokens_count += 1,
            }
            tokens_count += 1;
        }
        tokens_count -= skipped.invalid_tokens_count;
        Ok(ImportReport { budgets, tokens_count, skipped, resumed: false })
    }

    fn register(&self, vault: &Vault, token: &DeviceToken) -> Result<(), ImportError> {
        let id = self.to.accounts.register_token(self.unlocked, token, None, self.now_ms)?;
        let client = VaultDevice {
            id,
            name: DEVICE_NAME.to_owned(),
            node_id: None,
            cursor: 0,
            unsent_count: 0,
            last_seen_ms: self.now_ms,
            created_ms: self.now_ms,
        };
        Ok(self.to.runtime.block_on(vault.add_device(client))?)
    }
}
