//! Defines the report about the content that was saved from a damaged file, and the known losses.

use std::collections::BTreeSet;

use serde::Serialize;
use utoipa::ToSchema;

/// The content that was saved from a damaged file, and the known losses. All counts of losses are
/// lower bounds, because content that nothing refers to any more cannot be counted.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct RecoverReport {
    /// The path of the damaged file.
    pub path: String,
    /// The path of the new file.
    pub target_path: String,
    /// The cipher of the damaged file; `none` if it is not encrypted.
    pub cipher: &'static str,
    /// The cipher of the new file; `none` if it is not encrypted.
    pub target_cipher: &'static str,
    /// The state of the damaged file's pages.
    pub pages: RecoveredPages,
    /// The number of lost pages of the schema, each with all definitions on it.
    pub lost_schema_pages_count: u64,
    /// The number of definitions in the schema that are truncated or invalid.
    pub torn_schema_rows_count: u64,
    /// The tables of the damaged file that the new file has, by name.
    pub tables: Vec<RecoveredTable>,
    /// The table with rows from pages that no table refers to; null if there are no such rows.
    pub lost_and_found: Option<LostAndFound>,
    /// The objects in the schema of the damaged file that the new file lacks.
    pub missing: Vec<MissingObject>,
    /// The collations that SQLite does not have. The new file orders by bytes instead, until the
    /// program that defines them runs REINDEX.
    pub collations: Vec<String>,
    /// The result of SQLite's integrity check of the new file: `ok`, or messages.
    pub integrity: Vec<String>,
    /// The number of rows in all tables of the new file.
    pub saved_rows_count: u64,
    /// Whether no loss is known.
    pub complete: bool,
    /// Whether SQLite's integrity check finds no problem in the new file.
    pub sound: bool,
}

/// The state of a damaged file's pages.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct RecoveredPages {
    /// The number of pages of the file; 0 if it is unknown, because the header is lost.
    pub pages_count: u64,
    /// The number of pages that the header counts and the file lacks.
    pub missing_count: u64,
    /// The number of pages that cannot be read, because of the disk or the cipher.
    pub unreadable_count: u64,
    /// The numbers of the unreadable pages, at most the first hundred.
    pub first_unreadable: Vec<u32>,
    /// Whether page 1 can be read; if not, the settings and the root of the schema are lost.
    pub page_1_readable: bool,
}

/// The maximum number of page numbers that are listed.
const LISTED_MAX: usize = 100;

impl RecoveredPages {
    pub(super) fn new(
        pages_count: u64,
        missing_count: u64,
        unreadable: BTreeSet<u32>,
        page_1_readable: bool,
    ) -> Self {
        Self {
            pages_count,
            missing_count,
            unreadable_count: u64::try_from(unreadable.len()).unwrap_or(u64::MAX),
            first_unreadable: unreadable.into_iter().take(LISTED_MAX).collect(),
            page_1_readable,
        }
    }
}

/// The rows that were saved from a table, and its known losses.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RecoveredTable {
    /// The name of the table.
    pub name: String,
    /// The number of rows of the table in the new file.
    pub saved_rows_count: u64,
    /// The number of lost rows, according to the indexes or the pages of the table.
    pub lost_rows_count: u64,
    /// The number of rows with a truncated, empty or invalid value.
    pub torn_rows_count: u64,
    /// The number of lost pages of the table, each with all rows on it or below it.
    pub lost_pages_count: u64,
    /// The rows that the new file rejected; null if there are none.
    pub rejected: Option<RejectedRows>,
}

impl RecoveredTable {
    /// Checks whether no loss of the table is known.
    pub const fn is_whole(&self) -> bool {
        self.lost_rows_count == 0
            && self.torn_rows_count == 0
            && self.lost_pages_count == 0
            && self.rejected.is_none()
    }
}

/// The rows that were not saved, because a constraint rejected them or they already existed.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RejectedRows {
    /// The number of rejected rows.
    pub rows_count: u64,
    /// The reason why the first of these rows was rejected.
    pub reason: String,
}

/// The table for rows that belong to none of the tables that were found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LostAndFound {
    /// The name of the table in the new file.
    pub table: String,
    /// The number of rows in the table.
    pub rows_count: u64,
}

/// A table, index, view or trigger that could not be created in the new file.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MissingObject {
    /// The kind of object: `table`, `index`, `view` or `trigger`.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The reason why the object could not be created, usually an error from SQLite.
    pub reason: String,
    /// The SQL statement that would create the object.
    pub sql: String,
}

impl RecoverReport {
    /// Fills in the totals of the report.
    pub(super) fn with_totals(mut self) -> Self {
        let lost = self.lost_and_found.as_ref().map_or(0, |lost| lost.rows_count);
        self.saved_rows_count =
            self.tables.iter().map(|table| table.saved_rows_count).sum::<u64>() + lost;
        self.complete = self.pages.page_1_readable
            && self.pages.missing_count == 0
            && self.lost_schema_pages_count == 0
            && self.torn_schema_rows_count == 0
            && self.missing.is_empty()
            && self.lost_and_found.is_none()
            && self.tables.iter().all(RecoveredTable::is_whole);
        self.sound = self.integrity == ["ok"];
        self
    }
}
