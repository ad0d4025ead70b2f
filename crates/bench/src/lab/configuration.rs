//! Configurations to compare: PRAGMAs by name, and what of them is SQLite's own default.

use std::path::Path;

use engine::Profile;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::carry_out::{read_setting, set, unlock};
use super::message::CipherAndKey;
use super::plan::Scalar;

/// A named set of PRAGMAs, in the order in which they are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Configuration {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) settings: Vec<(String, String)>,
}

impl Configuration {
    /// What the engine's profile of that name sets.
    pub(crate) fn of(profile: &Profile) -> Self {
        let settings = profile.pragmas().map(|one| (one.name.to_owned(), one.value.to_owned()));
        Self {
            name: profile.name.to_owned(),
            about: profile.about.to_owned(),
            settings: settings.collect(),
        }
    }

    /// This one with a setting changed in its place, or added where only an empty file takes it.
    pub(crate) fn with(&self, name: &str, about: &str, pragma: &str, value: &str) -> Self {
        let mut settings = self.settings.clone();
        match settings.iter_mut().find(|(of, _)| of == pragma) {
            Some((_, old)) => value.clone_into(old),
            None => settings.insert(0, (pragma.to_owned(), value.to_owned())),
        }
        Self { name: name.to_owned(), about: about.to_owned(), settings }
    }
}

/// What a configuration comes to, for the report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Configured {
    /// Its name in the tables.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// In the order in which they are set.
    pub settings: Vec<Setting>,
}

/// One PRAGMA, read back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setting {
    /// The PRAGMA.
    pub name: String,
    /// What it was set to.
    pub asked: String,
    /// What SQLite answered afterwards.
    pub found: String,
    /// Whether it is the same without being set.
    pub is_default: bool,
}

impl Configured {
    /// Sets all of it on a new file in `folder`, and reads it back; also on one where only the
    /// journal mode is set, because what `synchronous` is by default may depend on it.
    pub(crate) fn read_back(
        configuration: &Configuration,
        encryption: &CipherAndKey,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let Configuration { name, about, settings } = configuration;
        let connect = |file: &str, settings: &[(String, String)]| {
            let db = Connection::open(folder.join(file))?;
            if let Some((cipher, key)) = encryption {
                unlock(&db, cipher, key)?;
            }
            set(&db, settings)?;
            // `auto_vacuum` and the like are true of a file that has pages.
            db.execute_batch("CREATE TABLE t (x)")?;
            anyhow::Ok(db)
        };
        let scratch = tempfile::tempdir_in(folder)?;
        let file = |name: &str| scratch.path().join(name).display().to_string();
        let db = connect(&file("set"), settings)?;
        let journal: Vec<(String, String)> =
            settings.iter().filter(|(name, _)| name == "journal_mode").cloned().collect();
        let default = connect(&file("default"), &journal)?;
        let settings = settings.iter().map(|(name, asked)| {
            let found = read_setting(&db, name)?;
            let is_default = name != "journal_mode" && found == read_setting(&default, name)?;
            Ok(Setting {
                name: name.clone(),
                asked: asked.clone(),
                found: text(&found),
                is_default,
            })
        });
        let settings = settings.collect::<anyhow::Result<_>>()?;
        Ok(Self { name: name.clone(), about: about.clone(), settings })
    }
}

pub(crate) fn text(value: &Scalar) -> String {
    match value {
        Scalar::Null => "NULL".to_owned(),
        Scalar::Integer(value) => value.to_string(),
        Scalar::Real(value) => value.to_string(),
        Scalar::Text(value) => value.clone(),
    }
}
