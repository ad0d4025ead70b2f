//! Who may open which vault: accounts, passwords, device tokens, and each vault's key, wrapped.
//!
//! A vault's key is random and is stored only wrapped: once under a key from the account's
//! password, once under each device's token. So the data directory alone opens nothing, another
//! password rewraps one key, and revoking a device deletes one wrap.
//!
//! All calls block; those that take a [`Password`] hash it, which takes [`KdfCost`]'s memory and
//! time. Nothing here slows guesses down: whoever lets strangers try does (`server`).
#![forbid(unsafe_code)]

mod accounts;
mod children;
mod clients;
mod error;
mod forms;
mod id;
mod kdf;
mod limits;
mod login;
mod password;
mod random;
mod revocations;
mod schema;
mod survey;
mod token;
mod wrap;

pub use accounts::{AccountSummary, Accounts, Unlocked};
pub use children::CHILDREN_COUNT_MAX;
pub use clients::{CLIENTS_COUNT_DEFAULT, CLIENTS_COUNT_MAX, ClientRow, Registered, Session};
pub use error::{Error, Result};
pub use forms::MessageSet;
pub use id::{AccountId, ClientId, VaultId};
pub use kdf::KdfCost;
pub use limits::AccountLimits;
pub use login::Login;
pub use password::Password;
pub use revocations::{AppliedRevocations, REVOCATIONS, Revocations};
pub use schema::{RESTORING, check_restored, make_data_directory};
pub use survey::{Count, Order, Selection};
pub use token::Token;
