//! Defines the closed list of codes for everything that the doctor can find.
//!
//! # Not here
//! - The meaning of each code → `catalogue.rs`.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use utoipa::ToSchema;

macro_rules! finding_codes {
    ($($variant:ident: $text:literal,)*) => {
        /// The code of a problem that the doctor can find. The text and the meaning of a code never
        /// change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum FindingCode {
            $(#[doc = concat!("`", $text, "`, which [`Self::entry`] explains.")] $variant,)*
        }

        impl FindingCode {
            /// Every code, in alphabetical order.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the code as programs and people write it, in `snake_case`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
        }
    };
}

finding_codes! {
    AutoVacuumOff: "auto_vacuum_off",
    BlobBeforeColumns: "blob_before_columns",
    BusyTimeoutAbsent: "busy_timeout_absent",
    CacheLarge: "cache_large",
    CacheSmall: "cache_small",
    CheckpointsOff: "checkpoints_off",
    CipherUnauthenticated: "cipher_unauthenticated",
    CompanionForeign: "companion_foreign",
    CompanionIrregular: "companion_irregular",
    ConstraintViolated: "constraint_violated",
    DatabaseLocked: "database_locked",
    DescendingIgnored: "descending_ignored",
    DiskTooSmall: "disk_too_small",
    DoubleQuotedStrings: "double_quoted_strings",
    EncodingWide: "encoding_wide",
    EncryptionIneffective: "encryption_ineffective",
    ExclusiveMode: "exclusive_mode",
    FileEmpty: "file_empty",
    FileTruncated: "file_truncated",
    ForeignKeyMismatch: "foreign_key_mismatch",
    ForeignKeyParentAbsent: "foreign_key_parent_absent",
    ForeignKeyUnindexed: "foreign_key_unindexed",
    ForeignKeyViolated: "foreign_key_violated",
    ForeignKeysOff: "foreign_keys_off",
    Fragmented: "fragmented",
    HardLinked: "hard_linked",
    HotJournal: "hot_journal",
    IdentityUnset: "identity_unset",
    IndexBroken: "index_broken",
    IndexCollation: "index_collation",
    IndexDuplicate: "index_duplicate",
    IndexPrefix: "index_prefix",
    IndexSingleValue: "index_single_value",
    JournalModeUnsafe: "journal_mode_unsafe",
    NetworkFileSystem: "network_file_system",
    NotWal: "not_wal",
    PageBroken: "page_broken",
    PageSizeSmall: "page_size_small",
    PagesHalfEmpty: "pages_half_empty",
    QueryIndexMissing: "query_index_missing",
    QueryScans: "query_scans",
    RollbackJournalShared: "rollback_journal_shared",
    SecureDeleteOff: "secure_delete_off",
    SequenceExhausted: "sequence_exhausted",
    SettingIneffective: "setting_ineffective",
    SettingsMismatch: "settings_mismatch",
    SqliteFaulty: "sqlite_faulty",
    StatisticsAbsent: "statistics_absent",
    StatisticsStale: "statistics_stale",
    SynchronousLow: "synchronous_low",
    SynchronousOff: "synchronous_off",
    TempInMemory: "temp_in_memory",
    TempTooSmall: "temp_too_small",
    TempUnencrypted: "temp_unencrypted",
    ThreadsUnsafe: "threads_unsafe",
    TriggerBroken: "trigger_broken",
    UniqueViolated: "unique_violated",
    ViewBroken: "view_broken",
    VirtualTableBroken: "virtual_table_broken",
    WalDeleted: "wal_deleted",
    WalLarge: "wal_large",
    WalLeftBehind: "wal_left_behind",
    WalPinned: "wal_pinned",
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for FindingCode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_alphabetical_and_read_back() {
        assert!(FindingCode::ALL.is_sorted_by_key(|code| code.as_str()));
        for code in FindingCode::ALL {
            assert_eq!(code.as_str().parse(), Ok(*code));
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
        assert_eq!("page".parse::<FindingCode>(), Err(()));
    }
}
