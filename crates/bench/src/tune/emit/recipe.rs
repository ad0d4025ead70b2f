//! Defines settings that are ready to be written as code.

use engine::{PragmaScope, PragmaSetting, Profile};

use crate::tune::settings::{PowerLossSafety, PragmaSettings};

pub(crate) const CORRUPTS: &str = "UNSAFE: a power loss may corrupt the file.";

/// The PRAGMAs to write as code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PragmaRecipe {
    /// Settings for each connection, in this order.
    pub connection_settings: Vec<(String, String)>,
    /// Settings for the file, before its first table; later they need a `VACUUM`.
    pub file_settings: Vec<(String, String)>,
}

impl PragmaRecipe {
    /// Returns the settings of a profile of the engine, without the encoding, which no VACUUM
    /// changes.
    pub fn from_profile(profile: &Profile) -> Self {
        let all = profile.pragmas().filter(|one| one.name != "encoding");
        let (of_file, of_connection): (Vec<_>, Vec<_>) =
            all.partition(|one| one.scope == PragmaScope::Creation);
        let pair = |one: &PragmaSetting| (one.name.to_owned(), one.value.to_owned());
        let mut connection_settings: Vec<_> = of_connection.iter().map(pair).collect();
        // The busy timeout comes before settings that wait for a lock.
        connection_settings.sort_by_key(|(name, _)| name != "busy_timeout");
        Self { connection_settings, file_settings: of_file.iter().map(pair).collect() }
    }

    /// Returns the effect of a power loss, if it is worse than with SQLite's defaults.
    pub(crate) fn risk(&self) -> Option<&'static str> {
        let defaults = PragmaSettings::default().with("journal_mode", "DELETE");
        let defaults = defaults.with("synchronous", "FULL");
        let all = self.connection_settings.iter();
        match all.fold(defaults, |all, (name, value)| all.with(name, value)).safety() {
            PowerLossSafety::Safe => None,
            PowerLossSafety::LosesLastCommits => Some(LOSES),
            PowerLossSafety::MayCorrupt => Some(CORRUPTS),
        }
    }

    /// Returns one line per setting, indented by `margin`.
    pub(crate) fn lines(&self, margin: &str, line: impl Fn(&str, &str) -> String) -> String {
        let lines = self.connection_settings.iter();
        lines.map(|(name, value)| margin.to_owned() + &line(name, value) + "\n").collect()
    }
}

pub(crate) const LOSES: &str =
    "A power loss may undo the last commits, but does not corrupt the file.";
