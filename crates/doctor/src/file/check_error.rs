//! Why a check ended early: a fault of the file, or nothing that says anything about it.
//!
//! # Invariants
//! - Time, locks of others and memory are never faults: this is the one place that tells them apart.

use rusqlite::ErrorCode;

use super::btree_page::MalformedPage;

/// Why a check ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error(transparent)]
    Malformed(#[from] MalformedPage),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

impl CheckError {
    /// The time was over.
    pub(crate) fn is_time(&self) -> bool {
        self.code() == Some(ErrorCode::OperationInterrupted)
    }

    /// Somebody else's lock.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }

    /// What is written would not fit into memory.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::DiskFull | ErrorCode::OutOfMemory))
    }

    /// The file is broken, or a page of it does not decrypt.
    pub(crate) fn is_fault(&self) -> bool {
        let faults =
            [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase, ErrorCode::SystemIoFailure];
        match self {
            Self::Malformed(_) => true,
            Self::Sqlite(_) => self.code().is_some_and(|code| faults.contains(&code)),
        }
    }

    /// What is wrong, without the statement that it was found with.
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
