//! The errors of an export.

use crate::content::DamagedContent;

/// The largest size of an archive's unpacked contents that apps import (version 26.9.0,
/// `@actual-app/core/server/util/zip.ts`).
pub(crate) const ARCHIVE_BYTES_MAX: u64 = 500 << 20;

/// The reason why a budget cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The old server had lost the budget's file before the import.
    #[error("it has no file yet: choose Reset sync in an app that has the budget, to upload it")]
    NoFile,
    /// The budget is encrypted, but no password was given.
    #[error("the apps encrypt it with its own password")]
    Encrypted,
    /// The password is not the one that the apps' key is derived from.
    #[error("wrong budget password")]
    WrongKeyPassword,
    /// The budget is larger than apps can import.
    #[error("unpacked, it exceeds the apps' import limit of {} MiB", ARCHIVE_BYTES_MAX >> 20)]
    TooLarge,
    /// An app with later migrations made changes after the last upload.
    #[error(
        "it has changes to {column}, which is missing from its file, because a newer app made \
         them. Open the budget in that app and choose Reset sync to upload it again"
    )]
    NewerApp {
        /// The missing column, as `table.column`.
        column: String,
    },
    /// The file or a message does not have the form that apps produce.
    #[error("{0}")]
    Damaged(String),
    /// An app uploaded a new file during the export.
    #[error("an app uploaded it during the export: export it again")]
    Changed,
    /// A vault returned an error.
    #[error(transparent)]
    Store(#[from] sync_store::Error),
}

impl ExportError {
    pub(crate) fn damaged(what: &str, why: impl std::fmt::Display) -> Self {
        Self::Damaged(format!("{what}: {why}"))
    }
}

impl From<DamagedContent> for ExportError {
    fn from(damaged: DamagedContent) -> Self {
        Self::Damaged(damaged.to_string())
    }
}
