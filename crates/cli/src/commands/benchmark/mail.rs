//! Implements `warren bench mail`: measures deliveries of the mail server.

use std::time::Duration;

use anyhow::Context;
use bench::mail::{MailBenchPart, MailBenchPlan, MailCompetitor};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::bench_output::{BenchOutputArgs, command_line, print_and_save};
use crate::output::{CommandError, Printer};

/// Measure how fast mail is received, compared with Dovecot.
///
/// Delivers messages by LMTP over loopback to mailboxes that are locked, on connections that stay
/// open. An accepted message is on the disk. Saves `warren-mail.json` and `warren-mail.html` (with
/// charts).
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren bench mail\n  warren bench mail --only delivery --against dovecot,dovecot-mail-crypt --rounds 7 --seconds 5\n  warren bench mail --connections 1,4,16,64 --mailboxes 1000"
)]
pub(crate) struct BenchMailArgs {
    /// Mailboxes that receive messages.
    #[arg(long, default_value_t = 64, value_name = "COUNT")]
    mailboxes: usize,
    /// Connections that deliver concurrently, one table per count.
    #[arg(long, value_delimiter = ',', default_value = "1,16", value_name = "COUNTS")]
    connections: Vec<usize>,
    /// Duration of each benchmark in each round.
    #[arg(long, default_value_t = 3.0, value_name = "SECONDS")]
    seconds: f64,
    /// Rounds per benchmark, each in random order on a fresh server.
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    rounds: usize,
    /// Run only these parts.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<MailPartArg>,
    /// Also measure these competitors in the same run. They require Dovecot 2.3, in Debian the
    /// package dovecot-lmtpd.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "COMPETITORS")]
    against: Vec<MailCompetitorArg>,
    #[command(flatten)]
    places: BenchOutputArgs,
}

/// A value of `--only`: a `MailBenchPart`.
#[derive(Clone, Copy)]
struct MailPartArg(MailBenchPart);

impl ValueEnum for MailPartArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(MailBenchPart::Delivery)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self.0 {
            MailBenchPart::Delivery => ("delivery", "messages are delivered by LMTP"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

/// A value of `--against`: a `MailCompetitor`.
#[derive(Clone, Copy)]
struct MailCompetitorArg(MailCompetitor);

impl ValueEnum for MailCompetitorArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(MailCompetitor::Dovecot), Self(MailCompetitor::DovecotMailCrypt)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self.0 {
            MailCompetitor::Dovecot => ("dovecot", "Dovecot with sdbox, not encrypted"),
            MailCompetitor::DovecotMailCrypt => {
                ("dovecot-mail-crypt", "Dovecot with sdbox and mail_crypt, a key pair per user")
            }
        };
        Some(PossibleValue::new(name).help(help))
    }
}

pub(crate) fn run(arguments: BenchMailArgs, output: Printer) -> anyhow::Result<()> {
    let counts = [&[arguments.mailboxes, arguments.rounds], &arguments.connections[..]].concat();
    let duration = Duration::try_from_secs_f64(arguments.seconds).context("--seconds")?;
    let message = "--mailboxes, --connections, --rounds and --seconds must be greater than 0";
    let is_nothing = counts.contains(&0) || duration.is_zero();
    anyhow::ensure!(!is_nothing, CommandError::usage(message));
    let plan = MailBenchPlan {
        mailboxes: arguments.mailboxes,
        connections: arguments.connections,
        duration,
        rounds: arguments.rounds,
        only: arguments.only.iter().map(|part| part.0).collect(),
        against: arguments.against.iter().map(|competitor| competitor.0).collect(),
        folder: arguments.places.work_dir,
        program: std::env::current_exe()?,
        command: command_line(),
    };
    let report = bench::mail::run(&plan, &output.progress())?;
    print_and_save(report, &arguments.places.report_dir, output)
}
