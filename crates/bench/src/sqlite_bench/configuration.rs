//! Defines configurations to compare: named PRAGMAs, and which of them are SQLite's own defaults.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use engine::Profile;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::execute_plan::{read_setting, set, unlock};
use super::message::CipherAndKey;
use super::plan::SampleValue;

/// The settings that only a file without pages accepts; they come before `journal_mode`, which
/// writes the first page.
const EMPTY_FILE: [&str; 3] = ["auto_vacuum", "encoding", "page_size"];

/// A named set of PRAGMAs, in the order in which they are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PragmaConfiguration {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) settings: Vec<(String, String)>,
}

impl PragmaConfiguration {
    /// Returns the settings of an engine's profile.
    pub(crate) fn from_profile(profile: &Profile) -> Self {
        let settings = profile.pragmas().map(|one| (one.name.to_owned(), one.value.to_owned()));
        Self {
            name: profile.name.to_owned(),
            description: profile.about.to_owned(),
            settings: settings.collect(),
        }
    }

    /// Returns a copy with one setting changed in place, or added: at the front if only an empty
    /// file accepts it, else at the end.
    pub(crate) fn with(&self, name: &str, description: &str, pragma: &str, value: &str) -> Self {
        let mut settings = self.settings.clone();
        if let Some((_, old)) = settings.iter_mut().find(|(of, _)| of == pragma) {
            value.clone_into(old);
        } else {
            let place = if EMPTY_FILE.contains(&pragma) { 0 } else { settings.len() };
            settings.insert(place, (pragma.to_owned(), value.to_owned()));
        }
        Self { name: name.to_owned(), description: description.to_owned(), settings }
    }
}

/// A named set of PRAGMAs, with the values that SQLite returned.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EffectiveConfiguration {
    /// The name of the configuration and of its rows in the tables.
    pub name: String,
    /// The purpose of the configuration.
    pub description: String,
    /// The PRAGMAs, in the order in which they are set.
    pub settings: Vec<EffectivePragma>,
}

/// A PRAGMA with its requested value and the value that SQLite returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EffectivePragma {
    /// The name of the PRAGMA.
    pub name: String,
    /// The requested value.
    pub requested: String,
    /// The value that SQLite returned afterwards, as a name if SQLite accepts a name for it.
    pub actual: String,
    /// Whether SQLite returns the same value if the PRAGMA is not set.
    pub default: bool,
    /// The reason that the PRAGMA does not do what was requested; null if it does.
    pub fault: Option<String>,
}

impl EffectiveConfiguration {
    /// Sets all PRAGMAs on a new file in `folder`, and reads them back; also on a file where only
    /// the journal mode is set, because the default of `synchronous` may depend on it.
    pub(crate) fn read_back(
        configuration: &PragmaConfiguration,
        encryption: &CipherAndKey,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let PragmaConfiguration { name, description, settings } = configuration;
        let connect = |file: &str, settings: &[(String, String)]| {
            let db = Connection::open(folder.join(file))?;
            if let Some((cipher, key)) = encryption {
                unlock(&db, cipher, key)?;
            }
            set(&db, settings)?;
            // Some PRAGMAs, such as `auto_vacuum`, return their final value only for a file that
            // has pages.
            db.execute_batch("CREATE TABLE t (x)")?;
            anyhow::Ok(db)
        };
        let scratch = tempfile::tempdir_in(folder)?;
        let file = |name: &str| scratch.path().join(name).display().to_string();
        let db = connect(&file("set"), settings)?;
        let journal: Vec<(String, String)> =
            settings.iter().filter(|(name, _)| name == "journal_mode").cloned().collect();
        let default = connect(&file("default"), &journal)?;
        let settings = settings.iter().map(|(name, requested)| {
            let (actual, default) = (read_setting(&db, name)?, read_setting(&default, name)?);
            let actual = named(name, &actual);
            let is_default = match name.as_str() {
                // The other file has the same journal mode, so it does not show the default.
                "journal_mode" => actual == "delete",
                name => actual == named(name, &default),
            };
            let fault = fault(name, requested, &actual, encryption.is_some());
            Ok(EffectivePragma {
                name: name.clone(),
                requested: requested.clone(),
                actual,
                default: is_default,
                fault,
            })
        });
        let settings = settings.collect::<anyhow::Result<_>>()?;
        Ok(Self { name: name.clone(), description: description.clone(), settings })
    }

    /// Returns an error if a measured connection has other settings than these.
    pub(crate) fn check(&self, answered: &BTreeMap<String, SampleValue>) -> anyhow::Result<()> {
        self.settings.iter().try_for_each(|EffectivePragma { name, actual, .. }| {
            let answered = answered.get(name).map(|value| named(name, value));
            let answered = answered.with_context(|| format!("PRAGMA {name} returned no value"))?;
            anyhow::ensure!(
                answered == *actual,
                "PRAGMA {name} is {answered} in the measurement instead of {actual}"
            );
            Ok(())
        })
    }

    /// Returns the settings that do not do what was requested, as text for people.
    pub(crate) fn faults(&self) -> impl Iterator<Item = String> {
        let faults = self.settings.iter().filter_map(|one| Some((one, one.fault.as_ref()?)));
        faults.map(|(one, fault)| format!("{}: {} {}: {fault}", self.name, one.name, one.requested))
    }
}

