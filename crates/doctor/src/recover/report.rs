//! Defines the report about the content that was saved from a damaged file, and the known losses.

use std::collections::BTreeSet;

use serde::Serialize;
use utoipa::ToSchema;

/// What was saved of a damaged file. All counts of what is lost are lower bounds: what nothing
/// points to any more is not known.
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
    /// The pages of the damaged file.
    pub pages: RecoveredPages,
    /// How many pages of the schema are lost, each with the definitions on it.
    pub lost_schema_pages_count: u64,
    /// How many definitions of the schema are cut or wrong.
    pub torn_schema_rows_count: u64,
    /// The tables of the new file that the damaged file had, by name.
    pub tables: Vec<RecoveredTable>,
    /// The rows of pages that no table led to; null if there are no such pages.
    pub lost_and_found: Option<LostAndFound>,
    /// What the schema of the damaged file has and the new file has not.
    pub missing: Vec<MissingObject>,
    /// Collations that SQLite does not have: the new file orders by bytes instead, until its own
    /// program runs REINDEX.
    pub collations: Vec<String>,
    /// What the integrity check of SQLite finds in the new file: `ok`, or messages.
    pub integrity: Vec<String>,
    /// How many rows are in all tables of the new file.
    pub saved_rows_count: u64,
    /// Whether nothing is known to be lost.
    pub complete: bool,
    /// Whether SQLite finds nothing wrong with the new file.
    pub sound: bool,
}

/// The pages of a damaged file.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct RecoveredPages {
    /// How many pages the file has; 0 if the header that would say so is lost.
    pub pages_count: u64,
    /// How many pages the header counts that the file does not have.
    pub missing_count: u64,
    /// How many pages cannot be read, because of the disk or the cipher.
    pub unreadable_count: u64,
    /// The numbers of the first hundred pages that cannot be read.
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

/// What was saved of a table.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RecoveredTable {
    /// The name of the table.
    pub name: String,
    /// How many rows are in the new file.
    pub saved_rows_count: u64,
    /// How many rows are lost that an index or the pages of the table count.
    pub lost_rows_count: u64,
    /// How many rows have a value that is cut, empty or wrong.
    pub torn_rows_count: u64,
    /// How many pages of the table are lost, each with all rows on it or below it.
    pub lost_pages_count: u64,
    /// The rows that the new file did not take; null if it took all.
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

/// Rows that a constraint rejected, or that were there already.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RejectedRows {
    /// How many rows there are.
    pub rows_count: u64,
    /// Why the first of them was rejected.
    pub reason: String,
}

/// The table for rows that belong to no table that was found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LostAndFound {
    /// The name of the table in the new file.
    pub table: String,
    /// How many rows it has.
    pub rows_count: u64,
}

/// A table, index, view or trigger that could not be created again.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MissingObject {
    /// What it is: `table`, `index`, `view` or `trigger`.
    pub kind: String,
    /// The name of it.
    pub name: String,
    /// Why it could not be created: mostly an error of SQLite.
    pub reason: String,
    /// The statement that would create it.
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
