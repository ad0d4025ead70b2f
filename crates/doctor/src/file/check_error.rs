//! Classifies why a check ended early: damage of the file, or a reason that says nothing about it.
//!
//! # Invariants
//! - Time, locks of others and memory are never damage: only this file distinguishes them.

use rusqlite::ErrorCode;

use super::btree_page::MalformedPage;

/// The reason why a check ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error(transparent)]
    Malformed(#[from] MalformedPage),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

impl CheckError {
    /// Checks whether the time limit was reached.
    pub(crate) fn is_time(&self) -> bool {
        self.code() == Some(ErrorCode::OperationInterrupted)
    }

    /// Checks whether another process kept the file locked.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }

    /// Checks whether the written data did not fit into memory.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::DiskFull | ErrorCode::OutOfMemory))
    }

    /// Checks whether the file is damaged, or a page of it cannot be decrypted.
    pub(crate) fn is_fault(&self) -> bool {
        let faults =
            [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase, ErrorCode::SystemIoFailure];
        match self {
            Self::Malformed(_) => true,
            Self::Sqlite(_) => self.code().is_some_and(|code| faults.contains(&code)),
        }
    }

    /// Returns the error message without the statement that caused it.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Sqlite(rusqlite::Error::SqlInputError { msg, .. }) => msg.clone(),
            error => error.to_string(),
        }
    }

    fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Malformed(_) => None,
            Self::Sqlite(error) => error.sqlite_error_code(),
        }
    }
}
