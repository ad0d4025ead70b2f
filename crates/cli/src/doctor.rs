//! `warren doctor`: what is wrong with an SQLite file, or slow, and what to do about it.

mod print;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use doctor::{Entry, Options, Places, Severity};
use engine::Encryption;

use crate::account::{House, Place};
use crate::key::KeyArguments;
use crate::output::{Output, Verdict};
use crate::password::Source;

/// Find what is wrong with an SQLite file, or slow, and what to do about it. Changes nothing.
#[derive(Args)]
#[command(after_help = "Example:
  warren doctor app.db
  warren doctor app.db --query 'SELECT * FROM message WHERE sender = ?1 ORDER BY date'
  warren doctor mail.db --key-file mail.key --json
  warren doctor --login ada --data ./data
  warren doctor --explain wal_pinned

Safe on a file that is in use: nothing is written, created or deleted, and nobody waits for it.
Exit status: 0 nothing above info, 3 warnings, 4 errors in the file; 1 it could not be examined.")]
pub(crate) struct Arguments {
    /// Any SQLite file, encrypted or not.
    #[arg(required_unless_present_any = ["login", "explain", "list"])]
    file: Option<PathBuf>,
    /// A query that the file is used for, to be looked at for a missing index.
    #[arg(long, value_name = "SQL")]
    query: Vec<String>,
    /// How long it may take; what there was no time for is said.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    budget: f64,
    #[command(flatten)]
    key: KeyArguments,
    /// Say what a code means, where that is from, how it is found and what mends it.
    #[arg(long, value_name = "CODE", conflicts_with_all = ["file", "login", "query"])]
    explain: Option<String>,
    /// List what can be found.
    #[arg(long, conflicts_with_all = ["file", "login", "query", "explain"])]
    list: bool,
    /// An account's vault, on the data directory; its password is asked for.
    #[arg(long, conflicts_with_all = ["file", "key_file", "passphrase_file", "cipher"])]
    login: Option<String>,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    password: Source,
}

const STATUS_WARNING: u8 = 3;
const STATUS_ERROR: u8 = 4;

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    if arguments.list {
        return list(output);
    }
    if let Some(code) = &arguments.explain {
        return explain(code, output);
    }
    let options = options(arguments)?;
    let (file, encryption) = subject(arguments)?;
    let report = doctor::examine(&file, &encryption, &options)?;
    print::report(&report, output);
    output.value(&report)?;
    match report.severity() {
        None | Some(Severity::Info) => Ok(()),
        Some(Severity::Warning) => Err(Verdict(STATUS_WARNING).into()),
        Some(Severity::Error) => Err(Verdict(STATUS_ERROR).into()),
    }
}

fn options(arguments: &Arguments) -> anyhow::Result<Options> {
    let budget = Duration::try_from_secs_f64(arguments.budget);
    let budget = budget.ok().filter(|budget| !budget.is_zero());
    let budget = budget.context("--budget takes a number of seconds above 0")?;
    let place = |name| std::env::var_os(name).map(PathBuf::from);
    let places = Places { sqlite_tmpdir: place("SQLITE_TMPDIR"), tmpdir: place("TMPDIR") };
    Ok(Options { budget, queries: arguments.query.clone(), places })
}

/// The file, and how it opens: as the flags say, or as an account's vault.
fn subject(arguments: &Arguments) -> anyhow::Result<(PathBuf, Encryption)> {
    let Some(login) = &arguments.login else {
        let file = arguments.file.clone().context("a file or --login")?;
        return Ok((file, arguments.key.encryption()?));
    };
    let house = House::open(&arguments.place)?;
    let unlocked = house.unlock(login, &arguments.password)?;
    let path = house.vault_path(&unlocked.vault)?;
    Ok((path, Encryption::Key { key: unlocked.key.clone(), cipher: None }))
}

fn list(output: Output) -> anyhow::Result<()> {
    for Entry { code, severity, title, .. } in doctor::catalogue() {
        output.line(format_args!("{severity:8} {code:28} {title}"));
    }
    output.value(&doctor::catalogue())
}

fn explain(code: &str, output: Output) -> anyhow::Result<()> {
    let entry = doctor::entry(code);
    let entry = entry.with_context(|| format!("no code {code:?}: `warren doctor --list`"))?;
    print::entry(entry, output);
    output.value(entry)
}
