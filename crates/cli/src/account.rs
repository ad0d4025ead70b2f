//! `warren account`: the operator's side of accounts, on the data directory itself.
//!
//! It works beside a running server: both read the accounts file at every call.

mod limit;
mod show;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use accounts::{Accounts, KdfCost, Login, Password, Unlocked, VaultId};
use anyhow::Context;
use clap::{Args, Subcommand};
use engine::{Databases, Limits};
use serde_json::json;
use sync_store::{DataLock, Files, Postgres, Vaults};
use tokio::runtime::{Handle, Runtime};

use crate::clock::now_ms;
use crate::key::KeySource;
use crate::output::{Output, moment};
use crate::password::{self, Source};
use crate::postgres;

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
    place: Place,
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
    place: Place,
}

/// Change an account's password. Devices stay signed in, unless they are revoked with it.
#[derive(Args)]
#[command(after_help = "Example:\n  warren account password ada\n  \
                        warren account password ada --revoke-devices\n  \
                        warren account password ada --password-file old.txt --new-password-file new.txt")]
pub(crate) struct Change {
    login: String,
    #[command(flatten)]
    password: Source,
    /// Read the new password from the first line of this file.
    #[arg(long, value_name = "FILE")]
    new_password_file: Option<PathBuf>,
    /// Revoke all of the account's devices: whoever holds one has to sign in with the new password.
    #[arg(long)]
    revoke_devices: bool,
    #[command(flatten)]
    place: Place,
}

/// The data directory.
#[derive(Args, Clone)]
pub(crate) struct Data {
    /// The server's data directory.
    #[arg(long, default_value = "./data", value_name = "DIR")]
    pub(crate) data: PathBuf,
}

/// The data directory, and where its vaults are.
#[derive(Args)]
pub(crate) struct Place {
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    postgres: postgres::Database,
}

impl Place {
    /// The directory of a server; one that is none is not made into one by mistake.
    fn directory(&self) -> anyhow::Result<&Path> {
        let data = &self.data.data;
        let is_one = data.join("accounts.sqlite").exists();
        anyhow::ensure!(is_one, "{} is no data directory of Warren's", data.display());
        Ok(data)
    }

    /// Takes the directory for a command that must not run beside a server.
    pub(crate) fn lock(&self, command: &str) -> anyhow::Result<DataLock> {
        let locked = DataLock::take(self.directory()?, command);
        locked.with_context(|| format!("{command} runs while no server does: stop it first"))
    }
}

/// What is looked at: a synced file; or an account on the data directory, with its password.
#[derive(Args)]
pub(crate) struct Subject {
    /// A file that syncs with the account.
    #[arg(required_unless_present = "login")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) key: KeySource,
    /// The account, on the data directory; its password is asked for.
    #[arg(long, conflicts_with = "file")]
    pub(crate) login: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) password: Source,
}

impl Subject {
    /// The account's data directory, and the account unlocked by its password.
    pub(crate) fn unlock(&self) -> anyhow::Result<(House, Unlocked)> {
        let login = self.login.as_deref().context("a file or --login")?;
        let house = House::open(&self.place)?;
        let unlocked = house.unlock(login, &self.password)?;
        Ok((house, unlocked))
    }
}

/// A data directory, open.
pub(crate) struct House {
    pub(crate) accounts: Accounts,
    pub(crate) vaults: Vaults,
    /// Vaults as files, also where `vaults` are not.
    pub(crate) files: Files,
    data: PathBuf,
    runtime: Runtime,
}

impl House {
    /// Opens the directory of a server.
    pub(crate) fn open(place: &Place) -> anyhow::Result<Self> {
        place.directory()?;
        Self::make(place)
    }

    /// For commands that touch no vault.
    fn of_accounts(data: &Data) -> anyhow::Result<Self> {
        let data = data.clone();
        Self::open(&Place { data, postgres: postgres::Database::default() })
    }

