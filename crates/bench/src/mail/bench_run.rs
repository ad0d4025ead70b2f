//! Defines a run of the benchmark: its plan, its parts and its competitors.

use std::path::PathBuf;
use std::time::Duration;

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailBenchPart {
    /// Messages are delivered by LMTP.
    Delivery,
}

/// A mail server with which Warren is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MailCompetitor {
    /// Dovecot, with a file for each message (sdbox).
    Dovecot,
    /// The same, with messages encrypted for their recipient (the plugin `mail_crypt`).
    DovecotMailCrypt,
}

/// The options of the benchmark.
#[derive(Clone, Debug)]
pub struct MailBenchPlan {
    /// Mailboxes that receive messages.
    pub mailboxes: usize,
    /// Numbers of connections that deliver at the same time; each has a table.
    pub connections: Vec<usize>,
    /// How long each case works in each round.
    pub duration: Duration,
    /// The number of rounds, each in a random order.
    pub rounds: usize,
    /// The parts to measure; empty for all.
    pub only: Vec<MailBenchPart>,
    /// The mail servers with which Warren is compared.
    pub against: Vec<MailCompetitor>,
    /// The folder in which the run creates its files.
    pub folder: PathBuf,
    /// The path of the shipped binary.
    pub program: PathBuf,
    /// The command line, for the report.
    pub command: String,
}

impl MailBenchPlan {
    pub(super) fn wants(&self, part: MailBenchPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}
