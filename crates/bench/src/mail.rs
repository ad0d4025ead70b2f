//! `warren bench mail`: compares Warren's mail server with Dovecot in one run.
//!
//! Messages arrive by LMTP, as a mail transfer agent sends them, for mailboxes that are locked. Each
//! round of each case gets a fresh server on a copy of the same mailboxes.
//!
//! # Invariants
//! - Servers have the same durability: a message that was accepted is on the disk.
//! - Connections, mailboxes and messages are the same for all servers.
//!
//! # Not here
//! - Rounds, ratios, spread → `suite.rs`.

mod bench_run;
mod delivery;
mod dovecot;
mod lmtp_connection;
mod mail_corpus;
mod mail_service;
mod mailbox_address;

use anyhow::Context;
use engine::ScratchFolder;
use indicatif::ProgressBar;

pub use self::bench_run::{MailBenchPart, MailBenchPlan, MailCompetitor};
pub use self::dovecot::DovecotNotInstalled;
use self::dovecot::{CURVE, DovecotInstallation};
use self::mail_service::{MailBenchRun, MailSystem};
use crate::format::format_threshold;
use crate::machine::MachineInfo;
use crate::report::{BenchReport, REPORT_FORMAT};
use crate::report_setting::ReportSetting;
use crate::suite::{self, StopRule};

const TITLE: &str = "Warren: a mail server";
const LEAD: &str = "Messages are delivered by LMTP to a mail server on the same machine, on \
    connections that stay open; each waits for its answer before its next message. Every mailbox is \
    locked: no key that reads its mail is on the server. The load generator is one thread and \
    shares the machine's cores with the server; the tables show how much CPU time both used. Cases \
    run in random order, each on a fresh server; ratios compare cases of the same round.";

const WARREN: &str = "Warren: each message is compressed (zstd), sealed to the public key of its \
    mailbox (HPKE with X-Wing) and stored in one SQLite file for all mailboxes, in WAL mode; the WAL \
    is flushed before the answer, and messages that wait together share a flush. A message is filed \
    in its mailbox, with its index, when the mailbox is opened: this is not measured";
const SDBOX: &str = "a file for each message, not compressed and not encrypted, in its mailbox, \
    with its index; a process for each connection, users in memory, no log of deliveries, no \
    filters; mail_fsync = optimized, Dovecot's default, which flushes the message's file, the \
    index log and the directory before the answer";
const TEXTS: &str = "messages: 80 % plain text, 15 % with HTML, 5 % with an attachment of 60 to \
    200 kB in base64; words with the frequencies of a language, so that they compress like real \
    ones";

/// Runs the plan, whose numbers are not 0; `bar` shows the progress.
///
/// Returns [`DovecotNotInstalled`] if a competitor is not installed.
pub fn run(plan: &MailBenchPlan, bar: &ProgressBar) -> anyhow::Result<BenchReport> {
    let dovecot = match plan.against[..] {
        [] => None,
        _ => Some(DovecotInstallation::find().context("cannot measure Dovecot")?),
    };
    let mut systems = vec![MailSystem::Warren];
    systems.extend(plan.against.iter().map(|competitor| MailSystem::Competitor(*competitor)));
    let folder = ScratchFolder::new(&plan.folder, "bench")
        .and_then(ScratchFolder::let_others_enter)
        .context("cannot use the work directory")?;
    bar.set_message("creating mailboxes");
    let run = MailBenchRun::new(plan, folder.path(), dovecot)?;
    let stop_rule = StopRule::rounds(plan.rounds, plan.duration);
    let mut tables = Vec::new();
    if plan.wants(MailBenchPart::Delivery) {
        for &connections in &plan.connections {
            let section = delivery::section(&run, &systems, connections);
            tables.push(suite::run(section, &stop_rule, bar)?);
        }
    }
    bar.finish_and_clear();
    let failures = run.failures.take().into_iter();
    let notes = notes(&run).into_iter();
    Ok(BenchReport {
        format: REPORT_FORMAT,
        benchmark: "mail".into(),
        machine: MachineInfo::here(&plan.folder),
        command: plan.command.clone(),
        settings: settings(&run),
        configurations: Vec::new(),
        tables,
        matrices: Vec::new(),
        goals: Vec::new(),
        notes: notes.chain(failures.map(|failure| format!("failed delivery: {failure}"))).collect(),
        title: TITLE.into(),
        lead: LEAD.into(),
    })
}

fn notes(run: &MailBenchRun<'_>) -> Vec<String> {
    let mut notes = vec![WARREN.to_owned()];
    if let Some(dovecot) = &run.dovecot {
        notes.push(format!("Dovecot {}: {SDBOX}", dovecot.version));
    }
    if run.plan.against.contains(&MailCompetitor::DovecotMailCrypt) {
        notes.push(format!(
            "mail_crypt: the same, and each message is encrypted for its recipient with a key of \
             {CURVE}; each user's private key is encrypted with a password that the server does \
             not have. File names, sizes and the index are not encrypted"
        ));
    }
    notes.push(TEXTS.to_owned());
    notes
}

fn settings(run: &MailBenchRun<'_>) -> Vec<ReportSetting> {
    let plan = run.plan;
    let settings = [
        ("mailboxes", plan.mailboxes.to_string()),
        ("bytes a message, mean", run.corpus.mean_bytes().to_string()),
        ("loop", "closed".to_owned()),
        ("rounds", plan.rounds.to_string()),
        ("seconds a case", format_threshold(plan.duration.as_secs_f64())),
    ];
    settings.into_iter().map(|(name, value)| ReportSetting::new(name, value)).collect()
}

impl MailSystem {
    fn name(self) -> &'static str {
        match self {
            Self::Warren => "Warren",
            Self::Competitor(MailCompetitor::Dovecot) => "Dovecot, sdbox",
            Self::Competitor(MailCompetitor::DovecotMailCrypt) => "Dovecot, sdbox and mail_crypt",
        }
    }
}
