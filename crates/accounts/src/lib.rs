//! Access to vaults: accounts, passwords, device tokens, and each vault's key, wrapped.
//!
//! A vault's key is random and is stored only wrapped: once under a key from the account's
//! password, and once under each device's token. So the data directory alone opens no vault,
//! changing the password rewraps one key, and revoking a device deletes one wrap.
//!
//! All calls block; those that take a [`Password`] hash it, which needs the memory and time of
//! [`KdfCost`]. This crate does not slow guesses down: that is up to a caller that accepts attempts
//! of strangers (`server`).
#![forbid(unsafe_code)]

mod account_recovery;
mod accounts;
mod admin_queries;
mod credentials;
mod devices;
mod encryption_mode;
mod error;
mod id;
mod limits;
mod mail_addresses;
mod mail_passwords;
mod mail_vaults;
mod revocations;
mod schema;
mod sub_vaults;

pub use accounts::{AccountSummary, Accounts, UnlockedAccount};
pub use admin_queries::{AccountPageQuery, AccountSortBy, AccountTotals};
pub use credentials::kdf::KdfCost;
pub use credentials::login::Login;
pub use credentials::mail_password::MailPassword;
pub use credentials::password::Password;
pub use credentials::recovery_secret::AccountRecoverySecret;
pub use credentials::token::DeviceToken;
pub use devices::{DeviceCredentials, DeviceRow, DeviceSession};
pub use encryption_mode::MessageSet;
pub use error::{Error, Result};
pub use id::{AccountId, DeviceId, MailPasswordId, VAULTS_DIRECTORY, VaultId};
pub use limits::{
    AccountLimits, DEVICES_COUNT_DEFAULT, DEVICES_COUNT_MAX, MAIL_ADDRESSES_COUNT_MAX,
    MAIL_PASSWORD_NAME_BYTES_MAX, MAIL_PASSWORDS_COUNT_MAX, SUB_VAULTS_COUNT_MAX,
};
pub use mail_addresses::{MailAddress, MailRecipient};
pub use mail_passwords::{MailPasswordRow, NewMailPassword};
pub use mail_vaults::MailVaultRow;
pub use revocations::{AppliedRevocations, ParsedRevocations, REVOCATIONS_FILE};
pub use schema::{ACCOUNTS_FILE, RESTORING, check_restored, make_data_directory};
