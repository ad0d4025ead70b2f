//! Settings, ready to be written as code.

use engine::{PragmaScope, PragmaSetting, Profile};

use crate::tune::settings::{PowerLossSafety, PragmaSettings};

pub(crate) const CORRUPTS: &str = "UNSAFE: a power loss may corrupt the file.";

/// PRAGMAs to be written as code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PragmaRecipe {
    /// For each connection, in this order.
    pub connection_settings: Vec<(String, String)>,
    /// For the file, before its first table; later by `VACUUM`.
    pub file_settings: Vec<(String, String)>,
}

impl PragmaRecipe {
    /// What a profile of the engine sets; the encoding, which no VACUUM changes, is not said.
    pub fn from_profile(profile: &Profile) -> Self {
        let all = profile.pragmas().filter(|one| one.name != "encoding");
        let (of_file, of_connection): (Vec<_>, Vec<_>) =
            all.partition(|one| one.scope == PragmaScope::Creation);
        let pair = |one: &PragmaSetting| (one.name.to_owned(), one.value.to_owned());
        let mut connection_settings: Vec<_> = of_connection.iter().map(pair).collect();
        // Before anything that waits for a lock.
        connection_settings.sort_by_key(|(name, _)| name != "busy_timeout");
        Self { connection_settings, file_settings: of_file.iter().map(pair).collect() }
    }

    /// What a power loss may do, if that is more than with SQLite's defaults.
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

    /// A line of each setting, so far from the margin.
    pub(crate) fn lines(&self, margin: &str, line: impl Fn(&str, &str) -> String) -> String {
        let lines = self.connection_settings.iter();
        lines.map(|(name, value)| margin.to_owned() + &line(name, value) + "\n").collect()
    }
}

pub(crate) const LOSES: &str =
    "A power loss may undo the last commits, but does not corrupt the file.";
