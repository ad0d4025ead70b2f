//! Takes over the data of a published server, so that its apps go on with Warren as if nothing had
//! happened: same tokens, same password, same bytes to compare.
//!
//! ```text
//! published (account.sqlite) ─┐
//! password (is it the one?)   ├─► import ─► budget (file, messages, record) ─► vault
//! old_file (SQLite, unchanged)┘
//! ```
//!
//! # Invariants
//! - Nothing in the old server's folders is changed, so it can be started again at any time.
//! - The account gets its login at the very end. Until then it has another one, which no gateway
//!   looks for: an import that broke off has left nothing but what the next one removes.
//! - A trie is taken over as it is if its root is that of the messages, else made from them. Below
//!   the root it may rightly differ from one made anew: a node whose hash has come to be 0 keeps
//!   what it has and not what was pruned before.
//!
//! # Not here
//! - Whether the old server still runs: the caller sees who has [`Published::account_file`] open.

mod budget;
mod error;
mod old_file;
mod password;
mod published;
mod report;

use std::sync::Arc;

use accounts::{Accounts, Login, Password, Token, Unlocked};
use sync_store::{Batch, Client, Vault, Vaults};
use tokio::runtime::Handle;

pub use self::error::Error;
pub use self::published::Published;
use self::report::Progress;
pub use self::report::{ImportedBudget, LeftOut, OtherAccess, OtherFile, Report, Rows};

/// What an account is called, after its later login, while it is being filled.
const UNFINISHED: &str = ".unfinished-import";
/// What the devices that bring their token are called.
const DEVICE_NAME: &str = "Actual, before the import";

/// Where the data goes.
pub struct Destination<'a> {
    /// Of the data directory.
    pub accounts: &'a Accounts,
    /// Of the same.
    pub vaults: &'a Vaults,
    /// The account that will stand for the old server's user; there is none of this login.
    pub login: &'a Login,
    /// Where vaults work.
    pub runtime: &'a Handle,
}

/// Takes everything over; blocks. `password` is the old server's: the caller has had it checked
/// ([`Published::check_password`]). `progress` is told how many messages of how many are stored.
pub fn import(
    published: &Published,
    to: &Destination<'_>,
    password: &Password,
    now_ms: u64,
    mut progress: impl FnMut(u64, u64),
) -> Result<Report, Error> {
    match to.accounts.find(to.login) {
        Err(accounts::Error::NotFound) => {}
        Ok(_) => return Err(accounts::Error::AccountExists.into()),
        Err(error) => return Err(error.into()),
    }
    let unfinished = Login::parse(&format!("{}{UNFINISHED}", to.login))?;
    let is_again = discard(to, &unfinished)?;
    let unlocked = to.accounts.add(&unfinished, password, now_ms)?;
    let filling = Filling { published, to, unlocked: &unlocked, now_ms };
    let filled = filling.run(&mut progress);
    let finished = filled.and_then(|report| {
        to.accounts.rename(&unlocked, to.login)?;
        Ok(Report { is_again, ..report })
    });
    if finished.is_err()
        && let Err(error) = discard(to, &unfinished)
    {
        tracing::warn!(%error, "removing an import that broke off; the next one does it");
    }
    finished
}

/// Removes what an import that broke off has left, the account last. False if there is nothing.
fn discard(to: &Destination<'_>, unfinished: &Login) -> Result<bool, Error> {
    let account = match to.accounts.find(unfinished) {
        Err(accounts::Error::NotFound) => return Ok(false),
        found => found?,
    };
    for vault in to.accounts.children(account.account)? {
        to.runtime.block_on(to.vaults.remove(&vault))?;
    }
    to.runtime.block_on(to.vaults.remove(&account.vault))?;
    to.accounts.remove(unfinished)?;
    Ok(true)
}

/// An account that is being filled.
struct Filling<'a> {
    published: &'a Published,
    to: &'a Destination<'a>,
    unlocked: &'a Unlocked,
    now_ms: u64,
}

impl Filling<'_> {
    fn run(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Report, Error> {
        let published = self.published;
        let mut progress = Progress::new(published.messages_count()?, progress);
        let mut budgets = Vec::new();
        let count = published.files.len() as u64;
        for (file, number) in published.files.iter().zip(1..) {
            let id = self.unlocked.child_named(&file.id);
            self.to.accounts.add_child(self.unlocked.account, &id)?;
            let vault = self.to.vaults.open(&self.unlocked.child(&id))?;
            // The old server lists budgets in the order in which they were made, but not when.
            let created_ms = (self.now_ms + number).saturating_sub(count);
            let taken = budget::take_over(&vault, published, file, created_ms, &mut progress);
            budgets.push(self.to.runtime.block_on(taken)?);
        }
        let vault = self.to.vaults.open(self.unlocked)?;
        let owner = published.owner.encode_record();
        let amend = Arc::new(move |_: &[u8], _: &[_]| Ok(owner.clone()));
        self.to.runtime.block_on(vault.exchange(Batch::default(), amend))?;
        let mut left_out = published.left_out.clone();
        let mut tokens_count = 0;
        for token in &published.tokens {
            match Token::foreign(token) {
                Ok(token) => self.register(&vault, &token)?,
                Err(_) => left_out.tokens_too_short += 1,
            }
            tokens_count += 1;
        }
        tokens_count -= left_out.tokens_too_short;
        Ok(Report { budgets, tokens_count, left_out, is_again: false })
    }

    fn register(&self, vault: &Vault, token: &Token) -> Result<(), Error> {
        let id = self.to.accounts.register_token(self.unlocked, token, None, self.now_ms)?;
        let client = Client {
            id,
            name: DEVICE_NAME.to_owned(),
            node: None,
            cursor: 0,
            unsent: 0,
            seen_ms: self.now_ms,
            created_ms: self.now_ms,
        };
        Ok(self.to.runtime.block_on(vault.add_client(client))?)
    }
}
