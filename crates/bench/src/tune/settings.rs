//! Defines a set of PRAGMAs to try, and the effect of a power loss on it.
//!
//! # Invariants
//! - The PRAGMAs are set in a fixed order: first those that only an empty file accepts, then the
//!   journal mode, on which the default of `synchronous` depends in some builds.
//!
//! # Not here
//! - The values that are tried → `candidate.rs`.

use anyhow::{Context, ensure};
use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use crate::sqlite_bench::SampleValue;
use crate::sqlite_bench::read_setting;

/// All PRAGMAs that tune supports, in the order in which they are set.
const ORDER: [&str; 10] = [
    "page_size",
    "auto_vacuum",
    "busy_timeout",
    "journal_mode",
    "synchronous",
    "wal_autocheckpoint",
    "journal_size_limit",
    "temp_store",
    "cache_size",
    "mmap_size",
];
/// The PRAGMAs that belong to the file, from its first page on.
const OF_FILE: [&str; 2] = ["page_size", "auto_vacuum"];

const SYNCHRONOUS: [&str; 4] = ["OFF", "NORMAL", "FULL", "EXTRA"];
const TEMP_STORE: [&str; 3] = ["DEFAULT", "FILE", "MEMORY"];
const AUTO_VACUUM: [&str; 3] = ["NONE", "FULL", "INCREMENTAL"];

/// PRAGMAs with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PragmaSettings(Vec<(String, String)>);

/// A PRAGMA and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PragmaValue {
    /// The name of the PRAGMA.
    pub pragma: String,
    /// The value of the PRAGMA, as people write it.
    pub value: String,
}

impl PragmaValue {
    /// Returns a value for each pair of name and value.
    pub(crate) fn list(pairs: &[(String, String)]) -> Vec<Self> {
        let all = pairs.iter().cloned();
        all.map(|(pragma, value)| Self { pragma, value }).collect()
    }
}

/// The worst effect of a power loss. A worse effect orders before a better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PowerLossSafety {
    /// A power loss may corrupt the file.
    MayCorrupt,
    /// A power loss may undo the last commits; the file stays intact.
    LosesLastCommits,
    /// A power loss has only the effects that SQLite's default settings allow.
    Safe,
}

impl PragmaSettings {
    /// Reads the current settings of a connection.
    pub(crate) fn read(db: &Connection) -> anyhow::Result<Self> {
        let mut settings = Self::default();
        for name in ORDER {
            settings.set(name, &named(name, &read_setting(db, name)?));
        }
        Ok(settings)
    }

    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(of, _)| of == name);
        found.map_or("", |(_, value)| value)
    }

    /// Replaces the value, or inserts it at its place in the order.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        let place = |name: &str| ORDER.iter().position(|of| *of == name);
        if let Some((_, old)) = self.0.iter_mut().find(|(of, _)| of == name) {
            value.clone_into(old);
        } else {
            let at = self.0.partition_point(|(of, _)| place(of) < place(name));
            self.0.insert(at, (name.to_owned(), value.to_owned()));
        }
    }

    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut settings = self.clone();
        settings.set(name, value);
        settings
    }

    pub(crate) fn is_wal(&self) -> bool {
        self.get("journal_mode") == "WAL"
    }

    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// Returns the settings that a connection sets.
    pub(crate) fn for_connection(&self) -> Vec<(String, String)> {
        let all = self.0.iter().filter(|(name, _)| !is_of_file(name));
        all.cloned().collect()
    }

    /// Returns the settings that differ from `other`.
    pub(crate) fn beyond(&self, other: &Self) -> Vec<(String, String)> {
        let all = self.0.iter().filter(|(name, value)| other.get(name) != value);
        all.cloned().collect()
    }

    /// Returns the effect of a power loss. NORMAL is consistent in WAL mode; with a rollback
    /// journal there is a very small chance that it is not
    /// (<https://sqlite.org/pragma.html#pragma_synchronous>).
    pub(crate) fn safety(&self) -> PowerLossSafety {
        let journal = self.get("journal_mode");
        match self.get("synchronous") {
            _ if journal == "MEMORY" || journal == "OFF" => PowerLossSafety::MayCorrupt,
            "OFF" => PowerLossSafety::MayCorrupt,
            "NORMAL" if journal == "WAL" => PowerLossSafety::LosesLastCommits,
            "NORMAL" => PowerLossSafety::MayCorrupt,
            _ => PowerLossSafety::Safe,
        }
    }

    /// Returns whether a power loss does no more damage with these settings than with `today`.
    pub(crate) fn keeps_durability_of(&self, today: &Self) -> bool {
        let decides = |settings: &Self| {
            let value = |name: &str| settings.get(name).to_owned();
            [value("journal_mode"), value("synchronous")]
        };
        match self.safety() {
            PowerLossSafety::MayCorrupt => decides(self) == decides(today),
            safety => safety >= today.safety(),
        }
    }
}

