//! Defines the settings of PostgreSQL's cases.

use std::time::Duration;

/// The settings of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostgresSetting {
    /// The pause between one statement and the next, which stands for the network.
    pub(super) delay: Duration,
    pub(super) isolation: IsolationLevel,
    /// Whether a third statement follows, after another pause.
    pub(super) extra_query: bool,
    /// Whether a commit waits for the disk, which is PostgreSQL's default. Without, a crash loses
    /// only the last commits, like with SQLite's `synchronous = NORMAL`.
    pub(super) synchronous_commit: bool,
}

impl PostgresSetting {
    /// Returns the distinguishing settings, for the name of a row.
    pub(crate) fn name(self) -> String {
        let mut name = format!("{} ms", self.delay.as_millis());
        if self.isolation == IsolationLevel::Serializable {
            name += ", serialisable";
        }
        if self.extra_query {
            name += ", extra query";
        }
        name + ", synchronous_commit " + on_off(self.synchronous_commit)
    }
}

pub(crate) fn on_off(value: bool) -> &'static str {
    if value { "on" } else { "off" }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsolationLevel {
    ReadCommitted,
    Serializable,
}