fn fault(name: &str, requested: &str, actual: &str, is_encrypted: bool) -> Option<String> {
    if name == "mmap_size" && actual != "0" && is_encrypted {
        return Some("no effect on an encrypted file".to_owned());
    }
    let text = requested.trim_matches('\'');
    let text = text.parse().map_or(text.to_owned(), |it| named(name, &SampleValue::Integer(it)));
    (!text.eq_ignore_ascii_case(actual)).then(|| format!("SQLite returns {actual}"))
}

/// Returns a value in the form that `PRAGMA` accepts, where SQLite returns a number.
///
/// The names are those of <https://www.sqlite.org/pragma.html>.
pub(crate) fn named(pragma: &str, value: &SampleValue) -> String {
    const SWITCH: &[&str] = &["OFF", "ON"];
    let names: &[&str] = match pragma {
        "auto_vacuum" => &["NONE", "FULL", "INCREMENTAL"],
        "cell_size_check" | "defer_foreign_keys" | "foreign_keys" | "recursive_triggers" => SWITCH,
        "secure_delete" => &["OFF", "ON", "FAST"],
        "synchronous" => &["OFF", "NORMAL", "FULL", "EXTRA"],
        "temp_store" => &["DEFAULT", "FILE", "MEMORY"],
        _ => &[],
    };
    let name = match value {
        SampleValue::Integer(value) => usize::try_from(*value).ok().and_then(|at| names.get(at)),
        _ => None,
    };
    name.map_or_else(|| text(value), |name| (*name).to_owned())
}

pub(crate) fn text(value: &SampleValue) -> String {
    match value {
        SampleValue::Null => "NULL".to_owned(),
        SampleValue::Integer(value) => value.to_string(),
        SampleValue::Real(value) => value.to_string(),
        SampleValue::Text(value) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_back(settings: &[(&str, &str)], encryption: &CipherAndKey) -> EffectiveConfiguration {
        let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let one = PragmaConfiguration {
            name: "x".into(),
            description: "x".into(),
            settings: settings.collect(),
        };
        let folder = tempfile::tempdir().unwrap();
        EffectiveConfiguration::read_back(&one, encryption, folder.path()).unwrap()
    }

    fn read_settings(configured: &EffectiveConfiguration) -> Vec<(&str, bool, Option<&str>)> {
        let settings = configured.settings.iter();
        settings.map(|one| (one.actual.as_str(), one.default, one.fault.as_deref())).collect()
    }

    #[test]
    fn what_an_empty_file_takes_stands_in_front() {
        let wal = PragmaConfiguration {
            name: "wal".into(),
            description: String::new(),
            settings: vec![("journal_mode".into(), "WAL".into())],
        };
        let names = |pragma: &str| {
            let changed = wal.with("new", "", pragma, "1024");
            changed.settings.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names("page_size"), ["page_size", "journal_mode"]);
        assert_eq!(names("cache_size"), ["journal_mode", "cache_size"]);
        assert_eq!(names("journal_mode"), ["journal_mode"]);
    }

    #[test]
    fn settings_are_read_back_by_name() {
        let settings = [
            ("page_size", "8192"),
            ("journal_mode", "WAL"),
            ("synchronous", "1"),
            ("foreign_keys", "ON"),
            ("encoding", "'UTF-8'"),
            ("wal_autocheckpoint", "1000"),
        ];
        let configured = read_back(&settings, &None);
        let expected = [
            ("8192", false, None),
            ("wal", false, None),
            ("NORMAL", false, None),
            ("ON", false, None),
            ("UTF-8", true, None),
            ("1000", true, None),
        ];
        assert_eq!(read_settings(&configured), expected);
        assert!(configured.faults().next().is_none());
    }

    #[test]
    fn a_setting_that_comes_too_late_is_a_fault() {
        let configured = read_back(&[("journal_mode", "WAL"), ("auto_vacuum", "FULL")], &None);
        assert_eq!(read_settings(&configured)[1], ("NONE", true, Some("SQLite returns NONE")));
        let faults: Vec<String> = configured.faults().collect();
        assert_eq!(faults, ["x: auto_vacuum FULL: SQLite returns NONE"]);
    }

    #[test]
    fn an_encrypted_file_has_no_memory_map() {
        let encryption = Some(("chacha20".to_owned(), "07".repeat(32)));
        let settings = [("mmap_size", "268435456")];
        assert!(read_back(&settings, &None).settings[0].fault.is_none());
        let configured = read_back(&settings, &encryption);
        let fault = configured.settings[0].fault.as_deref();
        assert_eq!(fault, Some("no effect on an encrypted file"));
    }

    #[test]
    fn a_measured_connection_must_answer_the_same() {
        let configured = read_back(&[("synchronous", "FULL")], &None);
        let check = |value| configured.check(&[("synchronous".to_owned(), value)].into());
        assert!(check(SampleValue::Integer(2)).is_ok());
        assert!(check(SampleValue::Integer(0)).unwrap_err().to_string().contains("OFF"));
    }
}