    /// Opens the directory, and makes it if it is not there.
    pub(crate) fn make(place: &Place) -> anyhow::Result<Self> {
        let (data, url) = (&place.data.data, place.postgres.url()?);
        let databases = Arc::new(Databases::start(Limits::default())?);
        let accounts = Accounts::open(&databases, data, KdfCost::DEFAULT)?;
        let runtime = Runtime::new()?;
        let files = Files::new(databases, data.clone());
        let postgres = url.map(|url| runtime.block_on(Postgres::connect(&url))).transpose()?;
        let vaults = postgres.map_or_else(|| Vaults::Files(files.clone()), Vaults::Postgres);
        Ok(Self { accounts, vaults, files, data: data.clone(), runtime })
    }

    /// An account, unlocked by its password.
    pub(crate) fn unlock(&self, login: &str, password: &Source) -> anyhow::Result<Unlocked> {
        let login = Login::parse(login)?;
        // Accounts that apps of other servers made may have shorter ones than are taken here.
        let password = password.read(&format!("Password for {login}: "))?;
        let password = Password::parse_any_length(password)?;
        Ok(self.accounts.unlock(&login, &password)?)
    }

    /// The account's further vaults, each to be opened.
    pub(crate) fn children(&self, unlocked: &Unlocked) -> anyhow::Result<Vec<Unlocked>> {
        let children = self.accounts.children(unlocked.account)?;
        Ok(children.iter().map(|vault| unlocked.child(vault)).collect())
    }

    /// The file of a vault, where vaults are files.
    pub(crate) fn vault_path(&self, vault: &VaultId) -> anyhow::Result<PathBuf> {
        let is_file = matches!(self.vaults, Vaults::Files(_));
        anyhow::ensure!(is_file, "this vault is in PostgreSQL, not in a file");
        Ok(vault.path(&self.data))
    }

    /// Where vaults work, for calls that wait for them themselves.
    pub(crate) fn runtime(&self) -> &Handle {
        self.runtime.handle()
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
    let is_new = arguments.place.directory().is_err();
    let house = House::make(&arguments.place)?;
    let unlocked = house.accounts.add(&login, &password, now_ms())?;
    house.vaults.open(&unlocked)?;
    output.line(format_args!("made account {login}"));
    if is_new {
        // A server that has another one does not know the account.
        let data = house.data.display();
        output.line(format_args!("  {data} is a new data directory (--data names another)"));
    }
    output.value(&json!({"login": login.as_str(), "vault": unlocked.vault.as_str()}))
}

fn list(arguments: &List, output: Output) -> anyhow::Result<()> {
    let accounts = House::of_accounts(&arguments.data)?.accounts.list()?;
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
    let house = House::open(&arguments.place)?;
    let vaults = house.accounts.remove(&login)?;
    for vault in &vaults {
        house.wait(house.vaults.remove(vault))?;
    }
    let count = vaults.len() - 1;
    let others = if count > 0 { format!(", and {count} that belong to it") } else { String::new() };
    output.line(format_args!("removed account {login} and its vault{others}"));
    let vaults: Vec<_> = vaults.iter().map(accounts::VaultId::as_str).collect();
    output.value(&json!({"login": login.as_str(), "vault": vaults[0], "children": vaults[1..]}))
}

fn change(arguments: &Change, output: Output) -> anyhow::Result<()> {
    let login = Login::parse(&arguments.login)?;
    let old = Password::parse_any_length(arguments.password.read("Present password: ")?)?;
    let new = arguments.new_password_file.as_deref();
    let new = Password::parse(password::read_new(new, "New password: ")?)?;
    let house = House::open(&arguments.place)?;
    let revoked = if arguments.revoke_devices {
        let unlocked = house.accounts.unlock(&login, &old)?;
        let revoked = house.accounts.replace_password(&unlocked, &new, None)?;
        let count = revoked.len();
        house.wait(house.vaults.open(&unlocked)?.remove_clients(revoked))?;
        count
    } else {
        house.accounts.change_password(&login, &old, &new)?;
        0
    };
    output.line(format_args!("changed the password of {login}"));
    if arguments.revoke_devices {
        output.line(format_args!("revoked {revoked} devices"));
    }
    output.value(&json!({"login": login.as_str(), "revoked": revoked}))
}