/// Returns whether a PRAGMA belongs to the file, not to a connection.
pub(crate) fn is_of_file(name: &str) -> bool {
    OF_FILE.contains(&name)
}

/// Parses `NAME=VALUE`, a PRAGMA that a program sets today.
pub fn parse_current_pragma(text: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = text.split_once('=').context("write a PRAGMA as NAME=VALUE")?;
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
    let known = ORDER.iter().any(|known| *known == name) && !is_of_file(&name);
    ensure!(known, "unsupported PRAGMA {name}; supported: {}", ORDER[2..].join(", "));
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    ensure!(!value.is_empty() && value.chars().all(is_word), "invalid PRAGMA value: {value}");
    Ok((name, value.to_owned()))
}

/// Returns a value as people write it.
pub(crate) fn named(pragma: &str, value: &SampleValue) -> String {
    let names: &[&str] = match pragma {
        "synchronous" => &SYNCHRONOUS,
        "temp_store" => &TEMP_STORE,
        "auto_vacuum" => &AUTO_VACUUM,
        _ => &[],
    };
    match value {
        SampleValue::Integer(number) => {
            let name = usize::try_from(*number).ok().and_then(|index| names.get(index));
            name.map_or_else(|| number.to_string(), |name| (*name).to_owned())
        }
        SampleValue::Text(text) => text.to_uppercase(),
        SampleValue::Real(number) => number.to_string(),
        SampleValue::Null => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(journal: &str, synchronous: &str) -> PragmaSettings {
        PragmaSettings::default().with("synchronous", synchronous).with("journal_mode", journal)
    }

    #[test]
    fn they_are_set_in_one_order() {
        let settings = of("WAL", "FULL").with("mmap_size", "1").with("page_size", "4096");
        let names: Vec<&str> = settings.pairs().iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["page_size", "journal_mode", "synchronous", "mmap_size"]);
        assert_eq!(settings.for_connection().len(), 3);
    }

    #[test]
    fn durability_is_never_less_than_today() {
        let check = |today: PragmaSettings, then: PragmaSettings, expected: bool| {
            assert_eq!(then.keeps_durability_of(&today), expected, "{today:?} {then:?}");
        };
        check(of("DELETE", "FULL"), of("WAL", "FULL"), true);
        check(of("DELETE", "FULL"), of("WAL", "NORMAL"), false);
        check(of("WAL", "NORMAL"), of("WAL", "NORMAL"), true);
        check(of("WAL", "NORMAL"), of("WAL", "OFF"), false);
        check(of("WAL", "OFF"), of("WAL", "OFF"), true);
        check(of("WAL", "OFF"), of("MEMORY", "OFF"), false);
        check(of("DELETE", "NORMAL"), of("DELETE", "NORMAL"), true);
    }

    #[test]
    fn what_sqlite_answers_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let db = Connection::open(folder.path().join("new.sqlite")).unwrap();
        let settings = PragmaSettings::read(&db).unwrap();
        assert_eq!(settings.get("journal_mode"), "DELETE");
        assert_eq!(settings.get("synchronous"), "FULL");
        assert_eq!((settings.get("auto_vacuum"), settings.get("page_size")), ("NONE", "4096"));
    }

    #[test]
    fn todays_settings_are_parsed() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            parse_current_pragma("cache_size = -8000").unwrap(),
            pair("cache_size", "-8000")
        );
        for wrong in ["cache_size", "page_size=4096", "cache_size=1;DROP", "synchronous="] {
            assert!(parse_current_pragma(wrong).is_err(), "{wrong}");
        }
    }
}
