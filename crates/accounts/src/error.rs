//! The errors of this crate that callers may have to handle.

use std::path::PathBuf;

use crate::limits::{
    MAIL_ADDRESSES_COUNT_MAX, MAIL_PASSWORD_NAME_BYTES_MAX, MAIL_PASSWORDS_COUNT_MAX,
    PASSWORD_BYTES_MAX, PASSWORD_BYTES_MIN, SUB_VAULTS_COUNT_MAX,
};

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reasons why a call was refused. Messages contain no secrets and do not reveal whether an
/// account exists.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("an account with this login already exists")]
    AccountExists,
    #[error("a login has 1 to 64 letters, digits and . _ @ + -, and starts with a letter or digit")]
    InvalidLogin,
    #[error("a password must have {PASSWORD_BYTES_MIN} to {PASSWORD_BYTES_MAX} bytes")]
    InvalidPassword,
    /// The token is malformed, unknown, revoked or of a deleted account; its holder sees no
    /// difference.
    #[error("the token is unknown or revoked")]
    InvalidToken,
    /// The account, or this device of the account, does not exist.
    #[error("not found")]
    NotFound,
    #[error("no account has this login and this password")]
    WrongPassword,
    #[error("no account has this login and this account recovery phrase")]
    WrongRecoverySecret,
    #[error("the account has reached its device limit ({devices_max}); revoke a device first")]
    TooManyDevices { devices_max: u32 },
    #[error("the account has reached its sub-vault limit ({SUB_VAULTS_COUNT_MAX})")]
    TooManySubVaults,
    #[error("the mail address is not valid: {reason}")]
    InvalidMailAddress { reason: &'static str },
    #[error("no account has this mail address")]
    MailAddressNotFound,
    #[error("another account has this mail address")]
    MailAddressTaken,
    /// The account has no mail vault.
    #[error("mail is not set up for the account")]
    MailNotSetUp,
    #[error("the account has reached its limit of mail addresses ({MAIL_ADDRESSES_COUNT_MAX})")]
    TooManyMailAddresses,
    #[error("the account has reached its limit of mail passwords ({MAIL_PASSWORDS_COUNT_MAX})")]
    TooManyMailPasswords,
    #[error("the name of a mail password has at most {MAIL_PASSWORD_NAME_BYTES_MAX} bytes")]
    MailPasswordNameTooLong,
    #[error("the account's messages are encrypted with another key")]
    KeyMismatch,
    /// A row of the accounts file contains a value that this program never writes.
    #[error("the accounts file is damaged: {what}")]
    Damaged { what: &'static str },
    #[error("the restore into {} is incomplete", path.display())]
    UnfinishedRestore { path: PathBuf },
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

impl From<rusqlite::Error> for Error {
    fn from(source: rusqlite::Error) -> Self {
        Self::Engine(source.into())
    }
}
