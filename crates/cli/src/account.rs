//! `warren account`: the operator's side of accounts, on the data directory itself.
//!
//! It works beside a running server: both read the accounts file at every call.

mod limit;
mod show;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use accounts::{Accounts, KdfCost, Login, Password, Unlocked};
use anyhow::Context;
use clap::{Args, Subcommand};
use engine::{Databases, Limits};
use serde_json::json;
use sync_store::{Files, Vaults};
use tokio::runtime::Runtime;

use crate::clock::now_ms;
use crate::output::{Output, moment};
use crate::password::{self, Source};

/// Make, list, limit and remove the accounts of a data directory.
#[derive(Subcommand)]
pub(crate) enum Command {
    Add(Add),
    List(List),
    Show(show::Arguments),
    Limit(limit::Arguments),
    Remove(Remove),
    Password(Change),
}

/// Make an account, with an empty vault.
#[derive(Args)]
#[command(after_help = "Example:\n  warren account add ada\n  \
                        warren account add ada --password-file secret.txt --data /srv/warren")]
pub(crate) struct Add {
    login: String,
    #[command(flatten)]
    password: Source,
    #[command(flatten)]
    data: Data,
}

/// List the accounts.
#[derive(Args)]
#[command(after_help = "Example:\n  warren account list --json")]
pub(crate) struct List {
    #[command(flatten)]
    data: Data,
}

/// Remove an account with its devices and its vault, for good.
#[derive(Args)]
#[command(after_help = "Example:\n  warren account remove ada --yes")]
pub(crate) struct Remove {
    login: String,
    /// Do it: nothing brings the vault back but a backup.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    data: Data,
}

/// Change an account's password. Devices stay signed in.
#[derive(Args)]
#[command(after_help = "Example:\n  warren account password ada\n  \
                        warren account password ada --password-file old.txt --new-password-file new.txt")]
pub(crate) struct Change {
    login: String,
    #[command(flatten)]
    password: Source,
    /// Read the new password from the first line of this file.
    #[arg(long, value_name = "FILE")]
    new_password_file: Option<PathBuf>,
    #[command(flatten)]
    data: Data,
}

/// The data directory.
#[derive(Args)]
pub(crate) struct Data {
    /// The server's data directory.
    #[arg(long, default_value = "./data", value_name = "DIR")]
    pub(crate) data: PathBuf,
}

/// What is looked at: a synced file; or an account on the data directory, with its password.
#[derive(Args)]
pub(crate) struct Subject {
    /// A file that syncs with the account.
    #[arg(required_unless_present = "login")]
    pub(crate) file: Option<PathBuf>,
    /// The account, on the data directory; its password is asked for.
    #[arg(long, conflicts_with = "file")]
    pub(crate) login: Option<String>,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) password: Source,
}

impl Subject {
    /// The account's data directory, and the account unlocked by its password.
    pub(crate) fn unlock(&self) -> anyhow::Result<(House, Unlocked)> {
        let login = Login::parse(self.login.as_deref().context("a file or --login")?)?;
        let password = Password::parse(self.password.read(&format!("Password for {login}: "))?)?;
        let house = House::open(&self.data.data)?;
        let unlocked = house.accounts.unlock(&login, &password, now_ms(), None)?;
        Ok((house, unlocked))
    }
}

/// A data directory, open.
pub(crate) struct House {
    pub(crate) accounts: Accounts,
    pub(crate) vaults: Vaults,
    runtime: Runtime,
}

impl House {
    /// Opens the directory of a server; one that is none is not made into one by mistake.
    pub(crate) fn open(data: &Path) -> anyhow::Result<Self> {
        let is_one = data.join("accounts.sqlite").exists();
        anyhow::ensure!(is_one, "{} is no data directory of Warren's", data.display());
        Self::make(data)
    }

    fn make(data: &Path) -> anyhow::Result<Self> {
        let databases = Arc::new(Databases::start(Limits::default())?);
        let accounts = Accounts::open(&databases, data, KdfCost::DEFAULT)?;
        let vaults = Vaults::Files(Files::new(databases, data.to_owned()));
        Ok(Self { accounts, vaults, runtime: Runtime::new()? })
    }

    /// Waits for what a vault does.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

pub(crate) fn run(command: Command, output: Output) -> anyhow::Result<()> {
    match command {
        Command::Add(arguments) => add(&arguments, output),
        Command::List(arguments) => list(&arguments, output),
        Command::Show(arguments) => show::run(&arguments, output),
        Command::Limit(arguments) => limit::run(&arguments, output),
        Command::Remove(arguments) => remove(&arguments, output),
        Command::Password(arguments) => change(&arguments, output),
    }
}

fn add(arguments: &Add, output: Output) -> anyhow::Result<()> {
    let login = Login::parse(&arguments.login)?;
    let prompt = format!("Password for {login}: ");
    let password = Password::parse(arguments.password.read_new(&prompt)?)?;
    let house = House::make(&arguments.data.data)?;
    let unlocked = house.accounts.add(&login, &password, now_ms())?;
    house.vaults.open(&unlocked)?;
    output.line(format_args!("made account {login}"));
    output.value(&json!({"login": login.as_str(), "vault": unlocked.vault.as_str()}))
}

fn list(arguments: &List, output: Output) -> anyhow::Result<()> {
    let accounts = House::open(&arguments.data.data)?.accounts.list()?;
    for account in &accounts {
        let (created, clients) = (moment(account.created_ms), account.clients_count);
        let login = account.login.as_str();
        output.line(format_args!("{login:24} {clients:>4} devices   made {created}"));
    }
    let values = accounts.iter().map(|account| {
        json!({
            "login": account.login.as_str(),
            "vault": account.vault.as_str(),
            "clients": account.clients_count,
            "created_ms": account.created_ms,
        })
    });
    output.value(&values.collect::<Vec<_>>())
}

fn remove(arguments: &Remove, output: Output) -> anyhow::Result<()> {
    let login = Login::parse(&arguments.login)?;
    anyhow::ensure!(arguments.yes, "this destroys the vault of {login}: say --yes to do it");
    let house = House::open(&arguments.data.data)?;
    let vault = house.accounts.remove(&login)?;
    house.wait(house.vaults.remove(&vault))?;
    output.line(format_args!("removed account {login} and its vault"));
    output.value(&json!({"login": login.as_str(), "vault": vault.as_str()}))
}

fn change(arguments: &Change, output: Output) -> anyhow::Result<()> {
    let login = Login::parse(&arguments.login)?;
    let old = Password::parse(arguments.password.read("Present password: ")?)?;
    let new = arguments.new_password_file.as_deref();
    let new = Password::parse(password::read_new(new, "New password: ")?)?;
    let house = House::open(&arguments.data.data)?;
    house.accounts.change_password(&login, &old, &new, now_ms(), None)?;
    output.line(format_args!("changed the password of {login}"));
    output.value(&json!({"login": login.as_str()}))
}
