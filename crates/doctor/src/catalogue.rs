//! The catalogue of everything that the doctor can find, with one entry per code.
//!
//! # Invariants
//! - The severity of a code is the severity of every finding with this code.
//! - Each code has exactly one entry.

mod connection;
mod content;
pub(crate) mod entry;
mod environment;
pub(crate) mod finding_code;
mod integrity;

use self::connection::CONNECTION;
use self::content::CONTENT;
use self::entry::CatalogueEntry;
use self::environment::ENVIRONMENT;
use self::finding_code::FindingCode;
use self::integrity::INTEGRITY;

/// The catalogue's entries, one for each code, in the order of the codes. The code does not compile
/// if a code has no entry or two.
static CATALOGUE: [CatalogueEntry; FindingCode::ALL.len()] = in_code_order();

const fn in_code_order() -> [CatalogueEntry; FindingCode::ALL.len()] {
    let topics = [ENVIRONMENT, CONNECTION, CONTENT, INTEGRITY];
    let mut entries = [ENVIRONMENT[0]; FindingCode::ALL.len()];
    let mut is_there = [false; FindingCode::ALL.len()];
    let (mut topic, mut index, mut count) = (0, 0, 0);
    while topic < topics.len() {
        while index < topics[topic].len() {
            let entry = topics[topic][index];
            assert!(!is_there[entry.code as usize], "a code has two entries");
            is_there[entry.code as usize] = true;
            entries[entry.code as usize] = entry;
            (index, count) = (index + 1, count + 1);
        }
        (topic, index) = (topic + 1, 0);
    }
    assert!(count == entries.len(), "a code has no entry");
    entries
}

impl FindingCode {
    /// Returns the entry of this code in the catalogue.
    pub fn entry(self) -> &'static CatalogueEntry {
        &CATALOGUE[self as usize]
    }
}

/// Returns every entry, in alphabetical order of the codes.
pub fn catalogue() -> &'static [CatalogueEntry] {
    &CATALOGUE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_entry_and_everything_is_said() {
        for (entry, code) in catalogue().iter().zip(FindingCode::ALL) {
            assert_eq!((entry.code, code.entry().code), (*code, *code));
            assert!(entry.reference.starts_with("https://"), "{}", entry.code);
            let CatalogueEntry { title, why, detection, fix, .. } = entry;
            assert!([why, detection, fix].iter().all(|text| text.ends_with('.')), "{}", entry.code);
            assert!(!title.ends_with('.') && !title.is_empty(), "{}", entry.code);
        }
    }
}
