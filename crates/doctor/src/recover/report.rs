//! What was saved of a damaged file, and what is known to be lost.

use std::collections::BTreeSet;

use serde::Serialize;

/// The outcome. All counts of what is lost are lower bounds: what nothing points to any more is not
/// known.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RecoverReport {
    /// The damaged file.
    pub file: String,
    /// The new one.
    pub target: String,
    /// The damaged file's; `none`, if it is not encrypted.
    pub cipher: &'static str,
    /// The new one's.
    pub target_cipher: &'static str,
    /// Of the damaged file.
    pub pages: RecoveredPages,
    /// Pages of the schema's own tree that are lost, each with the definitions on it.
    pub schema_pages_lost: u64,
    /// Definitions of which a part is out of reach.
    pub schema_rows_torn: u64,
    /// Tables of the new file that the damaged one had, by name.
    pub tables: Vec<RecoveredTable>,
    /// Rows on pages that no table led to; `None`, if there are no such pages.
    pub lost_and_found: Option<LostAndFound>,
    /// What the damaged file's schema has and the new file has not.
    pub missing: Vec<MissingObject>,
    /// Collations that SQLite has not: what is ordered by them is ordered by bytes in the new file,
    /// until its own program runs REINDEX.
    pub collations: Vec<String>,
    /// What SQLite's integrity check says of the new file: `ok`, or what it found.
    pub integrity: Vec<String>,
}

/// Pages of a damaged file.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RecoveredPages {
    /// All that there are; 0 if the header that would say so is lost.
    pub count: u64,
    /// Those that the file's header tells of, and the file has not.
    pub missing: u64,
    /// Those that the disk or the cipher refuses.
    pub unreadable: u64,
    /// The first of these, by number.
    pub unreadable_first: Vec<u32>,
    /// `false`: page 1 is one of them, and so the settings and the schema's root are lost.
    pub has_page_1: bool,
}

/// Page numbers that are listed.
const LISTED_MAX: usize = 100;

impl RecoveredPages {
    pub(super) fn new(
        count: u64,
        missing: u64,
        unreadable: BTreeSet<u32>,
        has_page_1: bool,
    ) -> Self {
        Self {
            count,
            missing,
            unreadable: u64::try_from(unreadable.len()).unwrap_or(u64::MAX),
            unreadable_first: unreadable.into_iter().take(LISTED_MAX).collect(),
            has_page_1,
        }
    }
}

/// What became of a table.
#[derive(Clone, Debug, Serialize)]
pub struct RecoveredTable {
    /// Its name.
    pub name: String,
    /// Rows that are in the new file.
    pub rows_saved: u64,
    /// Rows that an index or the table's own pages tell of, and that were not saved.
    pub rows_lost: u64,
    /// Rows of which a part is out of reach: a value may be empty or wrong.
    pub rows_torn: u64,
    /// Pages of its tree that are lost, each with all rows on it or below it.
    pub pages_lost: u64,
    /// Rows that the new file did not take.
    pub refused: Option<RefusedRows>,
}

impl RecoveredTable {
    /// Is nothing of it known to be lost?
    pub const fn is_whole(&self) -> bool {
        self.rows_lost == 0 && self.rows_torn == 0 && self.pages_lost == 0 && self.refused.is_none()
    }
}

/// Rows that a constraint refused, or that were there already.
#[derive(Clone, Debug, Serialize)]
pub struct RefusedRows {
    /// How many.
    pub rows: u64,
    /// Of the first.
    pub reason: String,
}

/// The table for rows that belong to no table that was found.
#[derive(Clone, Debug, Serialize)]
pub struct LostAndFound {
    /// Its name in the new file.
    pub table: String,
    /// Its rows.
    pub rows: u64,
}

/// A table, index, view or trigger that could not be made.
#[derive(Clone, Debug, Serialize)]
pub struct MissingObject {
    /// Which of these it is.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What SQLite said.
    pub reason: String,
    /// The statement that would make it.
    pub sql: String,
}

impl RecoverReport {
    /// Is nothing known to be lost?
    pub fn is_complete(&self) -> bool {
        self.pages.has_page_1
            && self.pages.missing == 0
            && self.schema_pages_lost == 0
            && self.schema_rows_torn == 0
            && self.missing.is_empty()
            && self.lost_and_found.is_none()
            && self.tables.iter().all(RecoveredTable::is_whole)
    }

    /// Does SQLite find nothing wrong with the new file?
    pub fn is_sound(&self) -> bool {
        self.integrity == ["ok"]
    }

    /// Rows in all tables of the new file.
    pub fn rows_saved(&self) -> u64 {
        let lost = self.lost_and_found.as_ref().map_or(0, |lost| lost.rows);
        self.tables.iter().map(|table| table.rows_saved).sum::<u64>() + lost
    }
}
