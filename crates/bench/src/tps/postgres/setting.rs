//! How a PostgreSQL is set up.

use std::time::Duration;

/// How the transactions are run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostgresSetting {
    /// Between one statement and the next, as the network would take.
    pub(super) delay: Duration,
    pub(super) isolation: IsolationLevel,
    /// A third statement, after another delay.
    pub(super) extra_query: bool,
    /// Whether a commit waits for the disk. PostgreSQL's default is that it does; without, a crash
    /// loses the last commits and nothing else, as with SQLite's `synchronous = NORMAL`.
    pub(super) synchronous_commit: bool,
}

impl PostgresSetting {
    /// What distinguishes it, for the name of a row.
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
