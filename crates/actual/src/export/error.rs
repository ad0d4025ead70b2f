//! Why a budget cannot be exported.

use crate::content::DamagedContent;

/// What is in an archive, unpacked: more than this no app imports (version 26.9.0,
/// `@actual-app/core/server/util/zip.ts`).
pub(crate) const ARCHIVE_BYTES_MAX: u64 = 500 << 20;

/// Why a budget cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The file was lost before the import.
    #[error("it has no file yet: choose Reset sync in an app that has the budget, to upload it")]
    NoFile,
    /// No password was given.
    #[error("the apps encrypt it with its own password")]
    Encrypted,
    /// Not the password that the apps' key is made from.
    #[error("wrong budget password")]
    WrongKeyPassword,
    /// More than any app imports.
    #[error("unpacked, it exceeds the apps' import limit of {} MiB", ARCHIVE_BYTES_MAX >> 20)]
    TooLarge,
    /// An app with later migrations made changes after the last upload.
    #[error(
        "it has changes to {column}, which is missing from its file, because a newer app made \
         them. Open the budget in that app and choose Reset sync to upload it again"
    )]
    NewerApp {
        /// Table and column.
        column: String,
    },
    /// The file or a message is not what apps make.
    #[error("{0}")]
    Damaged(String),
    /// An app uploaded the file anew meanwhile.
    #[error("an app uploaded it during the export: export it again")]
    Changed,
    /// A vault refused.
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
