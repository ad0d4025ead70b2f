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
    #[error("it has no file yet: an app that has the budget uploads it, by Reset sync")]
    NoFile,
    /// No password was given.
    #[error("the apps encrypt it, with a password of its own")]
    Encrypted,
    /// Not the password that the apps' key is made from.
    #[error("this is not the password that the apps encrypt it with")]
    WrongKeyPassword,
    /// More than any app imports.
    #[error("unpacked it is larger than {} MiB, and no app imports that", ARCHIVE_BYTES_MAX >> 20)]
    TooLarge,
    /// An app with later migrations made changes after the last upload.
    #[error(
        "there are changes of {column}, which its file does not have: they were made by a newer \
         app. Open the budget in that app, and choose Reset sync, which uploads it anew"
    )]
    NewerApp {
        /// Table and column.
        column: String,
    },
    /// The file or a message is not what apps make.
    #[error("{0}")]
    Damaged(String),
    /// An app uploaded the file anew meanwhile.
    #[error("an app uploaded it while it was read: export it again")]
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
