//! Everything that the doctor can find: one row per code.
//!
//! # Invariants
//! - A code, once given out, keeps its meaning; no two are the same (asserted by a test).
//! - The severity of a code is the severity of every finding of it.

mod connection;
mod content;
pub(crate) mod entry;
mod environment;
mod integrity;

use self::connection::CONNECTION;
use self::content::CONTENT;
use self::entry::CatalogueEntry;
use self::environment::ENVIRONMENT;
use self::integrity::INTEGRITY;

/// The entry of a code.
pub fn entry(code: &str) -> Option<&'static CatalogueEntry> {
    all().find(|entry| entry.code == code)
}

fn all() -> impl Iterator<Item = &'static CatalogueEntry> {
    ENVIRONMENT.iter().chain(CONNECTION).chain(CONTENT).chain(INTEGRITY)
}

/// Every code, in alphabetical order.
pub fn catalogue() -> Vec<&'static CatalogueEntry> {
    let mut entries: Vec<&CatalogueEntry> = all().collect();
    entries.sort_by_key(|entry| entry.code);
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_everything_is_said() {
        let entries = catalogue();
        assert!(entries.is_sorted_by(|a, b| a.code < b.code));
        for entry in entries {
            let is_snake = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(entry.code.chars().all(is_snake), "{}", entry.code);
            assert!(entry.reference.starts_with("https://"), "{}", entry.code);
            let CatalogueEntry { title, why, detection, fix, .. } = entry;
            assert!([why, detection, fix].iter().all(|text| text.ends_with('.')), "{}", entry.code);
            assert!(!title.ends_with('.') && !title.is_empty(), "{}", entry.code);
        }
    }
}
